//! What a run comes to.

mod counts;
mod part;

use std::time::Duration;

use goodput::Criticality;

pub(crate) use self::part::latencies;
pub use self::{
    counts::{Counts, Refusals},
    part::Part,
};

/// The figures of one run.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// The scenario's name.
    pub scenario: String,
    /// What decided the limit.
    pub limits: String,
    /// The seed.
    pub seed: u64,
    /// How long the run lasted.
    pub length: Duration,
    /// The parts that were asked for, by the time at which a request was first sent; one if none were.
    pub parts: Vec<Part>,
    /// The classes of requests, if the scenario names any.
    pub classes: Vec<ClassName>,
    /// Each client's share.
    pub clients: Vec<ClientFigures>,
    /// The mean limit over time: of the gate before the service, or else of the gates at clients. NaN-free; zero
    /// without a gate.
    pub mean_limit: f64,
    /// Length of a step of [`Summary::good_per_step`].
    pub step: Duration,
    /// Good answers in each step, by the time of the answer.
    pub good_per_step: Vec<u32>,
    /// The most requests that queued inside the service at the end of an instant.
    pub largest_queue: usize,
    /// The most requests that waited at gates at the end of an instant.
    pub largest_waiting: usize,
    /// Attempts that wait at gates at the end.
    pub waiting_at_end: usize,
    /// Attempts that queue inside the service at the end.
    pub queued_at_end: usize,
    /// Attempts that are worked on at the end.
    pub in_service_at_end: usize,
    /// Requests that have failed and are still tried at the end.
    pub retrying_at_end: u64,
    /// The instants at which the last request that had failed was answered, or given up: from each on, none was left.
    pub retrying_ended: Vec<Duration>,
    /// Refusals while the service could have started the request at once.
    pub idle_refusals: u64,
    /// Attempts in segments that offer at most 0.8 of capacity.
    pub low_load_attempts: u64,
    /// Refusals among them. None of them had to be.
    pub low_load_refusals: u64,
    /// How many events the world went through.
    pub events: u64,
}

impl Summary {
    /// All parts together.
    #[must_use]
    pub fn total(&self) -> Part {
        let mut total = Part::new(Duration::ZERO, self.length, self.classes.len());
        for part in &self.parts {
            total.counts.add(&part.counts);
            total.classes.iter_mut().zip(&part.classes).for_each(|(all, class)| all.add(class));
            // Both have three digits and grow as needed, so nothing can fail to fit.
            let _ = total.latency.add(&part.latency);
        }
        total
    }

    /// Good answers per second.
    #[must_use]
    pub fn goodput_per_second(&self) -> f64 {
        self.parts.iter().map(|part| part.counts.good).sum::<u64>() as f64 / self.length.as_secs_f64()
    }

    /// Jain's fairness index of the clients' good answers: 1 if all have the same, 1 / n if one has all.
    ///
    /// Counted from [`ClientFigures::fair_good`]'s beginning. 1 where there is nothing to share.
    #[must_use]
    pub fn jain(&self) -> f64 {
        let (mut sum, mut squares) = (0.0, 0.0);
        for client in &self.clients {
            sum += client.fair_good as f64;
            squares += client.fair_good as f64 * client.fair_good as f64;
        }
        if squares == 0.0 { 1.0 } else { sum * sum / (squares * self.clients.len() as f64) }
    }

    /// Refusals that did not have to be, among attempts where the load is at most 0.8; `None` without such load.
    #[must_use]
    pub fn false_refusals(&self) -> Option<f64> {
        (self.low_load_attempts > 0).then(|| self.low_load_refusals as f64 / self.low_load_attempts as f64)
    }

    /// How long after `change` the rate of good answers, as a mean over `window`, comes to `per_second` and stays
    /// there for `stay`. `None` if it does not. In whole steps.
    #[must_use]
    pub fn recovery(
        &self,
        change: Duration,
        per_second: f64,
        window: Duration,
        stay: Duration,
    ) -> Option<Duration> {
        let steps_of = |time: Duration| {
            (time.as_nanos().div_ceil(self.step.as_nanos().max(1)) as usize).min(self.good_per_step.len())
        };
        let (first, wide, long) = (steps_of(change), steps_of(window).max(1), steps_of(stay));
        let enough = per_second * self.step.as_secs_f64() * wide as f64;
        let mut since = None;
        for (start, good) in self.good_per_step.windows(wide).enumerate().skip(first) {
            let reached = good.iter().map(|&good| f64::from(good)).sum::<f64>() >= enough;
            since = if reached { since.or(Some(start)) } else { None };
            match since {
                Some(since) if start - since >= long => return Some(self.step * (since - first) as u32),
                _ => {}
            }
        }
        since.map(|since| self.step * (since - first) as u32)
    }
}

/// What one client got.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ClientFigures {
    /// Requests: first attempts.
    pub offered: u64,
    /// Attempts answered well within the deadline.
    pub good: u64,
    /// The same, of requests first sent when all were there for a while: 20 s after the last client joined, or in
    /// the second half of what remains if that is sooner. From the start if all were there from the start.
    pub fair_good: u64,
    /// For how long a producer that can wait paused.
    pub paused: Duration,
}

/// A class of requests.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ClassName {
    /// What the scenario calls it.
    pub name: String,
    /// How much it matters that its requests are served.
    pub criticality: Criticality,
}
