//! Faults of the originals that no recorded trace shows, and what our limiters do instead.

use std::time::Duration;

use goodput_algorithms::{
    Allowance, Gradient, Gradient2, Gradient2Settings, GradientSettings, Instant, Latencies, Limiter, Reason,
    State, Summary, Vegas, VegasSettings, Window, Windowed, Windowing,
};

const MS: u64 = 1_000_000;

fn success(latency_ns: u64, in_flight: u64, at_ms: u64) -> Window {
    Window {
        opened: Instant::ZERO,
        closed: Instant::from_nanos(at_ms * MS),
        successes: Latencies::one(latency_ns),
        max_in_flight: in_flight,
        ..Window::EMPTY
    }
}

fn overload(latency_ns: u64, in_flight: u64) -> Window {
    let window = success(latency_ns, in_flight, 0);
    Window { successes: Latencies::NONE, overloads: window.successes, ..window }
}

#[test]
fn a_first_latency_of_zero_is_passed_over_where_it_made_the_gradients_0_for_ever() {
    // 0 / 0 made the original's estimate NaN, and its limit 0.
    let limiters: [Box<dyn Limiter>; 3] = [
        Box::new(Gradient::new(GradientSettings::default()).unwrap()),
        Box::new(Gradient2::new(Gradient2Settings::default()).unwrap()),
        Box::new(Vegas::new(VegasSettings::default()).unwrap()),
    ];
    for mut limiter in limiters {
        let start = limiter.limit();
        let decision = limiter.update(&success(0, start as u64, 0));
        assert_eq!((decision.limit, decision.reason), (start, Reason::Undecided), "{limiter:?}");
        for _ in 0..10 {
            limiter.update(&success(10 * MS, limiter.limit() as u64, 0));
        }
        assert!(limiter.limit() > start, "{limiter:?}");
    }
}

#[test]
fn a_refusal_within_no_time_lowers_the_limit_where_vegas_threw() {
    let mut vegas = Vegas::new(VegasSettings::default()).unwrap();
    assert_eq!(vegas.update(&overload(0, 20)).limit, 19);
}

#[test]
fn a_probe_of_gradient_does_not_pass_the_maximum() {
    // The queue size, to which a probe drops the limit, is 4 at least.
    let settings = GradientSettings { initial: 3, max: 3, probe_interval: 1, ..GradientSettings::default() };
    let mut gradient = Gradient::new(settings).unwrap();
    assert_eq!(gradient.update(&success(MS, 3, 0)).reason, Reason::Growing);
    let probe = gradient.update(&success(MS, 3, 0));
    assert_eq!((probe.reason, probe.limit), (Reason::Probing, 3));
}

#[test]
fn probing_at_every_chance_does_not_hold_vegas_at_1() {
    // jitter × 1 × 1 is at most 1, so that each window was a probe and none was left to grow by.
    let settings = VegasSettings { initial: 1, probe_multiplier: 1, ..VegasSettings::default() };
    let mut vegas = Vegas::new(settings).unwrap();
    for _ in 0..10 {
        vegas.update(&success(MS, vegas.limit() as u64, 0));
    }
    assert!(vegas.limit() > 1);
}

#[test]
fn a_low_percentile_of_few_samples_is_the_least_of_them_where_its_index_was_minus_one() {
    // floor(10 × 0.01 + ½) − 1 = −1
    let windowing = Windowing {
        min_window: Duration::from_millis(100),
        max_window: Duration::from_millis(100),
        summary: Summary::Percentile { fraction: 0.01, capacity: 100 },
        ..Windowing::default()
    };
    let inner = Gradient2::new(Gradient2Settings::default()).unwrap();
    let mut windowed = Windowed::around(inner, windowing).unwrap();
    windowed.update(&success(30 * MS, 20, 0));
    for sample in 0..10 {
        windowed.update(&success((20 - sample) * MS, 20, 50 + sample));
    }
    let closing = windowed.update(&success(40 * MS, 20, 101));
    assert_eq!(closing.evidence.number("latency_ns"), Some((11 * MS) as f64));
}

#[test]
fn the_published_steps_of_vegas_jump_at_100_and_the_smooth_ones_do_not() {
    // With no queue, a step is beta: 6 log10 of the limit, whole in the original. At 99 that is 6, at 100 it is 12.
    let step = |beta, initial: usize| {
        let alpha = Allowance::Constant(0);
        let mut vegas =
            Vegas::new(VegasSettings { initial, alpha, beta, ..VegasSettings::default() }).unwrap();
        vegas.update(&success(MS, initial as u64, 0));
        vegas.update(&success(MS, initial as u64, 0)).limit - initial
    };
    let published = Allowance::WholeLog10Times(6);
    assert_eq!((step(published, 99), step(published, 100)), (6, 12));
    let smooth = Allowance::Log10Times(6.0);
    assert_eq!((step(smooth, 99), step(smooth, 101)), (11, 12));
}

#[test]
fn a_state_that_does_not_fit_is_refused_and_changes_nothing() {
    let mut vegas = Vegas::new(VegasSettings::default()).unwrap();
    let before = vegas.state();
    let missing = vegas.resume(&State::new().with("limit", 50.0)).unwrap_err();
    assert!(missing.to_string().contains("`estimate`"), "{missing}");
    for estimate in [0.0, 1_001.0, f64::NAN, f64::INFINITY] {
        let unfit = vegas.resume(&before.clone().with("estimate", estimate)).unwrap_err();
        assert!(unfit.to_string().contains("`estimate`"), "{unfit}");
    }
    let late = vegas.resume(&before.clone().with("estimate", 50.0).with("probe_jitter", 7.0)).unwrap_err();
    assert!(late.to_string().contains("`probe_jitter`"), "{late}");
    assert_eq!(vegas.state(), before);
}
