//! Services of known truth are recovered from their recordings, and nothing is claimed that a recording does not hold.

mod by_chance;
mod services;

use std::fmt::Write as _;

use goodput_recordings::{Estimate, Inspection, Options, Workload};
use services::{Case, Event, Load, Request, Service, What, Work};

/// The first seed of those that draw services.
const SEEDS: u64 = 2001;

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
    Case { name, service, work, mean, load, room: usize::MAX, events: Vec::new() }
}

/// Services whose recordings contain their knee.
fn with_a_knee() -> Vec<Case> {
    use Service::{Delayed, Queue, Retrograde, Shared, Slowed};
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
        case(
            "eight and a delay, closed",
            Delayed { workers: 8, delay: 2.0 },
            Lognormal(0.5),
            0.02,
            clients(&[4, 8, 16, 24, 48, 96], 10.0),
        ),
        case("eight constant, closed", queue(8), Constant, 0.02, clients(&[2, 4, 8, 16, 32], 10.0)),
        case("twelve Pareto, closed", queue(12), Pareto, 0.02, clients(&[3, 6, 12, 24, 48], 20.0)),
        case("twenty bimodal, closed", queue(20), Bimodal, 0.05, clients(&[5, 10, 20, 40, 80], 20.0)),
        case(
            "shared by six constant, closed",
            Shared { workers: 6.0 },
            Constant,
            0.03,
            clients(&[2, 4, 6, 12, 24, 48], 10.0),
        ),
        case(
            "slowed by its queue, closed",
            Slowed { workers: 8, slows: 40.0 },
            Exponential,
            0.02,
            clients(&[2, 4, 8, 12, 16, 32, 64], 10.0),
        ),
    ]
}

/// Services to which something happens, or to their log. The capacity is the one without it.
fn disturbed() -> Vec<Case> {
    use Service::{Delayed, Queue, Shared};
    use Work::{Exponential, Lognormal};
    let event = |from: f64, until: f64, what: What| vec![Event { from, until, what }];
    let eight = |name, load| case(name, Queue { workers: 8 }, Exponential, 0.02, load);
    let light = |load: f64, seconds: f64| Load::Open(vec![(load, seconds)]);
    vec![
        Case {
            events: event(20.0, 35.0, What::Unlogged),
            ..eight("a gap in the log of an overload", through_the_knee(15.0))
        },
        Case {
            events: event(20.0, 35.0, What::Unlogged),
            ..eight("a gap in the log of a light load", light(0.5, 90.0))
        },
        Case {
            events: event(30.0, 32.0, What::Speed(0.0)),
            ..eight("a stall, and an overload", through_the_knee(15.0))
        },
        Case {
            events: event(30.0, 32.0, What::Speed(0.0)),
            ..eight("a stall under light load", light(0.4, 90.0))
        },
        Case {
            events: (0..30)
                .flat_map(|n| event(f64::from(n) * 3.0, f64::from(n) * 3.0 + 0.15, What::Speed(0.0)))
                .collect(),
            ..eight("pauses for collection under light load", light(0.5, 90.0))
        },
        Case {
            events: event(30.0, 60.0, What::Speed(0.5)),
            ..eight("half as fast under light load", light(0.3, 90.0))
        },
        Case {
            events: event(30.0, 60.0, What::Speed(0.5)),
            ..eight("half as fast, and overloaded by it", light(0.7, 90.0))
        },
        Case {
            events: event(0.0, 15.0, What::Speed(0.5)),
            ..eight("a cold start, then an overload", through_the_knee(15.0))
        },
        Case {
            events: event(30.0, 60.0, What::Later(0.1)),
            ..eight("later answers under light load", light(0.4, 90.0))
        },
        Case {
            events: event(60.0, 1e9, What::Later(0.05)),
            ..eight("later answers, and an overload", through_the_knee(15.0))
        },
        Case {
            events: event(30.0, 60.0, What::Speed(0.5)),
            ..case(
                "shared, half as fast under light load",
                Shared { workers: 10.0 },
                Lognormal(0.5),
                0.02,
                light(0.3, 90.0),
            )
        },
        Case {
            events: event(30.0, 60.0, What::Later(0.1)),
            ..case(
                "a longer delay under light load",
                Delayed { workers: 8, delay: 5.0 },
                Exponential,
                0.02,
                light(0.4, 90.0),
            )
        },
    ]
}

/// Services whose recordings do not contain their knee.
fn without_a_knee() -> Vec<Case> {
    use Service::{Delayed, Queue, Retrograde, Shared, Slowed};
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
        // An overload by clients that do not wait makes these ever slower: they fall past their knee within a moment.
        case(
            "retrograde, open",
            Retrograde { sigma: 0.02, kappa: 0.0005 },
            Lognormal(0.5),
            0.02,
            Load::Open([0.3, 0.6, 0.85, 0.95, 1.2, 0.5].map(|load| (load, 15.0)).to_vec()),
        ),
        case(
            "slowed by its queue, open",
            Slowed { workers: 16, slows: 200.0 },
            Exponential,
            0.02,
            through_the_knee(10.0),
        ),
    ]
}

#[test]
fn whole_seconds_are_enough_to_recover_a_capacity_a_knee_and_how_long_a_request_takes() {
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
        problems += &differences(&case, &workload(&nginx(&case.run(1))));
    }
    assert!(problems.is_empty(), "\n{problems}");
}

#[test]
fn a_recording_of_more_requests_than_are_kept_tells_the_same() {
    let load = Load::Open([0.3, 0.6, 0.9, 1.3, 0.5].map(|load| (load, 80.0)).to_vec());
    let case = case("fifty fast ones", Service::Queue { workers: 50 }, Work::Exponential, 0.01, load);
    let requests = case.run(1);
    assert!(requests.len() > 1 << 20);
    let mut problems = String::new();
    for recording in [list(&requests), nginx(&requests)] {
        problems += &differences(&case, &workload(&recording));
    }
    assert!(problems.is_empty(), "\n{problems}");
}

/// What differs from the truth by more than a fifth, and the knee by more than a quarter.
fn differences(case: &Case, found: &Workload) -> String {
    let (capacity, knee) = case.truth();
    let stay = case.unhindered() * 1e3;
    let mut problems = String::new();
    if !found.capacity_per_s.is_some_and(|estimate| within(estimate.value, capacity, 0.2)) {
        let _ = writeln!(
            problems,
            "{}: capacity {capacity:.1}, found {:?}: {}",
            case.name, found.capacity_per_s, found.verdict
        );
    }
    if !found.knee.is_some_and(|estimate| within(estimate.value, knee, 0.25)) {
        let _ = writeln!(problems, "{}: knee {knee:.1}, found {:?}", case.name, found.knee);
    }
    if !found.service_time_ms.as_ref().is_some_and(|times| within(times.mean, stay, 0.25)) {
        let times = found.service_time_ms.as_ref().map(|times| times.mean);
        let _ = writeln!(problems, "{}: a request takes {stay:.1} ms, found {times:?}", case.name);
    }
    problems
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
    for case in without_a_knee().into_iter().chain(disturbed()) {
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

#[test]
fn nine_in_ten_services_drawn_by_chance_are_recovered_and_no_wrong_capacity_is_claimed_with_confidence() {
    let tally = Tally::of(SEEDS..SEEDS + 30, true, list);
    assert!(tally.right >= 27 && tally.wrong == 0, "{tally:?}");
    let tally = Tally::of(SEEDS..SEEDS + 30, false, list);
    assert_eq!(tally.wide + tally.wrong, 0, "{tally:?}");
}

/// Services that the fit was never tuned on: `FIRST=5000 SERVICES=100 cargo test --release -p goodput-recordings --test
/// recovery -- --ignored --nocapture`.
#[test]
#[ignore = "draws as many services as one likes, and prints what was said of them"]
fn the_tally_of_services_drawn_by_chance() {
    let number = |name: &str, usual: u64| {
        std::env::var(name).ok().and_then(|number| number.parse().ok()).unwrap_or(usual)
    };
    let first = number("FIRST", 5000);
    let seeds = first..first + number("SERVICES", 100);
    for (stamps, log) in [("nanoseconds", list as fn(&[Request]) -> String), ("whole seconds", nginx)] {
        for (load, overload) in [("an overload", true), ("a light load", false)] {
            println!("{load} in {stamps}: {:?}", Tally::of(seeds.clone(), overload, log));
        }
    }
}

/// What was said of the capacity of services drawn by chance.
#[derive(Debug, Default)]
struct Tally {
    /// Within 15 %.
    right: u32,
    /// Nothing.
    unknown: u32,
    /// Off by more, with an interval that holds the truth.
    wide: u32,
    /// Off by more, with confidence.
    wrong: u32,
    /// Knees off by more than 35 %, with confidence.
    wrong_knees: u32,
    /// Services of which it is said that they can do over 15 % more than they can.
    wrong_bounds: u32,
}

impl Tally {
    fn of(seeds: std::ops::Range<u64>, overload: bool, log: fn(&[Request]) -> String) -> Self {
        let mut tally = Self::default();
        for seed in seeds {
            let case = by_chance::case(seed, overload);
            let (capacity, knee) = case.truth();
            let found = workload(&log(&case.run(seed)));
            let holds = |estimate: Estimate, truth: f64| (estimate.low..=estimate.high).contains(&truth);
            let (count, is_usual) = match found.capacity_per_s {
                None => (&mut tally.unknown, !overload),
                Some(rate) if within(rate.value, capacity, 0.15) => (&mut tally.right, overload),
                Some(rate) if holds(rate, capacity) => (&mut tally.wide, false),
                Some(_) => (&mut tally.wrong, false),
            };
            *count += 1;
            let knee_is_wrong =
                found.knee.is_some_and(|found| !within(found.value, knee, 0.35) && !holds(found, knee));
            let bound_is_wrong = found.capacity_at_least_per_s.is_some_and(|least| least > capacity);
            tally.wrong_knees += u32::from(knee_is_wrong);
            tally.wrong_bounds += u32::from(bound_is_wrong);
            if (!is_usual || knee_is_wrong || bound_is_wrong) && std::env::var_os("SHOW").is_some() {
                eprintln!(
                    "{seed}: {capacity:.1}/s with {knee:.1}: {:?} with {:?}, at least {:?}: {} {case:?}",
                    found.capacity_per_s, found.knee, found.capacity_at_least_per_s, found.verdict
                );
            }
        }
        tally
    }
}
