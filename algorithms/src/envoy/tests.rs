use super::*;
use crate::parts::trials::{self, World, success};

const MS: u64 = 1_000_000;

fn settings() -> EnvoySettings {
    EnvoySettings { probe_samples: 5, jitter: 0.0, ..EnvoySettings::default() }
}

/// Past its first probe, which measured `baseline_ns`, at one second.
fn probed(settings: EnvoySettings, baseline_ns: u64) -> Envoy {
    let samples = settings.probe_samples;
    let mut envoy = Envoy::new(settings).unwrap();
    for _ in 0..samples {
        envoy.update(&success(1_000 * MS, baseline_ns, 3));
    }
    assert_ne!(envoy.phase, Phase::Probing);
    envoy
}

#[test]
fn the_probe_takes_the_percentile_of_its_samples() {
    let mut envoy = Envoy::new(settings()).unwrap();
    for millis in 1..=5 {
        assert_eq!(envoy.limit(), 3);
        envoy.update(&success(1_000 * MS, millis * MS, 3));
    }
    assert!((envoy.baseline_ns - 3e6).abs() <= 3e6 / 128.0, "{}", envoy.baseline_ns);
}

#[test]
fn the_limit_follows_the_gradient_and_its_root() {
    let mut envoy = probed(EnvoySettings { initial: 100, ..settings() }, 10 * MS);
    for _ in 0..9 {
        envoy.update(&success(1_050 * MS, 12_500_000, 3));
    }
    // g = 10 × 1.25 / 12.5 = 1: 100 + √100
    let decision = envoy.update(&success(1_100 * MS, 25 * MS, 3));
    assert_eq!((decision.limit, decision.reason), (110, Reason::Growing));
    // Of the new window only the closing sample is known: g = 12.5 / 25 = 0.5: 55 + √55 = 62.4
    let decision = envoy.update(&success(1_200 * MS, 25 * MS, 3));
    assert_eq!((decision.limit, decision.reason), (62, Reason::QueueBuilding));
    // And again: 31 + √31 = 36.6. Then 999 ms, where g is clamped at 0.5.
    envoy.update(&success(1_300 * MS, 999 * MS, 3));
    let decision = envoy.update(&success(1_400 * MS, MS, 3));
    assert_eq!(decision.limit, 22, "18 + √18 = 22.2");
}

#[test]
fn a_probe_pins_the_limit_and_ignores_what_was_admitted_before() {
    let mut envoy = probed(EnvoySettings { initial: 100, ..settings() }, 10 * MS);
    let start = 61_000 * MS;
    assert_eq!(envoy.update(&success(start, 10 * MS, 100)).reason, Reason::Probing);
    assert_eq!(envoy.limit(), 3);
    for _ in 0..100 {
        envoy.update(&success(start + 5 * MS, 10 * MS, 100));
    }
    assert_eq!(envoy.phase, Phase::Probing);
    for _ in 0..5 {
        envoy.update(&success(start + 50 * MS, 20 * MS, 3));
    }
    assert_eq!(envoy.baseline_ns, 20e6);
    assert!(envoy.limit() >= 100, "the limit returns to where it was: {}", envoy.limit());
}

#[test]
fn five_updates_at_the_floor_start_a_probe() {
    let mut envoy = probed(EnvoySettings { buffer: 0.0, ..settings() }, 5 * MS);
    // g = 0.5: 1.5 + √1.5 = 2.7, so the limit stays at 3.
    let windows: Vec<_> = (0..=6).map(|i| success((1_001 + 100 * i) * MS, 10 * MS, 3)).collect();
    let reasons = trials::reasons(&mut envoy, &windows);
    assert_eq!(
        &reasons[1..=5],
        &[[Reason::Holding; 4].as_slice(), &[Reason::Probing]].concat(),
        "{reasons:?}"
    );
}

#[test]
fn the_jitter_prolongs_the_interval_by_its_share_at_most() {
    for seed in 0..100 {
        let envoy = probed(EnvoySettings { jitter: 0.5, seed, ..settings() }, MS);
        let Phase::Sampling { probe_at, .. } = envoy.phase else { panic!("sampling") };
        let wait = probe_at.nanos_since(Instant::from_nanos(1_000 * MS));
        assert!((60_000 * MS..90_000 * MS).contains(&wait), "{wait}");
    }
}

#[test]
fn a_given_baseline_is_never_probed() {
    let baseline = Some(Duration::from_millis(10));
    let mut envoy = Envoy::new(EnvoySettings { baseline, initial: 100, ..settings() }).unwrap();
    let windows: Vec<_> = (0..2_000).map(|i| success(i * 100 * MS, 999 * MS, 3)).collect();
    let reasons = trials::reasons(&mut envoy, &windows);
    assert!(!reasons.contains(&Reason::Probing));
    assert_eq!(envoy.limit(), 3);
}

#[test]
fn it_settles_with_a_queue_of_about_a_root_behind_a_pool() {
    let mut envoy = Envoy::new(EnvoySettings { buffer: 0.0, ..settings() }).unwrap();
    World::pool(10 * MS, 50.0).serve(&mut envoy, 20_000);
    // g = 50 / L and L = 50 + √50
    assert!((55..=59).contains(&envoy.limit()), "{}", envoy.limit());
}

#[test]
fn no_windows_take_it_out_of_its_bounds() {
    let build = || Box::new(Envoy::new(EnvoySettings { min: 1, initial: 1, ..settings() }).unwrap()) as _;
    trials::survives_anything(&build, 1, 1_000);
}

#[test]
fn it_leaves_its_floor_and_resumes() {
    let mut envoy = Envoy::new(EnvoySettings { min: 1, initial: 1, ..settings() }).unwrap();
    trials::leaves_its_floor(&mut envoy, 1, 5_000);
    trials::resumes(&envoy, &mut Envoy::new(settings()).unwrap());
}

#[test]
fn contradictions_are_named() {
    let field = |settings: EnvoySettings| Envoy::new(settings).unwrap_err().field;
    assert_eq!(field(EnvoySettings { percentile: 1.5, ..settings() }), "percentile");
    assert_eq!(field(EnvoySettings { jitter: f64::NAN, ..settings() }), "jitter");
    assert_eq!(field(EnvoySettings { update_interval: Duration::ZERO, ..settings() }), "update_interval");
    assert_eq!(field(EnvoySettings { initial: 2, ..settings() }), "initial");
    assert_eq!(field(EnvoySettings { buffer: -1.0, ..settings() }), "buffer");
}
