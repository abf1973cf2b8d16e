//! What a run comes to.

use std::time::Duration;

use goodput::RefusalReason;
use hdrhistogram::Histogram;

/// The figures of one run.
#[derive(Clone, Debug)]
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
    /// Attempts that queue inside the service at the end.
    pub queued_at_end: usize,
    /// Attempts that are worked on at the end.
    pub in_service_at_end: usize,
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
        let mut total = Part::new(Duration::ZERO, self.length);
        for part in &self.parts {
            total.counts.add(&part.counts);
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

/// The requests that were first sent between two instants.
#[derive(Clone, Debug)]
pub struct Part {
    /// Beginning.
    pub from: Duration,
    /// End.
    pub until: Duration,
    /// Counts.
    pub counts: Counts,
    /// Latency of admitted attempts in nanoseconds, from sending to answer: late ones included, failures not, and
    /// those that were still at the service at the end if they were older than the deadline (with their age).
    pub latency: Histogram<u64>,
}

impl Part {
    pub(crate) fn new(from: Duration, until: Duration) -> Self {
        Self { from, until, counts: Counts::default(), latency: latencies() }
    }

    /// A quantile of the latency, 0 to 1, to three digits. Zero if nothing was admitted.
    #[must_use]
    pub fn latency_quantile(&self, quantile: f64) -> Duration {
        Duration::from_nanos(self.latency.value_at_quantile(quantile))
    }
}

/// A histogram of three digits that grows as needed.
pub(crate) fn latencies() -> Histogram<u64> {
    let mut histogram = Histogram::new(3).expect("three digits are allowed");
    histogram.auto(true);
    histogram
}

/// How many requests and attempts came to what.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counts {
    /// Requests: first attempts.
    pub offered: u64,
    /// Attempts, retries included.
    pub attempts: u64,
    /// Attempts that came to the service.
    pub admitted: u64,
    /// Attempts answered well within the deadline, to a client that still waited.
    pub good: u64,
    /// Attempts answered well but too late.
    pub late: u64,
    /// Attempts that failed.
    pub failed: u64,
    /// Attempts whose client stopped waiting. They may still be answered, and count as late then.
    pub timed_out: u64,
    /// Attempts that a gate refused.
    pub refused: Refusals,
    /// Attempts that were at the service at the end, longer than the deadline.
    pub stuck: u64,
    /// Work that was done, in nanoseconds of work as the service did it.
    pub done_ns: u64,
    /// Work that was done for answers that came too late.
    pub wasted_ns: u64,
}

impl Counts {
    /// Adds the other's counts.
    pub fn add(&mut self, other: &Self) {
        self.offered += other.offered;
        self.attempts += other.attempts;
        self.admitted += other.admitted;
        self.good += other.good;
        self.late += other.late;
        self.failed += other.failed;
        self.timed_out += other.timed_out;
        self.refused.add(&other.refused);
        self.stuck += other.stuck;
        self.done_ns += other.done_ns;
        self.wasted_ns += other.wasted_ns;
    }
}

/// Refusals by reason.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Refusals {
    /// [`RefusalReason::LimitReached`].
    pub limit_reached: u64,
    /// [`RefusalReason::QueueFull`].
    pub queue_full: u64,
    /// [`RefusalReason::WaitedTooLong`].
    pub waited_too_long: u64,
    /// [`RefusalReason::DeadlineExpired`].
    pub deadline_expired: u64,
    /// Any other reason.
    pub other: u64,
}

impl Refusals {
    /// All of them.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.limit_reached + self.queue_full + self.waited_too_long + self.deadline_expired + self.other
    }

    pub(crate) fn count(&mut self, reason: RefusalReason) {
        *match reason {
            RefusalReason::LimitReached => &mut self.limit_reached,
            RefusalReason::QueueFull => &mut self.queue_full,
            RefusalReason::WaitedTooLong => &mut self.waited_too_long,
            RefusalReason::DeadlineExpired => &mut self.deadline_expired,
            _ => &mut self.other,
        } += 1;
    }

    fn add(&mut self, other: &Self) {
        self.limit_reached += other.limit_reached;
        self.queue_full += other.queue_full;
        self.waited_too_long += other.waited_too_long;
        self.deadline_expired += other.deadline_expired;
        self.other += other.other;
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
}
