//! Many threads at one gate: whatever order they come in, nothing is lost and the limit holds.

mod support;

use std::{
    pin::pin,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    task::{Context, Poll, Waker},
    thread,
    time::Duration,
};

use goodput::{
    Clock, Gate, ManualClock, Outcome, OwnedToken, Refusal, Request,
    algorithms::{
        CannotResume, Decision, Fixed, FixedSettings, Instant, Limiter, Reason, State, Window, WindowRule,
    },
};
use rand_xoshiro::{
    Xoshiro256PlusPlus,
    rand_core::{Rng, SeedableRng},
};
use support::waiting_gate;

const THREADS: u64 = 6;
const VISITS: u64 = 4_000;

#[test]
fn the_limit_holds_and_the_sums_add_up() {
    let limit = 3;
    let (gate, ledger) = waiting_gate(limit, 4);
    let inside = AtomicUsize::new(0);
    let counted = on_all_threads(|mut visitor| {
        let mut counts = Counts::default();
        for _ in 0..VISITS {
            let weight = visitor.one_of(2) as u32 + 1;
            let request = Request::DEFAULT.weighing(weight);
            let admitted = match visitor.one_of(4) {
                0 | 1 => Some(gate.try_acquire_owned(&request)),
                2 => Some(visitor.wait_for(&gate, request)),
                _ => poll_once(&gate, request),
            };
            match admitted {
                Some(Ok(token)) => {
                    let most = inside.fetch_add(weight as usize, Ordering::SeqCst) + weight as usize;
                    assert!(most <= limit, "{most} inside");
                    assert!(gate.in_flight() <= limit);
                    inside.fetch_sub(weight as usize, Ordering::SeqCst);
                    counts.release(token, visitor.outcome());
                }
                Some(Err(_)) => counts.refused += 1,
                None => {}
            }
        }
        counts
    });
    assert_eq!((gate.in_flight(), gate.waiting()), (0, 0));
    let shown = ledger.read(&gate);
    assert_eq!(shown.successes.count, counted.successes);
    assert_eq!(shown.overloads.count, counted.overloads);
    assert_eq!(shown.failures.count, counted.failures);
    assert_eq!(shown.refused, counted.refused);
    // Those who left the queue when their place was just assigned released it, too.
    assert!(shown.cancelled >= counted.cancelled);
    // No test of anything if nobody came in.
    assert!(counted.successes > VISITS / 10);
}

#[test]
fn a_limit_that_swings_keeps_nobody_out_and_lets_nobody_in_beyond_the_greatest() {
    let greatest = 4;
    let gate = Gate::builder(fixed(1)).max_waiting(100).build();
    let inside = AtomicUsize::new(0);
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0.. {
                gate.replace_limiter(fixed(1 + round % greatest));
                if ended.load(Ordering::Relaxed) {
                    break;
                }
                thread::yield_now();
            }
        });
        on_all_threads(|mut visitor| {
            for _ in 0..VISITS {
                let token = visitor.wait_for(&gate, Request::DEFAULT).unwrap();
                let most = inside.fetch_add(1, Ordering::SeqCst) + 1;
                assert!(most <= greatest, "{most} inside");
                inside.fetch_sub(1, Ordering::SeqCst);
                token.release(visitor.outcome());
            }
            Counts::default()
        });
        ended.store(true, Ordering::Relaxed);
    });
    assert_eq!((gate.in_flight(), gate.waiting()), (0, 0));
}

#[test]
fn a_gate_that_is_now_nearly_empty_and_now_full_lets_in_exactly_its_limit() {
    // Each with one token the threads keep below half of it.
    let limit = 32;
    let (gate, ledger) = waiting_gate(limit, 4);
    let inside = AtomicUsize::new(0);
    let counted = on_all_threads(|mut visitor| {
        let mut counts = Counts::default();
        for _ in 0..VISITS {
            // Mostly one: then threads keep the places that they free.
            let wanted = if visitor.one_of(64) == 0 { 1 + visitor.one_of(12) } else { 1 };
            let mut tokens = Vec::new();
            for _ in 0..wanted {
                let weight = if visitor.one_of(50) == 0 { 20 } else { 1 };
                let request = Request::DEFAULT.weighing(weight);
                let answer = if visitor.one_of(8) == 0 {
                    poll_once(&gate, request)
                } else {
                    Some(gate.try_acquire_owned(&request))
                };
                match answer {
                    Some(Ok(token)) => {
                        let most = inside.fetch_add(weight as usize, Ordering::SeqCst) + weight as usize;
                        assert!(most <= limit, "{most} inside");
                        assert!(gate.in_flight() <= limit);
                        tokens.push((weight as usize, token));
                    }
                    Some(Err(_)) => counts.refused += 1,
                    None => {}
                }
            }
            for (weight, token) in tokens {
                inside.fetch_sub(weight, Ordering::SeqCst);
                counts.release(token, visitor.outcome());
            }
        }
        counts
    });
    assert_eq!((gate.in_flight(), gate.waiting()), (0, 0));
    // Whatever was kept is found by one who needs it all.
    drop(gate.try_acquire_many(limit as u32).unwrap());
    let shown = ledger.read(&gate);
    assert_eq!(shown.successes.count, counted.successes);
    assert_eq!(shown.overloads.count, counted.overloads);
    assert_eq!(shown.failures.count, counted.failures);
    assert_eq!(shown.refused, counted.refused);
    assert!(shown.cancelled > counted.cancelled);
    assert!(counted.refused > 0);
}

#[test]
fn the_integral_of_in_flight_is_the_sum_of_all_latencies() {
    let clock = ManualClock::new();
    let end = Instant::from_nanos(u64::MAX / 2);
    let gate = Gate::builder(Box::new(Collector { end, window: Window::EMPTY })).clock(clock.clone()).build();
    let counted = on_all_threads(|mut visitor| {
        let mut counts = Counts::default();
        for _ in 0..VISITS {
            let token = gate.try_acquire_owned(&Request::DEFAULT).unwrap();
            clock.advance(Duration::from_nanos(visitor.one_of(1000)));
            if visitor.one_of(50) == 0 {
                gate.tick();
            }
            counts.release(token, Outcome::Success);
        }
        counts
    });
    assert!(clock.now() < end);
    clock.set(end);
    gate.tick();
    let state = gate.limiter_state();
    assert_eq!(state.number("samples"), Some(counted.successes as f64));
    assert_eq!(state.number("area"), state.number("latencies"));
    assert!(state.number("area") > Some(0.0));
}

/// Runs `visits` on every thread, and adds up what each counted.
fn on_all_threads(visits: impl Fn(Visitor) -> Counts + Sync) -> Counts {
    thread::scope(|scope| {
        let visits = &visits;
        let threads: Vec<_> =
            (0..THREADS).map(|seed| scope.spawn(move || visits(Visitor::with_seed(seed)))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).fold(Counts::default(), Counts::plus)
    })
}

fn fixed(limit: usize) -> Box<dyn Limiter> {
    Box::new(Fixed::new(FixedSettings { limit }).unwrap())
}

/// Asks once, and leaves the queue if there is no answer.
fn poll_once<C: Clock>(gate: &Gate<C>, request: Request) -> Option<Result<OwnedToken<C>, Refusal>> {
    match pin!(gate.acquire(request)).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => Some(answer),
        Poll::Pending => None,
    }
}

struct Visitor {
    random: Xoshiro256PlusPlus,
    runtime: tokio::runtime::Runtime,
}

impl Visitor {
    fn with_seed(seed: u64) -> Self {
        Self {
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            runtime: tokio::runtime::Builder::new_current_thread().build().unwrap(),
        }
    }

    /// A number below `count`.
    fn one_of(&mut self, count: u64) -> u64 {
        self.random.next_u64() % count
    }

    fn outcome(&mut self) -> Outcome {
        match self.one_of(4) {
            0 => Outcome::Overload,
            1 => Outcome::Failure,
            2 => Outcome::Cancelled,
            _ => Outcome::Success,
        }
    }

    fn wait_for<C: Clock>(&self, gate: &Gate<C>, request: Request) -> Result<OwnedToken<C>, Refusal> {
        self.runtime.block_on(gate.acquire(request))
    }
}

#[derive(Clone, Copy, Default)]
struct Counts {
    successes: u64,
    overloads: u64,
    failures: u64,
    cancelled: u64,
    refused: u64,
}

impl Counts {
    fn release<C: Clock>(&mut self, token: OwnedToken<C>, outcome: Outcome) {
        match outcome {
            Outcome::Success => self.successes += 1,
            Outcome::Overload => self.overloads += 1,
            Outcome::Failure => self.failures += 1,
            Outcome::Cancelled => {
                self.cancelled += 1;
                return drop(token);
            }
        }
        token.release(outcome);
    }

    fn plus(self, other: Self) -> Self {
        Self {
            successes: self.successes + other.successes,
            overloads: self.overloads + other.overloads,
            failures: self.failures + other.failures,
            cancelled: self.cancelled + other.cancelled,
            refused: self.refused + other.refused,
        }
    }
}

/// Admits all, and closes its only window at `end`.
#[derive(Debug)]
struct Collector {
    end: Instant,
    window: Window,
}

impl Limiter for Collector {
    fn limit(&self) -> usize {
        1_000
    }

    fn next_window(&self) -> WindowRule {
        WindowRule::samples(u64::MAX).no_later_than(self.end)
    }

    fn update(&mut self, window: &Window) -> Decision {
        self.window = *window;
        Decision::new(self.limit(), Reason::Set)
    }

    fn state(&self) -> State {
        State::new()
            .with("samples", self.window.successes.count as f64)
            .with("latencies", self.window.successes.sum_ns as f64)
            .with("area", self.window.in_flight_area_ns as f64)
    }

    fn resume(&mut self, _: &State) -> Result<(), CannotResume> {
        Ok(())
    }
}
