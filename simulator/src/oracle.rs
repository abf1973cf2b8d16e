//! The best that a limit could have done, knowing the future.

use std::time::Duration;

use crate::{Limits, Measure, Part, Scenario, ScenarioError, Segment, Summary, run};

/// The greatest limit that is tried.
const GREATEST: usize = 1 << 15;

/// A limit counts as one of the best if it comes to this share of the best goodput.
const AS_GOOD: f64 = 0.98;

/// Where goodput falls below this share of the best, the search has left the plateau.
const LEFT_THE_PLATEAU: f64 = 0.9;

/// Steps from half to twice the best power of two.
const FINE_STEPS: i32 = 12;

/// For each [segment](Scenario::segments) of a scenario the best constant limit, and what they come to together.
///
/// Of all limits with at least 98 % of the best goodput of a segment, the best is the one with the smallest p99. It
/// is searched for segment by segment, each after what the ones before left behind: among powers of two, and then in
/// twelve steps from half to twice the best of them. Powers are tried from the concurrency at which the service is
/// just full, up and down until goodput leaves its plateau: goodput has one plateau in the limit.
///
/// Where clients have gates of their own, the limit is that of each gate.
#[derive(Clone, Debug)]
pub struct Oracle {
    /// From when on which limit holds.
    pub limits: Vec<(Duration, usize)>,
    /// What they come to.
    pub summary: Summary,
}

impl Oracle {
    /// Searches for the best limits of a scenario with this seed.
    ///
    /// # Errors
    ///
    /// [`ScenarioError`] if the scenario contradicts itself, or if it has no door whose limiter is left open.
    pub fn search(scenario: &Scenario, seed: u64) -> Result<Self, ScenarioError> {
        if scenario.open_doors() == 0 {
            return Err(ScenarioError::new(
                "there is nothing to score: no door is without a limiter; write one, as [door.service]",
            ));
        }
        let mut limits = Vec::new();
        for segment in scenario.segments() {
            let best = SegmentSearch::new(scenario, seed, &limits, segment).best()?;
            limits.push((segment.from, best));
        }
        Self::play(scenario, seed, limits)
    }

    /// An oracle whose limits were found before.
    ///
    /// # Errors
    ///
    /// [`ScenarioError`] if the scenario contradicts itself, or if the limits do not begin at the start or hold a zero.
    pub fn play(
        scenario: &Scenario,
        seed: u64,
        limits: Vec<(Duration, usize)>,
    ) -> Result<Self, ScenarioError> {
        let summary = run(scenario, &Limits::Schedule(limits.clone()), seed, &Measure::default())?.summary;
        Ok(Self { limits, summary })
    }
}

impl Scenario {
    /// How many gates there are whose limiter the scenario leaves open.
    #[must_use]
    pub fn open_doors(&self) -> usize {
        let service = self.door.service.as_ref().is_some_and(|door| door.limiter.is_none());
        let clients = match &self.door.clients {
            Some(door) if door.limiter.is_none() && door.shared => 1,
            Some(door) if door.limiter.is_none() => {
                self.clients.iter().map(|clients| clients.count as usize).sum()
            }
            _ => 0,
        };
        usize::from(service) + clients
    }
}

/// What a limit comes to in a segment.
#[derive(Clone, Debug)]
struct Trial {
    limit: usize,
    part: Part,
}

impl Trial {
    const fn good(&self) -> f64 {
        self.part.counts.good as f64
    }
}

struct SegmentSearch<'a> {
    scenario: &'a Scenario,
    seed: u64,
    before: &'a [(Duration, usize)],
    segment: Segment,
    trials: Vec<Trial>,
}

impl<'a> SegmentSearch<'a> {
    const fn new(
        scenario: &'a Scenario,
        seed: u64,
        before: &'a [(Duration, usize)],
        segment: Segment,
    ) -> Self {
        Self { scenario, seed, before, segment, trials: Vec::new() }
    }

    fn best(mut self) -> Result<usize, ScenarioError> {
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

    fn try_limit(&mut self, limit: usize) -> Result<&Trial, ScenarioError> {
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
