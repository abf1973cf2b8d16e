use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    CannotResume, Decision, Instant, InvalidSettings, Limiter, Reason, State, Window, WindowRule,
    parts::{
        Correlation, MedianOfFive, Sketch, WarmingMean, area_ns, bounded, check, mean_latency_ns, whole_log10,
    },
};

/// Uber's auto-tuner: Vegas on a smoothed percentile, whose target latency is renewed now and then, and lowered
/// first where more in flight brought less throughput.
///
/// ```text
/// an interval ends after `interval`, with interval_samples answers or more
/// W ← mean5(median of 5(90th percentile of latencies))
/// target ← W if lower, and at the first interval
/// queue = limit × (1 − target / W);   lg = integer part of log₁₀(limit), at least 1
/// queue > 6 lg: limit ← limit − lg;   queue < 3 lg and half of the limit in use: limit ← limit + lg
/// every target_age intervals:  target ← W;
///     and if cov(in flight, throughput) over the last fifty intervals is negative:  limit ← limit × reset_ratio
/// ```
///
/// Source: the third of Uber's articles on Cinnamon ("Cinnamon Auto-Tuner: Adaptive Concurrency in the Wild",
/// December 2023). It gives the structure: the chain from timings to a sample, Vegas, the target that drifts up
/// with the limit when it is renewed under load, and the covariance that stops that. It does not give the code or
/// all constants. Those of Vegas are Netflix', those of the chain and the fifty intervals are of failsafe-go,
/// which follows it; the age of a target and the ratio at a reset are ours. Read its results as those of the idea.
///
/// **Choose it** where Vegas would do but its baseline, the least single sample, is too low to live with.
///
/// **Known to go wrong:**
/// - Its authors report the drift themselves: a target that is captured in an overload is the latency of an
///   overload.
/// - The covariance sees it only where throughput falls with more in flight, not where it stays level.
/// - One step an interval is slow for large limits.
#[derive(Clone, Debug)]
pub struct Cinnamon {
    settings: CinnamonSettings,
    limit: f64,
    recent: Sketch,
    in_interval: Interval,
    median: MedianOfFive,
    smoothed: WarmingMean,
    load: Correlation,
    target_ns: Option<f64>,
    target_age: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Interval {
    opened: Option<Instant>,
    answers: u64,
    area_ns: f64,
    duration_ns: f64,
    max_in_flight: u64,
}

const WARM_UP: u32 = 10;
const SMOOTHED: u32 = 5;
const LOAD_INTERVALS: usize = 50;

impl Cinnamon {
    /// # Errors
    ///
    /// [`InvalidSettings`] names the field that contradicts another or cannot hold.
    pub fn new(settings: CinnamonSettings) -> Result<Self, InvalidSettings> {
        InvalidSettings::check_bounds(settings.min, settings.initial, settings.max)?;
        check((0.0..=1.0).contains(&settings.percentile), "percentile", || {
            format!("must lie within 0 and 1, not {}", settings.percentile)
        })?;
        check(settings.interval_samples >= 1, "interval_samples", || "must be at least 1, not 0".into())?;
        check(settings.target_age >= 1, "target_age", || "must be at least 1, not 0".into())?;
        let ratio = settings.reset_ratio;
        check(ratio > 0.0 && ratio < 1.0, "reset_ratio", || {
            format!("must lie between 0 and 1, not {ratio}")
        })?;
        Ok(Self {
            limit: settings.initial as f64,
            recent: Sketch::new(),
            in_interval: Interval::default(),
            median: MedianOfFive::default(),
            smoothed: WarmingMean::new(SMOOTHED, WARM_UP),
            load: Correlation::new(LOAD_INTERVALS, WARM_UP as usize),
            target_ns: None,
            target_age: 0,
            settings,
        })
    }

    fn collect(&mut self, window: &Window) {
        for answers in [window.successes, window.overloads] {
            self.recent.add(mean_latency_ns(&answers), answers.count);
            self.in_interval.answers = self.in_interval.answers.saturating_add(answers.count);
        }
        let interval = &mut self.in_interval;
        let opened = interval.opened.get_or_insert(window.opened.min(window.closed));
        // A clock that stepped back starts the interval anew.
        *opened = (*opened).min(window.closed);
        interval.area_ns += area_ns(window);
        interval.duration_ns += window.duration_ns() as f64;
        interval.max_in_flight = interval.max_in_flight.max(window.max_in_flight);
    }

    fn adapt(&mut self) -> Decision {
        let quantile = self.recent.quantile(self.settings.percentile) as f64;
        let latency_ns = self.smoothed.add(self.median.add(quantile)).max(1.0);
        let Interval { answers, area_ns, duration_ns, max_in_flight, .. } = self.in_interval;
        let span_ns = duration_ns.max(1.0);
        let covariance = self.load.add(area_ns / span_ns, answers as f64 * 1e9 / span_ns).covariance;
        let renewed = self.renew_target(latency_ns, covariance);
        let target_ns = self.target_ns.unwrap_or(latency_ns);

        let step = whole_log10(self.limit as usize) as f64;
        let queue = self.limit * (1.0 - target_ns / latency_ns);
        let (wanted, reason) = match renewed {
            Some(reason) => (self.limit, reason),
            None if queue > 6.0 * step => (self.limit - step, Reason::QueueBuilding),
            None if queue >= 3.0 * step => (self.limit, Reason::Holding),
            None if (max_in_flight as f64) * 2.0 < self.limit => (self.limit, Reason::AppLimited),
            None => (self.limit + step, Reason::Growing),
        };
        self.limit = wanted.clamp(self.settings.min as f64, self.settings.max as f64);
        Decision::new(self.limit(), reason)
            .with("queue", queue)
            .with("latency_ns", latency_ns)
            .with("target_ns", target_ns)
            .with("covariance", covariance)
    }

    fn renew_target(&mut self, latency_ns: f64, covariance: f64) -> Option<Reason> {
        self.target_age += 1;
        if self.target_ns.is_some() && self.target_age >= self.settings.target_age {
            self.target_age = 0;
            self.target_ns = Some(latency_ns);
            if covariance < 0.0 {
                self.limit *= self.settings.reset_ratio;
                return Some(Reason::Overload);
            }
            return Some(Reason::Measured);
        }
        if self.target_ns.is_none_or(|target| latency_ns < target) {
            self.target_ns = Some(latency_ns);
        }
        None
    }
}

impl Limiter for Cinnamon {
    fn limit(&self) -> usize {
        bounded(self.limit, self.settings.min, self.settings.max)
    }

    fn next_window(&self) -> WindowRule {
        WindowRule::EACH
    }

    fn update(&mut self, window: &Window) -> Decision {
        self.collect(window);
        let opened = self.in_interval.opened.unwrap_or(window.closed);
        if window.closed.since(opened) < self.settings.interval
            || self.in_interval.answers < self.settings.interval_samples
        {
            return Decision::new(self.limit(), Reason::Undecided)
                .with("samples", self.in_interval.answers as f64);
        }
        let decision = self.adapt();
        self.recent.clear();
        self.in_interval = Interval::default();
        decision
    }

    fn state(&self) -> State {
        State::new()
            .with("limit", self.limit)
            .with("target_ns", self.target_ns.unwrap_or(0.0))
            .with("latency_ns", self.smoothed.value())
    }

    fn resume(&mut self, state: &State) -> Result<(), CannotResume> {
        let limit = state.number_within("limit", self.settings.min as f64, self.settings.max as f64)?;
        let target_ns = state.number_within("target_ns", 0.0, f64::MAX)?;
        self.limit = limit;
        if target_ns > 0.0 {
            self.target_ns = Some(target_ns);
        }
        Ok(())
    }
}

/// Settings of [`Cinnamon`].
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct CinnamonSettings {
    /// The limit to start from. Not published. Default 20.
    pub initial: usize,
    /// The least limit. Not published. Default 1.
    pub min: usize,
    /// The greatest limit. Not published. Default 1000.
    pub max: usize,
    /// The quantile of latencies that stands for an interval, within 0 and 1. Default 0.9.
    pub percentile: f64,
    /// How long an interval lasts at least. Not published. Default 1 s.
    #[serde(with = "humantime_serde")]
    pub interval: Duration,
    /// Answers that an interval needs. Not published. Default 50.
    pub interval_samples: u64,
    /// Intervals until the target is renewed. Not published. Default 30.
    pub target_age: u64,
    /// What is left of the limit where the covariance is negative, between 0 and 1. Not published. Default 0.5.
    pub reset_ratio: f64,
}

impl Default for CinnamonSettings {
    fn default() -> Self {
        Self {
            initial: 20,
            min: 1,
            max: 1_000,
            percentile: 0.9,
            interval: Duration::from_secs(1),
            interval_samples: 50,
            target_age: 30,
            reset_ratio: 0.5,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::trials::{self, World, success};

    const MS: u64 = 1_000_000;

    /// Every answer is an interval.
    fn hasty() -> CinnamonSettings {
        CinnamonSettings { interval: Duration::ZERO, interval_samples: 1, ..Default::default() }
    }

    /// Answers one millisecond apart.
    fn feed(limiter: &mut Cinnamon, latencies_ms: &[u64], in_flight: u64) -> Vec<Decision> {
        let windows = latencies_ms.iter().enumerate();
        windows.map(|(i, ms)| limiter.update(&success((i as u64 + 1) * MS, ms * MS, in_flight))).collect()
    }

    #[test]
    fn three_and_six_in_the_queue_are_the_dead_band() {
        let mut limiter = Cinnamon::new(hasty()).unwrap();
        // Means of the warm-up: 100, then (100 + 136) / 2 = 118 and a queue of 20 × (1 − 100 / 118) = 3.05; then
        // (236 + 184) / 3 = 140 and 20 × (1 − 100 / 140) = 6 after growing to 21: 21 × 0.2857 = 6.0.
        let decisions = feed(&mut limiter, &[100, 136, 190], 20);
        let reasons: Vec<_> = decisions.iter().map(|decision| decision.reason).collect();
        assert_eq!(reasons, [Reason::Growing, Reason::Holding, Reason::QueueBuilding]);
        assert_eq!(limiter.limit(), 20);
    }

    #[test]
    fn it_does_not_grow_where_less_than_half_of_the_limit_is_in_use() {
        let mut limiter = Cinnamon::new(hasty()).unwrap();
        assert_eq!(feed(&mut limiter, &[100], 9)[0].reason, Reason::AppLimited);
        assert_eq!(feed(&mut limiter, &[100], 10)[0].reason, Reason::Growing);
    }

    #[test]
    fn the_target_only_falls_until_it_is_renewed() {
        let mut limiter = Cinnamon::new(CinnamonSettings { target_age: 4, ..hasty() }).unwrap();
        let decisions = feed(&mut limiter, &[100, 100, 100, 140], 20);
        assert_eq!(decisions[2].evidence.number("target_ns"), Some(100e6));
        assert_eq!(decisions[3].reason, Reason::Measured);
        assert_eq!(limiter.target_ns, Some(110e6));
    }

    #[test]
    fn a_negative_covariance_halves_the_limit_when_the_target_is_renewed() {
        let mut limiter = Cinnamon::new(CinnamonSettings { target_age: 20, ..hasty() }).unwrap();
        let mut now = 0;
        let mut last = None;
        for in_flight in 1..=20 {
            // The more in flight, the longer between answers.
            let gap = in_flight * MS;
            let area = u128::from(in_flight * gap);
            let opened = Instant::from_nanos(now);
            now += gap;
            let window = Window { opened, in_flight_area_ns: area, ..success(now, 100 * MS, 20) };
            last = Some(limiter.update(&window));
        }
        assert_eq!(last.unwrap().reason, Reason::Overload);
        // 20, then 19 times one more, and half of it.
        assert_eq!(limiter.limit, 19.5);
    }

    #[test]
    fn it_stays_near_a_pool_until_the_target_is_renewed() {
        let settings = CinnamonSettings { target_age: 1_000_000, ..Default::default() };
        let mut limiter = Cinnamon::new(settings).unwrap();
        World::pool(10 * MS, 50.0).serve(&mut limiter, 1_000_000);
        // Between 3 and 6 in the queue.
        assert!((50..=58).contains(&limiter.limit()), "{}", limiter.limit());
    }

    #[test]
    fn no_windows_take_it_out_of_its_bounds() {
        let settings = CinnamonSettings { target_age: 5, ..hasty() };
        trials::survives_anything(&|| Box::new(Cinnamon::new(settings.clone()).unwrap()) as _, 1, 1_000);
    }

    #[test]
    fn it_leaves_its_floor_and_resumes() {
        let mut limiter = Cinnamon::new(CinnamonSettings { initial: 1, ..Default::default() }).unwrap();
        trials::leaves_its_floor(&mut limiter, 1, 5_000);
        trials::resumes(&limiter, &mut Cinnamon::new(CinnamonSettings::default()).unwrap());
    }

    #[test]
    fn contradictions_are_named() {
        let field = |settings| Cinnamon::new(settings).unwrap_err().field;
        assert_eq!(field(CinnamonSettings { percentile: -0.1, ..Default::default() }), "percentile");
        assert_eq!(field(CinnamonSettings { reset_ratio: 1.0, ..Default::default() }), "reset_ratio");
        assert_eq!(field(CinnamonSettings { target_age: 0, ..Default::default() }), "target_age");
    }
}
