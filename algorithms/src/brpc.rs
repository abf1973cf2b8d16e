use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    CannotResume, Decision, Instant, InvalidSettings, Limiter, Reason, State, Window, WindowRule,
    parts::{bounded, check, nanos},
    split_mix::SplitMix64,
};

/// brpc's automatic limiter: the greatest throughput times the least latency, and a share more to explore.
///
/// ```text
/// one sample every sampling_interval; a window holds min_samples to max_samples of them, or as many as come in
/// `window`; with fewer than min_samples by then it is thrown away
/// W ← ⌈(latencies of successes + punish × latencies of failures) / successes⌉;   X ← successes per second
/// W₀ ← W at first, then only lower: α W + (1 − α) W₀;    Xmax ← X if greater, else (α/10) X + (1 − α/10) Xmax
/// W ≤ W₀ (1 + least) or X ≤ Xmax / (1 + least):  explore ← min(greatest, explore + change)
/// else:                                          explore ← max(least, explore − change)
/// limit ← max(min, trunc(W₀ Xmax (1 + explore)));   all failed: limit / 2
/// every 0.5 to 1 remeasure_interval:  limit ← ⌈reduce × W₀ Xmax⌉ for 2 W, then W₀ is measured anew
/// ```
///
/// Latencies are whole microseconds, cut at every step, as in the original. Source:
/// `src/brpc/policy/auto_concurrency_limiter.cpp` of apache/brpc. Failures are all answers but successes; refusals
/// of the limiter itself do not count.
///
/// One thing is added. For a small limit the share to explore is less than one request, so the limit can never
/// grow from 1, 2 or 3 (brpc issue 1006; its floor of nine threads hides it unless lowered). While latency says
/// that there is room and the limit was felt, a window therefore adds `least_step`. Zero is the published form.
///
/// **Choose it** for a server with many requests a second of much the same cost. **Do not choose it** below a
/// hundred sampled requests a second: windows are thrown away and the limit never moves.
///
/// **Known to go wrong:**
/// - The greatest throughput fades over hundreds of windows, so after a loss of capacity the limit stays high for
///   long.
/// - The least latency never rises between two measurements, and those drain the service to nine tenths of what it
///   thinks to be the knee, which behind a queue is no drain.
/// - Published, it has no greatest limit (issue 1334).
#[derive(Clone, Debug)]
pub struct Brpc {
    settings: BrpcSettings,
    limit: usize,
    explore: f64,
    /// W₀, whole microseconds. None before the first window, and while it is measured anew.
    least_us: Option<f64>,
    /// Xmax, per second.
    greatest_rate: f64,
    last_sample: Option<Instant>,
    remeasure_at: Option<Instant>,
    /// Samples are ignored until then, and W₀ is forgotten.
    draining_until: Option<Instant>,
    sampled: Sampled,
    random: SplitMix64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sampled {
    start: Option<Instant>,
    /// All successes, sampled or not.
    successes: u64,
    good: u64,
    bad: u64,
    good_us: f64,
    bad_us: f64,
    limit_hits: u64,
}

impl Brpc {
    /// # Errors
    ///
    /// [`InvalidSettings`] names the field that contradicts another or cannot hold.
    pub fn new(settings: BrpcSettings) -> Result<Self, InvalidSettings> {
        settings.check()?;
        Ok(Self {
            limit: settings.initial,
            explore: settings.greatest_explore,
            least_us: None,
            greatest_rate: 0.0,
            last_sample: None,
            remeasure_at: None,
            draining_until: None,
            sampled: Sampled::default(),
            random: SplitMix64::new(settings.seed),
            settings,
        })
    }

    fn next_remeasurement(&mut self, now: Instant) -> Instant {
        let half = nanos(self.settings.remeasure_interval) / 2;
        now.plus_nanos(half).plus_nanos((half as f64 * self.random.unit()) as u64)
    }

    fn restart(&mut self, now: Instant) {
        self.sampled = Sampled { start: Some(now), ..Sampled::default() };
    }

    /// Whether the window of samples is to be decided on.
    fn sample(&mut self, window: &Window, now: Instant) -> bool {
        if let Some(until) = self.draining_until {
            if until > now {
                return false;
            }
            self.least_us = None;
            self.draining_until = None;
            self.remeasure_at = Some(self.next_remeasurement(now));
            self.restart(now);
        }
        let start = *self.sampled.start.get_or_insert(now);
        for (ended, good) in [(window.successes, true), (window.overloads, false), (window.failures, false)] {
            let us = (ended.sum_ns / 1_000) as f64;
            let (count, sum) = if good {
                (&mut self.sampled.good, &mut self.sampled.good_us)
            } else {
                (&mut self.sampled.bad, &mut self.sampled.bad_us)
            };
            *count = count.saturating_add(ended.count);
            *sum += us;
        }
        let count = self.sampled.good.saturating_add(self.sampled.bad);
        let over = now.since(start) >= self.settings.window;
        if count < self.settings.min_samples {
            if over {
                self.restart(now);
            }
            return false;
        }
        over || count >= self.settings.max_samples
    }

    fn decide(&mut self, now: Instant) -> Decision {
        let Sampled { start, successes, good, good_us, bad_us, limit_hits, .. } = self.sampled;
        self.restart(now);
        if good == 0 {
            return self.move_to((self.limit / 2) as f64, Reason::Overload);
        }
        let elapsed_us = (now.nanos_since(start.unwrap_or(now)) / 1_000).max(1);
        let latency_us = ((bad_us * self.settings.punish + good_us) / good as f64).ceil();
        let rate = 1e6 * successes as f64 / elapsed_us as f64;
        let alpha = self.settings.alpha;
        let least_us = match self.least_us.filter(|least| *least > 0.0) {
            Some(least) if latency_us < least => (latency_us * alpha + least * (1.0 - alpha)).trunc(),
            Some(least) => least,
            None => latency_us,
        };
        self.least_us = Some(least_us);
        self.greatest_rate = if rate >= self.greatest_rate {
            rate
        } else {
            rate * (alpha / 10.0) + self.greatest_rate * (1.0 - alpha / 10.0)
        };
        let knee = least_us * self.greatest_rate / 1e6;
        let remeasure_at = self.remeasure_at.unwrap_or(now);
        let decision = if remeasure_at <= now {
            self.draining_until = Some(now.plus_nanos((latency_us * 2_000.0) as u64));
            self.move_to((knee * self.settings.reduce).ceil(), Reason::Probing)
        } else {
            let least = self.settings.least_explore;
            let relaxed = latency_us <= least_us * (1.0 + least);
            let change = self.settings.explore_change;
            self.explore = if relaxed || rate <= self.greatest_rate / (1.0 + least) {
                (self.explore + change).min(self.settings.greatest_explore)
            } else {
                (self.explore - change).max(least)
            };
            let published = knee * (1.0 + self.explore);
            let step = if relaxed && limit_hits > 0 { self.settings.least_step } else { 0 };
            let wanted =
                if step > 0 { published.max(self.limit.saturating_add(step) as f64) } else { published };
            let reason = if relaxed { Reason::Growing } else { Reason::QueueBuilding };
            self.move_to(wanted, reason)
        };
        decision
            .with("latency_ns", latency_us * 1e3)
            .with("least_latency_ns", least_us * 1e3)
            .with("throughput", rate)
            .with("greatest_throughput", self.greatest_rate)
            .with("explore", self.explore)
    }

    fn move_to(&mut self, wanted: f64, reason: Reason) -> Decision {
        self.limit = bounded(wanted, self.settings.min, self.settings.max);
        Decision::new(self.limit, reason)
    }
}

impl Limiter for Brpc {
    fn limit(&self) -> usize {
        self.limit
    }

    fn next_window(&self) -> WindowRule {
        WindowRule::EACH
    }

    fn update(&mut self, window: &Window) -> Decision {
        let now = window.closed;
        if self.remeasure_at.is_none() {
            self.remeasure_at = Some(self.next_remeasurement(now));
        }
        self.sampled.successes = self.sampled.successes.saturating_add(window.successes.count);
        self.sampled.limit_hits = self.sampled.limit_hits.saturating_add(window.limit_hits);
        let answered = window.successes.count > 0 || window.overloads.count > 0 || window.failures.count > 0;
        let due = self.last_sample.is_none_or(|last| now.since(last) >= self.settings.sampling_interval);
        if answered && due {
            self.last_sample = Some(now);
            if self.sample(window, now) {
                return self.decide(now);
            }
        }
        let reason = if self.draining_until.is_some() { Reason::Probing } else { Reason::Undecided };
        Decision::new(self.limit, reason)
    }

    fn state(&self) -> State {
        State::new()
            .with("limit", self.limit as f64)
            .with("least_latency_ns", self.least_us.unwrap_or(0.0) * 1e3)
            .with("greatest_throughput", self.greatest_rate)
            .with("explore", self.explore)
    }

    fn resume(&mut self, state: &State) -> Result<(), CannotResume> {
        let limit = state.number_within("limit", self.settings.min as f64, self.settings.max as f64)?;
        let least_ns = state.number_within("least_latency_ns", 0.0, f64::MAX)?;
        let rate = state.number_within("greatest_throughput", 0.0, f64::MAX)?;
        let (least, greatest) = (self.settings.least_explore, self.settings.greatest_explore);
        self.explore = state.number_within("explore", least, greatest)?;
        self.limit = limit as usize;
        self.least_us = Some(least_ns / 1e3);
        self.greatest_rate = rate;
        Ok(())
    }
}

/// Settings of [`Brpc`].
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct BrpcSettings {
    /// The limit to start from. Default 40.
    pub initial: usize,
    /// The least limit: in the original the number of worker threads, nine unless set. Default 9.
    pub min: usize,
    /// The greatest limit. Published: none. Default 1,000,000.
    pub max: usize,
    /// How long a window lasts at most. Default 1 s.
    #[serde(with = "humantime_serde")]
    pub window: Duration,
    /// Samples without which a window is thrown away. Default 100.
    pub min_samples: u64,
    /// Samples that end a window. Default 200.
    pub max_samples: u64,
    /// The least time between two samples. Default 100 µs.
    #[serde(with = "humantime_serde")]
    pub sampling_interval: Duration,
    /// How long until latency is measured anew, at most; at least half of it. Default 50 s.
    #[serde(with = "humantime_serde")]
    pub remeasure_interval: Duration,
    /// What the limit is reduced to while latency is measured anew, between 0 and 1. Default 0.9.
    pub reduce: f64,
    /// The weight of a new window in the least latency, between 0 and 1; a tenth of it in the throughput. Default 0.1.
    pub alpha: f64,
    /// How much the latency of a failure counts, at least 0. Default 1.
    pub punish: f64,
    /// The least share to explore, above 0. Default 0.06.
    pub least_explore: f64,
    /// The greatest share to explore. Default 0.3.
    pub greatest_explore: f64,
    /// By how much the share changes with a window, above 0. Default 0.02.
    pub explore_change: f64,
    /// What a window adds at least while there is room. Published: 0. Default 1.
    pub least_step: usize,
    /// Seed of the times of measurement. Give each server its own, or all measure at once. Default 0.
    pub seed: u64,
}

impl BrpcSettings {
    fn check(&self) -> Result<(), InvalidSettings> {
        InvalidSettings::check_bounds(self.min, self.initial, self.max)?;
        check(self.min_samples >= 1, "min_samples", || "must be at least 1, not 0".into())?;
        check(self.max_samples >= self.min_samples, "max_samples", || {
            format!("must be at least `min_samples` ({}), not {}", self.min_samples, self.max_samples)
        })?;
        for (field, share) in [("reduce", self.reduce), ("alpha", self.alpha)] {
            check(share > 0.0 && share < 1.0, field, || format!("must lie between 0 and 1, not {share}"))?;
        }
        check(self.punish.is_finite() && self.punish >= 0.0, "punish", || {
            format!("must be finite and at least 0, not {}", self.punish)
        })?;
        for (field, share) in [("least_explore", self.least_explore), ("explore_change", self.explore_change)]
        {
            check(share.is_finite() && share > 0.0, field, || {
                format!("must be finite and above 0, not {share}")
            })?;
        }
        let greatest = self.greatest_explore;
        check(greatest.is_finite() && greatest >= self.least_explore, "greatest_explore", || {
            format!("must be finite and at least `least_explore` ({}), not {greatest}", self.least_explore)
        })
    }
}

impl Default for BrpcSettings {
    fn default() -> Self {
        Self {
            initial: 40,
            min: 9,
            max: 1_000_000,
            window: Duration::from_secs(1),
            min_samples: 100,
            max_samples: 200,
            sampling_interval: Duration::from_micros(100),
            remeasure_interval: Duration::from_secs(50),
            reduce: 0.9,
            alpha: 0.1,
            punish: 1.0,
            least_explore: 0.06,
            greatest_explore: 0.3,
            explore_change: 0.02,
            least_step: 1,
            seed: 0,
        }
    }
}

#[cfg(test)]
mod tests;
