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

mod clock;
mod criticality;
mod gate;
mod outcome;
mod refusal;
mod request;
mod sync;

#[cfg(feature = "quanta")]
pub use clock::TscClock;
pub use clock::{Clock, ManualClock, SystemClock};
pub use criticality::Criticality;
pub use gate::{Acquire, Gate, GateBuilder, OwnedToken, Snapshot, TimedDecision, Token};
pub use goodput_algorithms as algorithms;
pub use outcome::Outcome;
pub use refusal::{Refusal, RefusalReason};
pub use request::Request;
