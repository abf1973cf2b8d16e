use serde::{Deserialize, Serialize};

use crate::InvalidSettings;

/// A number of requests that may depend on the limit: a queue that is allowed, or the size of a step.
///
/// In a config file: `{ constant = 4 }`, `{ whole_log10_times = 3 }`, `{ log10_times = 3.0 }` or
/// `{ sqrt_at_least = 4 }`.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Allowance {
    /// The same number at any limit.
    Constant(u32),
    /// So many times the decimal logarithm of the limit, of which only the whole part counts, at least 1. It jumps
    /// at limits of 100, 1,000 and so on: a limit a little above 100 allows twice the queue of one a little below.
    WholeLog10Times(u32),
    /// So many times the decimal logarithm of the limit, at least 1. Equal to [`Allowance::WholeLog10Times`] at 10,
    /// 100, 1,000 and so on, and without its jumps between.
    Log10Times(f64),
    /// The whole part of the square root of the limit, but at least so many.
    SqrtAtLeast(u32),
}

impl Allowance {
    /// The number of requests at this limit.
    ///
    /// ```
    /// use goodput_algorithms::Allowance;
    ///
    /// assert_eq!(Allowance::WholeLog10Times(3).at(99), 3.0);
    /// assert_eq!(Allowance::WholeLog10Times(3).at(100), 6.0);
    /// assert_eq!(Allowance::SqrtAtLeast(4).at(99), 9.0);
    /// ```
    #[inline]
    #[must_use]
    pub fn at(self, limit: usize) -> f64 {
        match self {
            Self::Constant(number) => f64::from(number),
            Self::WholeLog10Times(times) => {
                f64::from(limit.checked_ilog10().unwrap_or(0).max(1)) * f64::from(times)
            }
            Self::Log10Times(times) => libm::log10(limit as f64).max(1.0) * times,
            Self::SqrtAtLeast(least) => f64::from((limit as f64).sqrt() as u32).max(f64::from(least)),
        }
    }

    /// Requires a finite number that is not negative.
    ///
    /// # Errors
    ///
    /// Names `field`.
    pub fn check(self, field: &'static str) -> Result<(), InvalidSettings> {
        match self {
            Self::Log10Times(times) if !(times.is_finite() && times >= 0.0) => {
                Err(InvalidSettings::new(field, format!("must be a number from 0 up, not {times}")))
            }
            _ => Ok(()),
        }
    }

    /// Requires a finite number above zero, for a step without which a limit could never move.
    ///
    /// # Errors
    ///
    /// Names `field`.
    pub fn check_positive(self, field: &'static str) -> Result<(), InvalidSettings> {
        self.check(field)?;
        if self.at(1) > 0.0 {
            Ok(())
        } else {
            Err(InvalidSettings::new(field, "must be above 0, or the limit could not move"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_logarithm_jumps_at_powers_of_ten_and_the_smooth_one_meets_it_there() {
        let whole = Allowance::WholeLog10Times(3);
        let smooth = Allowance::Log10Times(3.0);
        assert_eq!([1, 9, 10, 99, 100, 999, 1_000].map(|l| whole.at(l)), [3.0, 3.0, 3.0, 3.0, 6.0, 6.0, 9.0]);
        for power in [10, 100, 1_000, 10_000] {
            assert!((smooth.at(power) - whole.at(power)).abs() < 1e-12);
            // The slope of 3 log10 L is 3 / (L ln 10).
            let step = smooth.at(power) - smooth.at(power - 1);
            assert!(step < 3.1 / ((power - 1) as f64 * std::f64::consts::LN_10));
        }
        assert_eq!(smooth.at(1), 3.0);
    }

    #[test]
    fn every_allowance_is_finite_at_every_limit() {
        for allowance in [
            Allowance::Constant(u32::MAX),
            Allowance::WholeLog10Times(u32::MAX),
            Allowance::Log10Times(1e9),
            Allowance::SqrtAtLeast(u32::MAX),
        ] {
            for limit in [0, 1, 2, 1 << 40, usize::MAX] {
                assert!(allowance.at(limit).is_finite(), "{allowance:?} at {limit}");
            }
        }
    }
}
