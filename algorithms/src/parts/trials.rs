//! What every limiter must stand, and a small closed world to drive one in a unit test.

use proptest::{
    collection::vec,
    prelude::{Just, Strategy, any},
    prop_oneof,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};

use crate::{Instant, Latencies, Limiter, Reason, Window, WindowRule};

/// A saturated service: demand always fills the limit, and latency is a function of what is in flight.
pub(crate) struct World {
    pub(crate) now: Instant,
    latency_ns: Box<dyn Fn(f64) -> f64>,
    window: Window,
    rule: Option<WindowRule>,
}

impl World {
    /// A pool of workers: latency is flat up to them, and then in proportion.
    pub(crate) fn pool(service_ns: u64, workers: f64) -> Self {
        Self::new(move |in_flight| service_ns as f64 * (in_flight / workers).max(1.0))
    }

    /// A service that thrashes: throughput is greatest at `peak` in flight and falls beyond.
    pub(crate) fn thrashing(service_ns: u64, peak: f64) -> Self {
        Self::new(move |in_flight| service_ns as f64 * (1.0 + (in_flight / peak) * (in_flight / peak)))
    }

    fn new(latency_ns: impl Fn(f64) -> f64 + 'static) -> Self {
        let now = Instant::from_nanos(1_000_000_000);
        Self { now, latency_ns: Box::new(latency_ns), window: Window::EMPTY, rule: None }
    }

    /// Lets that many requests end, evenly in time, and the limiter learn.
    pub(crate) fn serve(&mut self, limiter: &mut dyn Limiter, requests: u64) {
        for _ in 0..requests {
            let rule = *self.rule.get_or_insert_with(|| limiter.next_window());
            let in_flight = limiter.limit();
            let latency = (self.latency_ns)(in_flight as f64) as u64;
            let gap = latency / in_flight as u64;
            if self.window == Window::EMPTY {
                self.window.opened = self.now;
            }
            self.now = self.now.plus_nanos(gap);
            self.window.successes = self.window.successes.merge(Latencies::one(latency));
            self.window.max_in_flight = self.window.max_in_flight.max(in_flight as u64);
            self.window.limit_hits += 1;
            self.window.refused += 1;
            self.window.in_flight_area_ns += u128::from(gap) * in_flight as u128;
            self.window.closed = self.now;
            let enough = self.window.samples().count >= rule.samples_wanted(&self.window)
                && self.now >= rule.not_before;
            if enough || self.now >= rule.deadline {
                limiter.update(&self.window);
                let rule = limiter.next_window();
                self.rule = Some(rule);
                if !rule.extend {
                    self.window = Window::EMPTY;
                }
            }
        }
    }
}

/// A window of one success.
pub(crate) fn success(at_ns: u64, latency_ns: u64, in_flight: u64) -> Window {
    Window {
        opened: Instant::from_nanos(at_ns.saturating_sub(1)),
        closed: Instant::from_nanos(at_ns),
        successes: Latencies::one(latency_ns),
        max_in_flight: in_flight,
        limit_hits: 1,
        in_flight_area_ns: u128::from(in_flight),
        ..Window::EMPTY
    }
}

/// A window of one overload.
pub(crate) fn overload(at_ns: u64, latency_ns: u64, in_flight: u64) -> Window {
    let window = success(at_ns, latency_ns, in_flight);
    Window { successes: Latencies::NONE, overloads: window.successes, ..window }
}

/// No windows, however absurd, take the limit out of its bounds or a number out of the finite ones.
pub(crate) fn survives_anything(build: &dyn Fn() -> Box<dyn Limiter>, min: usize, max: usize) {
    let config = Config { cases: 200, failure_persistence: None, ..Config::default() };
    let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, random);
    let outcome = runner.run(&vec(any_window(), 1..80), |windows| {
        let mut limiter = build();
        for window in windows {
            let decision = limiter.update(&window);
            assert_eq!(decision.limit, limiter.limit(), "the decision and the limit agree");
            assert!((min..=max).contains(&limiter.limit()), "{} is within {min} and {max}", limiter.limit());
            for (name, value) in decision.evidence.iter() {
                assert!(value.is_finite(), "{name} is finite, not {value}");
            }
            for (name, value) in limiter.state().iter() {
                assert!(value.is_finite(), "{name} is finite, not {value}");
            }
            limiter.next_window();
        }
        Ok(())
    });
    outcome.unwrap();
}

/// Whatever took the limiter to its floor, healthy traffic takes it away from there.
pub(crate) fn leaves_its_floor(limiter: &mut dyn Limiter, floor: usize, requests: u64) {
    assert_eq!(limiter.limit(), floor, "the trial starts at the floor");
    let mut world = World::pool(10_000_000, 1e9);
    world.serve(limiter, requests);
    assert!(limiter.limit() > 2 * floor, "the limit stays at {} after healthy traffic", limiter.limit());
}

/// A saved state brings a new limiter to the same limit, and a foreign one is refused without a trace.
pub(crate) fn resumes(saved: &dyn Limiter, fresh: &mut dyn Limiter) {
    let before = fresh.state();
    assert!(fresh.resume(&crate::State::new()).is_err());
    assert!(fresh.resume(&saved.state().with("limit", f64::NAN)).is_err());
    assert_eq!(fresh.state(), before, "a refused state leaves no trace");
    fresh.resume(&saved.state()).unwrap();
    assert_eq!(fresh.state().number("limit"), saved.state().number("limit"));
}

/// Every reason that decisions gave while `requests` were served.
pub(crate) fn reasons(limiter: &mut dyn Limiter, windows: &[Window]) -> Vec<Reason> {
    windows.iter().map(|window| limiter.update(window).reason).collect()
}

fn any_window() -> impl Strategy<Value = Window> {
    let number = || prop_oneof![Just(0), Just(1), Just(u64::MAX), 0..1_000_000_u64, any::<u64>()];
    (
        (number(), number()),
        (any_latencies(), any_latencies(), any_latencies()),
        (number(), number(), number(), number()),
        any::<u128>(),
    )
        .prop_map(|((opened, closed), (successes, overloads, failures), (a, b, c, d), area)| Window {
            opened: Instant::from_nanos(opened),
            closed: Instant::from_nanos(closed),
            successes,
            overloads,
            failures,
            cancelled: a,
            refused: b,
            limit_hits: c,
            max_in_flight: d,
            in_flight_area_ns: area,
            longest_silence_ns: 0,
        })
}

fn any_latencies() -> impl Strategy<Value = Latencies> {
    prop_oneof![
        3 => Just(Latencies::NONE),
        3 => prop_oneof![Just(0), Just(u64::MAX), any::<u64>(), 0..1_000_000_000_u64].prop_map(Latencies::one),
        2 => vec(any::<u64>(), 0..4).prop_map(|all| {
            all.into_iter().map(Latencies::one).fold(Latencies::NONE, Latencies::merge)
        }),
        1 => (any::<u64>(), any::<u64>()).prop_map(|(count, sum_ns)| Latencies {
            count: count.max(1),
            sum_ns,
            sum_squares: u128::from(sum_ns),
            min_ns: 0,
            max_ns: sum_ns,
        }),
    ]
}
