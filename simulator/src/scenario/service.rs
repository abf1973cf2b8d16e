use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Work;

/// Who does the work. Exactly one of `pool`, `sharing`, `usl` and `crowd` says how requests get in each other's way.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Service {
    /// How long a request takes when it is alone and the service runs at speed 1.
    pub work: Work,
    /// Workers with a queue before them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<Pool>,
    /// Cores that all requests share equally.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sharing: Option<Sharing>,
    /// Requests that slow each other by the universal scalability law.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usl: Option<Usl>,
    /// Requests that are all worked on at once, the longer the more there are as they come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crowd: Option<Crowd>,
    /// How fast it works at the start: 1 does a second of work in a second. Acts on work under way. In millionths.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub speed: f64,
    /// How many times as long work takes that starts from now on. Does not act on work under way. Default 1.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub stretch: f64,
    /// A pure delay between the end of the work and the answer. It holds no worker. Default none.
    #[serde(default, with = "humantime_serde", skip_serializing_if = "Duration::is_zero")]
    pub delay: Duration,
    /// What changes, and when. In order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ServiceChange>,
    /// When everything stands still, as in a garbage collection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pauses: Option<Pauses>,
    /// When a share of the requests fails fast.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<ErrorEpisode>,
    /// When it is away. In order of time, one after the other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<Outage>,
}

/// Workers with a queue before them, first in, first out.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Pool {
    /// How many requests are worked on at once.
    pub workers: u32,
    /// When work starts that could start now. Default `last`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub starts: Starts,
    /// Work that starts while n requests queue, here or at the door before the service, takes 1 + n / this times as
    /// long. Default: it does not slow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slows_with_queue: Option<u32>,
}

/// When a free worker takes work.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Starts {
    /// After everything else that happens at that instant.
    #[default]
    Last,
    /// As soon as there is work and a worker.
    AtOnce,
}

/// Cores that all requests share equally: each of n requests runs at the speed of min(1, cores / n).
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Sharing {
    /// How many requests run at full speed.
    pub cores: u32,
}

/// The universal scalability law: each of n requests runs at 1 / (1 + contention (n − 1) + crosstalk n (n − 1)).
///
/// Throughput peaks at n = √((1 − contention) / crosstalk) and falls beyond. Source: N. Gunther, "Guerrilla Capacity
/// Planning".
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Usl {
    /// The share of work that only one can do at a time (α or σ), 0 to 1.
    pub contention: f64,
    /// The cost of keeping every pair in step (β or κ), at least 0.
    pub crosstalk: f64,
}

/// No workers and no queue: whoever comes is worked on at once, and the more are there as he comes the longer it takes.
///
/// The n-th to be there takes 1 + `slows_by` (n − 1) + (`knee.growth`^max(0, n − `knee.from`) − 1) times as long as one
/// alone. Source: the server in the tests of Vector's adaptive request concurrency.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Crowd {
    /// By how much of its own work each of those who are there slows one who comes. Default 0.
    #[serde(default, skip_serializing_if = "is_default")]
    pub slows_by: f64,
    /// From how many on it slows by a factor for each more. Default: it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knee: Option<Knee>,
    /// How many may be there. Default: any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<u32>,
    /// How many may have come within a second. Default: any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most_per_second: Option<u32>,
    /// What becomes of those who are too many. Default `refused`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub beyond: Beyond,
}

/// A bend in how a [`Crowd`] slows.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Knee {
    /// So many do not slow each other.
    pub from: u32,
    /// Each more makes it so many times as long, from 1 up.
    pub growth: f64,
}

/// What becomes of a request that is one too many for a [`Crowd`].
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Beyond {
    /// It is answered that there are too many, after the time that its work would take alone. It counts as one who is
    /// there meanwhile.
    #[default]
    Refused,
    /// It is never answered, and gone at once: its client times out.
    Lost,
}

/// What changes at one instant. What is not named stays.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceChange {
    /// When.
    #[serde(with = "humantime_serde")]
    pub at: Duration,
    /// Workers of a pool. Fewer let those at work finish.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<u32>,
    /// Cores of a sharing service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<u32>,
    /// See [`Service::speed`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<f64>,
    /// See [`Service::stretch`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stretch: Option<f64>,
    /// See [`Service::delay`]; holds for work that ends from now on.
    #[serde(default, with = "humantime_serde", skip_serializing_if = "Option::is_none")]
    pub delay: Option<Duration>,
}

/// Pauses at regular intervals: nothing is worked on, and nobody is told.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Pauses {
    /// When the first begins. Default: after one interval.
    #[serde(default, with = "humantime_serde", skip_serializing_if = "Option::is_none")]
    pub first: Option<Duration>,
    /// From one beginning to the next.
    #[serde(with = "humantime_serde")]
    pub every: Duration,
    /// How long each lasts.
    #[serde(with = "humantime_serde")]
    pub lasting: Duration,
}

/// A time in which a share of the requests fails after a fixed time of work, instead of doing their own.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorEpisode {
    /// When it begins. Default: at the start.
    #[serde(default, with = "humantime_serde")]
    pub from: Duration,
    /// When it ends. Default: never.
    #[serde(default, with = "humantime_serde", skip_serializing_if = "Option::is_none")]
    pub until: Option<Duration>,
    /// The share of requests that fail among those whose work starts in it, 0 to 1.
    pub share: f64,
    /// How long the failing takes. It holds a worker as any work does.
    #[serde(with = "humantime_serde")]
    pub after: Duration,
}

/// A time in which the service is away. The door before it is away with it, unless requests are kept.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Outage {
    /// When it begins.
    #[serde(with = "humantime_serde")]
    pub from: Duration,
    /// When it ends.
    #[serde(with = "humantime_serde")]
    pub until: Duration,
    /// What becomes of the requests that are there, and of those that come.
    pub requests: OutageRequests,
}

/// What becomes of requests in an outage.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OutageRequests {
    /// They are refused at once: nobody listens.
    Refused,
    /// They are never answered: their clients time out.
    Lost,
    /// They wait and are worked off afterwards. What is worked on is finished.
    Kept,
}

fn one() -> f64 {
    1.0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_one(number: &f64) -> bool {
    *number == 1.0
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
