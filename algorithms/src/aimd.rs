use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    CannotResume, Decision, InvalidSettings, Limiter, Reason, State, Window, WindowRule, parts::float,
};

/// Additive increase, multiplicative decrease: one more with every request that used the limit, a tenth less with
/// every one that overloaded.
///
/// ```text
/// overload or latency > timeout:  limit ← trunc(limit × backoff_ratio)
/// else 2 × in flight ≥ limit:     limit ← limit + 1
/// limit ← clamp(limit, min, max)
/// ```
///
/// Source: `AIMDLimit` of Netflix concurrency-limits, after the congestion avoidance of TCP (Jacobson 1988, Chiu and
/// Jain 1989). Limits equal the original's.
///
/// **Choose it** where the service itself says when it is overloaded, early and plainly. **Do not choose it** where it
/// queues without refusing: latency below `timeout` teaches this limiter nothing, so it runs at the edge of the timeout.
///
/// **Known to go wrong:**
/// - Steps follow every window, and windows hold one sample: a limit that is held full grows by half in each round
///   trip, and twenty overloads that belong to one event leave a tenth of the limit.
/// - The defaults hold it between 20 and 200, which does not suit every service.
#[derive(Clone, Debug)]
pub struct Aimd {
    settings: AimdSettings,
    limit: usize,
}

impl Aimd {
    /// # Errors
    ///
    /// [`InvalidSettings`] when the bounds contradict each other or the ratio is not in `[0.5, 1)`.
    pub fn new(settings: AimdSettings) -> Result<Self, InvalidSettings> {
        InvalidSettings::check_bounds(settings.min, settings.initial, settings.max)?;
        if settings.timeout.is_zero() {
            return Err(InvalidSettings::new("timeout", "must be above 0"));
        }
        if !(0.5..1.0).contains(&settings.backoff_ratio) {
            return Err(InvalidSettings::new(
                "backoff_ratio",
                format!("must be at least 0.5 and below 1, not {}", settings.backoff_ratio),
            ));
        }
        Ok(Self { limit: settings.initial, settings })
    }
}

impl Limiter for Aimd {
    fn limit(&self) -> usize {
        self.limit
    }

    fn next_window(&self) -> WindowRule {
        WindowRule::EACH
    }

    fn update(&mut self, window: &Window) -> Decision {
        let timeout_ns = self.settings.timeout.as_nanos();
        let overloaded = window.overloads.count > 0 || u128::from(window.successes.max_ns) > timeout_ns;
        let (limit, reason) = if window.samples().count == 0 {
            (self.limit, Reason::Undecided)
        } else if overloaded {
            ((self.limit as f64 * self.settings.backoff_ratio) as usize, Reason::Overload)
        } else if window.max_in_flight.saturating_mul(2) >= self.limit as u64 {
            (self.limit.saturating_add(1), Reason::Growing)
        } else {
            (self.limit, Reason::AppLimited)
        };
        self.limit = limit.clamp(self.settings.min, self.settings.max);
        Decision::new(self.limit, reason)
            .with("latency_ns", float(window.samples().max_ns))
            .with("in_flight", float(window.max_in_flight))
            .with("overloads", float(window.overloads.count))
    }

    fn resume(&mut self, state: &State) -> Result<(), CannotResume> {
        self.limit =
            state.number_within("limit", self.settings.min as f64, self.settings.max as f64)? as usize;
        Ok(())
    }
}

/// Settings of [`Aimd`].
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct AimdSettings {
    /// The limit to start from. Default 20.
    pub initial: usize,
    /// The least limit. Default 20.
    pub min: usize,
    /// The greatest limit. Default 200.
    pub max: usize,
    /// What an overload leaves of the limit, in `[0.5, 1)`. Default 0.9.
    pub backoff_ratio: f64,
    /// A success slower than this counts as overload. Default 5 s.
    #[serde(with = "humantime_serde")]
    pub timeout: Duration,
}

impl Default for AimdSettings {
    fn default() -> Self {
        Self { initial: 20, min: 20, max: 200, backoff_ratio: 0.9, timeout: Duration::from_secs(5) }
    }
}
