use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};

/// Why a request was not admitted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Refusal {
    /// Why.
    pub reason: RefusalReason,
    /// The limit at that moment.
    pub limit: usize,
    /// What was in flight at that moment.
    pub in_flight: usize,
    /// How long to wait before another attempt is worth it, where the gate can tell.
    pub retry_after: Option<Duration>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} in flight, limit {}", self.reason, self.in_flight, self.limit)
    }
}

impl std::error::Error for Refusal {}

/// The kinds of refusal.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "snake_case")]
pub enum RefusalReason {
    /// The limit is reached, and the gate does not let this request wait.
    LimitReached,
    /// The limit is reached, and so is the bound on waiting requests.
    QueueFull,
    /// It waited as long as it may.
    WaitedTooLong,
    /// Its deadline passed while it waited, or would pass before its turn.
    DeadlineExpired,
}

impl RefusalReason {
    /// The reason as one lower-case word, as metrics and tables label it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::LimitReached => "limit_reached",
            Self::QueueFull => "queue_full",
            Self::WaitedTooLong => "waited_too_long",
            Self::DeadlineExpired => "deadline_expired",
        }
    }
}

impl fmt::Display for RefusalReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
