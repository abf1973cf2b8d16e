//! Gates as [tower] layers, for servers and for clients.
//!
//! [`GateLayer`] puts a [`Gate`](crate::Gate) in front of a service. What it does with a request, step by step,
//! is a [`Protocol`]: [`Plain`] for any service at all, `Http` for HTTP and gRPC.
//!
//! * **Readiness is the inner service's alone.** `poll_ready` takes no place in the gate, so idle clones park no
//!   capacity. A place is asked for in `call`, inside the returned future, and is given back when that future is
//!   dropped, whatever the reason.
//! * **A refusal leaves nothing behind.** A request that may not wait is tried once; nothing of it is queued. One
//!   that waits leaves the queue when its future is dropped.
//! * **The token lives as long as the work.** For HTTP that is the end of the response's body, its error, or its
//!   drop. Work that outlives the response, as a spawned task does, keeps its place with a [`SharedToken`].
//! * **A client** has up to three layers, from the outside in: tower's own retry layer with a `retry::RetryPolicy`, a
//!   [`ThrottleLayer`] that holds calls back while most are refused, and a [`GateLayer`] that finds out how many at
//!   once the host takes. Each attempt so has its own token and its own latency, and none is held between two.
//! * **A wait is bounded in time** as the gate's settings say, by tokio's timer with the feature `tokio` (which `axum`,
//!   `tonic` and `reqwest` bring along), else by the next release after the time is up.
//!
//! | feature | what it adds |
//! |---|---|
//! | `tower` | [`GateLayer`], [`GateService`], [`Plain`], [`ThrottleLayer`] |
//! | `retry` | `retry::RetryPolicy`: retries within a budget by tower's retry layer |
//! | `http` | `Http`: outcomes by status, bodies that hold tokens, refusals as answers, HTTP and gRPC alike |
//! | `axum` | `Refusal` as an axum response |
//! | `hyper` | [`GateService`] as a service of hyper itself |
//! | `tonic` | `Refusal` as a `tonic::Status`; outcomes of a channel's errors |
//! | `reqwest` | `GateMiddleware` for reqwest clients |
//!
//! [tower]: https://docs.rs/tower

#[cfg(feature = "axum")]
mod axum;
mod future;
#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "hyper")]
mod hyper;
mod layer;
mod plain;
mod protocol;
mod random;
#[cfg(feature = "reqwest")]
pub mod reqwest;
#[cfg(feature = "retry")]
pub mod retry;
mod service;
mod shared_token;
mod throttle;
#[cfg(feature = "tonic")]
pub mod tonic;

#[cfg(feature = "http")]
pub use self::http::{GuardedBody, Http};
#[cfg(feature = "hyper")]
pub use self::hyper::HyperCall;
#[cfg(feature = "reqwest")]
pub use self::reqwest::GateMiddleware;
pub use self::{
    future::{Call, ResponseFuture},
    layer::{GateLayer, WhenFull},
    plain::{ByResult, GateError, Plain},
    protocol::{Classify, Protocol, ReadRequest, Unmarked},
    service::{GateService, TowerCall},
    shared_token::SharedToken,
    throttle::{ThrottleFuture, ThrottleLayer, ThrottleService},
};
