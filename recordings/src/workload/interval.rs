//! Numbers with their uncertainty.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};
use statrs::statistics::Statistics;

/// An estimate with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The best guess.
    pub value: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Estimate {
    /// An estimate whose interval reaches at least to its value.
    pub(crate) fn new(value: f64, low: f64, high: f64) -> Self {
        Self { value, low: low.min(value), high: high.max(value) }
    }

    /// The estimate times a positive number without uncertainty.
    pub(crate) fn times(self, factor: f64) -> Self {
        Self { value: self.value * factor, low: self.low * factor, high: self.high * factor }
    }

    /// The product of two independent positive estimates, whose relative errors add up in squares.
    pub(crate) fn product(self, other: Self) -> Self {
        let value = self.value * other.value;
        let relative = |a: f64, b: f64| a.hypot(b);
        let below = relative(1.0 - self.low / self.value, 1.0 - other.low / other.value).min(1.0);
        let above = relative(self.high / self.value - 1.0, other.high / other.value - 1.0);
        Self::new(value, value * (1.0 - below), value * (1.0 + above))
    }
}

/// The standard normal quantile that leaves 2.5 % above it.
pub(crate) fn z95() -> f64 {
    Normal::standard().inverse_cdf(0.975)
}

/// The share of resamples to be left out at each end of a bootstrap's interval of 95 %, where so many independent parts were
/// drawn from: the expanded percentile interval, which is as wide as Student's (Hesterberg, "What Teachers Should Know About
/// the Bootstrap", The American Statistician 69, 2015).
pub(crate) fn tail_of_resamples(parts: usize) -> f64 {
    let parts = parts as f64;
    match StudentsT::new(0.0, 1.0, parts - 1.0) {
        Ok(student) => Normal::standard().cdf(-(parts / (parts - 1.0)).sqrt() * student.inverse_cdf(0.975)),
        Err(_) => 0.0,
    }
}

/// A share, with the interval of Wilson (1927).
pub(crate) fn share(part: u64, all: u64) -> Estimate {
    if all == 0 {
        return Estimate { value: 0.0, low: 0.0, high: 1.0 };
    }
    let (n, p, z) = (all as f64, part as f64 / all as f64, z95());
    let centre = (p + z * z / (2.0 * n)) / (1.0 + z * z / n);
    let half = z / (1.0 + z * z / n) * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
    Estimate::new(p, (centre - half).max(0.0), (centre + half).min(1.0))
}

/// A quantile of a sample, with the interval between the order statistics that the binomial distribution (in its normal
/// approximation) allows. The sample is put in another order.
pub(crate) fn quantile(sample: &mut [f64], q: f64) -> Option<Estimate> {
    let n = sample.len() as f64;
    let last = sample.len().checked_sub(1)?;
    let mut at =
        |rank: f64| *sample.select_nth_unstable_by((rank.max(0.0) as usize).min(last), f64::total_cmp).1;
    let half = z95() * (n * q * (1.0 - q)).sqrt();
    let rank = (q * n).ceil() - 1.0;
    Some(Estimate::new(at(rank), at((rank - half).floor()), at((rank + half).ceil())))
}

/// The mean of a sample, with the interval of the central limit theorem.
pub(crate) fn mean(sample: &[f64]) -> Option<Estimate> {
    if sample.len() < 2 {
        return sample.first().map(|only| Estimate::new(*only, 0.0, f64::MAX));
    }
    let mean = sample.iter().mean();
    let error = sample.iter().std_dev() / (sample.len() as f64).sqrt();
    Some(Estimate::new(mean, (mean - z95() * error).max(0.0), mean + z95() * error))
}

#[cfg(test)]
mod tests {
    use super::*;

    // Expected: Wilson's interval for 10 of 100, as published in Newcombe (1998), table I, rounds to 0.0552..0.1744.
    #[test]
    fn a_share_has_wilsons_interval() {
        let share = share(10, 100);
        assert!((share.low - 0.0552).abs() < 1e-4 && (share.high - 0.1744).abs() < 1e-4, "{share:?}");
    }

    // Expected, by hand from tables of Student's t for 4, 9 and 19 degrees of freedom (2.776, 2.262, 2.093) and of the normal
    // distribution: Φ(−3.104), Φ(−2.385), Φ(−2.147); and 2.5 % for very many.
    #[test]
    fn resamples_of_few_parts_have_wider_intervals() {
        for (parts, tail) in [(5, 0.000_95), (10, 0.008_55), (20, 0.015_9)] {
            assert!(
                (tail_of_resamples(parts) - tail).abs() < 0.000_05,
                "{parts}: {}",
                tail_of_resamples(parts)
            );
        }
        assert!((tail_of_resamples(1_000_000) - 0.025).abs() < 1e-5);
        assert_eq!(tail_of_resamples(1), 0.0);
    }

    #[test]
    fn a_median_lies_within_its_order_statistics() {
        let mut sample: Vec<f64> = (0..101).rev().map(f64::from).collect();
        let median = quantile(&mut sample, 0.5).unwrap();
        assert_eq!(median.value, 50.0);
        // 50.5 ∓ 1.96 · √101 / 2 = 40.65, 60.35.
        assert!((40.0..42.0).contains(&median.low) && (59.0..61.0).contains(&median.high), "{median:?}");
        assert_eq!(quantile(&mut [], 0.5), None);
    }
}
