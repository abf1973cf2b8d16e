//! What is asked: which worlds, and what is known of the service in them.

use std::time::Duration;

use goodput_recordings::scenario::{
    Arrivals, Place, Played, ServiceEstimate, Setup, overload, recorded, slowdown,
};
use goodput_simulator::Scenario;

use crate::{failure::Failure, recording::Read};

/// Requests of a run, at most.
const MOST_REQUESTS: usize = 40_000;

/// Where the knee is unknown, the service is tried as it was at its busiest, and with so many times the room.
const ROOM: f64 = 4.0;

/// A recording's service, and the worlds in which limiters are tried on it.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) service: ServiceEstimate,
    /// As it is played.
    pub(crate) played: Played,
    pub(crate) deadline: Duration,
    pub(crate) place: Place,
    pub(crate) worlds: Vec<Scenario>,
    /// Whether the recorded arrivals are among the worlds, and first.
    pub(crate) has_recorded: bool,
    /// What was assumed, in sentences.
    pub(crate) assumptions: Vec<String>,
}

impl Question {
    pub(crate) fn new(
        read: &Read,
        service: ServiceEstimate,
        deadline: Duration,
        place: Place,
    ) -> Result<Self, Failure> {
        let setup = Setup { deadline, place, most_requests: MOST_REQUESTS };
        let arrivals = Arrivals::of(&read.digest, &read.inspection.reading, MOST_REQUESTS);
        let played = Played::of(&service, 1.0);
        let recorded = recorded(&played, &arrivals, &setup)?;
        let has_recorded = recorded.is_some();
        let mut worlds = Vec::from_iter(recorded);
        worlds.push(overload(&played, &arrivals, &setup)?);
        worlds.push(slowdown(&played, &setup)?);
        if service.knee.is_none() {
            let roomy = Played::of(&service, ROOM);
            for mut scenario in [overload(&roomy, &arrivals, &setup)?, slowdown(&roomy, &setup)?] {
                scenario.name.push_str(", roomier");
                scenario.about.push_str(" With four times the workers that the recording kept busy.");
                worlds.push(scenario);
            }
        }
        let assumptions = assumptions(&service, &arrivals);
        Ok(Self { service, played, deadline, place, worlds, has_recorded, assumptions })
    }

    /// Where the service gets full, for each limiter: the knee, or what is assumed in its place.
    pub(crate) fn knee_for_each(&self) -> usize {
        let limiters = match self.place {
            Place::Server => 1,
            Place::Clients(count) => count,
        };
        self.played.workers.div_ceil(limiters).max(1) as usize
    }

    /// Whether the recording tells where the service gets full.
    pub(crate) const fn knows_the_knee(&self) -> bool {
        self.service.knee.is_some()
    }
}

fn assumptions(service: &ServiceEstimate, arrivals: &Arrivals) -> Vec<String> {
    let mut all = vec![
        "The service is workers with one queue before them, first in, first out; each request takes a time drawn from \
         those that the recording shows without a queue, whatever its path."
            .to_owned(),
        "Whoever is refused goes away: no retries.".to_owned(),
        "Refusals cost the service nothing, and nobody waits at the limiter's door.".to_owned(),
    ];
    match arrivals {
        Arrivals::Each { cut: true, at } => all.push(format!(
            "Of the recorded arrivals the busiest stretch of {} requests was played.",
            at.len()
        )),
        Arrivals::Each { cut: false, .. } => {}
        Arrivals::Steps(_) => {
            all.push("Within each step of the load test, requests come independently.".to_owned())
        }
        Arrivals::Unknown => {
            all.push(
                "The recording does not say when requests came, so no recorded traffic was played."
                    .to_owned(),
            );
        }
    }
    if service.knee.is_none() {
        all.push(
            "The recording holds no overload: that the service was full at its busiest is a guess on the safe side, and \
             all was played again with four times as many workers."
                .to_owned(),
        );
    }
    all
}
