//! Polling clients after a restart: where the story of the service that does not come back by itself holds, where it does
//! not, and what helps. The expected values are those of an independent program.

use std::{path::Path, sync::Arc, time::Duration};

use goodput::{
    algorithms::{
        Algorithm, CannotResume, Decision, FixedSettings, Instant, Limiter, Reason, State, Window, WindowRule,
    },
    client::Jitter,
    waiting::{Order, QueueBound, WaitingSettings},
};
use goodput_simulator::{
    Closed, Comparison, Counts, Door, Limits, Measure, Retries, RowPlan, Run, Scenario, Sharing, Work, run,
};

const SECOND: Duration = Duration::from_secs(1);

/// Variations of the file, and what is different beside. Their letters are those of the published table.
#[derive(Clone, Copy)]
struct Base {
    with: &'static [&'static str],
    change: fn(&mut Scenario),
}

const A: Base = Base { with: &["refuse"], change: |_| {} };
const B: Base = Base { with: &["herd"], change: |_| {} };
const C: Base = Base { with: &["herd"], change: at_one_instant };
const D: Base = Base { with: &["hang"], change: |_| {} };
const E: Base = Base { with: &["backlog"], change: |_| {} };
const F: Base = Base {
    with: &["backlog"],
    change: |scenario| {
        scenario.service.outages[0].until = Duration::from_secs(90);
        scenario.length = Duration::from_secs(490);
    },
};
const G: Base = Base {
    with: &["herd"],
    change: |scenario| {
        at_one_instant(scenario);
        shared(scenario);
    },
};
const H: Base = Base { with: &["herd"], change: shared };
const I: Base = Base { with: &["backlog"], change: |scenario| closed(scenario).users = 750 };
const J: Base = Base { with: &["backlog"], change: |scenario| scenario.clients[0].timeout = Some(SECOND) };
const K: Base = Base {
    with: &["backlog"],
    change: |scenario| scenario.service.work = Work::Constant(Duration::from_micros(6_667)),
};
const M: Base = Base { with: &["backlog"], change: |scenario| closed(scenario).users = 600 };
const N: Base = Base { with: &["backlog", "from_send"], change: |_| {} };
const O: Base = Base { with: &["refuse", "from_send"], change: |_| {} };
const P: Base = Base { with: &["herd", "slowing"], change: |_| {} };
const Q: Base = Base { with: &["herd", "slowing"], change: |scenario| slows(scenario, 300) };

fn at_one_instant(scenario: &mut Scenario) {
    closed(scenario).first_over = Some(Duration::ZERO);
}

fn shared(scenario: &mut Scenario) {
    scenario.service.pool = None;
    scenario.service.sharing = Some(Sharing { cores: 1 });
}

fn slows(scenario: &mut Scenario, with: u32) {
    scenario.service.pool.as_mut().unwrap().slows_with_queue = Some(with);
}

fn closed(scenario: &mut Scenario) -> &mut Closed {
    scenario.clients[0].closed.as_mut().unwrap()
}

fn retries(scenario: &mut Scenario) -> &mut Retries {
    scenario.clients[0].retries.as_mut().unwrap()
}

impl Base {
    fn scenario(&self, fixes: &[&'static str]) -> Scenario {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/polling_clients.toml");
        let comparison = Comparison::read(file).unwrap_or_else(|error| panic!("{error}"));
        let with = self.with.iter().chain(fixes).map(|&name| name.into()).collect();
        let mut scenario = comparison.scenario(&RowPlan { label: "row".into(), with }).unwrap();
        (self.change)(&mut scenario);
        scenario
    }

    /// With a queue in front of the worker that holds so many, or at most so many at once at a shared service.
    fn limited(&self, limit: usize, fixes: &[&'static str]) -> Scenario {
        let fixes: Vec<_> = ["bounded"].iter().chain(fixes).copied().collect();
        let mut scenario = self.scenario(&fixes);
        if scenario.service.sharing.is_some() {
            let limiter = Some(Algorithm::Fixed(FixedSettings { limit }));
            scenario.door.service = Some(Door { limiter, ..Door::default() });
        } else {
            waiting(&mut scenario).max_waiting = QueueBound::Count(limit);
        }
        scenario
    }
}

fn waiting(scenario: &mut Scenario) -> &mut WaitingSettings {
    scenario.door.service.as_mut().unwrap().waiting.as_mut().unwrap()
}

/// What came of a run, counted from the restart.
struct Outcome {
    /// Until nobody retries any more.
    recovered: Option<Duration>,
    good: Vec<u32>,
    sent: Vec<u64>,
    late: u64,
    largest: usize,
}

fn play(scenario: &Scenario) -> Outcome {
    play_with(scenario, &Limits::Written, 1)
}

fn play_with(scenario: &Scenario, limits: &Limits, seed: u64) -> Outcome {
    let restart = scenario.service.outages.first().map_or(Duration::ZERO, |outage| outage.until);
    let measure = Measure { step: Some(SECOND), trace: true, ..Measure::default() };
    let Run { summary, trace } =
        run(scenario, limits, seed, &measure).unwrap_or_else(|error| panic!("{error}"));
    let ended = summary.retrying_ended.iter().find(|&&at| at >= restart);
    let moments = &trace.unwrap().moments[restart.as_secs() as usize..];
    let counts: Vec<Counts> = moments.iter().map(|moment| moment.counts).collect();
    Outcome {
        recovered: ended.map(|&at| at - restart),
        good: summary.good_per_step[restart.as_secs() as usize..].to_vec(),
        sent: counts.iter().map(|counts| counts.attempts).collect(),
        late: summary.total().counts.late,
        largest: summary
            .largest_queue
            .max(summary.largest_waiting)
            .max(moments.iter().map(|moment| moment.in_service).max().unwrap_or(0)),
    }
}

/// Published times have three decimals.
#[track_caller]
fn recovers(outcome: &Outcome, seconds: f64, within: f64) {
    let recovered = outcome.recovered.map(|after| after.as_secs_f64());
    let close = recovered.is_some_and(|after| (after - seconds).abs() <= within);
    assert!(close, "{recovered:?} instead of {seconds}");
}

/// More than ever wait.
const UNBOUNDED: usize = 1_000_000;

const TO_THE_MILLISECOND: f64 = 0.000_501;

#[test]
fn a_plain_service_comes_back_within_seconds() {
    let a = play(&A.scenario(&[]));
    recovers(&a, 1.755, TO_THE_MILLISECOND);
    assert_eq!(a.good[..6], [198, 169, 17, 16, 17, 17]);
    assert_eq!((a.late, a.largest), (0, 153));
    let b = play(&B.scenario(&[]));
    recovers(&b, 2.5, TO_THE_MILLISECOND);
    assert_eq!(b.good[..4], [199, 200, 101, 0]);
    assert_eq!((b.late, b.largest), (0, 300));
    let c = play(&C.scenario(&[]));
    recovers(&c, 3.5, TO_THE_MILLISECOND);
    assert_eq!(c.good[..5], [199, 200, 1, 100, 0]);
    assert_eq!((c.late, c.largest), (100, 499));
    let d = play(&D.scenario(&[]));
    recovers(&d, 3.025, TO_THE_MILLISECOND);
    assert_eq!(d.good[..5], [112, 134, 132, 22, 17]);
    assert_eq!((d.late, d.largest), (0, 7));
    let o = play(&O.scenario(&[]));
    recovers(&o, 1.755, TO_THE_MILLISECOND);
    assert_eq!((o.good[..2].to_vec(), o.late, o.largest), (vec![198, 169], 0, 153));
}

#[test]
fn a_backlog_is_worked_off_though_nobody_waits_for_it() {
    let e = play(&E.scenario(&[]));
    recovers(&e, 25.125, TO_THE_MILLISECOND);
    assert!(e.good[..22].iter().all(|&good| good == 0));
    assert_eq!(e.good[22..26], [74, 200, 200, 26]);
    assert_eq!((e.late, e.largest), (4525, 1288));
    let f = play(&F.scenario(&[]));
    recovers(&f, 225.125, TO_THE_MILLISECOND);
    assert!(f.good[..222].iter().all(|&good| good == 0));
    assert_eq!((f.late, f.largest), (44525, 7758));
}

#[test]
fn with_more_workers_less_patience_or_less_capacity_the_backlog_is_never_worked_off() {
    for base in [I, J, K, M] {
        let never = play(&base.scenario(&[]));
        assert_eq!(never.recovered, None);
        assert!(never.good.iter().all(|&good| good == 0));
    }
    let m = play(&M.scenario(&[]));
    assert!((1_540..=1_550).contains(&m.largest), "{}", m.largest);
}

#[test]
fn retries_that_do_not_wait_for_the_outcome_offer_what_the_story_says() {
    let n = play(&N.scenario(&[]));
    assert_eq!(n.recovered, None);
    assert_eq!(n.sent[..12], [350, 367, 384, 400, 417, 434, 450, 467, 484, 500, 500, 500]);
    assert!(n.good.iter().all(|&good| good == 0));
}

#[test]
fn a_shared_service_is_lost_to_a_herd_at_one_instant() {
    let g = play(&G.scenario(&[]));
    assert_eq!((g.recovered, g.largest), (None, 500));
    assert_eq!(g.sent[..7], [500, 0, 0, 500, 0, 0, 500]);
    assert!(g.good.iter().all(|&good| good == 0));
    let h = play(&H.scenario(&[]));
    recovers(&h, 2.5, 0.01);
    assert_eq!((h.good[..4].to_vec(), h.late, h.largest), (vec![53, 110, 337, 0], 0, 447));
}

#[test]
fn a_service_that_slows_with_its_queue_does_not_come_back() {
    let p = play(&P.scenario(&[]));
    assert_eq!(p.recovered, None);
    assert_eq!(p.good[..5], [115, 73, 37, 0, 0]);
    let q = play(&Q.scenario(&[]));
    recovers(&q, 5.412, TO_THE_MILLISECOND);
    assert_eq!(q.good[..7], [133, 98, 66, 0, 129, 74, 0]);
    assert_eq!((q.late, q.largest), (203, 366));
    let with = |factor: u32| {
        let mut scenario = P.scenario(&[]);
        slows(&mut scenario, factor);
        play(&scenario).recovered
    };
    assert_eq!(with(210), None);
    assert!(with(220).is_some());
}

#[test]
fn a_short_queue_that_refuses_brings_every_service_back_within_seconds() {
    for (base, limit, seconds, good) in [
        (P, 100, 3.3331, &[142, 139, 160, 59][..]),
        (N, 100, 2.335, &[99, 200, 85]),
        (G, 100, 4.5, &[100, 100, 100, 100, 100]),
        (I, 100, 3.38, &[99, 200, 200, 101]),
        (E, 100, 2.335, &[99, 200, 85]),
        (P, 200, 4.08275, &[123, 106, 114, 141, 16]),
        (N, 200, 3.41, &[0, 199, 149, 52]),
        (G, 200, 2.5, &[0, 200, 300]),
        (I, 200, 3.88, &[0, 199, 200, 200, 26]),
        (E, 200, 2.835, &[0, 199, 185, 16]),
        (N, 400, 6.595, &[]),
        (G, 400, 2.5, &[]),
        (I, 400, 5.385, &[]),
        (E, 400, 4.26, &[]),
    ] {
        let outcome = play(&base.limited(limit, &[]));
        recovers(&outcome, seconds, TO_THE_MILLISECOND);
        assert_eq!(outcome.good[..good.len()], *good, "{:?} with a limit of {limit}", base.with);
    }
}

#[test]
fn a_queue_as_long_as_the_patience_of_the_clients_may_not_help() {
    assert_eq!(play(&P.limited(400, &[])).recovered, None);
}

#[test]
fn dropping_what_has_expired_helps() {
    for (base, limit, seconds) in [
        (P, 200, 4.08275),
        (N, 200, 1.755),
        (I, 200, 2.755),
        (E, 200, 1.755),
        (P, UNBOUNDED, 5.464475),
        (N, UNBOUNDED, 4.405),
        (I, UNBOUNDED, 2.635),
        (E, UNBOUNDED, 1.76),
    ] {
        let mut scenario = base.limited(limit, &["dropping"]);
        for outage in &mut scenario.service.outages {
            // In the other program, work that starts in the very microsecond of the timeout starts before it. Here that
            // is too late. A nanosecond's lead for a service that is busy throughout comes to the same.
            outage.until -= Duration::from_nanos(1);
        }
        recovers(&play(&scenario), seconds, TO_THE_MILLISECOND);
    }
}

#[test]
fn serving_the_newest_first_helps() {
    for (base, seconds) in [(P, 7.029425), (N, 1.82), (I, 2.855), (E, 2.185)] {
        let mut scenario = base.limited(UNBOUNDED, &[]);
        waiting(&mut scenario).order = Order::LastIn;
        recovers(&play(&scenario), seconds, TO_THE_MILLISECOND);
    }
}

#[test]
fn backoff_without_jitter_helps_all_but_a_herd_at_one_instant() {
    let recovered = |base: Base| {
        let mut scenario = base.scenario(&["backoff"]);
        retries(&mut scenario).jitter = Jitter::None;
        play(&scenario)
    };
    recovers(&recovered(P), 34.464475, TO_THE_MILLISECOND);
    recovers(&recovered(I), 29.97, TO_THE_MILLISECOND);
    recovers(&recovered(E), 22.27, TO_THE_MILLISECOND);
    assert_eq!(recovered(G).recovered, None);
}

/// The rows of the other program are ranges over five seeds of its own.
#[track_caller]
fn recovers_within(base: Base, scenario: &Scenario, least: f64, most: f64) {
    for seed in 1..=5 {
        let outcome = play_with(scenario, &Limits::Written, seed);
        let recovered = outcome.recovered.map_or(f64::INFINITY, |after| after.as_secs_f64());
        let in_range = (0.9 * least..=1.1 * most).contains(&recovered);
        assert!(in_range, "{:?}, seed {seed}: {recovered} is not within {least} and {most}", base.with);
    }
}

#[test]
fn backoff_with_full_jitter_works_and_costs_about_its_longest_wait() {
    for (base, least, most) in [(P, 32.2, 33.3), (G, 31.9, 32.0), (I, 46.2, 48.9), (E, 35.2, 37.9)] {
        recovers_within(base, &base.scenario(&["backoff"]), least, most);
    }
}

#[test]
fn jitter_alone_does_not_help_where_the_mean_rate_stays() {
    let jittered = |base: Base| {
        let mut scenario = base.scenario(&[]);
        retries(&mut scenario).jitter = Jitter::Half;
        scenario
    };
    recovers_within(G, &jittered(G), 5.0, 5.003);
    recovers_within(E, &jittered(E), 25.0, 25.7);
    for base in [P, I] {
        for seed in 1..=5 {
            assert_eq!(play_with(&jittered(base), &Limits::Written, seed).recovered, None);
        }
    }
}

#[test]
fn workers_restarted_one_after_the_other_find_a_service_that_keeps_up() {
    for base in [P, G] {
        let mut scenario = base.scenario(&[]);
        closed(&mut scenario).first_over = Some(Duration::from_secs(10));
        recovers(&play(&scenario), 9.985, TO_THE_MILLISECOND);
    }
}

/// The model's own rule: after each answer, a tenth less if it took more than a second, else one more, within 20 and
/// 1000; and one for the request that is worked on, where a limit counts those who wait.
#[derive(Debug)]
struct Adaptive {
    limit: usize,
    /// From when on a request is worked on; `None` if none is counted apart.
    works_from: Option<Instant>,
    working: usize,
}

impl Limiter for Adaptive {
    fn limit(&self) -> usize {
        self.limit + self.working
    }

    fn next_window(&self) -> WindowRule {
        let deadline = self.works_from.filter(|_| self.working == 0).unwrap_or(Instant::FAR_FUTURE);
        WindowRule { deadline, ..WindowRule::samples(1) }
    }

    fn update(&mut self, window: &Window) -> Decision {
        if window.successes.count > 0 {
            let slow = window.successes.sum_ns > 1_000_000_000;
            self.limit = if slow { (self.limit * 9 / 10).max(20) } else { (self.limit + 1).min(1_000) };
        }
        self.working = self.works_from.map_or(0, |from| usize::from(window.closed >= from));
        Decision::new(self.limit(), Reason::Holding)
    }

    fn resume(&mut self, _: &State) -> Result<(), CannotResume> {
        Ok(())
    }
}

#[test]
fn a_limit_that_learns_from_the_time_taken_brings_every_service_back() {
    for (base, seconds) in [(P, 6.569025), (N, 7.24), (G, 8.0), (I, 9.26), (E, 7.24)] {
        let mut scenario = base.scenario(&[]);
        let restart = scenario.service.outages.first().map(|outage| outage.until);
        scenario.door.service = Some(Door { tick: restart, ..Door::default() });
        let shared = scenario.service.sharing.is_some();
        let from = Instant::ZERO + restart.unwrap_or_default();
        let limiter = move || -> Box<dyn Limiter> {
            let working = usize::from(!shared && from == Instant::ZERO);
            Box::new(Adaptive { limit: 1_000, works_from: (!shared).then_some(from), working })
        };
        let outcome = play_with(&scenario, &Limits::Custom("adaptive".into(), Arc::new(limiter)), 1);
        recovers(&outcome, seconds, 0.01);
        if !shared {
            recovers(&outcome, seconds, TO_THE_MILLISECOND);
        }
    }
}
