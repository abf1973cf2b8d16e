use std::time::Duration;

use goodput::client::{BackoffSettings, Jitter, PaymentSettings, RetrySettings};
use serde::{Deserialize, Serialize};

/// Longer than every run.
const FOREVER: Duration = Duration::from_secs(200 * 365 * 86_400);

/// What a client does when an attempt was in vain: goodput's retries. A retry brings the same work again.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Retries {
    /// How many at most. Default: for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<u32>,
    /// The wait before the first.
    #[serde(with = "humantime_serde")]
    pub wait: Duration,
    /// How many times longer each next wait is. Default 1.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub growth: f64,
    /// The waits before the second and all further retries, the last of them before all that follow; instead of
    /// `growth`. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub then: Vec<humantime_serde::Serde<Duration>>,
    /// No wait is longer. Default: no bound.
    #[serde(default, with = "humantime_serde", skip_serializing_if = "Option::is_none")]
    pub longest: Option<Duration>,
    /// What chance does to a wait. Default `none`.
    #[serde(default = "no_jitter", skip_serializing_if = "is_no_jitter")]
    pub jitter: Jitter,
    /// What it retries. Default: timeouts and refusals.
    #[serde(default = "timeouts_and_refusals")]
    pub on: Vec<RetryOn>,
    /// What retries are paid from, by all requests of the client together. Default: nothing, they are free.
    #[serde(default = "free", skip_serializing_if = "is_free")]
    pub payment: PaymentSettings,
    /// Whether the wait counts from the sending of an attempt, not from its failure: while a request is unanswered, one
    /// attempt follows the other, and any answer in time will do. Default no.
    #[serde(default, skip_serializing_if = "is_false")]
    pub from_send: bool,
    /// Whether a request keeps its place at its client's gate from its first attempt to its last, through the waits
    /// between, so that the limiter sees all of it as one. An attempt, and its timeout, then begin behind the gate. Default no: each
    /// attempt asks for a place of its own.
    #[serde(default, skip_serializing_if = "is_false")]
    pub keeps_place: bool,
}

impl Retries {
    /// The wait before the `retry`-th retry, from 1, if it is one of a list.
    pub(crate) fn listed_wait(&self, retry: u32) -> Option<Duration> {
        let listed = self.then.get((retry as usize).checked_sub(2)?).or(self.then.last());
        listed.map(|wait| **wait)
    }

    /// The settings of goodput's retries.
    pub(crate) fn settings(&self) -> RetrySettings {
        RetrySettings {
            max_attempts: self.at_most.map_or(u32::MAX, |most| most.saturating_add(1)),
            backoff: BackoffSettings {
                first: self.wait,
                factor: self.growth,
                max: self.longest.unwrap_or(FOREVER),
                jitter: self.jitter,
            },
            payment: self.payment.clone(),
        }
    }
}

/// Why an attempt was in vain.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryOn {
    /// No answer in time.
    Timeout,
    /// It was refused: by a gate, by the client's throttle, or by a service that is away or crowded.
    Refusal,
    /// It failed: the service answered with an error.
    Failure,
}

fn timeouts_and_refusals() -> Vec<RetryOn> {
    vec![RetryOn::Timeout, RetryOn::Refusal]
}

fn no_jitter() -> Jitter {
    Jitter::None
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_no_jitter(jitter: &Jitter) -> bool {
    *jitter == Jitter::None
}

fn free() -> PaymentSettings {
    PaymentSettings::Free
}

fn is_free(payment: &PaymentSettings) -> bool {
    *payment == PaymentSettings::Free
}

fn one() -> f64 {
    1.0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_one(number: &f64) -> bool {
    *number == 1.0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_false(value: &bool) -> bool {
    !*value
}
