//! What the refused are told.
//!
//! A [`Refusal`] says why, what the limit was, and how long to wait before another attempt is worth it: the queue
//! ahead divided by the rate at which it drains ([`retry_after`]), where the gate can tell. [`Answers`] puts that
//! into words of HTTP and gRPC. [`RetryWatch`] sees when all hosts refuse, and another attempt can only do harm.
//! [`RefusalCounts`] is how many were told what.

mod answer;
mod counts;
mod hint;
mod retry_watch;

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};

pub use self::{
    answer::{Answers, GrpcAnswer, GrpcCode, HttpAnswer, OVERLOADED_HEADER, OVERLOADED_VALUE, RefusalStatus},
    counts::RefusalCounts,
    hint::{retry_after, spread},
    retry_watch::{RetryWatch, RetryWatchSettings},
};

/// Why a request was not admitted.
// In this order, and with a whole word for the reason, no word of a token is cut in two where a result may be either of
// them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(C)]
pub struct Refusal {
    /// Why.
    pub reason: RefusalReason,
    /// How long to wait before another attempt is worth it, where the gate can tell.
    pub retry_after: Option<Duration>,
    /// The limit at that moment.
    pub limit: usize,
    /// What was in flight at that moment.
    pub in_flight: usize,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} in flight, limit {}", self.reason, self.in_flight, self.limit)
    }
}

impl std::error::Error for Refusal {}

/// The kinds of refusal.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[non_exhaustive]
#[repr(u64)]
#[serde(rename_all = "snake_case")]
pub enum RefusalReason {
    /// The limit is reached, and the gate does not let this request wait.
    LimitReached,
    /// The part of the limit that its criticality may use is taken.
    CriticalityShareUsed,
    /// Its criticality and cohort are being shed.
    Shed,
    /// The part of the limit that its partition may use is taken.
    PartitionFull,
    /// Its tenant uses more than a fair share while there is not enough for all.
    TenantOverShare,
    /// Its tenant's quota is used up.
    QuotaExceeded,
    /// The gate above this one refused it.
    ParentRefused,
    /// The limit is reached, and so is the bound on waiting requests, or it would wait longer than it may.
    QueueFull,
    /// A more critical request needed its place in the queue.
    Displaced,
    /// The queue has been standing for too long, and its head was cut (CoDel).
    QueueStanding,
    /// It waited as long as it may.
    WaitedTooLong,
    /// Its deadline had passed, or passed while it waited.
    DeadlineExpired,
    /// Its deadline would pass before its turn.
    DeadlineUnreachable,
    /// The client's own throttle held it back: it was never sent.
    Throttled,
    /// So much is refused that another attempt, here or elsewhere, can only do harm.
    Overloaded,
}

impl RefusalReason {
    /// All reasons, for whoever lists them.
    pub const ALL: [Self; 15] = [
        Self::LimitReached,
        Self::CriticalityShareUsed,
        Self::Shed,
        Self::PartitionFull,
        Self::TenantOverShare,
        Self::QuotaExceeded,
        Self::ParentRefused,
        Self::QueueFull,
        Self::Displaced,
        Self::QueueStanding,
        Self::WaitedTooLong,
        Self::DeadlineExpired,
        Self::DeadlineUnreachable,
        Self::Throttled,
        Self::Overloaded,
    ];

    /// The reason as one lower-case word, as metrics and tables label it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::LimitReached => "limit_reached",
            Self::CriticalityShareUsed => "criticality_share_used",
            Self::Shed => "shed",
            Self::PartitionFull => "partition_full",
            Self::TenantOverShare => "tenant_over_share",
            Self::QuotaExceeded => "quota_exceeded",
            Self::ParentRefused => "parent_refused",
            Self::QueueFull => "queue_full",
            Self::Displaced => "displaced",
            Self::QueueStanding => "queue_standing",
            Self::WaitedTooLong => "waited_too_long",
            Self::DeadlineExpired => "deadline_expired",
            Self::DeadlineUnreachable => "deadline_unreachable",
            Self::Throttled => "throttled",
            Self::Overloaded => "overloaded",
        }
    }

    /// Whether the caller, and not the service, has too much: it should be told 429 rather than 503.
    #[must_use]
    pub const fn is_of_the_caller(self) -> bool {
        matches!(self, Self::TenantOverShare | Self::QuotaExceeded)
    }

    /// Whether another attempt can only do harm: nobody waits for the answer any more, or all are overloaded.
    #[must_use]
    pub const fn forbids_retry(self) -> bool {
        matches!(self, Self::DeadlineExpired | Self::DeadlineUnreachable | Self::Overloaded)
    }
}

impl fmt::Display for RefusalReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
