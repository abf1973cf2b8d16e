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
    full: Full,
}

/// What a look at all buckets asks of each, once it is full: a division for each of them would be most of what it costs.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Full {
    /// Zero until then.
    ended: u64,
    /// Infinite until then, and if none was timed.
    mean_latency: f64,
}

impl Bucket {
    const EMPTY: Self = Self {
        ended: 0,
        timed: 0,
        latency_sum: 0,
        latency_min: 0,
        full: Full { ended: 0, mean_latency: f64::INFINITY },
    };

    fn fill_up(&mut self) {
        self.full.ended = self.ended;
        if self.timed > 0 {
            self.full.mean_latency = self.latency_sum as f64 / self.timed as f64;
        }
    }
}

/// A window that slides over time in whole buckets.
#[derive(Clone, Debug)]
pub(crate) struct Buckets {
    buckets: Box<[Bucket]>,
    width_ns: u64,
    per_second: f64,
    /// Ordinal of the bucket that is being filled, counted from the clock's origin.
    current: Option<u64>,
}

impl Buckets {
    pub(crate) fn new(window_ns: u64, count: usize) -> Self {
        let buckets = vec![Bucket::EMPTY; count.max(1)].into_boxed_slice();
        let width_ns = (window_ns / buckets.len() as u64).max(1);
        Self { width_ns, per_second: 1e9 / width_ns as f64, buckets, current: None }
    }

    /// Moves on to the bucket of `now`, emptying those in between. Whether it moved. A clock that steps back goes on
    /// filling the current bucket.
    pub(crate) fn advance(&mut self, now: Instant) -> bool {
        let ordinal = now.nanos() / self.width_ns;
        let Some(current) = self.current else {
            self.current = Some(ordinal);
            return true;
        };
        if ordinal <= current {
            return false;
        }
        let len = self.buckets.len() as u64;
        self.buckets[(current % len) as usize].fill_up();
        for skipped in 1..=(ordinal - current).min(len) {
            self.buckets[((current + skipped) % len) as usize] = Bucket::EMPTY;
        }
        // Fewer were emptied than skipped: all are empty, whichever is the current one.
        self.current = Some(ordinal);
        true
    }

    /// Adds to the current bucket `ended` requests, `timed` of them with a latency of `latency` each.
    pub(crate) fn add(&mut self, ended: u64, timed: u64, latency: u64) {
        let bucket = &mut self.buckets[(self.current.unwrap_or(0) % self.buckets.len() as u64) as usize];
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
        let (mut most, mut least) = (0, f64::INFINITY);
        for Bucket { full, .. } in &self.buckets {
            most = most.max(full.ended);
            least = if full.mean_latency < least { full.mean_latency } else { least };
        }
        (most, Some(least).filter(|least| least.is_finite()))
    }

    /// Buckets in a second.
    pub(crate) const fn per_second(&self) -> f64 {
        self.per_second
    }
}

#[cfg(test)]
mod tests {
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
}
