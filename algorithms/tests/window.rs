//! Little's law in windows, and how windows join.

use goodput_algorithms::{Instant, Latencies, Window};
use proptest::prelude::*;

const SECOND: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;

/// What a gate sees of requests that start and end at known times, between two instants.
fn observe(requests: &[(u64, u64)], opened: u64, closed: u64) -> Window {
    let mut window =
        Window { opened: Instant::from_nanos(opened), closed: Instant::from_nanos(closed), ..Window::EMPTY };
    for &(start, end) in requests {
        window.in_flight_area_ns += u128::from(end.min(closed).saturating_sub(start.max(opened)));
        if (opened..closed).contains(&end) {
            window.successes = window.successes.merge(Latencies::one(end - start));
        }
    }
    window
}

#[test]
fn throughput_mean_in_flight_and_mean_latency_obey_littles_law() {
    // Four workers, each with one request of 20 ms after the other: N = 4, W = 20 ms, X = 4 / 20 ms = 200 / s.
    let requests: Vec<(u64, u64)> = (0..4 * 60)
        .map(|i| ((i / 4) * 20 * MS + (i % 4) * 5 * MS, (i / 4 + 1) * 20 * MS + (i % 4) * 5 * MS))
        .collect();
    let window = observe(&requests, 100 * MS, 1_100 * MS);
    assert_eq!(window.throughput(), 200.0);
    assert_eq!(window.mean_in_flight(), 4.0);
    assert_eq!(window.mean_latency_ns(), (20 * MS) as f64);
    assert_eq!(window.samples().mean_ns(), (20 * MS) as f64);
}

#[test]
fn the_integral_counts_requests_that_still_run_where_a_mean_of_finished_ones_is_wrong() {
    // 100 requests a second of 1 ms, and one a second of 9 s, of which nine are always in flight. In the long run a
    // request takes (100 × 1 ms + 1 × 9 s) / 101 = 90.1 ms.
    let quick = (0..6_000).map(|i| (i * 10 * MS, i * 10 * MS + MS));
    let long = (0..60).map(|i| (i * SECOND + SECOND / 4, (i + 9) * SECOND + SECOND / 4));
    let requests: Vec<(u64, u64)> = quick.chain(long).collect();
    let truth_ns = (100.0 * 1e6 + 9e9) / 101.0;

    // Half a second in which no long request ends.
    let blind = observe(&requests, 30 * SECOND + SECOND / 2, 31 * SECOND);
    assert_eq!(blind.samples().count, 50);
    assert_eq!(blind.samples().mean_ns(), 1e6, "the finished requests were all quick");
    assert!((blind.mean_in_flight() - 9.1).abs() < 1e-9);
    assert!((blind.mean_latency_ns() / truth_ns - 1.0).abs() < 0.02, "91 ms against 90.1 ms");

    // Over whole periods of the traffic the two means agree.
    let long_run = observe(&requests, 10 * SECOND, 50 * SECOND);
    assert!((long_run.mean_latency_ns() / truth_ns - 1.0).abs() < 1e-9);
    assert!((long_run.samples().mean_ns() / truth_ns - 1.0).abs() < 1e-9);
}

#[test]
fn the_time_of_failures_is_not_load() {
    // Two in flight for a second, one of which was a request that failed after all of it.
    let window = Window {
        opened: Instant::ZERO,
        closed: Instant::from_nanos(SECOND),
        successes: Latencies::same(100 * MS, 10),
        failures: Latencies::one(SECOND),
        in_flight_area_ns: 2 * u128::from(SECOND),
        ..Window::EMPTY
    };
    assert_eq!(window.mean_in_flight(), 1.0);
    assert_eq!(window.mean_latency_ns(), (100 * MS) as f64);
    assert_eq!(window.throughput(), 10.0);
}

#[test]
fn an_empty_window_has_zeros_and_no_nan() {
    let empty = Window::EMPTY;
    assert_eq!([empty.throughput(), empty.mean_in_flight(), empty.mean_latency_ns()], [0.0; 3]);
    assert_eq!([empty.samples().mean_ns(), empty.samples().variance()], [0.0; 2]);
    assert_eq!(empty.duration_ns(), 0);
}

#[test]
fn many_requests_of_one_latency_are_what_merging_them_one_by_one_gives() {
    let one_by_one = (0..7).fold(Latencies::NONE, |sum, _| sum.merge(Latencies::one(3 * MS)));
    assert_eq!(Latencies::same(3 * MS, 7), one_by_one);
    assert_eq!(Latencies::same(3 * MS, 0), Latencies::NONE);
}

fn latencies() -> impl Strategy<Value = Latencies> {
    proptest::collection::vec(prop_oneof![0..SECOND, Just(0), Just(u64::MAX)], 0..5)
        .prop_map(|all| all.into_iter().map(Latencies::one).fold(Latencies::NONE, Latencies::merge))
}

fn windows() -> impl Strategy<Value = Window> {
    let counts = prop_oneof![0..1_000_u64, Just(u64::MAX)];
    (
        (any::<u64>(), any::<u64>()),
        (latencies(), latencies(), latencies()),
        (counts.clone(), counts.clone(), counts.clone(), counts),
        (any::<u128>(), any::<u64>()),
    )
        .prop_map(|((opened, closed), (successes, overloads, failures), counts, (area, silence))| {
            Window {
                opened: Instant::from_nanos(opened),
                closed: Instant::from_nanos(closed),
                successes,
                overloads,
                failures,
                cancelled: counts.0,
                refused: counts.1,
                limit_hits: counts.2,
                max_in_flight: counts.3,
                in_flight_area_ns: area,
                longest_silence_ns: silence,
            }
        })
}

proptest! {
    #[test]
    fn windows_merge_in_any_order_and_grouping(a in windows(), b in windows(), c in windows()) {
        prop_assert_eq!(a.merge(b).merge(c), a.merge(b.merge(c)));
        prop_assert_eq!(a.merge(b), b.merge(a));
        prop_assert_eq!(a.merge(Window::EMPTY), a);
    }

    #[test]
    fn the_quantities_of_any_window_are_finite(window in windows()) {
        let samples = window.samples();
        let quantities = [
            window.throughput(),
            window.mean_in_flight(),
            window.mean_latency_ns(),
            samples.mean_ns(),
            samples.variance(),
        ];
        prop_assert!(quantities.iter().all(|quantity| quantity.is_finite() && *quantity >= 0.0), "{:?}", quantities);
    }
}
