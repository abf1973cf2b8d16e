//! Which limits are as good as the best.

use std::time::Duration;

use super::{GREATEST, Oracle, search::SegmentSearch};
use crate::{
    Scenario, ScenarioError,
    score::{figure_ratio, score_of},
};

/// A limit in the band scores this much against the best one, in its segment.
const AS_GOOD: f64 = 0.97;

/// The edges of a band are searched for until they are known to this factor.
const PRECISION: f64 = 1.03;

/// The constant limits that are as good as the best in a segment: at most 3 % short of it in the terms of the
/// [score](crate::score::Score), after what the oracle left behind from the segments before.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Band {
    /// Beginning of the segment.
    pub from: Duration,
    /// Its end.
    pub until: Duration,
    /// The smallest limit in the band.
    pub low: usize,
    /// The oracle's limit.
    pub best: usize,
    /// The greatest limit in the band; `None` if none is too high.
    pub high: Option<usize>,
    /// Whether the oracle's limit refuses anybody.
    pub binds: bool,
}

impl Oracle {
    /// The band around each of its limits.
    ///
    /// # Errors
    ///
    /// Those of [`Oracle::search`], if scenario and seed are not those of the oracle.
    pub fn bands(&self, scenario: &Scenario, seed: u64) -> Result<Vec<Band>, ScenarioError> {
        let segments = scenario.segments();
        segments
            .into_iter()
            .zip(&self.limits)
            .enumerate()
            .map(|(place, (segment, &(from, best)))| {
                let mut search = SegmentSearch::new(scenario, seed, &self.limits[..place], segment);
                let part = search.try_limit(best)?.part.clone();
                let mut in_band = |limit: usize| -> Result<bool, ScenarioError> {
                    let trial = &search.try_limit(limit)?.part;
                    let latency = |quantile: f64| {
                        let ns = |part: &crate::Part| part.latency_quantile(quantile).as_nanos() as f64;
                        figure_ratio(ns(trial), ns(&part))
                    };
                    let goodput = figure_ratio(trial.counts.good as f64, part.counts.good as f64);
                    Ok(score_of(goodput, latency(0.5), latency(0.99), 1.0) >= AS_GOOD)
                };
                let low = edge(best, 1, &mut in_band)?;
                let high = edge(best, GREATEST, &mut in_band)?;
                Ok(Band {
                    from,
                    until: segment.until,
                    low,
                    best,
                    high: (high < GREATEST).then_some(high),
                    binds: part.counts.refused.total() > 0,
                })
            })
            .collect()
    }
}

/// The last limit on the way from `inside` to `bound` that is in the band: by doubling or halving, then by bisection.
fn edge(
    mut inside: usize,
    bound: usize,
    in_band: &mut impl FnMut(usize) -> Result<bool, ScenarioError>,
) -> Result<usize, ScenarioError> {
    let upwards = bound > inside;
    let mut outside = loop {
        if inside == bound {
            return Ok(bound);
        }
        let next = if upwards { (inside * 2).min(bound) } else { (inside / 2).max(bound) };
        if !in_band(next)? {
            break next;
        }
        inside = next;
    };
    loop {
        let (low, high) = (inside.min(outside), inside.max(outside));
        if high - low <= 1 || high as f64 <= low as f64 * PRECISION {
            return Ok(inside);
        }
        let middle = low.midpoint(high);
        if in_band(middle)? {
            inside = middle;
        } else {
            outside = middle;
        }
    }
}
