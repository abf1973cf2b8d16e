use serde::{Deserialize, Serialize};

use crate::{
    CannotResume, Decision, InvalidSettings, Limiter, Reason, State, Window, WindowRule,
    parts::{bounded, check},
};

/// Cautious increase, aggressive decrease: about one more per round trip, a tenth less with every overload.
///
/// ```text
/// success with in flight ≥ ⌊backoff_ratio × limit⌋:   limit ← min(max, limit + 1 / limit)
/// overload:                                           limit ← max(min, ⌊backoff_ratio × limit⌋)
/// ```
///
/// In flight is what it was at admission, the request itself counted; whole requests are admitted. Source:
/// `CautiousIncreaseAggressiveDecreaseConcurrencyLimiter` of palantir/dialogue, which clients of conjure services
/// use per host and per endpoint. It sees loss only.
///
/// **Choose it** on a client whose service refuses before it queues. Unlike [`Aimd`](crate::Aimd), which adds one
/// with every request, it adds one per full limit of requests, so it grows evenly in time and not exponentially.
///
/// **Known to go wrong:**
/// - Behind a service that queues without refusing it grows for ever: latency is never looked at.
/// - Every request of one overload cuts again, so twenty overloads at once leave an eighth.
/// - From the floor to 1,000 it needs half a million successes.
#[derive(Clone, Debug)]
pub struct Conjure {
    settings: ConjureSettings,
    limit: f64,
}

impl Conjure {
    /// # Errors
    ///
    /// [`InvalidSettings`] when the bounds contradict each other or the ratio is not between 0 and 1.
    pub fn new(settings: ConjureSettings) -> Result<Self, InvalidSettings> {
        InvalidSettings::check_bounds(settings.min, settings.initial, settings.max)?;
        let ratio = settings.backoff_ratio;
        check(ratio > 0.0 && ratio < 1.0, "backoff_ratio", || {
            format!("must lie between 0 and 1, not {ratio}")
        })?;
        Ok(Self { limit: settings.initial as f64, settings })
    }

    /// What that many successes that used the limit make of it.
    fn raised(&self, successes: u64) -> f64 {
        if successes == 1 {
            return self.limit + 1.0 / self.limit;
        }
        // Every step adds nearly 2 to the square: the closed form of many.
        (self.limit * self.limit + 2.0 * successes as f64).sqrt()
    }
}

impl Limiter for Conjure {
    fn limit(&self) -> usize {
        bounded(self.limit, self.settings.min, self.settings.max)
    }

    fn next_window(&self) -> WindowRule {
        WindowRule::EACH
    }

    fn update(&mut self, window: &Window) -> Decision {
        let (min, max) = (self.settings.min as f64, self.settings.max as f64);
        let used = window.max_in_flight as f64 >= (self.limit * self.settings.backoff_ratio).floor();
        let mut reason = if window.successes.count == 0 { Reason::Undecided } else { Reason::AppLimited };
        if window.successes.count > 0 && used {
            self.limit = self.raised(window.successes.count).min(max);
            reason = Reason::Growing;
        }
        for _ in 0..window.overloads.count {
            reason = Reason::Overload;
            self.limit = (self.limit * self.settings.backoff_ratio).floor().max(min);
            if self.limit <= min {
                break;
            }
        }
        Decision::new(self.limit(), reason)
            .with("exact_limit", self.limit)
            .with("in_flight", window.max_in_flight as f64)
            .with("overloads", window.overloads.count as f64)
    }

    fn state(&self) -> State {
        State::new().with("limit", self.limit)
    }

    fn resume(&mut self, state: &State) -> Result<(), CannotResume> {
        self.limit = state.number_within("limit", self.settings.min as f64, self.settings.max as f64)?;
        Ok(())
    }
}

/// Settings of [`Conjure`].
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConjureSettings {
    /// The limit to start from. Default 20.
    pub initial: usize,
    /// The least limit. Default 1.
    pub min: usize,
    /// The greatest limit. Default 1,000,000.
    pub max: usize,
    /// What an overload leaves of the limit, and the share of it that must be in use to grow, between 0 and 1.
    /// Default 0.9.
    pub backoff_ratio: f64,
}

impl Default for ConjureSettings {
    fn default() -> Self {
        Self { initial: 20, min: 1, max: 1_000_000, backoff_ratio: 0.9 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::trials::{self, overload, success};

    #[test]
    fn a_success_near_the_limit_adds_one_part_of_it() {
        let mut conjure = Conjure::new(ConjureSettings::default()).unwrap();
        // ⌊0.9 × 20⌋ = 18
        assert_eq!(conjure.update(&success(1, 1, 17)).reason, Reason::AppLimited);
        assert_eq!(conjure.limit, 20.0);
        conjure.update(&success(1, 1, 18));
        assert_eq!(conjure.limit, 20.05);
    }

    #[test]
    fn an_overload_leaves_nine_tenths_rounded_down() {
        let mut conjure = Conjure::new(ConjureSettings::default()).unwrap();
        let limits: Vec<_> = (0..4).map(|_| conjure.update(&overload(1, 1, 1)).limit).collect();
        assert_eq!(limits, [18, 16, 14, 12]);
    }

    #[test]
    fn many_successes_in_one_window_come_close_to_as_many_windows() {
        let mut one_by_one = Conjure::new(ConjureSettings::default()).unwrap();
        let mut at_once = one_by_one.clone();
        let mut window = success(1, 1, 1_000);
        for _ in 0..10_000 {
            one_by_one.update(&window);
        }
        window.successes.count = 10_000;
        at_once.update(&window);
        assert!((one_by_one.limit - at_once.limit).abs() < 0.05, "{} {}", one_by_one.limit, at_once.limit);
    }

    #[test]
    fn no_windows_take_it_out_of_its_bounds() {
        let build = || Box::new(Conjure::new(ConjureSettings::default()).unwrap()) as _;
        trials::survives_anything(&build, 1, 1_000_000);
    }

    #[test]
    fn it_leaves_its_floor_and_resumes() {
        let mut conjure = Conjure::new(ConjureSettings { initial: 1, ..Default::default() }).unwrap();
        trials::leaves_its_floor(&mut conjure, 1, 1_000);
        trials::resumes(&conjure, &mut Conjure::new(ConjureSettings::default()).unwrap());
    }

    #[test]
    fn contradictions_are_named() {
        let settings = ConjureSettings { backoff_ratio: 1.0, ..Default::default() };
        assert_eq!(Conjure::new(settings).unwrap_err().field, "backoff_ratio");
    }
}
