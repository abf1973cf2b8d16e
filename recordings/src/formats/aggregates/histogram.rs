//! Quantiles of counted buckets.

use crate::record::StepLatency;

/// Values and how often each occurred, in milliseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Histogram {
    buckets: Vec<(f64, f64)>,
}

impl Histogram {
    pub(super) fn add(&mut self, milliseconds: f64, count: f64) {
        if count > 0.0 && count.is_finite() && milliseconds.is_finite() {
            self.buckets.push((milliseconds, count));
        }
    }

    pub(super) fn count(&self) -> f64 {
        self.buckets.iter().map(|(_, count)| count).sum()
    }

    /// The latencies, each bucket standing for its value.
    pub(super) fn latency(mut self) -> StepLatency {
        let count = self.count();
        if count <= 0.0 {
            return StepLatency::default();
        }
        self.buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        let quantile = |q: f64| {
            let mut seen = 0.0;
            self.buckets.iter().find(|(_, n)| {
                seen += n;
                seen >= q * count
            })
        };
        let at = |q: f64| quantile(q).or(self.buckets.last()).map(|(value, _)| *value);
        StepLatency {
            mean: Some(self.buckets.iter().map(|(value, n)| value * n).sum::<f64>() / count),
            min: self.buckets.first().map(|(value, _)| *value),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            max: self.buckets.last().map(|(value, _)| *value),
        }
    }
}
