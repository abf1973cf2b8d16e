use std::time::Duration;

use goodput_algorithms::{Decision, Instant, Reason, State};

use crate::{observe::Totals, refusal::RefusalCounts};

/// What a gate knows at one moment. Counts are since the gate was built.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Snapshot {
    /// The gate's name.
    pub name: String,
    /// Requests that may be in flight.
    pub limit: usize,
    /// Requests in flight, by weight.
    pub in_flight: usize,
    /// Requests that wait to be admitted.
    pub waiting: usize,
    /// How long the oldest of them has waited.
    pub queue_age: Duration,
    /// Every window there was, the present one included, and what lay between them.
    pub totals: Totals,
    /// Requests admitted to places of the limit.
    pub admitted: u64,
    /// Requests refused.
    pub refused: RefusalCounts,
    /// Requests that were let past the limit because they [bypass](crate::Request::bypass) it.
    pub bypassed: u64,
    /// Requests in flight that take no place: they bypass the limit, or would have been refused.
    pub outside: usize,
    /// Whether the gate admits everybody, and only counts.
    pub observe_only: bool,
    /// Requests admitted in observe-only mode that would have been refused.
    pub would_have_refused: RefusalCounts,
    /// Requests admitted in observe-only mode that would have had to wait, and perhaps been refused after that.
    pub would_have_waited: u64,
    /// Moves of the limit.
    pub moves: MoveCounts,
    /// The last decisions, oldest first.
    pub decisions: Vec<TimedDecision>,
    /// The limiter's inner state by name.
    pub state: State,
}

/// A decision, and when it was taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimedDecision {
    /// When.
    pub at: Instant,
    /// The limit before it.
    pub previous_limit: usize,
    /// What was decided.
    pub decision: Decision,
}

impl TimedDecision {
    /// Whether the limit is another than before.
    #[must_use]
    pub const fn moved(&self) -> bool {
        self.decision.limit != self.previous_limit
    }
}

/// How often the limit moved, by reason.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct MoveCounts([u64; Reason::ALL.len()]);

impl MoveCounts {
    /// For this reason.
    #[must_use]
    pub const fn of(&self, reason: Reason) -> u64 {
        self.0[reason as usize]
    }

    /// What is not zero, in the order of [`Reason::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = (Reason, u64)> {
        Reason::ALL.map(|reason| (reason, self.of(reason))).into_iter().filter(|&(_, count)| count > 0)
    }

    pub(crate) fn merge(mut self, other: &Self) -> Self {
        for (reason, count) in other.iter() {
            self.add(reason, count);
        }
        self
    }

    /// What was added since `earlier`; nothing where that has more.
    pub(crate) fn since(mut self, earlier: &Self) -> Self {
        for (now, before) in self.0.iter_mut().zip(&earlier.0) {
            *now = now.saturating_sub(*before);
        }
        self
    }

    pub(crate) const fn add(&mut self, reason: Reason, count: u64) {
        let place = &mut self.0[reason as usize];
        *place = place.wrapping_add(count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_listed_in_the_order_in_which_they_are_numbered() {
        for (index, reason) in Reason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, index);
        }
    }
}
