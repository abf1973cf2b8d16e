//! When timers ring.

use crate::scenario::{Scenario, nanos};

/// The resolution of timers, in nanoseconds; 0 for none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timer(u64);

impl Timer {
    pub(super) fn of(scenario: &Scenario) -> Self {
        Self(scenario.timer.map_or(0, nanos))
    }

    /// When a timer rings that is set at `now` to `wait`.
    #[inline]
    pub(super) const fn after(self, now: u64, wait: u64) -> u64 {
        let wait = if self.0 == 0 { wait } else { (wait - wait % self.0).saturating_add(self.0) };
        now.saturating_add(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_at_the_first_step_that_is_longer() {
        assert_eq!([0, 1, 99, 100, 101].map(|wait| Timer(100).after(7, wait)), [107, 107, 107, 207, 207]);
        assert_eq!(Timer(0).after(7, 99), 106);
        assert_eq!(Timer(100).after(7, u64::MAX), u64::MAX);
    }
}
