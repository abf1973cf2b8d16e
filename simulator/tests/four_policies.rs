//! Four published ways to admit 150 % load, to the last digit, on the published list of requests.

#[allow(unreachable_pub, reason = "shared by several tests")]
mod support;

use std::{path::Path, time::Duration};

use goodput_simulator::{
    Comparison, Counts, Limits, Listed, Measure, Outage, OutageRequests, RowPlan, Run, run,
};
use support::mersenne_twister::MersenneTwister;

const CLASSES: [&str; 3] = ["checkout", "browse", "prefetch"];

/// Arrival in ms, class, work in ms.
type Asked = (f64, usize, f64);

fn traffic() -> Vec<Asked> {
    let mut chance = MersenneTwister::new(3);
    let (mut requests, mut at) = (Vec::new(), 0.0);
    loop {
        at += chance.exponential(1.5);
        if at >= 60_000.0 {
            return requests;
        }
        let drawn = chance.uniform();
        let class = [0.15, 0.15 + 0.55].iter().filter(|&&sum| sum <= drawn).count();
        requests.push((at, class, chance.exponential(1.0 / 50.0)));
    }
}

/// The model is played a thousand times as slowly as it was published, so that times in whole nanoseconds round its
/// floating-point ones to a picosecond: a chain of a thousand works that round to a nanosecond each would swap two events.
const SLOWER: u32 = 1_000;

fn slowed(millis: f64) -> Duration {
    Duration::from_nanos((millis * 1e6 * f64::from(SLOWER)).round() as u64)
}

fn play(with: &[&str]) -> Run {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/four_policies.toml");
    let comparison = Comparison::read(file).unwrap_or_else(|error| panic!("{error}"));
    let row = RowPlan { label: "row".into(), with: with.iter().map(|&name| name.into()).collect() };
    let mut scenario = comparison.scenario(&row).unwrap();
    let clients = &mut scenario.clients[0];
    clients.open = None;
    clients.requests = traffic()
        .iter()
        .map(|&(at, class, work)| Listed {
            at: slowed(at),
            work: Some(slowed(work)),
            class: Some(CLASSES[class].into()),
        })
        .collect();
    // The published model ends with the last request: nothing starts any more, and what was started is finished.
    scenario.length = Duration::from_secs(62) * SLOWER;
    scenario.deadline = scenario.deadline.map(|deadline| deadline * SLOWER);
    if let Some(waiting) = scenario.door.service.as_mut().and_then(|door| door.waiting.as_mut()) {
        waiting.max_wait *= SLOWER;
        waiting.least_time_left *= SLOWER;
    }
    let last = clients.requests.last().unwrap().at;
    scenario.service.outages = vec![Outage {
        from: last + Duration::from_nanos(1),
        until: scenario.length,
        requests: OutageRequests::Kept,
    }];
    run(&scenario, &Limits::Written, 1, &Measure::default()).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn the_reference_generator_is_that_of_cpython() {
    let mut chance = MersenneTwister::new(3);
    let first: Vec<_> = (0..8).map(|_| chance.next_u32()).collect();
    assert_eq!(
        first,
        [1022050301, 2545373330, 2337446730, 560161641, 1588945316, 3933953013, 2593816829, 2036044446]
    );
    let (sum, xor) = (8..1_000_000)
        .map(|_| chance.next_u32())
        .chain(first)
        .fold((0_u64, 0), |(sum, xor), word| (sum.wrapping_add(u64::from(word)), xor ^ word));
    assert_eq!((sum, xor), (2_148_001_301_572_121, 4_187_265_093));
    let mut chance = MersenneTwister::new(3);
    let uniforms: Vec<_> = (0..4).map(|_| chance.uniform()).collect();
    assert_eq!(uniforms, [0.23796462709189137, 0.5442292252959519, 0.36995516654807925, 0.6039200385961945]);
}

#[test]
fn the_list_of_requests_is_the_published_one() {
    let traffic = traffic();
    let close = |&(at, class, work): &Asked, (at2, class2, work2): Asked| {
        assert!(
            (at - at2).abs() < 1e-9 && class == class2 && (work - work2).abs() < 1e-9,
            "{at} {class} {work}"
        );
    };
    close(&traffic[0], (0.18117486882244557, 1, 23.098214895960645));
    close(&traffic[7], (2.8392701882632343, 2, 44.71418158174238));
    close(traffic.last().unwrap(), (59999.784872197924, 1, 26.310271903516984));
    let of = |class: usize| traffic.iter().filter(|asked| asked.1 == class).count();
    assert_eq!((traffic.len(), of(0), of(1), of(2)), (89_038, 13_247, 49_100, 26_691));
    let work: f64 = traffic.iter().map(|asked| asked.2).sum();
    assert!((work - 4_430_119.991).abs() < 0.001, "{work}");
}

/// What a published row says: good answers per second, 99th percentile of their latency, and the share of each class
/// that was good; and what is behind it, by class: good, refused, dropped, late; waiting at the end, and at most.
struct Row {
    with: &'static [&'static str],
    goodput: u64,
    p99_ms: f64,
    good_percent: [&'static str; 3],
    good: [u64; 3],
    refused: [u64; 3],
    dropped: [u64; 3],
    late: [u64; 3],
    waiting: usize,
    most_waiting: usize,
}

fn check(row: &Row) {
    let run = play(row.with);
    let total = run.summary.total();
    let by_class = |count: fn(&Counts) -> u64| -> Vec<u64> { total.classes.iter().map(count).collect() };
    assert_eq!(by_class(|counts| counts.good), row.good);
    assert_eq!(by_class(|counts| counts.refused.total() - counts.dropped), row.refused);
    assert_eq!(by_class(|counts| counts.dropped), row.dropped);
    assert_eq!(by_class(|counts| counts.late), row.late);
    assert_eq!(run.summary.waiting_at_end + run.summary.queued_at_end, row.waiting);
    assert_eq!(run.summary.largest_waiting.max(run.summary.largest_queue), row.most_waiting);
    assert_eq!((total.counts.good as f64 / 60.0).round() as u64, row.goodput);
    let percent: Vec<_> = total
        .classes
        .iter()
        .map(|counts| format!("{:.1}", counts.good as f64 * 100.0 / counts.offered as f64))
        .collect();
    assert_eq!(percent, row.good_percent);
    // The histogram keeps three digits.
    let p99 = total.good_latency_quantile(0.99).as_secs_f64() * 1e3 / f64::from(SLOWER);
    assert!((p99 / row.p99_ms - 1.0).abs() < 0.001, "{p99} instead of {}", row.p99_ms);
}

#[test]
fn accepting_everything_serves_almost_nobody_in_time() {
    check(&Row {
        with: &[],
        goodput: 53,
        p99_ms: 984.874618093,
        good_percent: ["3.5", "3.6", "3.6"],
        good: [460, 1748, 956],
        refused: [0, 0, 0],
        dropped: [0, 0, 0],
        late: [8453, 31626, 17117],
        waiting: 28678,
        most_waiting: 28680,
    });
}

#[test]
fn dropping_doomed_work_still_wastes_a_third() {
    check(&Row {
        with: &["drop_doomed"],
        goodput: 668,
        p99_ms: 999.079406680,
        good_percent: ["45.4", "45.0", "44.8"],
        good: [6018, 22101, 11953],
        refused: [0, 0, 0],
        dropped: [4053, 15136, 8259],
        late: [2978, 11049, 6059],
        waiting: 1432,
        most_waiting: 1562,
    });
}

#[test]
fn a_queue_limit_wastes_nothing_and_knows_no_difference() {
    check(&Row {
        with: &["drop_doomed", "bounded"],
        goodput: 1_004,
        p99_ms: 328.503188515,
        good_percent: ["67.4", "67.7", "67.7"],
        good: [8930, 33239, 18073],
        refused: [4309, 15796, 8591],
        dropped: [0, 0, 0],
        late: [0, 0, 0],
        waiting: 100,
        most_waiting: 100,
    });
}

#[test]
fn priority_admission_serves_all_that_is_critical() {
    check(&Row {
        with: &["drop_doomed", "priority"],
        goodput: 1_007,
        p99_ms: 355.527941819,
        good_percent: ["100.0", "95.9", "0.3"],
        good: [13247, 47096, 72],
        refused: [0, 1875, 26602],
        dropped: [0, 0, 0],
        late: [0, 0, 0],
        waiting: 146,
        most_waiting: 154,
    });
}
