//! On one thread, a limiter is shown exactly the windows that its rules ask for.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use goodput::{
    Gate, ManualClock, Outcome, OwnedToken, Request,
    algorithms::{CannotResume, Decision, Instant, Latencies, Limiter, Reason, State, Window, WindowRule},
};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_window_is_what_a_simple_observer_collects(
        limits in prop::collection::vec(0_usize..12, 1..6),
        rules in prop::collection::vec(rule(), 1..8),
        steps in prop::collection::vec(step(), 1..200),
        stripes in 0_usize..3,
    ) {
        let script = Script { limits, rules };
        let windows = Arc::new(Mutex::new(Vec::new()));
        let clock = ManualClock::new();
        let limiter = Scripted { script: script.clone(), updates: 0, closed: Instant::ZERO, windows: windows.clone() };
        let gate = Gate::builder(Box::new(limiter)).clock(clock.clone()).stripes(stripes).build();
        let mut model = Model::new(script);
        let mut tokens: VecDeque<(OwnedToken<ManualClock>, ModelToken)> = VecDeque::new();
        let mut now = 0;
        for step in steps {
            match step {
                Step::Advance(nanos) => {
                    now += nanos;
                    clock.set(Instant::from_nanos(now));
                }
                Step::Acquire(weight) => {
                    let admitted = gate.try_acquire_owned(&Request::DEFAULT.weighing(weight)).ok();
                    let expected = model.acquire(weight, now);
                    prop_assert_eq!(admitted.is_some(), expected.is_some());
                    tokens.extend(admitted.zip(expected));
                }
                Step::Release(which, outcome) => {
                    if !tokens.is_empty() {
                        let (token, expected) = tokens.remove(which % tokens.len()).unwrap();
                        token.release(outcome);
                        model.release(expected, now, outcome);
                    }
                }
                Step::Tick => {
                    gate.tick();
                    model.look(now);
                }
            }
            prop_assert_eq!(&*windows.lock().unwrap(), &model.windows);
            prop_assert_eq!(gate.limit(), model.limit);
            prop_assert_eq!(gate.in_flight() as u64, model.in_flight);
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Advance(u64),
    Acquire(u32),
    Release(usize, Outcome),
    Tick,
}

fn step() -> impl Strategy<Value = Step> {
    let outcome = prop_oneof![
        4 => Just(Outcome::Success),
        1 => Just(Outcome::Overload),
        1 => Just(Outcome::Failure),
        1 => Just(Outcome::Cancelled),
    ];
    prop_oneof![
        3 => (0_u64..50).prop_map(Step::Advance),
        1 => (0_u64..1 << 40).prop_map(Step::Advance),
        8 => prop_oneof![6 => Just(1_u32), 1 => 1_u32..20, 1 => Just(u32::MAX)].prop_map(Step::Acquire),
        8 => (0_usize..100, outcome).prop_map(|(which, outcome)| Step::Release(which, outcome)),
        1 => Just(Step::Tick),
    ]
}

/// A rule whose instants count from the moment it is asked for.
#[derive(Clone, Debug)]
struct RelativeRule {
    extend: bool,
    opens_after: u64,
    min_samples: u64,
    samples_once_felt: u64,
    not_before: u64,
    deadline: u64,
}

fn rule() -> impl Strategy<Value = RelativeRule> {
    let soon = || prop_oneof![2 => Just(0_u64), 2 => 1_u64..100];
    let deadline = prop_oneof![2 => Just(u64::MAX), 2 => 1_u64..300];
    let samples = || prop_oneof![3 => Just(1_u64), 3 => 0_u64..8, 1 => Just(u64::MAX)];
    (any::<bool>(), soon(), samples(), samples(), soon(), deadline).prop_map(
        |(extend, opens_after, min_samples, samples_once_felt, not_before, deadline)| RelativeRule {
            extend,
            opens_after,
            min_samples,
            samples_once_felt,
            not_before,
            deadline,
        },
    )
}

#[derive(Clone, Debug)]
struct Script {
    limits: Vec<usize>,
    rules: Vec<RelativeRule>,
}

impl Script {
    fn limit(&self, updates: usize) -> usize {
        self.limits[updates % self.limits.len()]
    }

    fn rule(&self, updates: usize, now: Instant) -> WindowRule {
        let rule = &self.rules[updates % self.rules.len()];
        WindowRule {
            extend: rule.extend,
            opens_at: now.plus_nanos(rule.opens_after),
            min_samples: rule.min_samples,
            samples_once_felt: rule.samples_once_felt,
            not_before: now.plus_nanos(rule.not_before),
            deadline: now.plus_nanos(rule.deadline),
        }
    }
}

#[derive(Debug)]
struct Scripted {
    script: Script,
    updates: usize,
    closed: Instant,
    windows: Arc<Mutex<Vec<Window>>>,
}

impl Limiter for Scripted {
    fn limit(&self) -> usize {
        self.script.limit(self.updates)
    }

    fn next_window(&self) -> WindowRule {
        self.script.rule(self.updates, self.closed)
    }

    fn update(&mut self, window: &Window) -> Decision {
        self.updates += 1;
        self.closed = window.closed;
        self.windows.lock().unwrap().push(*window);
        Decision::new(self.limit(), Reason::Set)
    }

    fn resume(&mut self, _: &State) -> Result<(), CannotResume> {
        Ok(())
    }
}

/// What the rules mean, told event by event.
struct Model {
    script: Script,
    updates: usize,
    rule: WindowRule,
    limit: usize,
    in_flight: u64,
    open: bool,
    window: Window,
    last_change: u64,
    last_completion: u64,
    windows: Vec<Window>,
}

struct ModelToken {
    at: u64,
    weight: u32,
    in_flight: u64,
}

impl Model {
    fn new(script: Script) -> Self {
        let rule = script.rule(0, Instant::ZERO);
        Self {
            limit: script.limit(0),
            open: rule.opens_at == Instant::ZERO,
            script,
            updates: 0,
            rule,
            in_flight: 0,
            window: Window { opened: Instant::ZERO, ..Window::EMPTY },
            last_change: 0,
            last_completion: 0,
            windows: Vec::new(),
        }
    }

    fn acquire(&mut self, weight: u32, now: u64) -> Option<ModelToken> {
        self.pass_time(now);
        let fits = self.in_flight + u64::from(weight) <= self.limit as u64;
        if !fits && (self.in_flight > 0 || self.limit == 0) {
            self.window.refused += 1;
            self.window.limit_hits += 1;
            return None;
        }
        self.in_flight += u64::from(weight);
        self.window.limit_hits += u64::from(self.in_flight >= self.limit as u64);
        let token = ModelToken { at: now, weight, in_flight: self.in_flight };
        // Whoever comes in after the deadline closes the window.
        if now >= self.rule.deadline.nanos() {
            self.look(now);
        }
        Some(token)
    }

    fn release(&mut self, token: ModelToken, now: u64, outcome: Outcome) {
        self.pass_time(now);
        self.in_flight -= u64::from(token.weight);
        let silence = now - self.last_completion;
        self.last_completion = now;
        if !self.open {
            if now >= self.rule.opens_at.nanos() {
                let Window { refused, limit_hits, .. } = self.window;
                self.window =
                    Window { opened: Instant::from_nanos(now), refused, limit_hits, ..Window::EMPTY };
                self.open = true;
            }
            return self.look(now);
        }
        let tally = match outcome {
            Outcome::Success => Some(&mut self.window.successes),
            Outcome::Overload => Some(&mut self.window.overloads),
            Outcome::Failure => Some(&mut self.window.failures),
            Outcome::Cancelled => None,
        };
        if let Some(tally) = tally {
            *tally = tally.merge(Latencies::one(now - token.at));
            self.window.max_in_flight = self.window.max_in_flight.max(token.in_flight);
            self.window.longest_silence_ns = self.window.longest_silence_ns.max(silence);
        } else {
            self.window.cancelled += 1;
        }
        self.look(now);
    }

    fn look(&mut self, now: u64) {
        self.pass_time(now);
        let samples = self.window.successes.count + self.window.overloads.count;
        let felt = self.window.limit_hits > 0;
        let holds = samples >= self.rule.min_samples || (felt && samples >= self.rule.samples_once_felt);
        let enough = self.open && holds && now >= self.rule.not_before.nanos();
        if !enough && now < self.rule.deadline.nanos() {
            return;
        }
        let now = Instant::from_nanos(now);
        self.window.closed = now;
        self.windows.push(self.window);
        self.updates += 1;
        self.limit = self.script.limit(self.updates);
        self.rule = self.script.rule(self.updates, now);
        if !self.rule.extend {
            self.window = Window { opened: now, ..Window::EMPTY };
            self.open = self.rule.opens_at <= now;
        }
    }

    fn pass_time(&mut self, now: u64) {
        let elapsed = u128::from(now - self.last_change);
        self.window.in_flight_area_ns += elapsed * u128::from(self.in_flight);
        self.last_change = now;
    }
}

#[test]
fn a_clock_that_steps_back_or_stands_still_costs_no_panic_and_no_negative_time() {
    let windows = Arc::new(Mutex::new(Vec::new()));
    let rule = RelativeRule {
        extend: false,
        opens_after: 0,
        min_samples: 1,
        samples_once_felt: 1,
        not_before: 0,
        deadline: u64::MAX,
    };
    let script = Script { limits: vec![4], rules: vec![rule] };
    let limiter = Scripted { script, updates: 0, closed: Instant::ZERO, windows: windows.clone() };
    let clock = ManualClock::new();
    clock.advance(Duration::from_secs(10));
    let gate = Gate::builder(Box::new(limiter)).clock(clock.clone()).build();
    let token = gate.try_acquire().unwrap();
    clock.set(Instant::from_nanos(1));
    token.release(Outcome::Success);
    let token = gate.try_acquire().unwrap();
    clock.set(Instant::from_nanos(u64::MAX - 1));
    token.release(Outcome::Success);
    gate.try_acquire().unwrap().release(Outcome::Success);
    let windows = windows.lock().unwrap();
    assert_eq!(windows[0].successes, Latencies::one(0));
    assert_eq!(windows[1].successes, Latencies::one(u64::MAX - 2));
    assert_eq!(windows[2].successes, Latencies::one(0));
    assert_eq!(windows[2].in_flight_area_ns, 0);
}
