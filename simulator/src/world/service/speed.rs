//! How fast a service works, as a function of time.

use crate::scenario::{Service, nanos};

/// Millionths: speed 1.
pub(super) const FULL: u64 = 1_000_000;

/// Speed in millionths, in steps.
#[derive(Clone, Debug)]
pub(crate) struct Speed {
    steps: Vec<(u64, u64)>,
    /// The step that holds at the last instant that was asked about; time only goes on.
    current: usize,
}

impl Speed {
    /// The speed that a scenario's service has, pauses included.
    pub(crate) fn of(service: &Service, length_ns: u64) -> Self {
        let mut steps = vec![(0, millionths(service.speed))];
        for change in &service.changes {
            if let Some(speed) = change.speed {
                steps.push((nanos(change.at), millionths(speed)));
            }
        }
        if let Some(pauses) = &service.pauses {
            let (every, lasting) = (nanos(pauses.every), nanos(pauses.lasting));
            let mut from = pauses.first.map_or(every, nanos);
            while from < length_ns {
                pause(&mut steps, from, from + lasting);
                from += every;
            }
        }
        Self { steps, current: 0 }
    }

    /// When `work` is done that starts now. [`u64::MAX`] if never.
    #[inline]
    pub(crate) fn finish(&mut self, now: u64, work: u64) -> u64 {
        if self.steps.len() == 1 && self.steps[0].1 == FULL {
            return now.saturating_add(work);
        }
        self.follow(now);
        let mut missing = u128::from(work) * u128::from(FULL);
        let mut from = now;
        for (index, &(_, speed)) in self.steps.iter().enumerate().skip(self.current) {
            let speed = u128::from(speed);
            let until = self.steps.get(index + 1).map_or(u64::MAX, |&(until, _)| until);
            let done = u128::from(until - from) * speed;
            if done >= missing {
                // The last nanosecond may end with more than is needed.
                return from.saturating_add(missing.div_ceil(speed) as u64);
            }
            missing -= done;
            from = until;
        }
        u64::MAX
    }

    /// The speed from now on.
    pub(crate) fn at(&mut self, now: u64) -> u64 {
        self.follow(now);
        self.steps[self.current].1
    }

    /// When the speed changes.
    pub(crate) fn changes(&self) -> impl Iterator<Item = u64> + '_ {
        self.steps.iter().skip(1).map(|&(at, _)| at)
    }

    fn follow(&mut self, now: u64) {
        while self.steps.get(self.current + 1).is_some_and(|&(from, _)| from <= now) {
            self.current += 1;
        }
    }
}

/// Lays a pause over the steps. Pauses come in order, so only the last steps can be touched.
fn pause(steps: &mut Vec<(u64, u64)>, from: u64, until: u64) {
    let after = steps.partition_point(|&(at, _)| at <= until) - 1;
    let resumed = steps[after].1;
    let first = steps.partition_point(|&(at, _)| at < from);
    let next = steps.partition_point(|&(at, _)| at <= until);
    steps.splice(first..next, [(from, 0), (until, resumed)]);
}

/// Checked to be at most a million times speed 1.
fn millionths(speed: f64) -> u64 {
    libm::round(speed * FULL as f64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn speed(steps: &[(u64, u64)]) -> Speed {
        Speed { steps: steps.to_vec(), current: 0 }
    }

    #[test]
    fn work_under_way_follows_the_speed_to_the_nanosecond() {
        // 100 ns of work: 50 ns at full speed, then 0.4 of it: 125 ns more.
        assert_eq!(speed(&[(0, FULL), (50, 400_000)]).finish(0, 100), 175);
        // A pause adds its length to what it interrupts.
        assert_eq!(speed(&[(0, FULL), (50, 0), (250, FULL)]).finish(0, 100), 300);
        // What ends as the pause begins is not held up.
        assert_eq!(speed(&[(0, FULL), (50, 0), (250, FULL)]).finish(0, 50), 50);
        // A third of the speed: the nanosecond that is begun counts.
        assert_eq!(speed(&[(0, 333_333)]).finish(0, 1), 4);
        // Work that begins later starts in the right step.
        assert_eq!(speed(&[(0, FULL), (50, 400_000)]).finish(60, 4), 70);
        assert_eq!(speed(&[(0, FULL), (50, 0)]).finish(0, 51), u64::MAX);
    }

    #[test]
    fn pauses_lie_over_changes_of_speed() {
        let mut steps = vec![(0, FULL), (120, 400_000), (500, FULL)];
        pause(&mut steps, 100, 150);
        pause(&mut steps, 200, 250);
        assert_eq!(steps, [(0, FULL), (100, 0), (150, 400_000), (200, 0), (250, 400_000), (500, FULL)]);
    }
}
