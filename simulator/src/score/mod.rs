//! How a run compares with the best that was possible.

mod convergence;
mod recovery;
mod tally;

use serde::{Deserialize, Serialize};

pub use self::{
    convergence::Convergence,
    tally::{ScenarioScore, Standing, geometric_mean, median},
};
use crate::{Oracle, Part, Scenario, Summary};

/// No scenario scores less, so that one lost does not hide the rest.
const FLOOR: f64 = 0.001;

/// Latency may exceed the oracle's by this factor without loss.
const LATENCY_ALLOWANCE: f64 = 1.5;

/// A run against its oracle.
///
/// ```text
/// score = min(1, goodput ratio) × min(1, 1.5 / max(p50 ratio, p99 ratio)) × Jain, at least 0.001
/// ```
///
/// Ratios are the run's figure over the oracle's. No constant limit can do well over many scenarios: below the knee
/// it loses goodput in proportion, above it the median latency, which sees a standing queue even where the work's own
/// tail hides it from p99.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Score {
    /// 0.001 to 1.
    pub score: f64,
    /// Good answers over the oracle's. Above 1 where the oracle gave up some for latency.
    pub goodput_ratio: f64,
    /// Median latency over the oracle's.
    pub p50_ratio: f64,
    /// 99th percentile of latency over the oracle's.
    pub p99_ratio: f64,
    /// Jain's index of the clients' good answers; 1 where there is one limiter.
    pub jain: f64,
    /// Seconds until good answers come as fast as the oracle's, as a mean over the segments' beginnings: see
    /// [`Score::new`].
    pub recovery_s: f64,
    /// The share of attempts that were refused while the load was at most 0.8 of capacity; 0 without such load.
    pub false_refusals: f64,
    /// Mean limit over time.
    pub mean_limit: f64,
}

impl Score {
    /// Compares a run of a scenario with the oracle of the same scenario and seed.
    ///
    /// A segment counts as recovered from the first step on from which the run has at least 95 % of the oracle's good
    /// answers in every window that lies in the next five windows (or what is left of the segment). A window is the
    /// time in which the oracle has 1,000 good answers, at least 1 s, at most a fifth of the segment. A segment in
    /// which that does not happen counts with its whole length.
    #[must_use]
    pub fn new(scenario: &Scenario, oracle: &Oracle, run: &Summary) -> Self {
        let (best, total) = (oracle.summary.total(), run.total());
        let latency_ratio = |quantile: f64| {
            let ns = |part: &Part| part.latency_quantile(quantile).as_nanos() as f64;
            figure_ratio(ns(&total), ns(&best))
        };
        let goodput_ratio = figure_ratio(total.counts.good as f64, best.counts.good as f64);
        let (p50_ratio, p99_ratio) = (latency_ratio(0.5), latency_ratio(0.99));
        let jain = if scenario.open_doors() > 1 { run.jain() } else { 1.0 };
        Self {
            score: score_of(goodput_ratio, p50_ratio, p99_ratio, jain),
            goodput_ratio,
            p50_ratio,
            p99_ratio,
            jain,
            recovery_s: recovery::mean_seconds(scenario, &oracle.summary, run),
            false_refusals: run.false_refusals().unwrap_or(0.0),
            mean_limit: run.mean_limit,
        }
    }
}

/// The formula of [`Score`].
pub(crate) fn score_of(goodput_ratio: f64, p50_ratio: f64, p99_ratio: f64, jain: f64) -> f64 {
    // No latency at all is no virtue: a run that admits nothing has lost its goodput already.
    let latency_factor = (LATENCY_ALLOWANCE / p50_ratio.max(p99_ratio)).min(1.0);
    (goodput_ratio.min(1.0) * latency_factor * jain).max(FLOOR)
}

/// A run's figure over the oracle's; 1 where the oracle's is nothing.
pub(crate) fn figure_ratio(of: f64, to: f64) -> f64 {
    if to > 0.0 { of / to } else { 1.0 }
}
