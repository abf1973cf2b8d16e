//! What is asked: which worlds, and what is known of the service in them.

use std::time::Duration;

use goodput_recordings::{
    Waiting, Workload,
    scenario::{Place, Played, Replay, Setup, overload, recorded, slowdown, usual_deadline},
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
    pub(crate) workload: Workload,
    /// As it is played.
    pub(crate) played: Played,
    pub(crate) deadline: Duration,
    pub(crate) place: Place,
    pub(crate) worlds: Vec<Scenario>,
    /// Whether the recorded arrivals are among the worlds, and first.
    pub(crate) has_recorded: bool,
    /// What all numbers hang on and nobody said, in sentences.
    pub(crate) taken_for_granted: Vec<String>,
    /// What was assumed about the worlds, in sentences.
    pub(crate) assumptions: Vec<String>,
}

impl Question {
    /// Sets up the worlds for a recording of that name.
    pub(crate) fn new(
        read: &Read,
        name: &str,
        deadline: Option<Duration>,
        place: Place,
    ) -> Result<Self, Failure> {
        let workload = read.inspection.workload.clone();
        let (played, usual) = Played::of(&workload, 1.0).zip(usual_deadline(&workload)).ok_or_else(|| {
            Failure::Arguments(format!(
                "{name}: too little in it says how long the service works on a request; log how long each request \
                 took, and some dozens of them at least"
            ))
        })?;
        let deadline = deadline.unwrap_or(usual);
        let setup = Setup { deadline, place, most_requests: MOST_REQUESTS };
        let replay = Replay::of(&read.digest, &read.inspection.reading, MOST_REQUESTS);
        let recorded = recorded(&played, &replay, &setup)?;
        let has_recorded = recorded.is_some();
        let mut worlds = Vec::from_iter(recorded);
        worlds.push(overload(&played, &replay, &setup)?);
        worlds.push(slowdown(&played, &setup)?);
        let assumptions = assumptions(&workload, &replay);
        let taken_for_granted = read.inspection.reading.assumed.clone();
        let mut question =
            Self { workload, played, deadline, place, worlds, has_recorded, taken_for_granted, assumptions };
        if let Some(roomy) = Played::of(&question.workload, ROOM).filter(|_| !question.knows_the_knee()) {
            for mut scenario in [overload(&roomy, &replay, &setup)?, slowdown(&roomy, &setup)?] {
                scenario.name.push_str(", roomier");
                scenario.about.push_str(" With four times the workers that the recording kept busy.");
                question.worlds.push(scenario);
            }
        }
        Ok(question)
    }

    /// Where the service gets full, for each limiter: the knee, or what is assumed in its place.
    pub(crate) fn knee_for_each(&self) -> usize {
        let limiters = match self.place {
            Place::Server => 1,
            Place::Clients(count) => count,
        };
        self.played.full_at.div_ceil(limiters).max(1) as usize
    }

    /// Whether the recording tells where the service gets full.
    pub(crate) const fn knows_the_knee(&self) -> bool {
        self.workload.knee.is_some()
            && self.workload.service.is_some()
            && self.workload.capacity_per_s.is_some()
    }
}

fn assumptions(workload: &Workload, replay: &Replay) -> Vec<String> {
    let mut all = vec![
        "Each request takes a time drawn from those that the recording shows without a queue, whatever its path."
            .to_owned(),
        "Whoever is refused goes away: no retries.".to_owned(),
        "Refusals cost the service nothing, and nobody waits at the limiter's door.".to_owned(),
    ];
    match replay {
        Replay::Each { cut: true, at } => all.push(format!(
            "Of the recorded arrivals the busiest stretch of {} requests was played.",
            at.len()
        )),
        Replay::Each { cut: false, .. } => {}
        Replay::Steps(_) => {
            all.push("Within each step of the load test, requests come independently.".to_owned());
        }
        Replay::Unknown => {
            all.push(
                "The recording does not say when requests came, so no recorded traffic was played."
                    .to_owned(),
            );
        }
    }
    if workload.arrivals.clients_wait == Waiting::Closed {
        all.push(
            "The recorded clients wait for answers before they ask again, so the recorded traffic never asks for more than \
             the service did; it was played as it came."
                .to_owned(),
        );
    }
    if workload.knee.is_none() {
        all.push(
            "The recording does not show where the service gets full: that it was full at its busiest is a guess on the safe \
             side, and all was played again with four times as many workers."
                .to_owned(),
        );
    }
    all
}
