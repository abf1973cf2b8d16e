//! A published model of a producer, a queue and a consumer, to the last digit, through the queue that ships.

use std::{path::Path, time::Duration};

use goodput_simulator::{Comparison, Limits, Measure, RowPlan, Run, run};

fn play(with: &[&str]) -> Run {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/producer_queue.toml");
    let comparison = Comparison::read(file).unwrap_or_else(|error| panic!("{error}"));
    let row = RowPlan { label: "row".into(), with: with.iter().map(|&name| name.into()).collect() };
    let scenario = comparison.scenario(&row).unwrap();
    // A step ends a little after every 15 s, when that tick is over.
    let step = Some(Duration::from_micros(15_000_100));
    let measure = Measure { step, trace: true, ..Measure::default() };
    run(&scenario, &Limits::Written, 1, &measure).unwrap_or_else(|error| panic!("{error}"))
}

/// Made and handled in all; waiting, age of the oldest in ms and dropped after 15, 30, 45 and 60 s.
fn told(run: &Run) -> (u64, u64, Vec<(usize, u128, u64)>) {
    let counts = run.summary.total().counts;
    let mut dropped = 0;
    let moments = run.trace.as_ref().unwrap().moments.iter().take(4);
    let reports = moments.map(|moment| {
        dropped += moment.counts.refused.total();
        (moment.waiting, moment.oldest_wait.as_millis(), dropped)
    });
    (counts.offered, counts.admitted, reports.collect())
}

#[test]
fn without_a_bound_the_queue_grows_without_end() {
    let run = play(&["unbounded"]);
    let reports = vec![(2_999, 2_499, 0), (5_999, 4_999, 0), (8_999, 7_499, 0), (11_999, 9_999, 0)];
    assert_eq!(told(&run), (71_999, 60_000, reports));
}

#[test]
fn a_queue_that_drops_is_full_for_ever() {
    let run = play(&["drop"]);
    let reports = vec![(99, 98, 2_900), (99, 98, 5_900), (99, 98, 8_900), (99, 98, 11_900)];
    assert_eq!(told(&run), (71_999, 60_000, reports));
}

#[test]
fn a_producer_that_is_pushed_back_loses_nothing() {
    let run = play(&["drop", "push_back"]);
    let reports = vec![(59, 98, 0), (61, 49, 0), (62, 51, 0), (63, 52, 0)];
    assert_eq!(told(&run), (60_063, 60_000, reports));
    assert_eq!(run.summary.clients[0].paused, Duration::from_millis(9_947));
}

#[test]
fn the_pauses_of_the_producer_are_the_published_ones() {
    for (until, paused_s) in [(15, 2), (30, 5), (45, 7), (60, 10)] {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/producer_queue.toml");
        let comparison = Comparison::read(file).unwrap();
        let row = RowPlan { label: "row".into(), with: vec!["drop".into(), "push_back".into()] };
        let scenario = comparison.scenario(&row).unwrap();
        let until = Some(Duration::from_micros(until * 1_000_000 + 100));
        let measure = Measure { until, ..Measure::default() };
        let run = run(&scenario, &Limits::Written, 1, &measure).unwrap();
        assert_eq!(run.summary.clients[0].paused.as_secs_f64().round(), f64::from(paused_s));
    }
}
