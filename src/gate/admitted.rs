//! What a token remembers.

use std::fmt;

use goodput_algorithms::Instant;

use super::classes::Account;
use crate::Request;

/// When a request was admitted, and to how many places.
#[derive(Clone, Copy)]
pub(crate) struct Admitted {
    pub(super) at: Instant,
    /// Weight above, in flight below: two words travel in two registers.
    places: u64,
}

impl Admitted {
    #[inline]
    pub(super) fn new(at: Instant, weight: u32, in_flight: u32) -> Self {
        Self { at, places: u64::from(weight) << 32 | u64::from(in_flight) }
    }

    /// Without a place: it bypasses the limit, or would have been refused.
    pub(super) fn outside(at: Instant) -> Self {
        Self { at, places: 0 }
    }

    #[inline]
    pub(super) fn is_outside(self) -> bool {
        self.weight() == 0
    }

    #[inline]
    pub(super) fn weight(self) -> u32 {
        (self.places >> 32) as u32
    }

    /// What was in flight then, this one counted.
    #[inline]
    pub(super) fn in_flight(self) -> u32 {
        self.places as u32
    }
}

impl fmt::Debug for Admitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admitted")
            .field("at", &self.at)
            .field("weight", &self.weight())
            .field("in_flight", &self.in_flight())
            .finish()
    }
}

/// An admission, and what else its end depends on.
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
