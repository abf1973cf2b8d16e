use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Contradiction;
use crate::random::Stream;

/// How long a request's work takes on its own, or how long a user thinks.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// Always the same: `{ constant = "10ms" }`.
    Constant(#[serde(with = "humantime_serde")] Duration),
    /// Exponential with this mean: `{ exponential = "10ms" }`.
    Exponential(#[serde(with = "humantime_serde")] Duration),
    /// A time that it always takes, and an exponential one: `{ shifted_exponential = { least = "10ms", more = "1ms" } }`.
    ShiftedExponential {
        /// What it always takes.
        #[serde(with = "humantime_serde")]
        least: Duration,
        /// Mean of what it takes beyond that.
        #[serde(with = "humantime_serde")]
        more: Duration,
    },
    /// The sum of `stages` exponential parts: `{ erlang = { mean = "10ms", stages = 4 } }`.
    #[serde(rename_all = "snake_case")]
    Erlang {
        /// Mean of the sum.
        #[serde(with = "humantime_serde")]
        mean: Duration,
        /// How many parts. The coefficient of variation is 1 / √stages.
        stages: u32,
    },
    /// Lognormal: `{ lognormal = { mean = "10ms", cv = 2.0 } }`.
    Lognormal {
        /// Mean (of the work, not of its logarithm).
        #[serde(with = "humantime_serde")]
        mean: Duration,
        /// Coefficient of variation: standard deviation over mean.
        cv: f64,
    },
    /// Fast or slow: `{ bimodal = { fast = "5ms", slow = "100ms", slow_share = 0.1 } }`.
    Bimodal {
        /// The fast kind.
        #[serde(with = "humantime_serde")]
        fast: Duration,
        /// The slow kind.
        #[serde(with = "humantime_serde")]
        slow: Duration,
        /// The share of slow ones, 0 to 1.
        slow_share: f64,
    },
    /// Pareto, cut off above: `{ pareto = { mean = "8ms", shape = 1.5, spread = 1000.0 } }`.
    Pareto {
        /// Mean of the truncated distribution.
        #[serde(with = "humantime_serde")]
        mean: Duration,
        /// The tail's exponent: the smaller, the heavier. Above 0.
        shape: f64,
        /// The longest work over the shortest. Above 1.
        spread: f64,
    },
    /// One of these, each as likely as the others: `{ empirical = ["4ms", "5ms", "31ms"] }`.
    Empirical(Vec<humantime_serde::Serde<Duration>>),
}

impl Work {
    /// The mean, in nanoseconds.
    #[must_use]
    pub fn mean_ns(&self) -> f64 {
        match self {
            Self::Constant(time) | Self::Exponential(time) => nanos(*time),
            Self::ShiftedExponential { least, more } => nanos(*least) + nanos(*more),
            Self::Erlang { mean, .. } | Self::Lognormal { mean, .. } | Self::Pareto { mean, .. } => {
                nanos(*mean)
            }
            Self::Bimodal { fast, slow, slow_share } => {
                nanos(*fast) * (1.0 - slow_share) + nanos(*slow) * slow_share
            }
            Self::Empirical(times) => {
                times.iter().map(|time| nanos(**time)).sum::<f64>() / (times.len() as f64).max(1.0)
            }
        }
    }

    /// A variate in whole nanoseconds, at least one.
    #[inline]
    pub(crate) fn draw(&self, stream: &mut Stream) -> u64 {
        let time = match self {
            Self::Constant(time) => nanos(*time),
            Self::Exponential(mean) => nanos(*mean) * stream.exponential(),
            Self::ShiftedExponential { least, more } => nanos(*least) + nanos(*more) * stream.exponential(),
            Self::Erlang { mean, stages } => {
                let sum: f64 = (0..*stages).map(|_| stream.exponential()).sum();
                nanos(*mean) * sum / f64::from(*stages)
            }
            Self::Lognormal { mean, cv } => {
                let variance = libm::log1p(cv * cv);
                nanos(*mean) * libm::exp(libm::sqrt(variance) * stream.normal() - variance / 2.0)
            }
            Self::Bimodal { fast, slow, slow_share } => {
                nanos(if stream.uniform() < *slow_share { *slow } else { *fast })
            }
            Self::Pareto { mean, shape, spread } => {
                // The inverse of the truncated distribution function, for a shortest work of 1.
                let kept = 1.0 - libm::pow(*spread, -shape);
                let variate = libm::pow(1.0 - stream.uniform() * kept, -1.0 / shape);
                nanos(*mean) * variate / pareto_mean(*shape, *spread)
            }
            Self::Empirical(times) => {
                let index = (stream.uniform() * times.len() as f64) as usize;
                nanos(*times[index.min(times.len() - 1)])
            }
        };
        // Saturates: a variate of centuries is longer than every run.
        (libm::round(time) as u64).max(1)
    }

    pub(super) fn check(&self, field: &str) -> Result<(), Contradiction> {
        let wrong = |name: &str, problem: String| Err(Contradiction::new(format!("{field}.{name}"), problem));
        match self {
            Self::Erlang { stages: 0, .. } => wrong("erlang.stages", "must be at least 1, not 0".into()),
            Self::Lognormal { cv, .. } if !(cv.is_finite() && *cv >= 0.0) => {
                wrong("lognormal.cv", format!("must be a number from 0 up, not {cv}"))
            }
            Self::Bimodal { slow_share, .. } if !(0.0..=1.0).contains(slow_share) => {
                wrong("bimodal.slow_share", format!("must lie within 0 and 1, not {slow_share}"))
            }
            Self::Pareto { shape, .. } if !(shape.is_finite() && *shape > 0.0) => {
                wrong("pareto.shape", format!("must be above 0, not {shape}"))
            }
            Self::Pareto { spread, .. } if !(spread.is_finite() && *spread > 1.0) => {
                wrong("pareto.spread", format!("must be above 1, not {spread}"))
            }
            Self::Empirical(times) if times.is_empty() => {
                wrong("empirical", "must hold at least one time".into())
            }
            _ if self.mean_ns() <= 0.0 => {
                Err(Contradiction::new(field, "must be longer than no time on average"))
            }
            _ => Ok(()),
        }
    }
}

/// The mean of a Pareto distribution with shortest work 1, truncated at `spread`.
fn pareto_mean(shape: f64, spread: f64) -> f64 {
    let kept = 1.0 - libm::pow(spread, -shape);
    if shape == 1.0 {
        return libm::log(spread) / kept;
    }
    shape / (shape - 1.0) * (1.0 - libm::pow(spread, 1.0 - shape)) / kept
}

fn nanos(time: Duration) -> f64 {
    time.as_nanos() as f64
}
