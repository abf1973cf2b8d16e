use super::*;
use crate::{
    Latencies,
    parts::trials::{self, World},
};

const MS: u64 = 1_000_000;

fn limiter(settings: HillClimbingSettings) -> HillClimbing {
    HillClimbing::new(settings).unwrap()
}

/// A tenth of a second with that many answers, in which the limit was felt.
fn tenth(at: &mut u64, answers: u64) -> Window {
    let opened = Instant::from_nanos(*at);
    *at += 100 * MS;
    Window {
        opened,
        closed: Instant::from_nanos(*at),
        successes: Latencies { count: answers, sum_ns: answers, ..Latencies::NONE },
        limit_hits: 1,
        ..Window::EMPTY
    }
}

/// Shows it twenty intervals in which throughput is a function of the limit.
fn shown(limiter: &mut HillClimbing, answers: impl Fn(usize) -> u64) -> Decision {
    let mut at = MS;
    limiter.update(&tenth(&mut at, 1));
    (0..20).map(|_| limiter.update(&tenth(&mut at, answers(limiter.limit())))).last().unwrap()
}

#[test]
fn throughput_in_proportion_to_the_limit_is_a_ratio_of_one_less_the_bias() {
    let mut limiter = limiter(HillClimbingSettings { initial: 50, ..Default::default() });
    let decision = shown(&mut limiter, |limit| 10_000 * limit as u64);
    assert!((decision.evidence.number("ratio").unwrap() - 0.85).abs() < 1e-6, "{decision}");
    assert_eq!(decision.reason, Reason::Growing);
}

#[test]
fn level_throughput_is_a_ratio_of_less_than_nothing() {
    let mut limiter = limiter(HillClimbingSettings { initial: 50, ..Default::default() });
    let decision = shown(&mut limiter, |_| 10_000);
    assert!((decision.evidence.number("ratio").unwrap() + 0.15).abs() < 1e-6, "{decision}");
    assert_eq!(decision.reason, Reason::QueueBuilding);
}

#[test]
fn whatever_throughput_does_the_evidence_is_what_complex_numbers_say_of_the_last_whole_waves() {
    let settings = HillClimbingSettings { initial: 50, error_smoothing: 0.1, ..Default::default() };
    let mut limiter = limiter(settings);
    let (mut at, mut random) = (MS, SplitMix64::new(1));
    let (mut throughputs, mut limits, mut average) = (Vec::new(), Vec::new(), 0.0);
    limiter.update(&tenth(&mut at, 1));
    for number in 0..500_usize {
        limits.push(limiter.limit() as f64);
        let decision = limiter.update(&tenth(&mut at, 1_000 + random.below(1_000)));
        let evidence = |name| decision.evidence.number(name).unwrap();
        throughputs.push(evidence("throughput"));
        let count = number.min(32) / 4 * 4;
        if count <= 4 {
            assert_eq!(decision.reason, Reason::Starting);
            continue;
        }
        // Length and angle of an amplitude by the mean.
        let polar = |heard: &[f64], cycles: usize| {
            let last = &heard[heard.len() - count..];
            let sum = |part: fn(f64) -> f64| {
                let angle = |i: usize| std::f64::consts::TAU * (i * cycles % count) as f64 / count as f64;
                last.iter().enumerate().map(|(i, heard)| heard * part(angle(i))).sum::<f64>()
            };
            let (re, im, mean) = (sum(libm::cos), -sum(libm::sin), last.iter().sum::<f64>());
            (libm::hypot(re, im) / mean, libm::atan2(im, re))
        };
        let waves = count / 4;
        let ((swing, angle), (size, limit_angle)) = (polar(&throughputs, waves), polar(&limits, waves));
        let noise = polar(&throughputs, waves - 1).0.max(polar(&throughputs, waves + 1).0);
        average = if average == 0.0 { noise } else { 0.1 * noise + 0.9 * average };
        for (name, expected) in [
            ("ratio", swing / size * libm::cos(angle - limit_angle) - 0.15),
            ("confidence", size / noise.max(average) / 3.0),
            ("noise", average),
        ] {
            assert!(
                (evidence(name) - expected).abs() < 1e-12 * expected.abs().max(1.0),
                "{name} {expected} {decision}"
            );
        }
    }
}

#[test]
fn it_moves_by_four_a_second_at_most() {
    let mut limiter = limiter(HillClimbingSettings { initial: 50, bias: 0.0, ..Default::default() });
    let decision = shown(&mut limiter, |limit| 10_000 * limit as u64);
    // Ratio and confidence of one: 0.4 in each tenth of a second, twelve times once two waves are known.
    assert!(decision.evidence.number("control").unwrap() <= 50.0 + 20.0 * 0.4 + 1e-9, "{decision}");
    assert!(decision.evidence.number("control").unwrap() > 52.0, "{decision}");
}

#[test]
fn busy_processors_stop_the_climb() {
    let busy = Utilization::unknown();
    busy.set(0.96).unwrap();
    let settings = HillClimbingSettings { initial: 50, ..Default::default() };
    let mut limiter = HillClimbing::with_utilization(settings, busy).unwrap();
    let decision = shown(&mut limiter, |limit| 10_000 * limit as u64);
    assert_eq!((decision.reason, limiter.control), (Reason::Holding, 50.0));
}

#[test]
fn too_few_completions_are_carried_into_the_next_interval() {
    let mut limiter = limiter(HillClimbingSettings { initial: 50, ..Default::default() });
    let mut at = MS;
    limiter.update(&tenth(&mut at, 1));
    limiter.update(&tenth(&mut at, 1_000));
    // 49 / 300 is above 0.15, 49 / 400 is not. The limit may have a crest of one.
    assert_eq!(limiter.update(&tenth(&mut at, 300)).reason, Reason::Undecided);
    let decision = limiter.update(&tenth(&mut at, 100));
    assert_eq!(decision.evidence.number("throughput"), Some(2_000.0));
}

#[test]
fn an_interval_in_which_the_limit_was_not_felt_is_passed_over() {
    let mut limiter = limiter(HillClimbingSettings::default());
    let mut at = MS;
    limiter.update(&tenth(&mut at, 1));
    let unfelt = Window { limit_hits: 0, ..tenth(&mut at, 1_000) };
    assert_eq!(limiter.update(&unfelt).reason, Reason::AppLimited);
    assert_eq!(limiter.listener.total, 0);
}

#[test]
fn behind_a_thrashing_service_it_climbs_towards_the_peak() {
    let mut limiter = limiter(HillClimbingSettings::default());
    World::thrashing(10 * MS, 60.0).serve(&mut limiter, 400_000);
    // X(n) ∝ n / (1 + (n / 60)²) has the elasticity 0.15 of the bias at n = 60 √(0.85 / 1.15) = 51.6.
    assert!((40.0..=62.0).contains(&limiter.control), "{}", limiter.control);
}

#[test]
fn no_windows_take_it_out_of_its_bounds() {
    let settings = HillClimbingSettings { max: 500, ..Default::default() };
    trials::survives_anything(&|| Box::new(limiter(settings.clone())) as _, 1, 500);
}

#[test]
fn it_leaves_its_floor_and_resumes() {
    let mut at_floor = limiter(HillClimbingSettings { initial: 1, ..Default::default() });
    trials::leaves_its_floor(&mut at_floor, 1, 20_000);
    trials::resumes(&at_floor, &mut limiter(HillClimbingSettings::default()));
}

#[test]
fn contradictions_are_named() {
    let field = |settings| HillClimbing::new(settings).unwrap_err().field;
    assert_eq!(field(HillClimbingSettings { wave_period: 3, ..Default::default() }), "wave_period");
    assert_eq!(field(HillClimbingSettings { wave_history: 2, ..Default::default() }), "wave_history");
    assert_eq!(field(HillClimbingSettings { sample_error: 0.0, ..Default::default() }), "sample_error");
    let interval_max = Duration::from_millis(1);
    assert_eq!(field(HillClimbingSettings { interval_max, ..Default::default() }), "interval_max");
}
