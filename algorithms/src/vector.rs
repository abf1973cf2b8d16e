use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    CannotResume, Decision, Instant, InvalidSettings, Limiter, Reason, State, Window, WindowRule,
    parts::{bounded, check, nanos},
};

/// One more per round trip while latency stays at its past mean, a tenth less as soon as it leaves its usual
/// scatter.
///
/// ```text
/// a window closes with the first answer after the past mean latency has passed since the last one closed
/// W = mean latency of its successes; θ = deviation_scale × √variance
/// limit reached, no back-pressure and W ≤ mean:      limit ← limit + 1
/// back-pressure, or W ≥ mean + θ:                    limit ← max(min, trunc(decrease_ratio × limit))
/// then d = W − mean;  mean ← mean + α d;  variance ← (1 − α)(variance + α d²)
/// ```
///
/// Source: adaptive request concurrency of vectordotdev/vector,
/// `src/sinks/util/adaptive_concurrency/controller.rs`; the moving variance is of `lib/vector-common/src/stats`.
/// An overload is its back-pressure. Two more of its rules live where permits do: what a shrinking limit cannot
/// take back at once is a debt that releases pay first.
///
/// **Choose it** on a client that delivers a backlog to a service whose latency scatters little, and where the
/// service answers overload with refusals. **Do not choose it** for short bursts, large concurrency or heavy
/// tails.
///
/// **Known to go wrong:**
/// - From a limit of 1 it takes a hundred round trips to reach 100.
/// - A heavy tail makes latency leave its scatter again and again, so the limit stays far below a service that
///   could do more.
/// - With no scatter at all the threshold is zero, and any window at or above the mean that did not reach the
///   limit lowers it.
/// - Until the first success it decides nothing, however much back-pressure there is.
/// - If retries run inside of the permit, as in Vector, the retries swallow the back-pressure and latency becomes
///   that of the whole sequence of attempts: the limit then climbs behind a service that refuses.
#[derive(Clone, Debug)]
pub struct Vector {
    settings: VectorSettings,
    limit: usize,
    /// Mean and variance of latency in seconds, as the original counts it. None before the first success.
    past: Option<(f64, f64)>,
    seeded_just_now: bool,
    next_update: Instant,
}

impl Vector {
    /// # Errors
    ///
    /// [`InvalidSettings`] names the field that contradicts another or cannot hold.
    pub fn new(settings: VectorSettings) -> Result<Self, InvalidSettings> {
        InvalidSettings::check_bounds(settings.min, settings.initial, settings.max)?;
        let ratio = settings.decrease_ratio;
        check(ratio > 0.0 && ratio < 1.0, "decrease_ratio", || {
            format!("must lie between 0 and 1, not {ratio}")
        })?;
        let alpha = settings.ewma_alpha;
        check(alpha > 0.0 && alpha < 1.0, "ewma_alpha", || format!("must lie between 0 and 1, not {alpha}"))?;
        let scale = settings.rtt_deviation_scale;
        check(scale.is_finite() && scale >= 0.0, "rtt_deviation_scale", || {
            format!("must be finite and at least 0, not {scale}")
        })?;
        Ok(Self {
            limit: settings.initial,
            past: None,
            seeded_just_now: false,
            next_update: Instant::ZERO,
            settings,
        })
    }

    /// Mean latency of the window's successes in seconds, rounded as the settings say.
    fn latency_s(&self, window: &Window) -> Option<f64> {
        if window.successes.count == 0 {
            return None;
        }
        let mean_ns = window.successes.mean_ns();
        let step_ns = nanos(self.settings.resolution) as f64;
        let rounded_ns = if step_ns > 0.0 { (mean_ns / step_ns).round() * step_ns } else { mean_ns };
        Some(rounded_ns / 1e9)
    }

    fn learn(&mut self, latency_s: f64, now: Instant) {
        let alpha = self.settings.ewma_alpha;
        let (mean, variance) = self.past.map_or((latency_s, 0.0), |(mean, variance)| {
            let difference = latency_s - mean;
            let increment = alpha * difference;
            (mean + increment, (1.0 - alpha) * (variance + difference * increment))
        });
        self.past = Some((mean, variance));
        self.wait_for_mean(now);
    }

    fn wait_for_mean(&mut self, now: Instant) {
        let mean_s = self.past.map_or(0.0, |(mean, _)| mean);
        self.next_update = now.plus_nanos((mean_s * 1e9).round() as u64);
    }

    fn decide(&self, window: &Window, latency_s: Option<f64>, mean: f64, threshold: f64) -> (usize, Reason) {
        let back_pressure = window.overloads.count > 0;
        let reached = window.limit_hits > 0;
        let fast = latency_s.is_some_and(|latency| latency <= mean);
        let slow = latency_s.unwrap_or(0.0) >= mean + threshold;
        if self.limit < self.settings.max && reached && !back_pressure && fast {
            (self.limit + 1, Reason::Growing)
        } else if self.limit > self.settings.min && (back_pressure || slow) {
            let lower = self.limit as f64 * self.settings.decrease_ratio;
            let reason = if back_pressure { Reason::Overload } else { Reason::QueueBuilding };
            (bounded(lower, self.settings.min, self.settings.max), reason)
        } else if reached {
            (self.limit, Reason::Holding)
        } else {
            (self.limit, Reason::AppLimited)
        }
    }
}

impl Limiter for Vector {
    fn limit(&self) -> usize {
        self.limit
    }

    fn next_window(&self) -> WindowRule {
        if self.past.is_none() {
            // What came before the first success still counts in the first window.
            return WindowRule::EACH.extending();
        }
        let rule = WindowRule::EACH.not_before(self.next_update);
        // The samples that seed the past mean are counted again in the first window after it, as in the original.
        if self.seeded_just_now { rule.extending() } else { rule }
    }

    fn update(&mut self, window: &Window) -> Decision {
        let latency_s = self.latency_s(window);
        let Some((mean, variance)) = self.past else {
            if let Some(latency_s) = latency_s {
                self.learn(latency_s, window.closed);
                self.seeded_just_now = true;
            }
            return Decision::new(self.limit, Reason::Starting)
                .with("latency_ns", latency_s.unwrap_or(0.0) * 1e9);
        };
        self.seeded_just_now = false;
        let threshold = variance.sqrt() * self.settings.rtt_deviation_scale;
        let (limit, reason) = self.decide(window, latency_s, mean, threshold);
        self.limit = limit;
        match latency_s {
            Some(latency_s) => self.learn(latency_s, window.closed),
            None => self.wait_for_mean(window.closed),
        }
        Decision::new(limit, reason)
            .with("latency_ns", latency_s.unwrap_or(0.0) * 1e9)
            .with("past_mean_ns", mean * 1e9)
            .with("threshold_ns", threshold * 1e9)
            .with("overloads", window.overloads.count as f64)
            .with("limit_hits", window.limit_hits as f64)
    }

    fn state(&self) -> State {
        let (mean, variance) = self.past.unwrap_or((0.0, 0.0));
        State::new()
            .with("limit", self.limit as f64)
            .with("past_mean_ns", mean * 1e9)
            .with("past_deviation_ns", variance.sqrt() * 1e9)
    }

    fn resume(&mut self, state: &State) -> Result<(), CannotResume> {
        let limit = state.number_within("limit", self.settings.min as f64, self.settings.max as f64)?;
        let mean_ns = state.number_within("past_mean_ns", 0.0, f64::MAX)?;
        let deviation_ns = state.number_within("past_deviation_ns", 0.0, f64::MAX)?;
        self.limit = limit as usize;
        if mean_ns > 0.0 {
            self.past = Some((mean_ns / 1e9, (deviation_ns / 1e9) * (deviation_ns / 1e9)));
        }
        Ok(())
    }
}

/// Settings of [`Vector`].
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct VectorSettings {
    /// The limit to start from. Default 1.
    pub initial: usize,
    /// The least limit. Default 1.
    pub min: usize,
    /// The greatest limit. Default 200.
    pub max: usize,
    /// What a decrease leaves of the limit, between 0 and 1. Default 0.9.
    pub decrease_ratio: f64,
    /// The weight of the newest window in mean and variance, between 0 and 1. Default 0.4.
    pub ewma_alpha: f64,
    /// How many standard deviations above the mean mean a queue. Default 2.5.
    pub rtt_deviation_scale: f64,
    /// Means of windows are rounded to whole multiples of it. Default zero: not rounded. The published scenarios of
    /// the original were recorded with 1 µs.
    #[serde(with = "humantime_serde")]
    pub resolution: Duration,
}

impl Default for VectorSettings {
    fn default() -> Self {
        Self {
            initial: 1,
            min: 1,
            max: 200,
            decrease_ratio: 0.9,
            ewma_alpha: 0.4,
            rtt_deviation_scale: 2.5,
            resolution: Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::trials::{self, World, overload, success};

    const MS: u64 = 1_000_000;

    fn seeded(initial: usize) -> Vector {
        let mut vector = Vector::new(VectorSettings { initial, ..VectorSettings::default() }).unwrap();
        vector.update(&success(100 * MS, 100 * MS, 1));
        vector
    }

    #[test]
    fn the_first_success_sets_the_mean_and_is_counted_again() {
        let vector = seeded(1);
        assert_eq!(vector.past, Some((0.1, 0.0)));
        let rule = vector.next_window();
        assert!(rule.extend);
        assert_eq!(rule.not_before, Instant::from_nanos(200 * MS));
    }

    #[test]
    fn it_grows_by_one_only_when_the_limit_was_reached_and_latency_is_at_the_mean() {
        let mut vector = seeded(10);
        assert_eq!(vector.update(&success(200 * MS, 100 * MS, 10)).limit, 11);
        let unreached = Window { limit_hits: 0, ..success(300 * MS, 90 * MS, 5) };
        assert_eq!(vector.update(&unreached).reason, Reason::AppLimited);
        assert_eq!(vector.limit(), 11);
    }

    #[test]
    fn mean_and_variance_follow_their_recurrence() {
        let mut vector = seeded(10);
        // d = 10 ms: mean 100 + 4, variance 0.6 × 10 × 4 = 24 ms²
        vector.update(&success(200 * MS, 110 * MS, 10));
        let (mean, variance) = vector.past.unwrap();
        assert!((mean - 0.104).abs() < 1e-12 && (variance - 24e-6).abs() < 1e-12, "{mean} {variance}");
        // With no variance yet, 110 ≥ 100 + 0 was a decrease to trunc(9.0).
        assert_eq!(vector.limit(), 9);
        // θ = 2.5 × √24 ms = 12.25 ms: 116 is within the scatter, 117 is not.
        assert_eq!(vector.clone().update(&success(400 * MS, 116 * MS, 9)).reason, Reason::Holding);
        assert_eq!(vector.update(&success(400 * MS, 117 * MS, 9)).limit, 8);
    }

    #[test]
    fn back_pressure_decreases_even_without_a_latency() {
        let mut vector = seeded(10);
        let decision = vector.update(&overload(200 * MS, 5 * MS, 10));
        assert_eq!((decision.limit, decision.reason), (9, Reason::Overload));
        assert_eq!(vector.past, Some((0.1, 0.0)), "an overload's latency is not learnt");
    }

    #[test]
    fn rounding_makes_nearly_equal_means_equal() {
        let resolution = Duration::from_micros(1);
        let settings = VectorSettings { resolution, initial: 10, ..VectorSettings::default() };
        let mut vector = Vector::new(settings).unwrap();
        vector.update(&success(100 * MS, 100 * MS, 1));
        assert_eq!(vector.update(&success(200 * MS, 100 * MS + 300, 10)).limit, 11);
    }

    #[test]
    fn it_stays_near_the_knee_of_a_pool() {
        let mut vector = Vector::new(VectorSettings::default()).unwrap();
        World::pool(10 * MS, 20.0).serve(&mut vector, 50_000);
        assert!((10..=30).contains(&vector.limit()), "{}", vector.limit());
    }

    #[test]
    fn no_windows_take_it_out_of_its_bounds() {
        trials::survives_anything(&|| Box::new(Vector::new(VectorSettings::default()).unwrap()) as _, 1, 200);
    }

    #[test]
    fn it_leaves_its_floor_and_resumes() {
        let mut vector = Vector::new(VectorSettings::default()).unwrap();
        trials::leaves_its_floor(&mut vector, 1, 5_000);
        trials::resumes(&vector, &mut Vector::new(VectorSettings::default()).unwrap());
    }

    #[test]
    fn contradictions_are_named() {
        let field = |settings: VectorSettings| Vector::new(settings).unwrap_err().field;
        assert_eq!(field(VectorSettings { decrease_ratio: 1.0, ..Default::default() }), "decrease_ratio");
        assert_eq!(field(VectorSettings { ewma_alpha: f64::NAN, ..Default::default() }), "ewma_alpha");
        assert_eq!(
            field(VectorSettings { rtt_deviation_scale: -1.0, ..Default::default() }),
            "rtt_deviation_scale"
        );
    }
}
