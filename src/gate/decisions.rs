//! The last decisions, for whoever looks.

use super::TimedDecision;

/// How many are remembered.
const CAPACITY: usize = 32;

pub(super) struct Decisions {
    /// A ring, once it is full.
    ring: Vec<TimedDecision>,
    /// The place of the next one.
    next: usize,
}

impl Decisions {
    pub(super) fn new() -> Self {
        Self { ring: Vec::with_capacity(CAPACITY), next: 0 }
    }

    #[inline]
    pub(super) fn add(&mut self, decision: TimedDecision) {
        match self.ring.get_mut(self.next) {
            Some(oldest) => *oldest = decision,
            None => self.ring.push(decision),
        }
        self.next = (self.next + 1) % CAPACITY;
    }

    #[inline]
    pub(super) fn last(&self) -> Option<&TimedDecision> {
        self.ring.get(self.next.wrapping_sub(1) % CAPACITY)
    }

    /// The oldest first.
    pub(super) fn all(&self) -> Vec<TimedDecision> {
        let (newer, older) = self.ring.split_at(self.next.min(self.ring.len()));
        [older, newer].concat()
    }
}

#[cfg(all(test, not(goodput_loom)))]
mod tests {
    use goodput_algorithms::{Decision, Instant, Reason};

    use super::*;

    #[test]
    fn the_last_ones_are_kept_in_their_order() {
        let mut decisions = Decisions::new();
        assert!(decisions.last().is_none() && decisions.all().is_empty());
        for limit in 1..=3 * CAPACITY {
            let decision = Decision::new(limit, Reason::Holding);
            decisions.add(TimedDecision { at: Instant::ZERO, previous_limit: 0, decision });
            let limits: Vec<usize> = decisions.all().iter().map(|kept| kept.decision.limit).collect();
            let expected: Vec<usize> = (limit.saturating_sub(CAPACITY) + 1..=limit).collect();
            assert_eq!(limits, expected);
            assert_eq!(decisions.last().map(|last| last.decision.limit), Some(limit));
        }
    }
}
