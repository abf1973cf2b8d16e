use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    CannotResume, Decision, InvalidSettings, Latencies, Limiter, Reason, State, Window, WindowRule,
    parts::{bounded, check, float, nanos},
};

/// Doubles until half of the calls fail or are slow, then halves, and from there adds one at a time.
///
/// ```text
/// every window_samples calls:  bad = failed share ≥ failure_rate, or slow share ≥ slow_rate
/// slow start:            bad → ⌊limit × decrease⌋, then congestion avoidance;   else → ⌈limit × increase⌉
/// congestion avoidance:  bad → ⌊limit × decrease⌋;   else at min → slow start;   else → limit + step
/// ```
///
/// The limit stays within its bounds, and a window starts afresh after it. Source: the adaptive bulkhead of
/// resilience4j (`resilience4j-bulkhead/…/bulkhead/adaptive`, branches `adaptive_bulkhead*`), which was never
/// released. Its calls slide over the last hundred and start afresh whenever the limit changes; here they always
/// do, so that a limit at its maximum is not looked at with every call.
///
/// **Choose it** where what "too slow" means is known beforehand, and a handful of steps must do. **Do not choose
/// it** where latency is anybody's guess: five seconds of delay are five seconds of queue.
///
/// **Known to go wrong:**
/// - It looks for no knee: any share of failures below the threshold counts as health, and any latency below five
///   seconds.
/// - It grows without regard to whether the limit is used.
/// - Failures that have nothing to do with load halve it, unless told otherwise.
#[derive(Clone, Debug)]
pub struct SlowStart {
    settings: SlowStartSettings,
    limit: usize,
    avoiding: bool,
    calls: u64,
    failed: u64,
    slow: u64,
}

impl SlowStart {
    /// # Errors
    ///
    /// [`InvalidSettings`] names the field that contradicts another or cannot hold.
    pub fn new(settings: SlowStartSettings) -> Result<Self, InvalidSettings> {
        InvalidSettings::check_bounds(settings.min, settings.initial, settings.max)?;
        check(settings.window_samples >= 1, "window_samples", || "must be at least 1, not 0".into())?;
        for (field, rate) in [("failure_rate", settings.failure_rate), ("slow_rate", settings.slow_rate)] {
            check(rate > 0.0 && rate <= 1.0, field, || format!("must be above 0 and at most 1, not {rate}"))?;
        }
        let (up, down) = (settings.increase, settings.decrease);
        check(up.is_finite() && up > 1.0, "increase", || format!("must be finite and above 1, not {up}"))?;
        check(down > 0.0 && down < 1.0, "decrease", || format!("must lie between 0 and 1, not {down}"))?;
        check(settings.step >= 1, "step", || "must be at least 1, not 0".into())?;
        Ok(Self { limit: settings.initial, settings, avoiding: false, calls: 0, failed: 0, slow: 0 })
    }

    fn count(&mut self, window: &Window) {
        let slower_than = float(nanos(self.settings.slow_call));
        let failures = if self.settings.count_failures { &window.failures } else { &Latencies::NONE };
        for (ended, bad) in [(&window.successes, false), (&window.overloads, true), (failures, true)] {
            if ended.count == 0 {
                continue;
            }
            self.calls = self.calls.saturating_add(ended.count);
            self.failed = self.failed.saturating_add(if bad { ended.count } else { 0 });
            self.slow = self.slow.saturating_add(if ended.mean_ns() > slower_than { ended.count } else { 0 });
        }
    }

    fn step(&mut self, bad: bool) -> Reason {
        let SlowStartSettings { min, max, .. } = self.settings;
        let limit = self.limit as f64;
        if bad {
            self.avoiding = true;
            self.limit = bounded((limit * self.settings.decrease).floor(), min, max);
            return Reason::Overload;
        }
        if !self.avoiding {
            self.limit = bounded((limit * self.settings.increase).ceil(), min, max);
            return Reason::Starting;
        }
        if self.limit == min {
            self.avoiding = false;
            return Reason::Holding;
        }
        self.limit = self.limit.saturating_add(self.settings.step).min(max);
        Reason::Growing
    }
}

impl Limiter for SlowStart {
    fn limit(&self) -> usize {
        self.limit
    }

    fn next_window(&self) -> WindowRule {
        WindowRule::EACH
    }

    fn update(&mut self, window: &Window) -> Decision {
        self.count(window);
        if self.calls < self.settings.window_samples {
            return Decision::new(self.limit, Reason::Undecided).with("calls", float(self.calls));
        }
        let failed_share = float(self.failed) / float(self.calls);
        let slow_share = float(self.slow) / float(self.calls);
        (self.calls, self.failed, self.slow) = (0, 0, 0);
        let bad = failed_share >= self.settings.failure_rate || slow_share >= self.settings.slow_rate;
        let reason = self.step(bad);
        Decision::new(self.limit, reason).with("failed_share", failed_share).with("slow_share", slow_share)
    }

    fn state(&self) -> State {
        State::new()
            .with("limit", self.limit as f64)
            .with("congestion_avoidance", f64::from(u8::from(self.avoiding)))
    }

    fn resume(&mut self, state: &State) -> Result<(), CannotResume> {
        let limit = state.number_within("limit", self.settings.min as f64, self.settings.max as f64)?;
        self.avoiding = state.number_within("congestion_avoidance", 0.0, 1.0)? > 0.5;
        self.limit = limit as usize;
        Ok(())
    }
}

/// Settings of [`SlowStart`].
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct SlowStartSettings {
    /// The limit to start from. Default 2.
    pub initial: usize,
    /// The least limit. Default 2.
    pub min: usize,
    /// The greatest limit. Default 25.
    pub max: usize,
    /// Calls that make a window. Default 100.
    pub window_samples: u64,
    /// The share of failed calls that is too much, above 0 and at most 1. Default 0.5.
    pub failure_rate: f64,
    /// The share of slow calls that is too much, above 0 and at most 1. Default 0.5.
    pub slow_rate: f64,
    /// A call that takes longer is slow. Default 5 s.
    #[serde(with = "humantime_serde")]
    pub slow_call: Duration,
    /// Factor of slow start, above 1. Default 2.
    pub increase: f64,
    /// Factor of a decrease, between 0 and 1. Default 0.5.
    pub decrease: f64,
    /// What congestion avoidance adds. Default 1.
    pub step: usize,
    /// Whether failures that say nothing about load count as failed, as in the original. Default yes.
    pub count_failures: bool,
}

impl Default for SlowStartSettings {
    fn default() -> Self {
        Self {
            initial: 2,
            min: 2,
            max: 25,
            window_samples: 100,
            failure_rate: 0.5,
            slow_rate: 0.5,
            slow_call: Duration::from_secs(5),
            increase: 2.0,
            decrease: 0.5,
            step: 1,
            count_failures: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::trials::{self, overload, success};

    /// One call of a hundred decides: windows of one.
    fn hasty() -> SlowStart {
        SlowStart::new(SlowStartSettings { window_samples: 1, ..Default::default() }).unwrap()
    }

    #[test]
    fn it_doubles_halves_and_then_adds_one() {
        let mut limiter = hasty();
        let good = success(1, 1, 1);
        let bad = overload(1, 1, 1);
        let limits = [&good, &good, &good, &bad, &good, &good, &bad].map(|w| limiter.update(w).limit);
        assert_eq!(limits, [4, 8, 16, 8, 9, 10, 5]);
    }

    #[test]
    fn at_the_floor_it_starts_slowly_again() {
        let mut limiter = hasty();
        let windows = [overload(1, 1, 1), success(1, 1, 1), success(1, 1, 1)];
        assert_eq!(
            trials::reasons(&mut limiter, &windows),
            [Reason::Overload, Reason::Holding, Reason::Starting]
        );
        assert_eq!(limiter.limit(), 4);
    }

    #[test]
    fn half_of_the_calls_must_be_bad() {
        let settings = SlowStartSettings { window_samples: 100, initial: 8, ..Default::default() };
        let mut limiter = SlowStart::new(settings).unwrap();
        let calls = |good, slow| Window {
            successes: Latencies { count: good, sum_ns: good, ..Latencies::NONE },
            overloads: Latencies { count: slow, sum_ns: slow, ..Latencies::NONE },
            ..Window::EMPTY
        };
        assert_eq!(limiter.update(&calls(51, 49)).limit, 16);
        assert_eq!(limiter.update(&calls(50, 50)).limit, 8);
    }

    #[test]
    fn calls_longer_than_five_seconds_are_slow() {
        let mut limiter = hasty();
        assert_eq!(limiter.update(&success(1, 5_000_000_000, 1)).limit, 4);
        assert_eq!(limiter.update(&success(1, 5_000_000_001, 1)).limit, 2);
    }

    #[test]
    fn failures_count_only_if_asked_for() {
        let failed = Window { failures: Latencies::one(1), ..Window::EMPTY };
        let mut strict = hasty();
        assert_eq!(strict.update(&failed).reason, Reason::Overload);
        let settings = SlowStartSettings { window_samples: 1, count_failures: false, ..Default::default() };
        assert_eq!(SlowStart::new(settings).unwrap().update(&failed).reason, Reason::Undecided);
    }

    #[test]
    fn no_windows_take_it_out_of_its_bounds() {
        trials::survives_anything(&|| Box::new(hasty()) as _, 2, 25);
    }

    #[test]
    fn it_leaves_its_floor_and_resumes() {
        let mut limiter =
            SlowStart::new(SlowStartSettings { min: 1, initial: 1, ..Default::default() }).unwrap();
        trials::leaves_its_floor(&mut limiter, 1, 5_000);
        trials::resumes(&limiter, &mut SlowStart::new(SlowStartSettings::default()).unwrap());
    }

    #[test]
    fn contradictions_are_named() {
        let field = |settings: SlowStartSettings| SlowStart::new(settings).unwrap_err().field;
        assert_eq!(field(SlowStartSettings { increase: 1.0, ..Default::default() }), "increase");
        assert_eq!(field(SlowStartSettings { decrease: 1.0, ..Default::default() }), "decrease");
        assert_eq!(field(SlowStartSettings { failure_rate: 0.0, ..Default::default() }), "failure_rate");
    }
}
