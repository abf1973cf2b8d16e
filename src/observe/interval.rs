use std::time::Duration;

use super::Ended;
use crate::{MoveCounts, Snapshot, load::LoadSample, refusal::RefusalCounts};

/// What a gate did between two snapshots, and what it was like at the later one.
///
/// ```
/// use goodput::{Gate, Outcome, observe::Interval};
/// use goodput::algorithms::{Fixed, FixedSettings};
///
/// let gate = Gate::new(Fixed::new(FixedSettings { limit: 1 }).unwrap());
/// let earlier = gate.snapshot();
/// let token = gate.try_acquire().unwrap();
/// assert!(gate.try_acquire().is_err());
/// token.release(Outcome::Success);
/// let interval = Interval::between(&earlier, &gate.snapshot());
/// assert_eq!((interval.admitted, interval.refused.total()), (1, 1));
/// assert_eq!(interval.refused_part(), 0.5);
/// assert_eq!(interval.limit_bound(), 1.0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Interval {
    /// Requests that may be in flight, at the end.
    pub limit: usize,
    /// Requests in flight at the end, by weight.
    pub in_flight: usize,
    /// Requests in flight at the end that take no place: they bypass the limit, or would have been refused.
    pub outside: usize,
    /// Requests that wait at the end.
    pub waiting: usize,
    /// How long the oldest of them has waited.
    pub queue_age: Duration,
    /// From the earlier snapshot to the later one.
    pub duration: Duration,
    /// Requests admitted to places of the limit.
    pub admitted: u64,
    /// Requests refused.
    pub refused: RefusalCounts,
    /// Requests let past the limit because they bypass it.
    pub bypassed: u64,
    /// Requests admitted in observe-only mode that would have been refused.
    pub would_have_refused: RefusalCounts,
    /// Requests admitted in observe-only mode that would have had to wait.
    pub would_have_waited: u64,
    /// Requests answered well.
    pub successes: Ended,
    /// Requests that say that there is too much load.
    pub overloads: Ended,
    /// Requests that failed in a way that says nothing about load.
    pub failures: Ended,
    /// Requests whose caller went away.
    pub cancelled: u64,
    /// Requests that felt the limit: their admission reached it, or it stood in their way.
    pub limit_hits: u64,
    /// Requests in whose way the limit stood.
    pub limit_refusals: u64,
    /// Integral of in flight, by weight, over time.
    pub in_flight_area_ns: u128,
    /// Moves of the limit.
    pub moves: MoveCounts,
}

impl Interval {
    /// What happened from one snapshot of a gate to a later one.
    ///
    /// Of snapshots in the wrong order, or of different gates, counts that would be negative are zero.
    #[must_use]
    pub fn between(earlier: &Snapshot, later: &Snapshot) -> Self {
        let since_start = Self::since_start(later);
        let (before, after) = (&earlier.totals, &later.totals);
        Self {
            duration: after.closed.since(before.closed),
            admitted: later.admitted.saturating_sub(earlier.admitted),
            refused: later.refused.since(&earlier.refused),
            bypassed: later.bypassed.saturating_sub(earlier.bypassed),
            would_have_refused: later.would_have_refused.since(&earlier.would_have_refused),
            would_have_waited: later.would_have_waited.saturating_sub(earlier.would_have_waited),
            successes: after.successes.since(before.successes),
            overloads: after.overloads.since(before.overloads),
            failures: after.failures.since(before.failures),
            cancelled: after.cancelled.saturating_sub(before.cancelled),
            limit_hits: after.limit_hits.saturating_sub(before.limit_hits),
            limit_refusals: after.refused.saturating_sub(before.refused),
            in_flight_area_ns: after.in_flight_area_ns.saturating_sub(before.in_flight_area_ns),
            moves: later.moves.since(&earlier.moves),
            ..since_start
        }
    }

    /// What happened since a gate was built.
    #[must_use]
    pub fn since_start(snapshot: &Snapshot) -> Self {
        let totals = &snapshot.totals;
        Self {
            limit: snapshot.limit,
            in_flight: snapshot.in_flight,
            outside: snapshot.outside,
            waiting: snapshot.waiting,
            queue_age: snapshot.queue_age,
            duration: totals.closed.since(totals.opened),
            admitted: snapshot.admitted,
            refused: snapshot.refused,
            bypassed: snapshot.bypassed,
            would_have_refused: snapshot.would_have_refused,
            would_have_waited: snapshot.would_have_waited,
            successes: totals.successes,
            overloads: totals.overloads,
            failures: totals.failures,
            cancelled: totals.cancelled,
            limit_hits: totals.limit_hits,
            limit_refusals: totals.refused,
            in_flight_area_ns: totals.in_flight_area_ns,
            moves: snapshot.moves,
        }
    }

    /// What two gates did in about the same time: what can be added is added, the queue is as old as the older one.
    #[must_use]
    pub fn merge(self, other: &Self) -> Self {
        Self {
            limit: self.limit.saturating_add(other.limit),
            in_flight: self.in_flight.saturating_add(other.in_flight),
            outside: self.outside.saturating_add(other.outside),
            waiting: self.waiting.saturating_add(other.waiting),
            queue_age: self.queue_age.max(other.queue_age),
            duration: self.duration.max(other.duration),
            admitted: self.admitted.saturating_add(other.admitted),
            refused: self.refused.merge(&other.refused),
            bypassed: self.bypassed.saturating_add(other.bypassed),
            would_have_refused: self.would_have_refused.merge(&other.would_have_refused),
            would_have_waited: self.would_have_waited.saturating_add(other.would_have_waited),
            successes: self.successes.merge(other.successes),
            overloads: self.overloads.merge(other.overloads),
            failures: self.failures.merge(other.failures),
            cancelled: self.cancelled.saturating_add(other.cancelled),
            limit_hits: self.limit_hits.saturating_add(other.limit_hits),
            limit_refusals: self.limit_refusals.saturating_add(other.limit_refusals),
            in_flight_area_ns: self.in_flight_area_ns.saturating_add(other.in_flight_area_ns),
            moves: self.moves.merge(&other.moves),
        }
    }

    /// Requests that came, whatever became of them; but for those that bypass the limit, and for those that wait still.
    #[must_use]
    pub fn demand(&self) -> u64 {
        self.admitted
            .saturating_add(self.refused.total())
            .saturating_add(self.would_have_refused.total())
            .saturating_add(self.would_have_waited)
    }

    /// The part of the demand that was refused, or would have been.
    #[must_use]
    pub fn refused_part(&self) -> f64 {
        let refused = self.refused.total().saturating_add(self.would_have_refused.total());
        ratio(refused as f64, self.demand() as f64)
    }

    /// The part of the demand on the limit that felt it, from 0 to 1.
    #[must_use]
    pub fn limit_bound(&self) -> f64 {
        let asked = self.admitted.saturating_add(self.limit_refusals);
        ratio(self.limit_hits as f64, asked as f64).min(1.0)
    }

    /// Requests in flight on average, by weight.
    #[must_use]
    pub fn mean_in_flight(&self) -> f64 {
        ratio(self.in_flight_area_ns as f64, self.duration.as_nanos() as f64)
    }

    /// Requests in flight on average as a part of the limit at the end.
    #[must_use]
    pub fn limit_use(&self) -> f64 {
        ratio(self.mean_in_flight(), self.limit as f64)
    }

    /// How many would have been in flight if nobody had been refused, and those refused had taken as long as those
    /// admitted (Little's law), together with those that wait: the limit that the demand asks for.
    ///
    /// Those refused who come back are counted each time, so a storm of retries looks like demand.
    #[must_use]
    pub fn demand_in_flight(&self) -> f64 {
        let per_admitted = ratio(self.demand() as f64, self.admitted as f64);
        self.mean_in_flight() * per_admitted.max(1.0) + self.waiting as f64
    }

    /// Requests answered well, per second.
    #[must_use]
    pub fn goodput(&self) -> f64 {
        ratio(self.successes.count as f64, self.duration.as_secs_f64())
    }

    /// Requests whose latency says something about load: successes and overloads.
    #[must_use]
    pub fn samples(&self) -> Ended {
        self.successes.merge(self.overloads)
    }
}

impl From<&Interval> for LoadSample {
    fn from(interval: &Interval) -> Self {
        Self {
            limit_use: interval.limit_use(),
            refused: interval.refused_part(),
            queue_age: interval.queue_age,
        }
    }
}

fn ratio(numerator: f64, denominator: f64) -> f64 {
    if denominator > 0.0 { numerator / denominator } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Criticality, Gate, ManualClock, Outcome, RefusalReason, Request,
        algorithms::{Fixed, FixedSettings},
    };

    fn gate(limit: usize, clock: &ManualClock) -> Gate<ManualClock> {
        let limiter = Box::new(Fixed::new(FixedSettings { limit }).unwrap());
        Gate::builder(limiter).clock(clock.clone()).build()
    }

    #[test]
    fn an_interval_is_what_happened_since_the_earlier_snapshot() {
        let clock = ManualClock::new();
        let gate = gate(2, &clock);
        gate.try_acquire().unwrap().release(Outcome::Failure);
        let earlier = gate.snapshot();

        let (first, second) = (gate.try_acquire().unwrap(), gate.try_acquire().unwrap());
        assert!(gate.try_acquire_for(&Request::DEFAULT.of(Criticality::Sheddable)).is_err());
        clock.advance(Duration::from_millis(30));
        first.release(Outcome::Success);
        clock.advance(Duration::from_millis(20));
        second.release(Outcome::Success);
        clock.advance(Duration::from_millis(50));
        let interval = Interval::between(&earlier, &gate.snapshot());

        assert_eq!(interval.duration, Duration::from_millis(100));
        assert_eq!((interval.admitted, interval.demand()), (2, 3));
        assert_eq!(interval.refused.of(RefusalReason::LimitReached, Criticality::Sheddable), 1);
        assert_eq!((interval.successes.count, interval.failures.count), (2, 0));
        // 30 and 50 ms.
        assert_eq!(interval.samples().mean(), Duration::from_millis(40));
        assert_eq!(interval.samples().deviation(), Duration::from_millis(10));
        // 80 ms of work in 100 ms.
        assert!((interval.mean_in_flight() - 0.8).abs() < 1e-12);
        assert!((interval.limit_use() - 0.4).abs() < 1e-12);
        // Half as many again had asked.
        assert!((interval.demand_in_flight() - 1.2).abs() < 1e-12);
        assert_eq!(interval.goodput(), 20.0);
        // The second and the third of three.
        assert!((interval.limit_bound() - 2.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn an_interval_without_traffic_has_no_ratios() {
        let clock = ManualClock::new();
        let snapshot = gate(2, &clock).snapshot();
        let interval = Interval::between(&snapshot, &snapshot);
        assert_eq!(interval.duration, Duration::ZERO);
        assert_eq!(
            [
                interval.limit_use(),
                interval.limit_bound(),
                interval.refused_part(),
                interval.demand_in_flight()
            ],
            [0.0; 4]
        );
        assert_eq!((interval.samples().mean(), interval.goodput()), (Duration::ZERO, 0.0));
    }

    #[test]
    fn what_would_have_been_refused_is_demand_as_well() {
        let clock = ManualClock::new();
        let gate = gate(1, &clock);
        gate.set_observe_only(true);
        let earlier = gate.snapshot();
        let tokens = [gate.try_acquire().unwrap(), gate.try_acquire().unwrap()];
        clock.advance(Duration::from_millis(10));
        tokens.into_iter().for_each(|token| token.release(Outcome::Success));
        let interval = Interval::between(&earlier, &gate.snapshot());
        assert_eq!((interval.refused.total(), interval.would_have_refused.total()), (0, 1));
        assert_eq!((interval.demand(), interval.refused_part()), (2, 0.5));
        assert_eq!(interval.demand_in_flight(), 2.0);
    }

    #[test]
    fn two_gates_add_up() {
        let clock = ManualClock::new();
        let gates = [gate(2, &clock), gate(3, &clock)];
        let tokens = gates.each_ref().map(|gate| gate.try_acquire().unwrap());
        clock.advance(Duration::from_millis(10));
        let [first, second] = gates.each_ref().map(|gate| Interval::since_start(&gate.snapshot()));
        let both = first.merge(&second);
        assert_eq!((both.limit, both.in_flight, both.admitted), (5, 2, 2));
        assert_eq!((both.duration, both.mean_in_flight()), (Duration::from_millis(10), 2.0));
        tokens.into_iter().for_each(|token| token.release(Outcome::Success));
    }
}
