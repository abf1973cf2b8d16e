use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    CannotResume, Decision, Instant, InvalidSettings, Limiter, Reason, State, Window, WindowRule,
    parts::{
        Correlation, MedianOfFive, Sketch, WarmingMean, bounded, check, in_flight, mean_latency_ns, nanos,
        whole_log10,
    },
};

/// failsafe-go's adaptive limiter: recent latency against its long average, with a second look at whether more in
/// flight still brings more throughput.
///
/// ```text
/// a window closes after next, with window_samples successes or more; N = largest in flight in it
/// r ← mean5(median of 5(quantile of latencies));   b ← mean_age(r);   X = N / r
/// queue = ⌈limit × (1 − b / r)⌉;   lg = integer part of log₁₀(limit), at least 1
/// down by lg if queue > 6 lg, or every permit is in use and
///     corr(N, X) < 0,  or corr(N, X) < 0.3 and corr(N, r) > 0.5,  or CV(X) < 0.2 and corr(N, r) > 0.5
/// else up by lg if queue < 3 lg
/// never above N × max_limit_factor: if the limit is there already, down by lg
/// next ← now + clamp(2 × least latency, window_min, window_max)
/// ```
///
/// Correlations are over the last fifty windows, zero for the first ten and where something varies by less than 1
/// %. Means are plain for ten windows and exponential after. Source: `adaptivelimiter/adaptivelimiter.go` and
/// `internal/util` of failsafe-go/failsafe-go. Overloads close windows and teach nothing, as its `Drop`. Its
/// optional stabilisation window, off by default, is left out. "In use" is the mean in flight up to the last
/// answer.
///
/// **Choose it** for steady traffic of hundreds of requests a second, where overload comes on slowly. Its waiting
/// room and priorities are the gate's.
///
/// **Known to go wrong:**
/// - One step a second: from 20 to 200 takes minutes, in either direction.
/// - The baseline is an average that moves up to meet an overload within ten windows, so only the correlations are
///   left to see one that lasts.
/// - X is not measured but N / r, so its correlation with N is in part an identity.
/// - Services with less than fifty answers in a window are hardly ever looked at.
#[derive(Clone, Debug)]
pub struct Failsafe {
    settings: FailsafeSettings,
    limit: f64,
    recent: Sketch,
    max_in_flight: u64,
    median: MedianOfFive,
    smoothed: WarmingMean,
    baseline: WarmingMean,
    throughputs: Correlation,
    latencies: Correlation,
    next: Instant,
}

const WARM_UP: u32 = 10;
const SMOOTHED: u32 = 5;

impl Failsafe {
    /// # Errors
    ///
    /// [`InvalidSettings`] names the field that contradicts another or cannot hold.
    pub fn new(settings: FailsafeSettings) -> Result<Self, InvalidSettings> {
        settings.check()?;
        let windows = settings.correlation_windows;
        Ok(Self {
            limit: settings.initial as f64,
            recent: Sketch::new(),
            max_in_flight: 0,
            median: MedianOfFive::default(),
            smoothed: WarmingMean::new(SMOOTHED, WARM_UP),
            baseline: WarmingMean::new(settings.baseline_age, WARM_UP),
            throughputs: Correlation::new(windows, WARM_UP as usize),
            latencies: Correlation::new(windows, WARM_UP as usize),
            next: Instant::ZERO,
            settings,
        })
    }

    fn adapt(&mut self, full: bool) -> Decision {
        let quantile = self.recent.quantile(self.settings.quantile) as f64;
        // A latency of zero would be an infinite throughput.
        let recent_ns = self.smoothed.add(self.median.add(quantile)).max(1.0);
        let baseline_ns = self.baseline.add(recent_ns);
        let in_flight = self.max_in_flight as f64;
        let queue = (self.limit * (1.0 - baseline_ns / recent_ns)).ceil();
        let throughput = self.throughputs.add(in_flight, in_flight * 1e9 / recent_ns);
        let latency = self.latencies.add(in_flight, recent_ns);
        let step = whole_log10(self.limit as usize) as f64;

        let flat = throughput.correlation < 0.0
            || (throughput.correlation < 0.3 && latency.correlation > 0.5)
            || (throughput.y_variation < 0.2 && latency.correlation > 0.5);
        let (wanted, mut reason) = if queue > 6.0 * step {
            (self.limit - step, Reason::QueueBuilding)
        } else if full && flat {
            (self.limit - step, Reason::Overload)
        } else if queue < 3.0 * step {
            (self.limit + step, Reason::Growing)
        } else {
            (self.limit, Reason::Holding)
        };
        let cap = in_flight * self.factor(in_flight);
        let capped = if wanted <= cap {
            wanted
        } else {
            reason = Reason::AppLimited;
            if self.limit > cap { self.limit - step } else { cap }
        };
        self.limit = capped.clamp(self.settings.min as f64, self.settings.max as f64);
        Decision::new(self.limit(), reason)
            .with("queue", queue)
            .with("latency_ns", recent_ns)
            .with("baseline_ns", baseline_ns)
            .with("throughput_correlation", throughput.correlation)
            .with("latency_correlation", latency.correlation)
    }

    fn factor(&self, in_flight: f64) -> f64 {
        let decay = self.settings.max_limit_factor_decay;
        if decay == 0.0 || in_flight < 1.0 {
            return self.settings.max_limit_factor;
        }
        (self.settings.max_limit_factor - decay * libm::log10(in_flight)).max(self.settings.min_limit_factor)
    }
}

impl Limiter for Failsafe {
    fn limit(&self) -> usize {
        bounded(self.limit, self.settings.min, self.settings.max)
    }

    fn next_window(&self) -> WindowRule {
        WindowRule::EACH
    }

    fn update(&mut self, window: &Window) -> Decision {
        let now = window.closed;
        if window.successes.count > 0 {
            self.recent.add(mean_latency_ns(&window.successes), window.successes.count);
            self.max_in_flight = self.max_in_flight.max(window.max_in_flight);
        }
        // Should the clock have stepped back, wait no longer than a window may last.
        self.next = self.next.min(now + self.settings.window_max);
        if now <= self.next || self.recent.count() < self.settings.window_samples {
            return Decision::new(self.limit(), Reason::Undecided)
                .with("samples", self.recent.count() as f64);
        }
        let decision = self.adapt(in_flight(window).round() >= self.limit.trunc());
        let twice = self.recent.min().saturating_mul(2);
        let wait = twice.clamp(nanos(self.settings.window_min), nanos(self.settings.window_max));
        self.next = now.plus_nanos(wait);
        self.recent.clear();
        self.max_in_flight = 0;
        decision
    }

    fn state(&self) -> State {
        State::new()
            .with("limit", self.limit)
            .with("baseline_ns", self.baseline.value())
            .with("recent_ns", self.smoothed.value())
    }

    fn resume(&mut self, state: &State) -> Result<(), CannotResume> {
        let limit = state.number_within("limit", self.settings.min as f64, self.settings.max as f64)?;
        let baseline_ns = state.number_within("baseline_ns", 0.0, f64::MAX)?;
        self.limit = limit;
        if baseline_ns > 0.0 {
            self.baseline.resume(baseline_ns);
        }
        Ok(())
    }
}

/// Settings of [`Failsafe`].
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct FailsafeSettings {
    /// The limit to start from. Default 20.
    pub initial: usize,
    /// The least limit. Default 1.
    pub min: usize,
    /// The greatest limit. Default 200.
    pub max: usize,
    /// How many times the largest in flight the limit may be, at least 1. Default 5.
    pub max_limit_factor: f64,
    /// What is taken off that factor for every tenfold in flight, at least 0. Default 0.
    pub max_limit_factor_decay: f64,
    /// What is left of that factor at least, at least 1. Default 1.
    pub min_limit_factor: f64,
    /// The least time between updates. Default 1 s.
    #[serde(with = "humantime_serde")]
    pub window_min: Duration,
    /// The greatest time between updates, if there are enough successes. Default 30 s.
    #[serde(with = "humantime_serde")]
    pub window_max: Duration,
    /// Successes that an update needs. Default 50.
    pub window_samples: u64,
    /// The quantile of latencies that stands for a window, within 0 and 1. Default 0.9.
    pub quantile: f64,
    /// Age of the baseline in windows: the newest weighs 2 / (age + 1). Default 10.
    pub baseline_age: u32,
    /// Windows that correlations look back. Default 50.
    pub correlation_windows: usize,
}

impl FailsafeSettings {
    fn check(&self) -> Result<(), InvalidSettings> {
        InvalidSettings::check_bounds(self.min, self.initial, self.max)?;
        for (field, value, least) in [
            ("max_limit_factor", self.max_limit_factor, 1.0),
            ("max_limit_factor_decay", self.max_limit_factor_decay, 0.0),
            ("min_limit_factor", self.min_limit_factor, 1.0),
        ] {
            check(value.is_finite() && value >= least, field, || {
                format!("must be finite and at least {least}, not {value}")
            })?;
        }
        check(self.window_max >= self.window_min, "window_max", || {
            format!("must be at least `window_min` ({:?}), not {:?}", self.window_min, self.window_max)
        })?;
        check(self.window_samples >= 1, "window_samples", || "must be at least 1, not 0".into())?;
        check((0.0..=1.0).contains(&self.quantile), "quantile", || {
            format!("must lie within 0 and 1, not {}", self.quantile)
        })?;
        check(self.baseline_age >= 1, "baseline_age", || "must be at least 1, not 0".into())?;
        check(self.correlation_windows >= 2, "correlation_windows", || {
            format!("must be at least 2, not {}", self.correlation_windows)
        })
    }
}

impl Default for FailsafeSettings {
    fn default() -> Self {
        Self {
            initial: 20,
            min: 1,
            max: 200,
            max_limit_factor: 5.0,
            max_limit_factor_decay: 0.0,
            min_limit_factor: 1.0,
            window_min: Duration::from_secs(1),
            window_max: Duration::from_secs(30),
            window_samples: 50,
            quantile: 0.9,
            baseline_age: 10,
            correlation_windows: 50,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::trials::{self, World, overload, success};

    const MS: u64 = 1_000_000;
    const SECOND: u64 = 1_000 * MS;

    /// As failsafe-go's own tests set it up: windows of one success, and a baseline of ten seconds' worth of one second.
    fn warm() -> Failsafe {
        let mut limiter =
            Failsafe::new(FailsafeSettings { window_samples: 1, ..Default::default() }).unwrap();
        for _ in 0..10 {
            limiter.baseline.add(SECOND as f64);
        }
        limiter
    }

    /// Their samples come two seconds apart.
    fn limits(latencies_ms: &[u64], in_flight: u64) -> Vec<usize> {
        let mut limiter = warm();
        let windows = latencies_ms.iter().enumerate().map(|(i, latency)| {
            limiter.next = Instant::ZERO;
            limiter.update(&success(2 * (i as u64 + 1) * SECOND, latency * MS, in_flight)).limit
        });
        windows.collect()
    }

    #[test]
    fn it_grows_holds_and_shrinks_as_in_the_tests_of_the_original() {
        assert_eq!(limits(&[1_000, 500], 5), [21, 22]);
        assert_eq!(limits(&[2_000, 2_000], 10), [19, 18]);
        assert_eq!(limits(&[1_300, 1_300], 10), [20, 20]);
    }

    #[test]
    fn latencies_are_filtered_and_smoothed_as_in_the_tests_of_the_original() {
        let mut limiter = warm();
        for (i, latency) in [100, 300, 200, 200, 250].into_iter().enumerate() {
            limiter.next = Instant::ZERO;
            limiter.update(&success((i as u64 + 1) * SECOND, latency * MS, 10));
        }
        assert_eq!(limiter.smoothed.value(), 200e6);
    }

    #[test]
    fn the_cap_follows_in_flight_as_in_the_tests_of_the_original() {
        let cap = |decay, floor, in_flight: f64| {
            let settings = FailsafeSettings {
                max_limit_factor_decay: decay,
                min_limit_factor: floor,
                ..Default::default()
            };
            in_flight * Failsafe::new(settings).unwrap().factor(in_flight)
        };
        assert_eq!(cap(0.0, 1.2, 200.0), 1_000.0);
        assert_eq!([10.0, 100.0, 1_000.0].map(|n| cap(1.0, 1.2, n)), [40.0, 300.0, 2_000.0]);
        assert!((cap(1.0, 1.2, 200.0) - 540.0).abs() < 1.0);
        assert_eq!(cap(2.0, 1.2, 10_000.0), 12_000.0);
    }

    #[test]
    fn a_limit_above_the_cap_comes_down_step_by_step() {
        let mut limiter = warm();
        // 1 in flight × 5 is below 20.
        let decision = limiter.update(&success(2 * SECOND, SECOND, 1));
        assert_eq!((decision.limit, decision.reason), (19, Reason::AppLimited));
    }

    #[test]
    fn it_waits_for_enough_successes_and_overloads_are_none() {
        let mut limiter = Failsafe::new(FailsafeSettings::default()).unwrap();
        for i in 0..49 {
            limiter.update(&overload(SECOND + i, MS, 20));
            assert_eq!(limiter.update(&success(SECOND + i, MS, 20)).reason, Reason::Undecided);
        }
        assert_eq!(limiter.update(&success(SECOND + 50, MS, 20)).reason, Reason::Growing);
        assert_eq!(limiter.next, Instant::from_nanos(2 * SECOND + 50));
    }

    #[test]
    fn a_pool_is_not_overrun_far_from_its_size() {
        let mut limiter = Failsafe::new(FailsafeSettings { max: 10_000, ..Default::default() }).unwrap();
        World::pool(10 * MS, 50.0).serve(&mut limiter, 1_000_000);
        assert!((40..=400).contains(&limiter.limit()), "{}", limiter.limit());
    }

    #[test]
    fn no_windows_take_it_out_of_its_bounds() {
        let settings =
            FailsafeSettings { window_samples: 1, window_min: Duration::ZERO, ..Default::default() };
        trials::survives_anything(&|| Box::new(Failsafe::new(settings.clone()).unwrap()) as _, 1, 200);
    }

    #[test]
    fn it_leaves_its_floor_and_resumes() {
        let mut limiter = Failsafe::new(FailsafeSettings { initial: 1, ..Default::default() }).unwrap();
        trials::leaves_its_floor(&mut limiter, 1, 5_000);
        trials::resumes(&limiter, &mut Failsafe::new(FailsafeSettings::default()).unwrap());
    }

    #[test]
    fn contradictions_are_named() {
        let field = |settings| Failsafe::new(settings).unwrap_err().field;
        assert_eq!(
            field(FailsafeSettings { max_limit_factor: 0.5, ..Default::default() }),
            "max_limit_factor"
        );
        assert_eq!(
            field(FailsafeSettings { window_max: Duration::ZERO, ..Default::default() }),
            "window_max"
        );
        assert_eq!(field(FailsafeSettings { quantile: f64::NAN, ..Default::default() }), "quantile");
    }
}
