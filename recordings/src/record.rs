//! What a recording consists of: requests, or steps of a load test when the file only holds aggregates.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

/// How a request ended, as far as the service's capacity is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The service answered, be it with a client's mistake (404).
    Success,
    /// Turned away without service: 429, 503, a full queue, an open circuit breaker. Its latency says nothing
    /// about the service, however short or long.
    Refused,
    /// Somebody stopped waiting for the service (504, a client's time limit). The latency is a lower bound.
    TimedOut,
    /// An error that says nothing about load.
    Failure,
    /// The client left before the answer. The latency is a lower bound.
    Cancelled,
}

impl Outcome {
    /// All outcomes.
    pub const ALL: [Self; 5] = [Self::Success, Self::Refused, Self::TimedOut, Self::Failure, Self::Cancelled];

    /// The outcome that an HTTP status stands for. Statuses 0 and below are what proxies and load generators write
    /// for a client that left; 499 is nginx's word for it, 460 that of AWS.
    pub fn of_status(code: i32) -> Self {
        match code {
            429 | 503 => Self::Refused,
            504 => Self::TimedOut,
            408 => Self::Failure,
            460 | 499 => Self::Cancelled,
            ..=0 => Self::Cancelled,
            1..500 => Self::Success,
            _ => Self::Failure,
        }
    }

    /// Whether the latency is only a lower bound of what the service would have needed.
    pub fn is_censored(self) -> bool {
        matches!(self, Self::TimedOut | Self::Cancelled)
    }

    /// The outcome's name in files: `success`, `refused`, `timed_out`, `failure` or `cancelled`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Refused => "refused",
            Self::TimedOut => "timed_out",
            Self::Failure => "failure",
            Self::Cancelled => "cancelled",
        }
    }
}

/// What the file wrote as the status of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// The format has no status, or nothing was written.
    #[default]
    Absent,
    /// An HTTP status, or a tool's own number (0 and −1 for no answer).
    Code(i32),
    /// A word: `OK`, `KO`, a gRPC code's name, an exception.
    Text(Cow<'static, str>),
}

impl Status {
    /// Reads a status as written: a number becomes a code, nothing becomes absent, the rest stays text.
    pub(crate) fn read(text: &[u8]) -> Self {
        let digits = text.strip_prefix(b"-").unwrap_or(text);
        if text.is_empty() {
            Self::Absent
        } else if !digits.is_empty() && digits.len() <= 6 && digits.iter().all(u8::is_ascii_digit) {
            let value = digits.iter().fold(0, |sum, b| sum * 10 + i32::from(b - b'0'));
            Self::Code(if digits.len() == text.len() { value } else { -value })
        } else {
            Self::Text(Cow::Owned(String::from_utf8_lossy(&text[..text.len().min(200)]).into_owned()))
        }
    }

    /// The number, where it is one.
    pub fn code(&self) -> Option<i32> {
        match self {
            Self::Code(code) => Some(*code),
            _ => None,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => Ok(()),
            Self::Code(code) => write!(f, "{code}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// Which end of a request its time stamp marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// The stamp is the arrival.
    Start,
    /// The stamp is the completion.
    End,
    /// The file writes both.
    Both,
    /// The file has no stamps.
    None,
}

/// One request.
///
/// All instants are nanoseconds since the Unix epoch, or since the start of the run in files that count from there;
/// all latencies are nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The time stamp as written, be it the start or the end.
    pub stamp: Option<i64>,
    /// When the request arrived.
    pub start: Option<i64>,
    /// When it was done. Differs from `start + latency` only in files that write both instants.
    pub end: Option<i64>,
    /// How long it took, as whoever wrote the file saw it.
    pub latency: Option<u64>,
    /// How long it spent in the service itself, where the file tells it apart from the proxy's own queue.
    pub service: Option<u64>,
    /// How it ended.
    pub outcome: Outcome,
    /// Whether it counts as an error by the plain rule: status 500 or more, none at all, or the tool's own mark.
    pub error: bool,
    /// Whether it lies within another record of the file or sums others up (a redirect, a transaction), so that
    /// counting it as load would count twice.
    pub nested: bool,
    /// The status as written.
    pub status: Status,
}

impl Record {
    /// A request known by one time stamp, which marks its start or its end, and its latency.
    pub(crate) fn stamped(stamp: Option<i64>, basis: Basis, latency: Option<u64>) -> Self {
        let length = latency.and_then(|latency| i64::try_from(latency).ok());
        let (start, end) = match (stamp, basis) {
            (Some(at), Basis::Start) => (Some(at), length.and_then(|l| at.checked_add(l))),
            (Some(at), Basis::End) => (length.and_then(|l| at.checked_sub(l)), Some(at)),
            _ => (None, None),
        };
        Self { stamp, start, end, ..Self::unstamped(latency) }
    }

    /// A request known by its start and its end.
    pub(crate) fn spanning(start: i64, end: i64) -> Self {
        let latency = end.checked_sub(start).and_then(|l| u64::try_from(l).ok());
        Self { stamp: Some(start), start: Some(start), end: Some(end), ..Self::unstamped(latency) }
    }

    /// A request of which only the latency is known.
    pub(crate) fn unstamped(latency: Option<u64>) -> Self {
        Self {
            stamp: None,
            start: None,
            end: None,
            latency,
            service: None,
            outcome: Outcome::Success,
            error: false,
            nested: false,
            status: Status::Absent,
        }
    }

    /// Takes over a status, with the outcome and the error mark that follow from it. An absent status is an error:
    /// the format has one, and this request got none.
    #[must_use]
    pub(crate) fn with_status(mut self, status: Status) -> Self {
        (self.outcome, self.error) = match &status {
            Status::Code(code) => (Outcome::of_status(*code), *code >= 500 || *code <= 0),
            Status::Absent => (Outcome::Cancelled, true),
            Status::Text(text) if text == "-" => (Outcome::Cancelled, true),
            Status::Text(_) => (Outcome::Success, false),
        };
        self.status = status;
        self
    }
}

/// One step of a load test, or one interval of a monitor: what an aggregate says about a stretch of time in which
/// the load was about constant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// When it began, in nanoseconds since the epoch.
    pub start: Option<i64>,
    /// How long it lasted, in seconds; 0 when the file does not say.
    pub seconds: f64,
    /// Requests in flight, as configured (connections of a closed-loop client) or as gauged.
    pub clients: Option<f64>,
    /// Requests asked for per second, for an open-loop client.
    pub offered_per_s: Option<f64>,
    /// Requests answered, errors included.
    pub completed: f64,
    /// Of those, failed or refused.
    pub errors: f64,
    /// Of those, turned away without service (429, 503), where the file tells.
    pub refused: Option<f64>,
    /// Requests on which the client gave up; not among the completed.
    pub timeouts: f64,
    /// Latency of the completed requests.
    pub latency_ms: StepLatency,
}

/// What an aggregate says about latency, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepLatency {
    /// Arithmetic mean.
    pub mean: Option<f64>,
    /// Smallest.
    pub min: Option<f64>,
    /// Half were no slower.
    pub p50: Option<f64>,
    /// 90 % were no slower.
    pub p90: Option<f64>,
    /// 99 % were no slower.
    pub p99: Option<f64>,
    /// Largest.
    pub max: Option<f64>,
}

/// What a recording is made of.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A request.
    Request(Record),
    /// An aggregate.
    Step(Step),
}
