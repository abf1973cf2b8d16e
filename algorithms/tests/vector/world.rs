//! One client with its limiter, and one server, on virtual time in nanoseconds.
//!
//! Three rules of the original's paused clock and of its harness matter: a wait of d milliseconds ends after ⌊d⌋ + 1;
//! everything that is due at an instant is settled before new requests start at it; and means are rounded to 1 µs.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap, VecDeque},
    time::Duration,
};

use goodput_algorithms::{Instant, Latencies, Limiter, Vector, VectorSettings, Window};

use super::{Action, Concurrency, Scenario};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

pub(super) fn run(scenario: &Scenario, seed: u64) -> BTreeMap<&'static str, Series> {
    let mut world = World::new(scenario, seed);
    for i in 0..scenario.requests {
        let at = scenario.interval_s * i as f64 * 1e9;
        let at = if i == 0 || scenario.interval_s == 0.0 { 0 } else { after(0, at) };
        world.schedule(at, Event::Offer);
    }
    while let Some(Reverse((now, _, event))) = world.events.pop() {
        world.settle(now, event);
        if world.completed == scenario.requests {
            break;
        }
        if world.events.peek().is_none_or(|Reverse((next, ..))| *next > now) {
            world.start_requests(now);
        }
    }
    world.series
}

/// When a timer rings that is set to a wait of `wait_ns`.
fn after(now: u64, wait_ns: f64) -> u64 {
    now + (wait_ns.round() as u64 / MS + 1) * MS
}

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Event {
    Offer,
    Attempt(Request),
    /// The server answered well.
    Success(Request),
    /// The server refused.
    Deferred(Request),
    /// The client gave up.
    TimedOut(Request),
}

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Request {
    started: u64,
    /// This wait and the next, of the Fibonacci numbers, in seconds.
    waits: (u64, u64),
}

struct World<'a> {
    scenario: &'a Scenario,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    scheduled: u64,
    random: u64,
    backlog: usize,
    in_flight: usize,
    limiter: Vector,
    window: Window,
    seeded: bool,
    server_level: usize,
    arrivals: VecDeque<u64>,
    completed: usize,
    series: BTreeMap<&'static str, Series>,
}

impl<'a> World<'a> {
    fn new(scenario: &'a Scenario, seed: u64) -> Self {
        let resolution = Duration::from_micros(1);
        let settings = match &scenario.concurrency {
            Concurrency::Fixed(limit) => {
                VectorSettings { initial: *limit, min: *limit, max: *limit, resolution, ..Default::default() }
            }
            Concurrency::Named(name) => {
                assert_eq!(name, "adaptive");
                VectorSettings { resolution, ..Default::default() }
            }
        };
        let names =
            ["server_in_flight", "server_rate", "client_in_flight", "client_limit", "rtt_each", "rtt_avg"];
        Self {
            scenario,
            events: BinaryHeap::new(),
            scheduled: 0,
            random: seed,
            backlog: 0,
            in_flight: 0,
            limiter: Vector::new(settings).unwrap(),
            window: Window::EMPTY,
            seeded: false,
            server_level: 0,
            arrivals: VecDeque::new(),
            completed: 0,
            series: names
                .into_iter()
                .map(|name| {
                    let counts_instants = name.starts_with("rtt");
                    (name, Series { counts_instants, ..Series::default() })
                })
                .collect(),
        }
    }

    fn schedule(&mut self, at: u64, event: Event) {
        self.scheduled += 1;
        self.events.push(Reverse((at, self.scheduled, event)));
    }

    fn record(&mut self, series: &str, value: f64, now: u64) {
        self.series.get_mut(series).unwrap().add(value, now);
    }

    fn settle(&mut self, now: u64, event: Event) {
        match event {
            Event::Offer => self.backlog += 1,
            Event::Attempt(request) => self.attempt(now, request),
            Event::Success(request) => {
                self.leave_server(now);
                self.completed += 1;
                self.finish(now, request);
            }
            Event::Deferred(request) => {
                self.leave_server(now);
                self.retry(now, request);
            }
            Event::TimedOut(request) => self.retry(now, request),
        }
    }

    fn start_requests(&mut self, now: u64) {
        while self.backlog > 0 && self.in_flight < self.limiter.limit() {
            self.backlog -= 1;
            self.record("client_in_flight", self.in_flight as f64, now);
            self.in_flight += 1;
            self.window.limit_hits += u64::from(self.in_flight >= self.limiter.limit());
            self.attempt(now, Request { started: now, waits: (1, 1) });
        }
    }

    fn attempt(&mut self, now: u64, request: Request) {
        self.forget_arrivals(now);
        self.arrivals.push_back(now);
        self.record("server_rate", self.arrivals.len() as f64, now);
        self.record("server_in_flight", self.server_level as f64, now);
        self.server_level += 1;
        let action = self.refuses();
        if action == Some(Action::Drop) {
            self.leave_server(now);
            self.schedule(after(now, 1e9), Event::TimedOut(request));
            return;
        }
        let latency_ns = self.latency_ns(action.is_none());
        if latency_ns > 1e9 {
            // What the client gives up on, the server goes on to count: as in the original.
            self.schedule(after(now, 1e9), Event::TimedOut(request));
        } else if action.is_some() {
            self.schedule(after(now, latency_ns), Event::Deferred(request));
        } else {
            self.schedule(after(now, latency_ns), Event::Success(request));
        }
    }

    fn refuses(&self) -> Option<Action> {
        let scenario = self.scenario;
        if scenario.conc_limit.is_some_and(|limit| self.server_level > limit) {
            return scenario.conc_action;
        }
        if scenario.rate_limit.is_some_and(|limit| self.arrivals.len() > limit) {
            return scenario.rate_action;
        }
        None
    }

    fn latency_ns(&mut self, served: bool) -> f64 {
        let scenario = self.scenario;
        let concurrency = if served { self.server_level as f64 } else { 1.0 };
        let base = scenario.conc_knee_exp.unwrap_or(scenario.conc_scale + 1.0);
        let knee =
            scenario.conc_knee_start.map_or(0.0, |start| base.powf((concurrency - start).max(0.0)) - 1.0);
        let slower = (concurrency - 1.0) * scenario.conc_scale + knee;
        let jitter = if scenario.jitter > 0.0 { scenario.jitter * self.exponential() } else { 0.0 };
        scenario.delay_s * 1e9 * (1.0 + slower + jitter)
    }

    fn leave_server(&mut self, now: u64) {
        self.forget_arrivals(now);
        self.record("server_rate", self.arrivals.len() as f64, now);
        self.record("server_in_flight", self.server_level as f64, now);
        self.server_level -= 1;
    }

    fn forget_arrivals(&mut self, now: u64) {
        while self.arrivals.front().is_some_and(|arrival| arrival + SECOND <= now) {
            self.arrivals.pop_front();
        }
    }

    fn retry(&mut self, now: u64, request: Request) {
        let (wait, next) = request.waits;
        let at = after(now, wait.min(30) as f64 * 1e9);
        self.schedule(at, Event::Attempt(Request { waits: (next, wait + next), ..request }));
    }

    fn finish(&mut self, now: u64, request: Request) {
        let latency_ns = now - request.started;
        self.record("rtt_each", latency_ns as f64 / 1e9, now);
        self.record("client_in_flight", self.in_flight as f64, now);
        self.in_flight -= 1;
        self.window.successes = self.window.successes.merge(Latencies::one(latency_ns));
        let rule = self.limiter.next_window();
        if self.window.successes.count < rule.min_samples || Instant::from_nanos(now) < rule.not_before {
            return;
        }
        self.window.closed = Instant::from_nanos(now);
        if self.seeded {
            let mean_us = (self.window.successes.mean_ns() / 1e3).round();
            self.record("rtt_avg", mean_us / 1e6, now);
            self.record("client_limit", self.limiter.limit() as f64, now);
        }
        self.seeded = true;
        self.limiter.update(&self.window);
        if !self.limiter.next_window().extend {
            self.window = Window::EMPTY;
        }
    }

    /// SplitMix64, and the inverse of the exponential distribution.
    fn exponential(&mut self) -> f64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let unit = ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64;
        -(1.0 - unit).ln()
    }
}

/// Values, each weighed by the time since the one before. The first has no weight and counts nowhere.
#[derive(Debug, Default)]
pub(super) struct Series {
    last: Option<u64>,
    /// By bits of the value, which for values that are not negative are in the order of the values.
    weights: BTreeMap<u64, u64>,
    extremes: Option<(f64, f64)>,
    /// Whether a value that lasts for nothing may be the least or the greatest: a latency may, a level may not.
    pub(super) counts_instants: bool,
}

impl Series {
    pub(super) fn add(&mut self, value: f64, now: u64) {
        if let Some(last) = self.last.replace(now) {
            let weight = now - last;
            *self.weights.entry(value.to_bits()).or_insert(0) += weight;
            if weight > 0 || self.counts_instants {
                let (least, greatest) = self.extremes.unwrap_or((value, value));
                self.extremes = Some((least.min(value), greatest.max(value)));
            }
        }
    }

    pub(super) fn statistic(&self, name: &str) -> f64 {
        let total: u64 = self.weights.values().sum();
        let (least, greatest) = self.extremes.expect("a series with a weight");
        match name {
            "min" => least,
            "max" => greatest,
            "mean" => {
                let sum: f64 =
                    self.weights.iter().map(|(bits, weight)| f64::from_bits(*bits) * *weight as f64).sum();
                sum / total as f64
            }
            // Of equal weights the higher level, which max_by_key gives: the last.
            "mode" => self
                .weights
                .iter()
                .max_by_key(|(_, weight)| **weight)
                .map_or(0.0, |(bits, _)| f64::from_bits(*bits)),
            _ => panic!("no statistic {name}"),
        }
    }
}
