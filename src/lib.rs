//! A gate for a service: it knows how many requests may be in flight, admits that many, and refuses the rest early.
//!
//! ```
//! use goodput::{Gate, Outcome};
//! use goodput::algorithms::{Aimd, AimdSettings};
//!
//! let gate = Gate::new(Aimd::new(AimdSettings::default()).unwrap());
//! match gate.try_acquire() {
//!     Ok(token) => {
//!         // ... the work ...
//!         token.release(Outcome::Success);
//!     }
//!     Err(refusal) => println!("503, {refusal}"),
//! }
//! ```
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
