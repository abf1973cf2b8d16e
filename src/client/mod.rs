//! The other side of the door: what a client does so that its retries do not become the overload.
//!
//! [`Throttle`] holds requests back while most of them are refused. [`Retries`] says after a failure whether there is
//! another attempt, and when: at most so many, as far as a budget allows, after a wait that grows and is never shorter
//! than the server asked for. The budget is a [`RetryBudget`] (a share of requests), or a token bucket as gRPC
//! ([`RetryThrottling`]) or the AWS clients ([`RetryQuota`]) keep it.
//!
//! Each attempt has its own token at a gate and its own latency; waits between attempts hold none.

mod backoff;
mod budget;
mod retries;
mod throttle;
mod tokens;

pub use self::{
    backoff::{Backoff, BackoffSettings, Jitter, PushBack},
    budget::{RetryBudget, RetryBudgetSettings},
    retries::{Call, Failure, GiveUp, GiveUpReason, PaymentSettings, Retries, RetrySettings},
    throttle::{Throttle, ThrottleSettings},
    tokens::{RetryQuota, RetryQuotaSettings, RetryThrottling, RetryThrottlingSettings},
};
