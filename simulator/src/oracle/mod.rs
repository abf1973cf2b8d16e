//! The best that a limit could have done, knowing the future.

mod band;
mod search;

use std::time::Duration;

pub use self::band::Band;
use self::search::SegmentSearch;
use crate::{Limits, Measure, Scenario, ScenarioError, Summary, run};

/// The greatest limit that is tried.
const GREATEST: usize = 1 << 15;

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
