use std::time::Duration;

use goodput::{Criticality, client::ThrottleSettings};
use serde::{Deserialize, Serialize};

use super::{Retries, Work};

/// One or more clients of the same kind. Exactly one of `open`, `closed`, `paced` and `requests` says what they send.
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
    /// A producer that works at the ticks of a clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paced: Option<Paced>,
    /// An explicit list of requests, in order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<Listed>,
    /// How long the client waits for an answer to one attempt. Default: for ever.
    #[serde(default, with = "humantime_serde", skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// Whether doors are told until when an answer is worth something: for `timeout` from the sending of an attempt,
    /// or else for the scenario's `deadline`. Default no.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tells_deadline: bool,
    /// The partition to which its requests belong, of those that a door guarantees something to. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<String>,
    /// Whether doors are told which of the `count` clients asks: a user, whose requests are all of one cohort. Default no.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tells_user: bool,
    /// The classes into which its requests fall. Default: all are of one, critical.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<Class>,
    /// What it does when an attempt was in vain. Default: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<Retries>,
    /// Holds attempts back while most are refused: goodput's throttle, without randomness. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttle: Option<ThrottleSettings>,
}

/// A class of requests. Those of one client have either all `share` or all `turns`, unless a list names them.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Class {
    /// What tables and lists call it. Classes of several clients that have the same name are one.
    pub name: String,
    /// How much it matters that they are served. Default `critical`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub criticality: Criticality,
    /// The chance of a request to be of this class, in proportion to that of the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// How many requests in a row are of this class, before it is the turn of the next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<u32>,
}

/// Requests that become due at the ticks of a clock: at each, the rate times the tick is added to what is owed, and
/// whole requests are sent.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Paced {
    /// The rate, in requests per second. What is owed is a sum in binary floating point.
    pub per_second: f64,
    /// From one tick to the next; the first is as the client joins.
    #[serde(with = "humantime_serde")]
    pub tick: Duration,
    /// Whether it can wait: it keeps what a door with `push_back` does not take, and pauses, owing nothing more, until
    /// that door is ready. Default no.
    #[serde(default, skip_serializing_if = "is_default")]
    pub pauses: bool,
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
    /// How many attempts of each user's first request were in vain before the run began. Default 0.
    #[serde(default, skip_serializing_if = "is_default")]
    pub already_failed: u32,
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
    /// The name of its class. Default: decided as any other's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
}

fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_one(number: &u32) -> bool {
    *number == 1
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
