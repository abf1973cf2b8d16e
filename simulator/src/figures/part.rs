use std::time::Duration;

use hdrhistogram::Histogram;

use super::Counts;

/// The requests that were first sent between two instants.
#[derive(Clone, Debug)]
pub struct Part {
    /// Beginning.
    pub from: Duration,
    /// End.
    pub until: Duration,
    /// Counts.
    pub counts: Counts,
    /// The same for each of [`Summary::classes`](super::Summary::classes). Empty without classes.
    pub classes: Vec<Counts>,
    /// Latency of admitted attempts in nanoseconds, from sending to answer: late ones included, failures not, and
    /// those that were still at the service at the end if they were older than the deadline (with their age).
    pub latency: Histogram<u64>,
}

impl Part {
    pub(crate) fn new(from: Duration, until: Duration, classes: usize) -> Self {
        let (counts, classes) = (Counts::default(), vec![Counts::default(); classes]);
        Self { from, until, counts, classes, latency: latencies() }
    }

    /// A quantile of the latency, 0 to 1, to three digits. Zero if nothing was admitted.
    #[must_use]
    pub fn latency_quantile(&self, quantile: f64) -> Duration {
        Duration::from_nanos(self.latency.value_at_quantile(quantile))
    }

    /// A quantile of the latency of the good answers alone, 0 to 1, to three digits: of n in order, the one that
    /// ⌊quantile · n⌋ others come before. Zero if there are none.
    ///
    /// Needs a run in which good answers are those within the deadline: none may be given up sooner.
    #[must_use]
    pub fn good_latency_quantile(&self, quantile: f64) -> Duration {
        let rank = libm::floor(quantile.clamp(0.0, 1.0) * self.counts.good as f64) as u64;
        let mut below = 0;
        let found = self.latency.iter_recorded().find(|value| {
            below += value.count_since_last_iteration();
            below > rank
        });
        let value = found.filter(|_| self.counts.good > 0).map_or(0, |value| value.value_iterated_to());
        Duration::from_nanos(value)
    }
}

/// A histogram of three digits that grows as needed.
pub(crate) fn latencies() -> Histogram<u64> {
    let mut histogram = Histogram::new(3).expect("three digits are allowed");
    histogram.auto(true);
    histogram
}
