//! The stretches of time in which nothing changes that a limit could follow.

use std::time::Duration;

use super::{Scenario, Usl, nanos};

/// A stretch of a scenario in which neither the service nor the traffic changes.
///
/// Pauses do not end a segment: no limit helps while everything stands still.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Segment {
    /// Its beginning.
    pub from: Duration,
    /// Its end.
    pub until: Duration,
    /// What open clients send in it, retries aside, in requests per second. `None` if others send, too.
    pub offered_per_second: Option<f64>,
    /// What the service can do at its best, pauses, errors and outages aside, in requests per second.
    pub capacity_per_second: f64,
}

impl Segment {
    /// Offered over capacity.
    #[must_use]
    pub fn load(&self) -> Option<f64> {
        self.offered_per_second.map(|offered| offered / self.capacity_per_second)
    }
}

impl Scenario {
    /// The segments, in order, without gaps.
    #[must_use]
    pub fn segments(&self) -> Vec<Segment> {
        let length = nanos(self.length);
        let mut cuts = vec![0, length];
        cuts.extend(self.service.changes.iter().map(|change| nanos(change.at)));
        for episode in &self.service.errors {
            cuts.push(nanos(episode.from));
            cuts.extend(episode.until.map(nanos));
        }
        cuts.extend(self.service.outages.iter().flat_map(|outage| [nanos(outage.from), nanos(outage.until)]));
        for clients in &self.clients {
            cuts.push(nanos(clients.joins));
            cuts.extend(clients.leaves.map(nanos));
            if let Some(open) = &clients.open {
                cuts.extend(open.steps(length).into_iter().map(|(from, _)| from));
            }
        }
        cuts.retain(|&cut| cut <= length);
        cuts.sort_unstable();
        cuts.dedup();
        let rates: Vec<_> = self
            .clients
            .iter()
            .map(|clients| clients.open.as_ref().map(|open| (clients, open.steps(length))))
            .collect();
        cuts.windows(2)
            .map(|cut| {
                let offered = rates.iter().map(|open| {
                    let (clients, steps) = open.as_ref()?;
                    let there = nanos(clients.joins) <= cut[0]
                        && clients.leaves.is_none_or(|leaves| nanos(leaves) > cut[0]);
                    let step = steps.partition_point(|&(from, _)| from <= cut[0]) - 1;
                    Some(if there { steps[step].1 * f64::from(clients.count) } else { 0.0 })
                });
                Segment {
                    from: Duration::from_nanos(cut[0]),
                    until: Duration::from_nanos(cut[1]),
                    offered_per_second: offered.sum(),
                    capacity_per_second: self.capacity_per_second(Duration::from_nanos(cut[0])),
                }
            })
            .collect()
    }

    /// What the service can do at its best at that time, pauses, errors and outages aside, in requests per second.
    #[must_use]
    pub fn capacity_per_second(&self, at: Duration) -> f64 {
        let service = &self.service;
        let (mut speed, mut stretch) = (service.speed, service.stretch);
        let mut workers = service.pool.as_ref().map(|pool| pool.workers);
        let mut cores = service.sharing.as_ref().map(|sharing| sharing.cores);
        for change in service.changes.iter().take_while(|change| change.at <= at) {
            speed = change.speed.unwrap_or(speed);
            stretch = change.stretch.unwrap_or(stretch);
            workers = change.workers.or(workers);
            cores = change.cores.or(cores);
        }
        let at_once = match (&service.usl, &service.crowd) {
            (Some(usl), _) => usl.peak(),
            (_, Some(crowd)) => crowd.peak(),
            (None, None) => f64::from(workers.or(cores).unwrap_or(0)),
        };
        let most = service.crowd.as_ref().and_then(|crowd| crowd.at_most_per_second);
        let most = most.map_or(f64::INFINITY, f64::from);
        (at_once * speed / (service.work.mean_ns() * stretch) * 1e9).min(most)
    }
}

impl Usl {
    /// How many requests' worth of work the service does at once where it does most.
    pub(crate) fn peak(&self) -> f64 {
        if self.crosstalk == 0.0 {
            return 1.0 / self.contention;
        }
        let best = ((1.0 - self.contention) / self.crosstalk).sqrt().floor().max(1.0);
        let at = |n: f64| n / (1.0 + self.contention * (n - 1.0) + self.crosstalk * n * (n - 1.0));
        at(best).max(at(best + 1.0))
    }
}
