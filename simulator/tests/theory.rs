//! What queueing theory says of services whose means are known, judged by independent runs.
//!
//! Sources: A. K. Erlang (1917) for systems of many workers, F. Pollaczek (1930) and A. Khinchin (1932) for one worker and
//! any distribution, L. Kleinrock, "Queueing Systems" II (1976) for processor sharing.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use goodput::algorithms::{CannotResume, Decision, Instant, Limiter, Reason, State, Window, WindowRule};
use goodput_simulator::{Limits, Measure, Part, Scenario, run};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// The mean of all work, in seconds.
const WORK: f64 = 0.01;

const RUNS: u64 = 16;

/// A true theory is rejected once in so many tests, if seeds were drawn anew; here they are fixed.
const ONCE_IN: f64 = 1_000.0;

fn scenario(work: &str, kind: &str, per_second: f64, door: &str) -> Scenario {
    Scenario::parse(&format!(
        "length = \"120s\"\n[service]\nwork = {work}\n{kind}\n[[clients]]\nopen = {{ per_second = {per_second:?} }}\n{door}"
    ))
    .unwrap_or_else(|error| panic!("{error}"))
}

/// The theory's value lies in the confidence interval of the mean over independent runs, and that interval is narrow
/// enough (within `precision` of the value) to tell the theory from others.
#[track_caller]
fn agrees(scenario: &Scenario, limits: &Limits, theory: f64, precision: f64, figure: fn(&Part) -> f64) {
    let figures: Vec<f64> = (1..=RUNS)
        .map(|seed| {
            // The first tenth fills the empty service.
            let measure = Measure { cuts: vec![scenario.length / 10], ..Measure::default() };
            figure(&run(scenario, limits, seed, &measure).unwrap().summary.parts[1])
        })
        .collect();
    let count = RUNS as f64;
    let mean = figures.iter().sum::<f64>() / count;
    let variance = figures.iter().map(|figure| (figure - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let t = StudentsT::new(0.0, 1.0, count - 1.0).unwrap().inverse_cdf(1.0 - 0.5 / ONCE_IN);
    let half_width = t * (variance / count).sqrt();
    assert!(half_width <= precision * theory, "{mean} ± {half_width} says too little of {theory}");
    assert!((mean - theory).abs() <= half_width, "{mean} ± {half_width} instead of {theory}");
}

/// Mean time from sending to answer, in seconds.
fn sojourn(part: &Part) -> f64 {
    part.counts.latency_ns as f64 / 1e9 / (part.counts.good + part.counts.late) as f64
}

fn refused_share(part: &Part) -> f64 {
    part.counts.refused.total() as f64 / part.counts.offered as f64
}

/// Erlang's B: the share that is lost where so many workers are offered so much load.
fn erlang_b(workers: u32, load: f64) -> f64 {
    (1..=workers).fold(1.0, |lost, workers| load * lost / (f64::from(workers) + load * lost))
}

/// Erlang's C: the share that waits.
fn erlang_c(workers: u32, load: f64) -> f64 {
    let lost = erlang_b(workers, load);
    let busy = load / f64::from(workers);
    lost / (1.0 - busy + busy * lost)
}

#[test]
fn one_worker_and_exponential_work() {
    for busy in [0.3, 0.7, 0.8] {
        let scenario = scenario("{ exponential = \"10ms\" }", "pool = { workers = 1 }", busy / WORK, "");
        agrees(&scenario, &Limits::None, WORK / (1.0 - busy), 0.12, sojourn);
    }
}

#[test]
fn many_workers_wait_as_erlang_says() {
    for (workers, busy) in [(2, 0.8), (8, 0.8), (16, 0.9)] {
        let load = busy * f64::from(workers);
        let wait = erlang_c(workers, load) * WORK / (f64::from(workers) * (1.0 - busy));
        let kind = format!("pool = {{ workers = {workers} }}");
        let scenario = scenario("{ exponential = \"10ms\" }", &kind, load / WORK, "");
        agrees(&scenario, &Limits::None, WORK + wait, 0.08, sojourn);
    }
}

#[test]
fn a_limit_of_as_many_as_there_are_workers_loses_what_erlang_says_whatever_the_work() {
    for work in [
        "{ exponential = \"10ms\" }",
        "{ constant = \"10ms\" }",
        "{ lognormal = { mean = \"10ms\", cv = 2.0 } }",
    ] {
        for (workers, load) in [(8, 6.0), (16, 24.0)] {
            let kind = format!("pool = {{ workers = {workers} }}");
            let scenario = scenario(work, &kind, load / WORK, "[door.service]");
            agrees(&scenario, &Limits::fixed(workers as usize), erlang_b(workers, load), 0.05, refused_share);
        }
    }
}

/// Kinds of work with a mean of 10 ms, and the squares of their coefficients of variation.
const WORKS: [(&str, f64); 4] = [
    ("{ constant = \"10ms\" }", 0.0),
    ("{ erlang = { mean = \"10ms\", stages = 4 } }", 0.25),
    ("{ bimodal = { fast = \"5ms\", slow = \"55ms\", slow_share = 0.1 } }", 2.25),
    ("{ lognormal = { mean = \"10ms\", cv = 1.5 } }", 2.25),
];

#[test]
fn one_worker_waits_by_the_variance_of_the_work() {
    for (work, cv2) in WORKS {
        let busy = 0.7;
        let wait = busy * WORK * (1.0 + cv2) / (2.0 * (1.0 - busy));
        let scenario = scenario(work, "pool = { workers = 1 }", busy / WORK, "");
        agrees(&scenario, &Limits::None, WORK + wait, 0.15, sojourn);
    }
}

#[test]
fn a_shared_service_does_not_care_how_work_is_distributed() {
    for (work, _) in WORKS {
        let busy = 0.7;
        let scenario = scenario(work, "sharing = { cores = 1 }", busy / WORK, "");
        agrees(&scenario, &Limits::None, WORK / (1.0 - busy), 0.12, sojourn);
    }
}

/// Adds up what all windows of a gate say.
#[derive(Debug)]
struct Listener {
    heard: Arc<Mutex<Window>>,
    rule: fn(Instant) -> WindowRule,
    last: Instant,
}

impl Limiter for Listener {
    fn limit(&self) -> usize {
        20
    }

    fn next_window(&self) -> WindowRule {
        (self.rule)(self.last)
    }

    fn update(&mut self, window: &Window) -> Decision {
        self.last = window.closed;
        let mut heard = self.heard.lock().unwrap();
        *heard = heard.merge(*window);
        Decision::new(20, Reason::Holding)
    }

    fn resume(&mut self, _: &State) -> Result<(), CannotResume> {
        Ok(())
    }
}

#[test]
fn littles_law_is_exact_however_windows_are_cut() {
    let rules: [fn(Instant) -> WindowRule; 2] = [
        |_| WindowRule::samples(1),
        |last| WindowRule { deadline: last + Duration::from_millis(30), ..WindowRule::samples(10_000) },
    ];
    for kind in [
        "pool = { workers = 16 }",
        "sharing = { cores = 16 }",
        "usl = { contention = 0.02, crosstalk = 0.0005 }",
    ] {
        for rule in rules {
            let mut scenario =
                scenario("{ lognormal = { mean = \"10ms\", cv = 2.0 } }", kind, 2_400.0, "[door.service]");
            // All who came have left, and been told of, before the end.
            scenario.clients[0].leaves = Some(Duration::from_secs(10));
            scenario.length = Duration::from_secs(30);
            scenario.door.service.as_mut().unwrap().tick = Some(Duration::from_millis(100));
            let heard = Arc::new(Mutex::new(Window::EMPTY));
            let shared = Arc::clone(&heard);
            let make = move || -> Box<dyn Limiter> {
                Box::new(Listener { heard: Arc::clone(&shared), rule, last: Instant::ZERO })
            };
            let limits = Limits::Custom("listener".into(), Arc::new(make));
            let counts = run(&scenario, &limits, 1, &Measure::default()).unwrap().summary.total().counts;
            let heard = *heard.lock().unwrap();
            assert_eq!(heard.in_flight_area_ns, u128::from(counts.latency_ns), "{kind}");
            assert_eq!(heard.successes.count, counts.good);
            assert_eq!(heard.successes.sum_ns, counts.latency_ns);
            assert!(counts.good > 10_000 && counts.refused.total() > 1_000);
        }
    }
}
