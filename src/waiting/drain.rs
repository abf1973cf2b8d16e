use goodput_algorithms::Instant;

const REMEMBERED: usize = 64;

/// How fast a queue drains: places that became free per second, while somebody waited.
///
/// Idle time does not count, so that an estimate outlives a quiet hour; a stall does, from the moment when it is
/// longer than the usual gap.
#[derive(Clone, Debug, Default)]
pub(super) struct Drain {
    busy_since: Option<Instant>,
    busy_before_ns: u64,
    /// The last departures: time on the busy clock, and weight. A ring, in order of time.
    departures: Vec<(u64, u32)>,
    next: usize,
    last_ns: u64,
}

impl Drain {
    /// Tells whether somebody waits from now on.
    pub(super) fn busy(&mut self, busy: bool, now: Instant) {
        match (self.busy_since, busy) {
            (None, true) => self.busy_since = Some(now),
            (Some(_), false) => {
                self.busy_before_ns = self.busy_ns(now);
                self.busy_since = None;
            }
            _ => {}
        }
    }

    /// A place became free. Ignored while nobody waits.
    pub(super) fn departed(&mut self, weight: u32, now: Instant) {
        if self.busy_since.is_none() {
            return;
        }
        self.last_ns = self.last_ns.max(self.busy_ns(now));
        let departure = (self.last_ns, weight);
        if self.departures.len() < REMEMBERED {
            self.departures.push(departure);
        } else {
            self.departures[self.next] = departure;
        }
        self.next = (self.next + 1) % REMEMBERED;
    }

    /// How many departures the estimate rests on.
    pub(super) const fn departures(&self) -> usize {
        self.departures.len()
    }

    /// Weight per second. `None` before there are two departures some time apart.
    pub(super) fn per_second(&self, now: Instant) -> Option<f64> {
        let count = self.departures.len();
        let oldest = if count < REMEMBERED { 0 } else { self.next };
        let (from, first_weight) = *self.departures.get(oldest)?;
        let last = self.last_ns;
        let weight: u64 = self.departures.iter().map(|&(_, weight)| u64::from(weight)).sum();
        let weight = weight - u64::from(first_weight);
        let usual_gap = (last - from) / (count as u64 - 1).max(1);
        let busy = self.busy_ns(now);
        let until = if busy.saturating_sub(last) > usual_gap { busy } else { last };
        (until > from && weight > 0).then(|| weight as f64 * 1e9 / (until - from) as f64)
    }

    fn busy_ns(&self, now: Instant) -> u64 {
        self.busy_before_ns.saturating_add(self.busy_since.map_or(0, |since| now.nanos_since(since)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    fn draining(gap_ms: u64, departures: u64) -> Drain {
        let mut drain = Drain::default();
        drain.busy(true, at(0));
        for departure in 1..=departures {
            drain.departed(1, at(departure * gap_ms));
        }
        drain
    }

    #[test]
    fn the_rate_is_that_of_the_departures() {
        let drain = draining(10, 200);
        assert_eq!(drain.per_second(at(2_000)), Some(100.0));
        assert_eq!(draining(120_000, 2).per_second(at(240_000)), Some(1.0 / 120.0));
    }

    #[test]
    fn one_departure_says_nothing() {
        assert_eq!(draining(10, 1).per_second(at(20)), None);
    }

    #[test]
    fn idle_time_does_not_count() {
        let mut drain = draining(10, 200);
        drain.busy(false, at(2_000));
        drain.departed(1, at(500_000));
        drain.busy(true, at(1_000_000));
        assert_eq!(drain.per_second(at(1_000_000)), Some(100.0));
    }

    #[test]
    fn a_stall_slows_the_estimate_down() {
        let drain = draining(10, 200);
        // 63 gaps of 10 ms, then 370 ms of nothing.
        assert_eq!(drain.per_second(at(2_370)), Some(63.0));
    }

    #[test]
    fn weights_count() {
        let mut drain = Drain::default();
        drain.busy(true, at(0));
        for departure in 1..=10 {
            drain.departed(3, at(departure * 100));
        }
        assert_eq!(drain.per_second(at(1_000)), Some(30.0));
    }

    #[test]
    fn a_clock_that_steps_back_is_survived() {
        let mut drain = draining(10, 70);
        drain.departed(1, at(5));
        drain.departed(1, at(0));
        assert!(drain.per_second(at(3)).is_none_or(f64::is_finite));
        drain.busy(false, at(1));
        drain.busy(true, at(0));
        drain.departed(1, at(0));
        assert!(drain.per_second(at(0)).is_none_or(f64::is_finite));
        for _ in 0..3 {
            drain.busy(true, at(0));
            drain.busy(false, Instant::FAR_FUTURE);
            assert!(drain.per_second(Instant::FAR_FUTURE).is_none_or(f64::is_finite));
        }
    }
}
