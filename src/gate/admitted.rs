//! What a token remembers.

use goodput_algorithms::Instant;

use super::classes::Account;
use crate::Request;

/// When a request was admitted, and to how many places.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Admitted {
    pub(super) at: Instant,
    weight: u32,
    in_flight: u32,
}

impl Admitted {
    #[inline]
    pub(super) fn new(at: Instant, weight: u32, in_flight: u32) -> Self {
        Self { at, weight, in_flight }
    }

    /// Without a place: it bypasses the limit, or would have been refused.
    pub(super) fn outside(at: Instant) -> Self {
        Self { at, weight: 0, in_flight: 0 }
    }

    #[inline]
    pub(super) fn is_outside(self) -> bool {
        self.weight == 0
    }

    #[inline]
    pub(super) fn weight(self) -> u32 {
        self.weight
    }

    /// What was in flight then, this one counted. While threads may keep places, so are those that they keep: in all
    /// at most half of the limit, so no limiter that asks whether more than half of it was in use is misled.
    #[inline]
    pub(super) fn in_flight(self) -> u32 {
        self.in_flight
    }
}

/// An admission, and what else its end depends on. Few and whole words: a token is made and taken apart in registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(super) admitted: Admitted,
    /// The far future if there is none.
    pub(super) deadline: Instant,
    pub(super) account: Account,
}

impl Entry {
    #[inline]
    pub(super) fn new(admitted: Admitted, request: &Request) -> Self {
        let deadline = request.deadline.unwrap_or(Instant::FAR_FUTURE);
        Self { admitted, deadline, account: Account::NONE }
    }

    pub(super) fn on(self, account: Account) -> Self {
        Self { account, ..self }
    }
}
