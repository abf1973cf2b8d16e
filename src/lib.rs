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

mod child;
mod client;
mod clock;
mod criticality;
mod deadline;
mod gate;
mod key;
mod keyed;
mod load;
#[cfg(feature = "tower")]
pub mod middleware;
mod never;
mod outcome;
mod priority;
mod producer;
mod refusal;
mod request;
mod share;
mod sync;
mod waiting;

pub use child::{ChildGate, ChildToken};
pub use client::{
    Backoff, BackoffSettings, Call, Failure, GiveUp, GiveUpReason, Jitter, PaymentSettings, PushBack,
    Retries, RetryBudget, RetryBudgetSettings, RetryQuota, RetryQuotaSettings, RetrySettings,
    RetryThrottling, RetryThrottlingSettings, Throttle, ThrottleSettings,
};
#[cfg(feature = "quanta")]
pub use clock::TscClock;
pub use clock::{Clock, ManualClock, SystemClock};
pub use criticality::Criticality;
pub use deadline::{DeadlineHeader, DeadlineUnit, InvalidDeadline};
pub use gate::{Acquire, Gate, GateBuilder, OwnedToken, Snapshot, TimedDecision, Token};
pub use goodput_algorithms as algorithms;
pub use key::Key;
pub use keyed::{KeyedGates, KeyedSettings};
pub use load::{Degradation, DegradationSettings, Load, LoadSample, LoadSettings};
pub use outcome::Outcome;
pub use priority::{
    CohortSettings, Cohorts, CriticalityShares, PartitionSettings, Partitions, PartitionsSettings, Quota,
    RateQuota, TenantSettings, Tenants,
};
pub use producer::PushBackQueue;
pub use refusal::{
    Answers, GrpcAnswer, GrpcCode, HttpAnswer, OVERLOADED_HEADER, OVERLOADED_VALUE, QuotaStatus, Refusal,
    RefusalReason, retry_after, spread,
};
pub use request::Request;
pub use share::{Allowance, Share};
pub use waiting::{
    CoDelSettings, Fit, Joined, Order, QueueBound, Served, Ticket, Waiter, WaitingRoom, WaitingSettings,
};
