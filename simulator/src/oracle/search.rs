//! The best constant limit of one segment.

use std::time::Duration;

use super::GREATEST;
use crate::{Limits, Measure, Part, Scenario, ScenarioError, Segment, run};

/// A limit counts as one of the best if it comes to this share of the best goodput.
const AS_GOOD: f64 = 0.98;

/// Where goodput falls below this share of the best, the search has left the plateau.
const LEFT_THE_PLATEAU: f64 = 0.9;

/// Steps from half to twice the best power of two.
const FINE_STEPS: i32 = 12;

/// What a limit comes to in a segment.
#[derive(Clone, Debug)]
pub(super) struct Trial {
    pub(super) limit: usize,
    pub(super) part: Part,
}

impl Trial {
    pub(super) const fn good(&self) -> f64 {
        self.part.counts.good as f64
    }
}

pub(super) struct SegmentSearch<'a> {
    scenario: &'a Scenario,
    seed: u64,
    before: &'a [(Duration, usize)],
    segment: Segment,
    trials: Vec<Trial>,
}

impl<'a> SegmentSearch<'a> {
    pub(super) const fn new(
        scenario: &'a Scenario,
        seed: u64,
        before: &'a [(Duration, usize)],
        segment: Segment,
    ) -> Self {
        Self { scenario, seed, before, segment, trials: Vec::new() }
    }

    pub(super) fn best(mut self) -> Result<usize, ScenarioError> {
        let start = self.just_full();
        self.try_limit(start)?;
        self.walk(start, |limit| (limit < GREATEST).then_some(limit * 2))?;
        self.walk(start, |limit| (limit > 1).then_some(limit / 2))?;
        let coarse = self.pick() as f64;
        for step in 1..FINE_STEPS {
            let factor = libm::exp2(f64::from(step) / f64::from(FINE_STEPS) * 2.0 - 1.0);
            let limit = libm::round(coarse * factor) as usize;
            self.try_limit(limit.max(1))?;
        }
        Ok(self.pick())
    }

    /// The power of two nearest to the concurrency at which the service is just full.
    fn just_full(&self) -> usize {
        let work_s = self.scenario.service.work.mean_ns() / 1e9;
        let full = self.segment.capacity_per_second * work_s / self.scenario.open_doors() as f64;
        if full <= 1.0 { 1 } else { (1 << (libm::round(libm::log2(full)) as u32).min(15)).min(GREATEST) }
    }

    /// Tries one limit after the other until goodput leaves its plateau, or the limit makes no difference any more.
    fn walk(&mut self, start: usize, next: impl Fn(usize) -> Option<usize>) -> Result<(), ScenarioError> {
        let (mut limit, mut below) = (start, 0);
        while below < 2 {
            let Some(following) = next(limit) else { break };
            let last = self.try_limit(limit)?.clone();
            let trial = self.try_limit(following)?;
            if trial.part.counts == last.part.counts && trial.part.latency == last.part.latency {
                break;
            }
            let good = trial.good();
            below = if good < LEFT_THE_PLATEAU * self.best_good() { below + 1 } else { 0 };
            limit = following;
        }
        Ok(())
    }

    pub(super) fn try_limit(&mut self, limit: usize) -> Result<&Trial, ScenarioError> {
        let known = self.trials.iter().position(|trial| trial.limit == limit);
        if let Some(known) = known {
            return Ok(&self.trials[known]);
        }
        let mut limits = self.before.to_vec();
        limits.push((self.segment.from, limit));
        let measure =
            Measure { cuts: vec![self.segment.from], until: Some(self.segment.until), ..Measure::default() };
        let mut summary = run(self.scenario, &Limits::Schedule(limits), self.seed, &measure)?.summary;
        let part = summary.parts.pop().unwrap_or_else(|| summary.total());
        self.trials.push(Trial { limit, part });
        Ok(&self.trials[self.trials.len() - 1])
    }

    fn best_good(&self) -> f64 {
        self.trials.iter().map(Trial::good).fold(0.0, f64::max)
    }

    /// The smallest p99 among those as good as the best; then the most goodput, then the smallest limit.
    fn pick(&self) -> usize {
        let enough = AS_GOOD * self.best_good();
        self.trials
            .iter()
            .filter(|trial| trial.good() >= enough)
            .min_by_key(|trial| {
                let good = std::cmp::Reverse(trial.part.counts.good);
                (trial.part.latency_quantile(0.99), good, trial.limit)
            })
            .map_or(1, |trial| trial.limit)
    }
}
