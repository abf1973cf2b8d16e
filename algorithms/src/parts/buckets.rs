use std::collections::VecDeque;

use crate::Instant;

/// What ended in one slice of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bucket {
    /// Requests that ended.
    pub(crate) ended: u64,
    /// How many of them have a latency in `latency_sum`.
    pub(crate) timed: u64,
    /// Sum of latencies, in whatever unit the owner counts.
    latency_sum: u64,
    /// Least latency; meaningless while `timed` is zero.
    pub(crate) latency_min: u64,
}

impl Bucket {
    const EMPTY: Self = Self { ended: 0, timed: 0, latency_sum: 0, latency_min: 0 };

    fn mean_latency(&self) -> Option<f64> {
        (self.timed > 0).then(|| self.latency_sum as f64 / self.timed as f64)
    }
}

/// A window that slides over time in whole buckets.
#[derive(Clone, Debug)]
pub(crate) struct Buckets {
    buckets: Box<[Bucket]>,
    width_ns: u64,
    per_second: f64,
    /// The bucket that is being filled, once there was any.
    current: Option<Current>,
    /// Of the full ones.
    most_ended: Best<u64>,
    /// Of the full ones.
    least_mean_latency: Best<f64>,
}

#[derive(Clone, Copy, Debug)]
struct Current {
    /// Counted from the clock's origin.
    ordinal: u64,
    place: usize,
    /// Its last instant.
    last: Instant,
}

impl Buckets {
    pub(crate) fn new(window_ns: u64, count: usize) -> Self {
        let buckets = vec![Bucket::EMPTY; count.max(1)].into_boxed_slice();
        let width_ns = (window_ns / buckets.len() as u64).max(1);
        Self {
            width_ns,
            per_second: 1e9 / width_ns as f64,
            current: None,
            most_ended: Best::new(buckets.len()),
            least_mean_latency: Best::new(buckets.len()),
            buckets,
        }
    }

    /// Moves on to the bucket of `now`, emptying those in between. Whether it moved. A clock that steps back goes on
    /// filling the current bucket.
    #[inline]
    pub(crate) fn advance(&mut self, now: Instant) -> bool {
        let moves = self.current.is_none_or(|current| now > current.last);
        if moves {
            self.move_on(now);
        }
        moves
    }

    /// Adds to the current bucket `ended` requests, `timed` of them with a latency of `latency` each.
    #[inline]
    pub(crate) fn add(&mut self, ended: u64, timed: u64, latency: u64) {
        let bucket = &mut self.buckets[self.current.map_or(0, |current| current.place)];
        bucket.latency_min = if bucket.timed == 0 { latency } else { bucket.latency_min.min(latency) };
        bucket.ended = bucket.ended.saturating_add(ended);
        bucket.timed = bucket.timed.saturating_add(timed);
        bucket.latency_sum = bucket.latency_sum.saturating_add(latency.saturating_mul(timed));
    }

    /// All buckets, in no order.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Bucket> {
        self.buckets.iter()
    }

    /// The most that ended in a bucket, and the least mean latency of one, if any latency is known: of all buckets but
    /// the one that is being filled.
    pub(crate) fn extremes_of_full(&self) -> (u64, Option<f64>) {
        (self.most_ended.value().unwrap_or(0), self.least_mean_latency.value())
    }

    /// Buckets in a second.
    pub(crate) const fn per_second(&self) -> f64 {
        self.per_second
    }

    fn move_on(&mut self, now: Instant) {
        let width_ns = self.width_ns;
        let Some(before) = self.current else {
            self.current = Some(Current::new(now.nanos() / width_ns, 0, width_ns));
            return;
        };
        // As a rule to the next one, and without a division.
        let is_next = now.nanos_since(before.last) <= width_ns;
        let ordinal = if is_next { before.ordinal + 1 } else { now.nanos() / width_ns };
        let full = self.buckets[before.place];
        self.most_ended.add(before.ordinal, full.ended, |new, old| new >= old);
        if let Some(mean) = full.mean_latency() {
            self.least_mean_latency.add(before.ordinal, mean, |new, old| new <= old);
        }
        let len = self.buckets.len();
        let mut place = before.place;
        for _ in 0..(ordinal - before.ordinal).min(len as u64) {
            place = if place + 1 == len { 0 } else { place + 1 };
            self.buckets[place] = Bucket::EMPTY;
        }
        // Fewer were emptied than skipped: all are empty, whichever is the current one.
        self.current = Some(Current::new(ordinal, place, width_ns));
        self.most_ended.forget(ordinal, len);
        self.least_mean_latency.forget(ordinal, len);
    }
}

impl Current {
    const fn new(ordinal: u64, place: usize, width_ns: u64) -> Self {
        Self { ordinal, place, last: Instant::from_nanos(ordinal * width_ns).plus_nanos(width_ns - 1) }
    }
}

/// The best value of the last buckets, whichever of two is the better, at the same cost however many there are: of each
/// bucket only what is better than all that came later.
#[derive(Clone, Debug)]
struct Best<T>(VecDeque<(u64, T)>);

impl<T: Copy> Best<T> {
    fn new(buckets: usize) -> Self {
        Self(VecDeque::with_capacity(buckets))
    }

    /// Of a later bucket than all before.
    fn add(&mut self, ordinal: u64, value: T, is_as_good: impl Fn(T, T) -> bool) {
        while self.0.pop_back_if(|(_, last)| is_as_good(value, *last)).is_some() {}
        self.0.push_back((ordinal, value));
    }

    /// What is not among the last so many buckets, of which the `current` one is the last.
    fn forget(&mut self, current: u64, buckets: usize) {
        while self.0.pop_front_if(|(ordinal, _)| current - *ordinal >= buckets as u64).is_some() {}
    }

    fn value(&self) -> Option<T> {
        self.0.front().map(|&(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn old_buckets_fall_out_and_the_current_one_is_not_filled_yet() {
        let mut buckets = Buckets::new(300_000_000, 3);
        assert!(buckets.advance(at(0)));
        buckets.add(5, 5, 10);
        assert!(!buckets.advance(at(99)));
        assert!(buckets.advance(at(100)));
        assert_eq!(buckets.extremes_of_full(), (5, Some(10.0)));
        buckets.add(4, 2, 7);
        assert!(buckets.advance(at(299)));
        assert_eq!(buckets.extremes_of_full(), (5, Some(7.0)));
        assert!(buckets.advance(at(300)));
        assert_eq!(buckets.extremes_of_full(), (4, Some(7.0)));
        assert!(buckets.advance(at(400)));
        assert_eq!(buckets.extremes_of_full(), (0, None));
    }

    #[test]
    fn a_clock_that_steps_back_or_leaps_ahead_does_no_harm() {
        let mut buckets = Buckets::new(300_000_000, 3);
        buckets.advance(at(1_000));
        assert!(!buckets.advance(at(0)));
        buckets.add(1, 1, 7);
        assert_eq!(buckets.all().map(|b| b.ended).sum::<u64>(), 1);
        assert!(buckets.advance(Instant::FAR_FUTURE));
        assert_eq!(buckets.all().map(|b| b.ended).sum::<u64>(), 0);
    }

    proptest! {
        #[test]
        fn the_extremes_are_those_of_the_buckets_that_are_full(
            count in 1_usize..6,
            steps in prop::collection::vec((0_u64..250, 0_u64..4, 1_u64..5), 1..200),
        ) {
            let width = 100;
            let (mut buckets, mut now) = (Buckets::new(width * count as u64, count), 0);
            // By their ordinals: who ended, and the sum of their latencies.
            let mut each = BTreeMap::<u64, (u64, u64)>::new();
            for (later, ended, latency) in steps {
                now += later;
                buckets.advance(Instant::from_nanos(now));
                buckets.add(ended, ended, latency);
                let current = now / width;
                let (ended_before, sum) = each.entry(current).or_default();
                (*ended_before, *sum) = (*ended_before + ended, *sum + ended * latency);
                let full = each.range((current + 1).saturating_sub(count as u64)..current).map(|(_, full)| *full);
                let most = full.clone().map(|(ended, _)| ended).max().unwrap_or(0);
                let means = full.filter(|(ended, _)| *ended > 0).map(|(ended, sum)| sum as f64 / ended as f64);
                prop_assert_eq!(buckets.extremes_of_full(), (most, means.min_by(f64::total_cmp)));
            }
        }
    }
}
