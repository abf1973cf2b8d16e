//! Counts what happens.

use std::time::Duration;

use goodput::RefusalReason;
use hdrhistogram::Histogram;

use super::{
    Measure,
    flight::{Ending, Flight},
};
use crate::{
    ClientFigures, Part, Summary,
    figures::{Counts, latencies},
    scenario::{Scenario, nanos},
    trace::{Answered, Moment, Trace},
};

/// How long after the last client joined fairness counts, if there is time.
const SETTLED_AFTER: u64 = 20_000_000_000;

/// At most so much of capacity is low load, under which no refusal is needed.
const LOW_LOAD: f64 = 0.8;

/// Steps of a run whose step is not given.
const DEFAULT_STEPS: u64 = 1_000;

/// Endings of times of retrying that are kept: a run in which requests come and go would have no end of them.
const MOST_ENDINGS: usize = 10_000;

/// Counts what happens: by part, by client, and if wanted by step.
#[derive(Debug)]
pub(super) struct Recorder {
    deadline: u64,
    parts: Vec<Part>,
    /// Beginnings of the parts after the current one.
    cuts: Vec<u64>,
    part: usize,
    clients: Vec<ClientFigures>,
    fair_from: u64,
    /// From when on the load is low, or not, in order of time; the last one that has begun is current.
    loads: Vec<(u64, bool)>,
    load: usize,
    low_load_attempts: u64,
    low_load_refusals: u64,
    idle_refusals: u64,
    step: u64,
    next_step: u64,
    good_in_step: u32,
    good_per_step: Vec<u32>,
    limits: f64,
    limit_samples: u64,
    largest_queue: usize,
    largest_waiting: usize,
    retrying: u64,
    retrying_ended: Vec<Duration>,
    series: Option<Series>,
}

#[derive(Debug)]
struct Series {
    moments: Vec<Moment>,
    counts: Counts,
    classes: Vec<Counts>,
    latency: Histogram<u64>,
    /// Every answer, if wanted.
    answers: Option<Vec<Answered>>,
}

/// How things stand at the end of a step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    pub(super) limit: Option<f64>,
    pub(super) in_flight: usize,
    pub(super) waiting: usize,
    pub(super) oldest_wait: Duration,
    pub(super) queued: usize,
    pub(super) in_service: usize,
}

impl Recorder {
    pub(super) fn new(
        scenario: &Scenario,
        measure: &Measure,
        clients: usize,
        classes: usize,
        end: u64,
    ) -> Self {
        let mut cuts: Vec<u64> = measure.cuts.iter().map(|&cut| nanos(cut)).collect();
        cuts.retain(|&cut| cut > 0 && cut < end);
        cuts.sort_unstable();
        cuts.dedup();
        let begin = cuts.first().copied().unwrap_or(end);
        let first = Part::new(Duration::ZERO, Duration::from_nanos(begin), classes);
        cuts.push(end);
        let later = cuts
            .windows(2)
            .map(|cut| Part::new(Duration::from_nanos(cut[0]), Duration::from_nanos(cut[1]), classes));
        let parts = std::iter::once(first).chain(later).collect();
        let last_join = scenario.clients.iter().map(|clients| nanos(clients.joins)).max().unwrap_or(0);
        let fair_from = match last_join {
            0 => 0,
            joined => joined + SETTLED_AFTER.min(end.saturating_sub(joined) / 2),
        };
        let low = |load: Option<f64>| load.is_some_and(|load| load <= LOW_LOAD);
        let loads =
            scenario.segments().iter().map(|segment| (nanos(segment.from), low(segment.load()))).collect();
        let step = measure.step.map_or(end / DEFAULT_STEPS, nanos).max(1);
        let series = measure.trace.then(|| Series {
            moments: Vec::new(),
            counts: Counts::default(),
            classes: vec![Counts::default(); classes],
            latency: latencies(),
            answers: measure.answers.then(Vec::new),
        });
        Self {
            deadline: scenario.deadline.map_or(u64::MAX, nanos),
            parts,
            cuts,
            part: 0,
            clients: vec![ClientFigures::default(); clients],
            fair_from,
            loads,
            load: 0,
            low_load_attempts: 0,
            low_load_refusals: 0,
            idle_refusals: 0,
            step,
            next_step: step,
            good_in_step: 0,
            good_per_step: Vec::new(),
            limits: 0.0,
            limit_samples: 0,
            largest_queue: 0,
            largest_waiting: 0,
            retrying: 0,
            retrying_ended: Vec::new(),
            series,
        }
    }

    /// The end of the current step.
    #[inline]
    pub(super) const fn next_step(&self) -> u64 {
        self.next_step
    }

    /// Ends the current step.
    pub(super) fn end_step(&mut self, standing: Standing) {
        self.good_per_step.push(std::mem::take(&mut self.good_in_step));
        self.limits += standing.limit.unwrap_or(0.0);
        self.limit_samples += 1;
        if let Some(series) = &mut self.series {
            series.end_step(Duration::from_nanos(self.next_step), standing, self.retrying);
        }
        self.next_step = self.next_step.saturating_add(self.step);
    }

    /// A new request; tells in which part it was born.
    #[inline]
    pub(super) fn offered(&mut self, now: u64, client: u32, class: u16) -> u32 {
        while self.part + 1 < self.parts.len() && self.cuts[self.part] <= now {
            self.part += 1;
        }
        self.count(self.part as u32, class, |counts| counts.offered += 1);
        self.clients[client as usize].offered += 1;
        self.part as u32
    }

    #[inline]
    pub(super) fn attempted(&mut self, now: u64, flight: &Flight) {
        while self.loads.get(self.load + 1).is_some_and(|&(from, _)| from <= now) {
            self.load += 1;
        }
        self.low_load_attempts += u64::from(self.loads[self.load].1);
        self.count(flight.part, flight.class, |counts| counts.attempts += 1);
    }

    #[inline]
    pub(super) fn refused(&mut self, flight: &Flight, reason: RefusalReason, idle: bool) {
        self.low_load_refusals += u64::from(self.loads[self.load].1);
        self.idle_refusals += u64::from(idle);
        self.count(flight.part, flight.class, |counts| counts.refused.count(reason));
    }

    /// One that had waited is to be refused.
    pub(super) fn dropped(&mut self, flight: &Flight) {
        self.count(flight.part, flight.class, |counts| counts.dropped += 1);
    }

    /// An attempt found the service away, or was there when it went.
    pub(super) fn met_outage(&mut self, flight: &Flight) {
        self.count(flight.part, flight.class, |counts| counts.met_outage += 1);
    }

    /// A producer paused for a tick.
    pub(super) fn paused(&mut self, client: u32, tick: u64) {
        self.clients[client as usize].paused += Duration::from_nanos(tick);
    }

    /// So many requests have failed and are tried again from now on.
    pub(super) fn start_retrying(&mut self, requests: u32) {
        self.retrying += u64::from(requests);
    }

    /// One of these was answered, or given up.
    pub(super) fn stop_retrying(&mut self, now: u64) {
        self.retrying -= 1;
        if self.retrying == 0 && self.retrying_ended.len() < MOST_ENDINGS {
            self.retrying_ended.push(Duration::from_nanos(now));
        }
    }

    #[inline]
    pub(super) fn admitted(&mut self, flight: &Flight) {
        self.count(flight.part, flight.class, |counts| counts.admitted += 1);
    }

    pub(super) fn timed_out(&mut self, flight: &Flight) {
        self.count(flight.part, flight.class, |counts| counts.timed_out += 1);
    }

    /// An attempt has its answer.
    #[inline]
    pub(super) fn answered(&mut self, now: u64, flight: &Flight) {
        let work = flight.work_done;
        if flight.ending != Ending::Well {
            self.count(flight.part, flight.class, |counts| {
                counts.failed += 1;
                counts.done_ns += work;
            });
            return;
        }
        let latency = now - flight.sent;
        let good = flight.awaited && latency <= self.deadline;
        self.count(flight.part, flight.class, |counts| {
            counts.done_ns += work;
            counts.latency_ns = counts.latency_ns.saturating_add(latency);
            if good {
                counts.good += 1;
            } else {
                counts.late += 1;
                counts.wasted_ns += work;
            }
        });
        record(&mut self.parts[flight.part as usize].latency, latency);
        if let Some(series) = &mut self.series {
            record(&mut series.latency, latency);
            if let Some(answers) = &mut series.answers {
                answers.push(Answered {
                    at: Duration::from_nanos(now),
                    asked: Duration::from_nanos(flight.born),
                    placed: Duration::from_nanos(flight.placed),
                });
            }
        }
        if good {
            self.good_in_step += 1;
            let client = &mut self.clients[flight.client as usize];
            client.good += 1;
            client.fair_good += u64::from(flight.born >= self.fair_from);
        }
    }

    /// Nothing more happens at this instant.
    #[inline]
    pub(super) fn end_instant(&mut self, queued: usize, waiting: usize) {
        self.largest_queue = self.largest_queue.max(queued);
        self.largest_waiting = self.largest_waiting.max(waiting);
    }

    /// An attempt is at the service at the end.
    pub(super) fn left_over(&mut self, end: u64, flight: &Flight) {
        let age = end - flight.sent;
        if age > self.deadline {
            self.count(flight.part, flight.class, |counts| counts.stuck += 1);
            record(&mut self.parts[flight.part as usize].latency, age);
        }
    }

    /// The figures, and what happened in steps. The caller fills in what it knows.
    pub(super) fn finish(self, mut summary: Summary) -> (Summary, Option<Trace>) {
        let step = Duration::from_nanos(self.step);
        summary.parts = self.parts;
        summary.clients = self.clients;
        summary.mean_limit = self.limits / (self.limit_samples as f64).max(1.0);
        summary.step = step;
        summary.good_per_step = self.good_per_step;
        summary.largest_queue = self.largest_queue;
        summary.largest_waiting = self.largest_waiting;
        summary.retrying_at_end = self.retrying;
        summary.retrying_ended = self.retrying_ended;
        summary.idle_refusals = self.idle_refusals;
        summary.low_load_attempts = self.low_load_attempts;
        summary.low_load_refusals = self.low_load_refusals;
        let trace = self.series.map(|series| Trace {
            step,
            moments: series.moments,
            decisions: Vec::new(),
            answers: series.answers.unwrap_or_default(),
        });
        (summary, trace)
    }

    #[inline]
    fn count(&mut self, part: u32, class: u16, add: impl Fn(&mut Counts)) {
        let part = &mut self.parts[part as usize];
        add(&mut part.counts);
        if let Some(class) = part.classes.get_mut(class as usize) {
            add(class);
        }
        if let Some(series) = &mut self.series {
            add(&mut series.counts);
            series.classes.get_mut(class as usize).into_iter().for_each(add);
        }
    }
}

impl Series {
    fn end_step(&mut self, at: Duration, standing: Standing, retrying: u64) {
        let answered = !self.latency.is_empty();
        let quantile = |quantile| match answered {
            true => Duration::from_nanos(self.latency.value_at_quantile(quantile)),
            false => Duration::ZERO,
        };
        self.moments.push(Moment {
            at,
            limit: standing.limit,
            in_flight: standing.in_flight,
            waiting: standing.waiting,
            oldest_wait: standing.oldest_wait,
            retrying,
            queued: standing.queued,
            in_service: standing.in_service,
            counts: self.counts,
            classes: self.classes.clone(),
            p50: quantile(0.5),
            p99: quantile(0.99),
        });
        self.counts = Counts::default();
        self.classes.fill(Counts::default());
        if answered {
            self.latency.reset();
        }
    }
}

#[inline]
fn record(histogram: &mut Histogram<u64>, latency: u64) {
    // It grows to whatever comes, so there is nothing that it could refuse.
    let _ = histogram.record(latency);
}
