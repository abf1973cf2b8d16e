use super::*;
use crate::parts::trials::{self, World, overload, success};

const MS: u64 = 1_000_000;

/// As published, but for the floor.
fn published() -> BrpcSettings {
    BrpcSettings { min: 1, least_step: 0, ..Default::default() }
}

/// Two hundred answers of `latency_ns`, one a millisecond, from `start_ms` on.
fn feed(brpc: &mut Brpc, start_ms: u64, latency_ns: u64) -> Decision {
    (0..200).map(|i| brpc.update(&success((start_ms + i) * MS, latency_ns, 1))).last().unwrap()
}

#[test]
fn the_limit_is_least_latency_times_greatest_throughput_and_a_share() {
    let mut brpc = Brpc::new(published()).unwrap();
    let decision = feed(&mut brpc, 1, 10 * MS);
    // 200 successes in 199 ms, 10 ms, and 0.3 to explore: trunc(10.05 × 1.3).
    assert_eq!((decision.limit, decision.reason), (13, Reason::Growing));
    // Slower but as many: 200 in 200 ms, a rate that fades from 1005.03 by a hundredth of the difference; W₀ stays.
    // Neither condition holds, so the share falls to 0.28: trunc(10.0497 × 1.28).
    let decision = feed(&mut brpc, 201, 20 * MS);
    assert_eq!((decision.limit, decision.reason), (12, Reason::QueueBuilding));
    assert!((brpc.explore - 0.28).abs() < 1e-12);
}

#[test]
fn the_least_latency_only_falls_and_by_a_tenth_of_the_way() {
    let mut brpc = Brpc::new(published()).unwrap();
    feed(&mut brpc, 1, 10 * MS);
    feed(&mut brpc, 201, 5 * MS);
    assert_eq!(brpc.least_us, Some(9_500.0));
    feed(&mut brpc, 401, 50 * MS);
    assert_eq!(brpc.least_us, Some(9_500.0));
}

#[test]
fn failures_punish_the_latency_of_successes() {
    let mut brpc = Brpc::new(published()).unwrap();
    for i in 0..100 {
        brpc.update(&success((1 + 2 * i) * MS, 10 * MS, 1));
        brpc.update(&overload((2 + 2 * i) * MS, 5 * MS, 1));
    }
    assert_eq!(brpc.least_us, Some(15_000.0));
}

#[test]
fn when_all_fail_the_limit_is_halved() {
    let mut brpc = Brpc::new(published()).unwrap();
    for i in 0..200 {
        brpc.update(&overload((1 + i) * MS, 5 * MS, 1));
    }
    assert_eq!(brpc.limit(), 20);
}

#[test]
fn a_window_with_too_few_samples_is_thrown_away() {
    let mut brpc = Brpc::new(published()).unwrap();
    for i in 0..500 {
        brpc.update(&success(1 + i * 20 * MS, 10 * MS, 1));
    }
    assert_eq!((brpc.limit(), brpc.least_us), (40, None));
}

#[test]
fn latency_is_measured_anew_at_nine_tenths_of_the_knee() {
    let settings = BrpcSettings { remeasure_interval: Duration::from_millis(300), ..published() };
    let mut brpc = Brpc::new(settings).unwrap();
    feed(&mut brpc, 1, 10 * MS);
    brpc.remeasure_at = Some(Instant::from_nanos(400 * MS));
    let decision = feed(&mut brpc, 201, 10 * MS);
    // ⌈10.05 × 0.9⌉ for 2 × 10 ms
    assert_eq!((decision.limit, decision.reason), (10, Reason::Probing));
    assert_eq!(brpc.draining_until, Some(Instant::from_nanos(420 * MS)));
    brpc.update(&success(419 * MS, 99 * MS, 1));
    assert!(brpc.least_us.is_some());
    brpc.update(&success(420 * MS, 99 * MS, 1));
    assert_eq!(brpc.least_us, None);
}

#[test]
fn as_published_it_never_leaves_a_floor_of_one() {
    let mut stuck = Brpc::new(BrpcSettings { initial: 1, ..published() }).unwrap();
    World::pool(10 * MS, 1e9).serve(&mut stuck, 20_000);
    assert_eq!(stuck.limit(), 1);
}

#[test]
fn it_holds_a_pool_near_its_size() {
    let mut brpc = Brpc::new(BrpcSettings { min: 1, ..Default::default() }).unwrap();
    World::pool(10 * MS, 50.0).serve(&mut brpc, 40_000);
    // W₀ Xmax is between 40, where it started, and the pool; the share to explore is above.
    assert!((40..=70).contains(&brpc.limit()), "{}", brpc.limit());
}

#[test]
fn no_windows_take_it_out_of_its_bounds() {
    let settings =
        BrpcSettings { min_samples: 1, max: 500, sampling_interval: Duration::ZERO, ..published() };
    trials::survives_anything(&|| Box::new(Brpc::new(settings.clone()).unwrap()) as _, 1, 500);
}

#[test]
fn it_leaves_its_floor_and_resumes() {
    let settings = BrpcSettings { min: 1, initial: 1, ..Default::default() };
    let mut brpc = Brpc::new(settings.clone()).unwrap();
    trials::leaves_its_floor(&mut brpc, 1, 20_000);
    trials::resumes(&brpc, &mut Brpc::new(settings).unwrap());
}

#[test]
fn contradictions_are_named() {
    let field = |settings| Brpc::new(settings).unwrap_err().field;
    assert_eq!(field(BrpcSettings { max_samples: 99, ..Default::default() }), "max_samples");
    assert_eq!(field(BrpcSettings { reduce: 1.0, ..Default::default() }), "reduce");
    assert_eq!(field(BrpcSettings { greatest_explore: 0.0, ..Default::default() }), "greatest_explore");
}
