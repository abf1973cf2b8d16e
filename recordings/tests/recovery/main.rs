//! Services of known truth are recovered from their recordings, and nothing is claimed that a recording does not hold.

mod services;

use std::fmt::Write as _;

use goodput_recordings::{Inspection, Options, Workload};
use services::{Case, Load, Request, Service, Work};

/// The recording of a run as a plain list of requests.
fn list(requests: &[Request]) -> String {
    let mut list = "start_ns,latency_ns,outcome,service_ns,status,nested\n".to_owned();
    for request in requests {
        let (start, end) = ((request.start * 1e9) as i64, (request.end * 1e9) as i64);
        let (outcome, status) = if request.refused { ("refused", 503) } else { ("success", 200) };
        let _ =
            writeln!(list, "{},{},{outcome},,{status},false", 1_795_993_308_000_000_000 + start, end - start);
    }
    list
}

/// The same as an nginx log, whose stamps are whole seconds of the end.
fn nginx(requests: &[Request]) -> String {
    let mut log = String::new();
    for request in requests {
        let (second, latency) = (request.end as u64, request.end - request.start);
        let status = if request.refused { 503 } else { 200 };
        let (hours, minutes, seconds) = (second / 3600, second / 60 % 60, second % 60);
        let _ = writeln!(
            log,
            "10.0.0.1 - - [29/Nov/2026:{hours:02}:{minutes:02}:{seconds:02} +0000] \"GET / HTTP/1.1\" {status} 72 \"-\" \"-\" {latency:.3} {latency:.3}"
        );
    }
    log
}

fn workload(text: &str) -> Workload {
    Inspection::read(text.as_bytes(), &Options::default()).expect("a recording").workload
}

/// From idle over the knee and back.
fn through_the_knee(seconds: f64) -> Load {
    Load::Open([0.2, 0.4, 0.6, 0.8, 1.0, 1.3, 0.5].map(|load| (load, seconds)).to_vec())
}

fn clients(steps: &[usize], seconds: f64) -> Load {
    Load::Closed(steps.iter().map(|&clients| (clients, seconds)).collect())
}

fn case(name: &'static str, service: Service, work: Work, mean: f64, load: Load) -> Case {
    Case { name, service, work, mean, load, room: usize::MAX }
}

/// Twenty services whose recordings contain their knee.
fn with_a_knee() -> Vec<Case> {
    use Service::{Delayed, Queue, Retrograde, Shared};
    use Work::{Bimodal, Constant, Exponential, Lognormal, Pareto};
    let queue = |workers| Queue { workers };
    vec![
        case("one worker", queue(1), Exponential, 0.01, through_the_knee(15.0)),
        case("two constant workers", queue(2), Constant, 0.02, through_the_knee(15.0)),
        case("the lab's four", queue(4), Lognormal(0.45), 0.064, clients(&[2, 4, 8, 16, 32, 2], 5.0)),
        case("four, open", queue(4), Lognormal(0.45), 0.064, through_the_knee(20.0)),
        case("eight bimodal", queue(8), Bimodal, 0.02, through_the_knee(15.0)),
        case("sixteen Pareto", queue(16), Pareto, 0.02, through_the_knee(20.0)),
        case("fifty", queue(50), Exponential, 0.1, through_the_knee(20.0)),
        case("two hundred", queue(200), Lognormal(1.0), 0.2, through_the_knee(10.0)),
        case("slow four", queue(4), Exponential, 1.0, through_the_knee(120.0)),
        case("fast thirty-two", queue(32), Lognormal(1.0), 0.004, through_the_knee(4.0)),
        Case {
            room: 40,
            ..case("eight with room for forty", queue(8), Exponential, 0.02, through_the_knee(15.0))
        },
        case("always full, in order", queue(6), Lognormal(0.5), 0.05, clients(&[30], 60.0)),
        case("shared by four", Shared { workers: 4.0 }, Exponential, 0.02, through_the_knee(15.0)),
        case(
            "shared by ten, closed",
            Shared { workers: 10.0 },
            Lognormal(1.0),
            0.05,
            clients(&[2, 5, 10, 20, 40, 80], 8.0),
        ),
        case("shared by twenty-four", Shared { workers: 24.0 }, Bimodal, 0.03, through_the_knee(10.0)),
        case("shared by one", Shared { workers: 1.0 }, Pareto, 0.01, through_the_knee(30.0)),
        case(
            "retrograde",
            Retrograde { sigma: 0.02, kappa: 0.002 },
            Exponential,
            0.02,
            clients(&[1, 2, 4, 8, 16, 22, 32, 64, 100], 8.0),
        ),
        case(
            "mildly retrograde",
            Retrograde { sigma: 0.05, kappa: 0.0005 },
            Lognormal(0.5),
            0.02,
            clients(&[2, 5, 10, 20, 40, 60, 90, 130], 8.0),
        ),
        case(
            "eight and a delay",
            Delayed { workers: 8, delay: 2.0 },
            Exponential,
            0.02,
            through_the_knee(15.0),
        ),
        case(
            "three and a long delay",
            Delayed { workers: 3, delay: 5.0 },
            Lognormal(0.5),
            0.02,
            through_the_knee(20.0),
        ),
    ]
}

/// Twenty services whose recordings do not contain their knee.
fn without_a_knee() -> Vec<Case> {
    use Service::{Delayed, Queue, Retrograde, Shared};
    use Work::{Bimodal, Constant, Exponential, Lognormal, Pareto};
    let queue = |workers| Queue { workers };
    let light =
        |load: f64, seconds: f64| Load::Open(vec![(load, seconds), (load / 2.0, seconds), (load, seconds)]);
    vec![
        case("one worker, idle", queue(1), Exponential, 0.01, light(0.2, 60.0)),
        case("four, light", queue(4), Lognormal(0.45), 0.064, light(0.4, 60.0)),
        case("eight bimodal, light", queue(8), Bimodal, 0.02, light(0.5, 30.0)),
        case("sixteen Pareto, light", queue(16), Pareto, 0.02, light(0.4, 60.0)),
        case("fifty, light", queue(50), Exponential, 0.1, light(0.5, 40.0)),
        case("fifty Pareto, light", queue(50), Pareto, 0.1, light(0.3, 60.0)),
        case("two hundred, light", queue(200), Lognormal(1.0), 0.2, light(0.5, 20.0)),
        case("a thousand Pareto, idle", queue(1000), Pareto, 0.2, light(0.05, 60.0)),
        case("a thousand constant, idle", queue(1000), Constant, 0.2, light(0.05, 60.0)),
        case(
            "a thousand, in waves",
            queue(1000),
            Lognormal(0.5),
            0.2,
            Load::Open([0.02, 0.1, 0.02, 0.2, 0.02, 0.1].map(|l| (l, 10.0)).to_vec()),
        ),
        case("shared by ten, light", Shared { workers: 10.0 }, Exponential, 0.02, light(0.4, 30.0)),
        case("shared by fifty, light", Shared { workers: 50.0 }, Bimodal, 0.05, light(0.4, 30.0)),
        case("shared Pareto, light", Shared { workers: 20.0 }, Pareto, 0.05, light(0.3, 60.0)),
        case(
            "retrograde, light",
            Retrograde { sigma: 0.001, kappa: 0.00002 },
            Exponential,
            0.02,
            light(0.2, 20.0),
        ),
        case("a long delay, light", Delayed { workers: 8, delay: 20.0 }, Exponential, 0.02, light(0.4, 40.0)),
        case("two clients", queue(8), Exponential, 0.02, clients(&[2], 60.0)),
        case("one to four clients of sixteen", queue(16), Lognormal(0.5), 0.02, clients(&[1, 2, 3, 4], 15.0)),
        case("thirty clients of a thousand", queue(1000), Exponential, 0.2, clients(&[30], 60.0)),
        case("thirty alike clients of a thousand", queue(1000), Lognormal(0.1), 0.2, clients(&[30], 60.0)),
        case(
            "one to fifty clients of a thousand",
            queue(1000),
            Pareto,
            0.1,
            clients(&[1, 5, 10, 20, 50], 15.0),
        ),
    ]
}

#[test]
fn whole_seconds_are_enough_to_recover_a_capacity() {
    let mut problems = String::new();
    let fine = [
        "the lab's four",
        "four, open",
        "eight bimodal",
        "fifty",
        "eight with room for forty",
        "shared by four",
        "eight and a delay",
    ];
    for case in with_a_knee().into_iter().filter(|case| fine.contains(&case.name)) {
        let (capacity, _) = case.truth();
        let found = workload(&nginx(&case.run(1)));
        if !found.capacity_per_s.is_some_and(|estimate| within(estimate.value, capacity, 0.2)) {
            let _ = writeln!(
                problems,
                "{}: capacity {capacity:.1}, found {:?}: {}",
                case.name, found.capacity_per_s, found.verdict
            );
        }
    }
    assert!(problems.is_empty(), "\n{problems}");
}

fn within(estimate: f64, truth: f64, share: f64) -> bool {
    (estimate / truth - 1.0).abs() <= share
}

#[test]
fn the_capacity_is_recovered_where_the_recording_contains_the_knee() {
    let mut problems = String::new();
    for case in with_a_knee() {
        let (capacity, knee) = case.truth();
        for seed in 1..=2 {
            let found = workload(&list(&case.run(seed)));
            if std::env::var_os("SHOW").is_some() {
                eprintln!(
                    "{} {seed}: truth {capacity:.1} {knee:.1}; {:?} knee {:?} {:?}",
                    case.name, found.capacity_per_s, found.knee, found.service
                );
            }
            match found.capacity_per_s {
                Some(estimate) if within(estimate.value, capacity, 0.15) => {
                    let close =
                        found.knee.is_some_and(|found| found.low <= 1.25 * knee && found.high >= 0.75 * knee);
                    if !close {
                        let _ = writeln!(
                            problems,
                            "{} (seed {seed}): knee {knee}, found {:?}",
                            case.name, found.knee
                        );
                    }
                }
                estimate => {
                    let _ = writeln!(
                        problems,
                        "{} (seed {seed}): capacity {capacity:.1}, found {estimate:?}: {}",
                        case.name, found.verdict
                    );
                }
            }
        }
    }
    assert!(problems.is_empty(), "\n{problems}");
}

#[test]
fn nothing_wrong_is_claimed_where_the_recording_does_not_contain_the_knee() {
    let mut problems = String::new();
    for case in without_a_knee() {
        let (capacity, _) = case.truth();
        for seed in 1..=3 {
            let found = workload(&list(&case.run(seed)));
            if std::env::var_os("SHOW").is_some() {
                eprintln!(
                    "{} {seed}: truth {capacity:.1}; {:?} at least {:?} {}",
                    case.name, found.capacity_per_s, found.capacity_at_least_per_s, found.verdict
                );
            }
            if let Some(estimate) = found.capacity_per_s
                && !within(estimate.value, capacity, 0.15)
            {
                let _ = writeln!(
                    problems,
                    "{} (seed {seed}): capacity {capacity:.1}, claimed {estimate:?}",
                    case.name
                );
            }
            match found.capacity_at_least_per_s {
                Some(least) if least <= capacity => {}
                least => {
                    let _ = writeln!(
                        problems,
                        "{} (seed {seed}): capacity {capacity:.1}, at least {least:?}",
                        case.name
                    );
                }
            }
        }
    }
    assert!(problems.is_empty(), "\n{problems}");
}
