//! A gate for a service: it knows how many requests may be in flight, admits that many, and refuses the rest early.
//!
//! How many that is, a [limiter](algorithms) keeps finding out while the service runs. Whoever is refused hears of it
//! at once, why, and when to come back; whoever is admitted finds a service that is not overloaded.
//!
//! ```
//! use goodput::{Gate, Outcome};
//!
//! // With Crest, our own algorithm, which needs to be told nothing about the service.
//! let gate = Gate::default();
//! match gate.try_acquire() {
//!     Ok(token) => {
//!         // ... the work ...
//!         token.release(Outcome::Success);
//!     }
//!     Err(refusal) => println!("503, {refusal}"),
//! }
//! ```
//!
//! # A short manual
//!
//! ## Tokens and outcomes
//!
//! An admitted request holds a [`Token`] (or an [`OwnedToken`], which goes where it likes) until it ends. It is
//! released exactly once: by hand, or by its drop when a handler panics, its future is cancelled, or its client
//! leaves. How the request ended is its [`Outcome`], and it is what the limiter learns from, so it should be true:
//!
//! | outcome | when | what it teaches |
//! | --- | --- | --- |
//! | [`Success`](Outcome::Success) | it was answered | its latency |
//! | [`Overload`](Outcome::Overload) | time-out, missed deadline, 429 or 503 from behind | that there is too much |
//! | [`Failure`](Outcome::Failure) | an error that says nothing about load | nothing but its time in flight |
//! | [`Cancelled`](Outcome::Cancelled) | the caller left | nothing |
//!
//! ## Choosing an algorithm
//!
//! [`Gate::default`] has [`Crest`](algorithms::Crest). Every published algorithm is in [`algorithms`], each with a page
//! that says when to choose it and when not, and [`algorithms::Fixed`] for a limit that is known. The command
//! `goodput choose` plays an overload of a service, as its own log describes it, against all of them.
//!
//! ## As a layer
//!
//! `GateLayer::http(gate)` in front of a tower, axum, tonic or hyper service does all of the above: outcomes by status,
//! places held to the end of a body, refusals as 503 with `Retry-After` or gRPC `UNAVAILABLE` with push-back. See
//! `middleware`; each protocol is behind a feature of its own, and the repository's `examples/` has a program for each,
//! for threads without a runtime, and for a queue's worker.
//!
//! ## Waiting
//!
//! By default a gate has a short queue: at most half the limit, for at most a second. [`Gate::acquire`] waits in it, and
//! leaves it when its future is dropped; [`Gate::try_acquire`] never waits. [`Gate::new`] and [`Gate::builder`] make gates
//! that refuse at once, unless [`GateBuilder::waiting`] says otherwise. [`waiting`] tells in which order one waits, and
//! what is done about a queue that stands.
//!
//! ## Who goes first
//!
//! A [`Request`] says what a gate should know of it: how much it matters ([`Criticality`], four levels), weight,
//! tenant, partition, whether it continues work that was begun, or is a health check that passes always.
//!
//! ```
//! use goodput::{Criticality, Gate, Key, Request, priority::CriticalityShares};
//! use goodput::algorithms::{Fixed, FixedSettings};
//!
//! let limiter = Box::new(Fixed::new(FixedSettings { limit: 10 })?);
//! let gate = Gate::builder(limiter).shares(CriticalityShares::default()).build();
//! let crawler = Request::DEFAULT.of(Criticality::Sheddable).from_tenant(Key::of("crawler"));
//! let tokens: Vec<_> = std::iter::from_fn(|| gate.try_acquire_for(&crawler).ok()).collect();
//! // The rest is for what matters more.
//! assert_eq!(tokens.len(), 8);
//! assert!(gate.try_acquire().is_ok());
//! # Ok::<(), goodput::algorithms::InvalidSettings>(())
//! ```
//!
//! Shares of the limit, cohorts of users that are shed in turn, partitions with guarantees and tenants with quotas
//! are in [`priority`]. A gate for each host, route or tenant is in [`keyed`], gates under a common one in [`child`].
//!
//! ## Deadlines
//!
//! [`Request::by`] says when the caller stops waiting. It is then not let in, dropped from the queue, or refused at the
//! door when its turn would come too late. [`deadline`] reads them from `grpc-timeout` and other headers, and passes on
//! what is left.
//!
//! ## The other side of the door
//!
//! A client needs a gate too, one for each host, and more: retries within a budget, waits that honour what the server
//! said, and a throttle for when most is refused. They are state machines in [`client`], and tower layers in
//! `middleware`. A producer that can wait is pushed back by [`producer`].
//!
//! ## Before it is switched on, and while it runs
//!
//! With `observe_only` a gate admits everybody and counts whom it would have refused. All settings are one struct,
//! [`GateConfig`], and one file, `docs/configuration.md`; [`Gate::reconfigure`] puts another in force while requests
//! are in flight, and `reload` follows a file and refuses a bad one.
//!
//! ## What the operator sees
//!
//! [`Gate::snapshot`] tells everything, with the last decisions and why they were taken. [`observe`] makes metrics,
//! events and signals to scale by of it; the repository's `dashboards/` has a dashboard and alert rules. [`load`] makes one
//! number of it, and says which optional work to leave undone before anybody is refused.
//!
//! # The rooms of this crate
//!
//! The everyday types are here at the root. What a service needs less often has a module of its own, each with a page
//! that says when.
//!
//! | module | what it is for |
//! | --- | --- |
//! | [`algorithms`] | what the limit should be: limiters and their settings |
//! | [`config`] | everything that can be set, in one struct and one file |
//! | [`waiting`] | how long a request may wait for room, and who goes first |
//! | [`priority`] | who may use how much: criticality shares, cohorts, partitions, tenants |
//! | [`share`] | parts of a limit, as settings write them |
//! | [`refusal`] | what the refused are told |
//! | [`deadline`] | deadlines in headers, from the caller and to the next hop |
//! | [`keyed`], [`child`] | a gate for each host, route or tenant; gates under another |
//! | [`client`] | the other side of the door: retries, budgets, throttle |
//! | [`producer`] | push-back for producers that can wait |
//! | [`load`] | a load signal, and optional work that goes first |
//! | [`observe`] | what the operator sees: signals, metrics, events |
//! | `reload` | a config file that is watched, behind the feature `toml` |
//! | `middleware` | gates as tower layers, behind features |

pub mod child;
pub mod client;
mod clock;
pub mod config;
mod criticality;
pub mod deadline;
mod gate;
mod key;
pub mod keyed;
pub mod load;
#[cfg(feature = "tower")]
pub mod middleware;
mod never;
pub mod observe;
mod outcome;
pub mod priority;
pub mod producer;
pub mod refusal;
#[cfg(feature = "toml")]
pub mod reload;
mod request;
pub mod share;
mod sync;
pub mod waiting;

#[cfg(feature = "quanta")]
pub use clock::TscClock;
pub use clock::{Clock, ManualClock, SystemClock};
pub use config::GateConfig;
pub use criticality::Criticality;
#[cfg(feature = "tokio")]
pub use gate::TimedAcquire;
pub use gate::{Acquire, Gate, GateBuilder, MoveCounts, OwnedToken, Snapshot, TimedDecision, Token};
pub use goodput_algorithms as algorithms;
pub use key::Key;
pub use outcome::Outcome;
pub use refusal::{Refusal, RefusalReason};
pub use request::Request;
