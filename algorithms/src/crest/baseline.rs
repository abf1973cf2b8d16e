//! Latency without a queue, and how well it is known.

/// A difference of more than this many standard errors is a contradiction, not noise.
pub(super) const CONTRADICTION: f64 = 3.0;
/// However small the concurrency, so many samples may stand behind a baseline.
const LEAST_MEMORY: f64 = 16.0;
/// How many standard errors above its estimate the baseline is taken to be. Too high, it is corrected by the next dip;
/// too low, it looks like a queue, and the limit stays where no queue is.
const OPTIMISM: f64 = 0.5;

/// How much wider than by independence a mean of latencies spreads: requests that wait in one queue wait alike,
pub(super) const QUEUED: f64 = 3.0;
/// and those that do not queue still share slow moments.
pub(super) const FREE: f64 = 1.5;

/// Mean latency without a queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Baseline {
    /// Nanoseconds; zero before anything was seen.
    pub(super) latency_ns: f64,
    /// The samples it rests on, at least 1.
    pub(super) samples: f64,
    /// Squared coefficient of variation of latency without a queue.
    pub(super) spread: f64,
}

impl Baseline {
    pub(super) const UNKNOWN: Self = Self { latency_ns: 0.0, samples: 1.0, spread: 1.0 };

    /// Replaces what was known.
    pub(super) const fn set(&mut self, latency_ns: f64, samples: f64) {
        self.latency_ns = latency_ns;
        self.samples = samples.max(1.0);
    }

    /// Adds a measurement, weighted by its samples; one that contradicts what was known replaces it. No more than
    /// `memory` samples are remembered, so that a changed service is noticed.
    pub(super) fn add(&mut self, latency_ns: f64, samples: f64, memory: f64) {
        let distance = libm::log(latency_ns / self.latency_ns) / self.error(QUEUED, samples);
        if distance.abs() > CONTRADICTION {
            self.set(latency_ns, samples);
        } else {
            let all = self.samples + samples;
            let mean_ns = (self.latency_ns * self.samples + latency_ns * samples) / all;
            self.set(mean_ns, all.min(memory.max(samples).max(LEAST_MEMORY)));
        }
    }

    /// Moves the spread towards what was seen, by at most half of the way.
    pub(super) fn learn_spread(&mut self, spread: f64, weight: f64) {
        self.spread += weight.min(0.5) * (spread - self.spread);
    }

    /// The standard error of the logarithm of a mean of so many samples over the baseline.
    pub(super) fn error(&self, inflation: f64, samples: f64) -> f64 {
        error_of_ratio(inflation * self.spread, samples, self.samples)
    }

    /// The baseline as the law uses it, ns.
    pub(super) fn optimistic_ns(&self) -> f64 {
        self.latency_ns * (1.0 + OPTIMISM * libm::sqrt(FREE * self.spread / self.samples))
    }
}

/// The standard error of the logarithm of the ratio of two means of samples with that squared coefficient of variation.
pub(super) fn error_of_ratio(spread: f64, samples: f64, others: f64) -> f64 {
    libm::sqrt(spread * (1.0 / samples + 1.0 / others))
}
