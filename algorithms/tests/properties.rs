//! What holds for every algorithm, over windows as they should not come.
//!
//! Each test runs over [`Algorithm::all_defaults`], so a new algorithm is covered as soon as it has its line there.

mod support;

use std::ops::RangeInclusive;

use goodput_algorithms::{Algorithm, Instant, Latencies, Limiter, Settable, Window};
use proptest::prelude::*;
use serde_json::{Value, json};
use support::{Driver, Outcome};

const MS: u64 = 1_000_000;

proptest! {
    #[test]
    fn no_windows_drive_a_limit_out_of_its_bounds_or_evidence_out_of_the_finite(
        windows in sequences(),
        bounds in (1_usize..40, 0_usize..40, 0_usize..2_000),
    ) {
        for algorithm in Algorithm::all_defaults().into_iter().flat_map(|default| [with_bounds(&default, bounds), default]) {
            let mut limiter = algorithm.build().unwrap();
            let bounds = bounds_of(&algorithm);
            prop_assert!(bounds.contains(&limiter.limit()), "{}", algorithm.name());
            for window in &windows {
                let decision = limiter.update(window);
                prop_assert!(bounds.contains(&decision.limit), "{}: {decision} after {window:?}", algorithm.name());
                prop_assert_eq!(decision.limit, limiter.limit(), "{}", algorithm.name());
                for (name, number) in decision.evidence.iter() {
                    prop_assert!(number.is_finite(), "{}: {name} {number}", algorithm.name());
                }
                for (name, number) in limiter.state().iter() {
                    prop_assert!(number.is_finite(), "{}: {name} {number}", algorithm.name());
                }
                limiter.next_window();
            }
        }
    }

    #[test]
    fn the_same_windows_give_the_same_decisions(windows in sequences()) {
        for algorithm in Algorithm::all_defaults() {
            let (mut one, mut other) = (algorithm.build().unwrap(), algorithm.build().unwrap());
            for window in &windows {
                prop_assert_eq!(one.update(window), other.update(window), "{}", algorithm.name());
                prop_assert_eq!(one.next_window(), other.next_window(), "{}", algorithm.name());
            }
        }
    }

    #[test]
    fn a_saved_state_resumes(windows in sequences(), bounds in (1_usize..40, 0_usize..40, 0_usize..2_000)) {
        for algorithm in Algorithm::all_defaults().into_iter().flat_map(|default| [with_bounds(&default, bounds), default]) {
            let mut old = algorithm.build().unwrap();
            for window in &windows {
                old.update(window);
            }
            let saved = serde_json::to_string(&old.state()).unwrap();
            let mut new = algorithm.build().unwrap();
            new.resume(&serde_json::from_str(&saved).unwrap()).map_err(|cannot| {
                TestCaseError::fail(format!("{}: {cannot}", algorithm.name()))
            })?;
            prop_assert_eq!(new.limit(), old.limit(), "{}", algorithm.name());
            for window in &windows {
                let decision = new.update(window);
                prop_assert!(bounds_of(&algorithm).contains(&decision.limit), "{}: {decision}", algorithm.name());
            }
        }
    }

    #[test]
    fn settings_come_back_from_toml_and_json(bounds in (1_usize..40, 0_usize..40, 0_usize..2_000)) {
        for default in Algorithm::all_defaults() {
            let algorithm = with_bounds(&default, bounds);
            let toml = toml::to_string(&algorithm).unwrap();
            prop_assert_eq!(&toml::from_str::<Algorithm>(&toml).unwrap(), &algorithm, "{}", toml);
            let json = serde_json::to_string(&algorithm).unwrap();
            prop_assert_eq!(&serde_json::from_str::<Algorithm>(&json).unwrap(), &algorithm, "{}", json);
        }
    }
}

#[test]
fn a_limit_at_its_floor_leaves_it_under_healthy_traffic() {
    // Two ways down: answers that come later and later, and refusals that come faster than any answer.
    let slower_and_slower: Vec<u64> =
        (0..2_000).map(|i| (MS as f64 * 1.02_f64.powi(i.min(800))) as u64).collect();
    let refused_at_once = vec![MS / 8; 20_000];
    for default in Algorithm::all_defaults() {
        let algorithm = with_bounds(&default, (1, 100, 400));
        for way_down in [&slower_and_slower, &refused_at_once] {
            let mut driver = Driver::new(algorithm.build().unwrap());
            let start = driver.limiter.limit();
            for latency_ns in way_down {
                driver.saturated_request(*latency_ns, Outcome::Overload);
            }
            let low = driver.limiter.limit();
            if low == *bounds_of(&algorithm).end() {
                continue;
            }
            let left = (0..1_000_000).any(|_| {
                driver.saturated_request(10 * MS, Outcome::Success);
                driver.limiter.limit() > low
            });
            assert!(
                left,
                "{}, which fell from {start}, stays at {low}: {:?}",
                algorithm.name(),
                driver.limiter
            );
        }
    }
}

/// These look at throughput, move once a second, or learn nothing from a service that never answers well.
const SLOW_TO_FALL: [&str; 8] =
    ["brpc", "cinnamon", "dubbo", "failsafe", "hill_climbing", "incremental_steps", "parabola", "vector"];

#[test]
fn answers_that_come_later_and_later_lower_every_limit_that_can_move() {
    let quick = |algorithm: &Algorithm| !SLOW_TO_FALL.contains(&algorithm.name());
    for default in Algorithm::all_defaults().into_iter().filter(quick) {
        let algorithm = with_bounds(&default, (1, 100, 400));
        let mut driver = Driver::new(algorithm.build().unwrap());
        for i in 0..800 {
            driver.saturated_request((MS as f64 * 1.02_f64.powi(i)) as u64, Outcome::Overload);
        }
        let bounds = bounds_of(&algorithm);
        let low = driver.limiter.limit();
        assert!(low < 50 || bounds.start() == bounds.end(), "{} is still at {low}", algorithm.name());
    }
}

#[test]
fn failures_and_silence_teach_nothing() {
    let failures = Window {
        opened: Instant::ZERO,
        closed: Instant::from_nanos(1_000 * MS),
        failures: Latencies::same(MS, 1_000),
        max_in_flight: 1,
        in_flight_area_ns: u128::from(1_000 * MS),
        ..Window::EMPTY
    };
    let silence = Window { failures: Latencies::NONE, max_in_flight: 0, in_flight_area_ns: 0, ..failures };
    for name in ["aimd", "fixed", "gradient", "gradient2", "vegas", "windowed"] {
        let algorithm = Algorithm::from_name(name).unwrap();
        let mut limiter = algorithm.build().unwrap();
        let before = (limiter.limit(), limiter.state());
        for window in [failures, silence].repeat(50) {
            limiter.update(&window);
        }
        assert_eq!((limiter.limit(), limiter.state()), before, "{name}");
    }
}

#[test]
fn a_settable_limit_is_what_was_set_last_also_zero() {
    let mut settable = Settable::new(20);
    let handle = settable.handle();
    for limit in [0, 7, usize::MAX] {
        handle.set(limit);
        assert_eq!(settable.limit(), limit);
        assert_eq!(settable.update(&Window::EMPTY).limit, limit);
        assert_eq!(handle.clone().limit(), limit);
    }
    handle.set(33);
    let mut other = Settable::new(1);
    other.resume(&settable.state()).unwrap();
    assert_eq!(other.limit(), 33);
    assert_eq!(settable.limit(), 33);
}

/// The least and the greatest limit that the settings allow.
fn bounds_of(algorithm: &Algorithm) -> RangeInclusive<usize> {
    fn bounds_in(settings: &Value) -> RangeInclusive<usize> {
        let number = |field: &str| settings.get(field).and_then(Value::as_u64).map(|number| number as usize);
        if let Some(inner) = settings.get("inner") {
            return bounds_in(inner);
        }
        if let Some(limit) = number("limit") {
            return limit..=limit;
        }
        let max = number("max").unwrap_or_else(|| panic!("no bounds are to be seen in {settings}"));
        // Some probe below the least limit at which they work.
        let min = number("min").unwrap_or(1);
        number("probe_limit").map_or(min, |probe| probe.min(min))..=max
    }
    bounds_in(&serde_json::to_value(algorithm).unwrap())
}

/// The same algorithm with other bounds: `min`, and by how much `initial` and `max` are above it.
fn with_bounds(algorithm: &Algorithm, (min, initial, max): (usize, usize, usize)) -> Algorithm {
    fn set_bounds(settings: &mut Value, bounds: &[(&str, usize)]) {
        if let Some(inner) = settings.get_mut("inner") {
            return set_bounds(inner, bounds);
        }
        for (field, number) in bounds {
            if let Some(old) = settings.get_mut(field) {
                *old = json!(number);
            }
        }
    }
    let (initial, max) = (min + initial, min + initial + max);
    let mut settings = serde_json::to_value(algorithm).unwrap();
    set_bounds(&mut settings, &[("min", min), ("initial", initial), ("max", max), ("limit", initial)]);
    serde_json::from_value(settings).unwrap()
}

/// Windows one after the other, on a clock that may stand still, jump and step back.
fn sequences() -> impl Strategy<Value = Vec<Window>> {
    proptest::collection::vec((steps(), windows()), 1..200).prop_map(|windows| {
        let mut now = 0_u64;
        let place = |(step, window): (i64, Window)| {
            let opened = Instant::from_nanos(now);
            now = now.saturating_add_signed(step);
            Window { opened, closed: Instant::from_nanos(now), ..window }
        };
        windows.into_iter().map(place).collect()
    })
}

/// How far the clock moves from one window to the next, ns.
fn steps() -> impl Strategy<Value = i64> {
    prop_oneof![
        6 => 0..200 * MS as i64,
        1 => Just(0),
        1 => -10_000 * MS as i64..0,
        1 => Just(3_600_000 * MS as i64),
        1 => prop_oneof![Just(i64::MIN), Just(i64::MAX)],
    ]
}

fn windows() -> impl Strategy<Value = Window> {
    let empty = Just(Window::EMPTY);
    let one = (latency(), any::<bool>(), 0..300_u64).prop_map(|(latency_ns, overloaded, in_flight)| {
        let sample = Latencies::one(latency_ns);
        let (successes, overloads) =
            if overloaded { (Latencies::NONE, sample) } else { (sample, Latencies::NONE) };
        Window {
            successes,
            overloads,
            max_in_flight: in_flight,
            in_flight_area_ns: u128::from(latency_ns),
            ..Window::EMPTY
        }
    });
    let many = (several(), several(), several(), 0..5_000_u64, 0..100_u64).prop_map(
        |(successes, overloads, failures, in_flight, refused)| {
            let all = successes.merge(overloads).merge(failures);
            Window {
                successes,
                overloads,
                failures,
                refused,
                cancelled: refused / 2,
                limit_hits: refused,
                max_in_flight: in_flight,
                in_flight_area_ns: u128::from(all.sum_ns),
                longest_silence_ns: all.max_ns,
                ..Window::EMPTY
            }
        },
    );
    let failures_only = several().prop_map(|failures| Window { failures, max_in_flight: 9, ..Window::EMPTY });
    let nonsense = (any::<u64>(), any::<u64>(), any::<u128>()).prop_map(|(count, sum_ns, area)| Window {
        successes: Latencies { count, sum_ns, sum_squares: area, min_ns: sum_ns, max_ns: count },
        refused: sum_ns,
        limit_hits: count,
        max_in_flight: sum_ns,
        in_flight_area_ns: area,
        longest_silence_ns: count,
        ..Window::EMPTY
    });
    prop_oneof![1 => empty, 6 => one, 3 => many, 1 => failures_only, 1 => nonsense]
}

fn several() -> impl Strategy<Value = Latencies> {
    proptest::collection::vec((latency(), 0..300_u64), 0..4).prop_map(|groups| {
        groups
            .into_iter()
            .map(|(latency_ns, count)| Latencies::same(latency_ns, count))
            .fold(Latencies::NONE, Latencies::merge)
    })
}

fn latency() -> impl Strategy<Value = u64> {
    prop_oneof![6 => MS..100 * MS, 2 => 0..10_000 * MS, 1 => Just(0), 1 => Just(u64::MAX)]
}
