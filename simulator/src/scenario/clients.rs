use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Work;

/// One or more clients of the same kind. Exactly one of `open`, `closed` and `requests` says what they send.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Clients {
    /// What tables and plots call them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// How many there are. Each sends the traffic described here, and has a gate of its own where clients have
    /// gates. Default 1.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub count: u32,
    /// When they come. Times inside `open` and `closed` still count from the start of the run. Default: at the
    /// start.
    #[serde(default, with = "humantime_serde", skip_serializing_if = "Duration::is_zero")]
    pub joins: Duration,
    /// When they send their last request. Default: never.
    #[serde(default, with = "humantime_serde", skip_serializing_if = "Option::is_none")]
    pub leaves: Option<Duration>,
    /// Requests that come whether or not earlier ones were answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<Open>,
    /// Users who wait for an answer and think before they ask again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed: Option<Closed>,
    /// An explicit list of requests, in order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<Listed>,
    /// How long the client waits for an answer to one attempt. Default: for ever.
    #[serde(default, with = "humantime_serde", skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// What it does when an attempt was in vain. Default: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<Retries>,
}

/// Requests that come at a rate of their own.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Open {
    /// How they follow each other. Default `poisson`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub process: Process,
    /// The rate of each client at the start, in requests per second.
    pub per_second: f64,
    /// How the rate changes. In order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<RateChange>,
    /// A wave on top of the rate. Not together with `changes` or `bursts`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sine: Option<Sine>,
    /// Another rate at regular intervals. Not together with `changes` or `sine`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bursts: Option<Bursts>,
}

/// How requests follow each other.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Process {
    /// Independently of each other.
    #[default]
    Poisson,
    /// Evenly, the first as the client joins.
    Constant,
}

/// A step or a ramp of the rate.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RateChange {
    /// When.
    #[serde(with = "humantime_serde")]
    pub at: Duration,
    /// The rate that it leads to, in requests per second.
    pub per_second: f64,
    /// How long it takes to get there, in fifty even steps. Default: a single step.
    #[serde(default, with = "humantime_serde", skip_serializing_if = "Duration::is_zero")]
    pub over: Duration,
}

/// A wave, in steps: the rate starts at its lowest, `per_second − swing`, and is at its highest after half a period.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Sine {
    /// How far it swings to each side, in requests per second.
    pub swing_per_second: f64,
    /// From one low to the next.
    #[serde(with = "humantime_serde")]
    pub period: Duration,
    /// How long each step lasts; it holds the rate of its middle.
    #[serde(with = "humantime_serde")]
    pub step: Duration,
}

/// Bursts at regular intervals.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Bursts {
    /// The rate in a burst, in requests per second.
    pub per_second: f64,
    /// When the first begins. Default: after an interval less its length, so that an interval ends with a burst.
    #[serde(default, with = "humantime_serde", skip_serializing_if = "Option::is_none")]
    pub first: Option<Duration>,
    /// From one beginning to the next.
    #[serde(with = "humantime_serde")]
    pub every: Duration,
    /// How long each lasts.
    #[serde(with = "humantime_serde")]
    pub lasting: Duration,
}

/// Users who think, ask, and wait for the answer (or for the last retry to fail).
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Closed {
    /// How many.
    pub users: u32,
    /// How long each thinks before it asks.
    pub think: Work,
    /// Spreads the first requests evenly over this time, the first of them as the client joins. Default: every
    /// user thinks first.
    #[serde(default, with = "humantime_serde", skip_serializing_if = "Option::is_none")]
    pub first_over: Option<Duration>,
}

/// One request of an explicit list.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Listed {
    /// When it is sent.
    #[serde(with = "humantime_serde")]
    pub at: Duration,
    /// Its work. Default: drawn as any other's.
    #[serde(default, with = "humantime_serde", skip_serializing_if = "Option::is_none")]
    pub work: Option<Duration>,
}

/// What a client does when an attempt was in vain. A retry brings the same work again.
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
    #[serde(default = "one_f64", skip_serializing_if = "is_one_f64")]
    pub growth: f64,
    /// No wait is longer. Default: no bound.
    #[serde(default, with = "humantime_serde", skip_serializing_if = "Option::is_none")]
    pub longest: Option<Duration>,
    /// What chance does to a wait. Default `none`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub jitter: Jitter,
    /// What it retries. Default: timeouts and refusals.
    #[serde(default = "timeouts_and_refusals")]
    pub on: Vec<RetryOn>,
}

/// What chance does to a wait of length w.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Jitter {
    /// The wait is w.
    #[default]
    None,
    /// Uniform between 0 and w.
    Full,
    /// Uniform between w / 2 and w.
    Equal,
}

/// Why an attempt was in vain.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryOn {
    /// No answer in time.
    Timeout,
    /// A gate refused it.
    Refusal,
    /// It failed.
    Failure,
}

fn timeouts_and_refusals() -> Vec<RetryOn> {
    vec![RetryOn::Timeout, RetryOn::Refusal]
}

fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_one(number: &u32) -> bool {
    *number == 1
}

fn one_f64() -> f64 {
    1.0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_one_f64(number: &f64) -> bool {
    *number == 1.0
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
