use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    CannotResume, Decision, Instant, InvalidSettings, Limiter, Reason, State, Window, WindowRule,
    parts::{Sketch, bounded, check, float, mean_latency_ns, nanos},
    split_mix::SplitMix64,
};

/// A percentile of recent latency against one that is measured, now and then, at a limit of three.
///
/// ```text
/// probe, at the start and every probe_interval × (1 + U[0, jitter)):
///     limit ← min(limit, probe_limit); W₀ ← percentile of the next probe_samples latencies; limit ← as before
/// every update_interval outside of a probe, if any request was answered:
///     g ← clamp(W₀ × (1 + buffer) / W, 0.5, 2)             W = percentile of the latencies since the last time
///     limit ← clamp(trunc(g × limit + √(g × limit)), min, max)
/// five updates in a row that leave the limit at min:  probe now
/// ```
///
/// Requests that were admitted before the last probe began count nowhere. Source: `gradient_controller.cc` of
/// envoyproxy/envoy, `source/extensions/filters/http/adaptive_concurrency/controller`, with the floor apart from
/// the limit of a probe (since August 2026) and the baseline that may be given instead of probed (since 2025).
/// Percentiles come from a sketch that is exact to 1/128, and are kept in nanoseconds where Envoy truncates to
/// microseconds.
///
/// **Choose it** in front of a service whose latency at a concurrency of three is its latency without a queue,
/// with steady traffic that bears a moment of refusals every minute. **Do not choose it** for bursts, for little
/// traffic, or where several proxies share a service.
///
/// **Known to go wrong:**
/// - Every answer counts as a latency, errors too: fast errors look like a fast service.
/// - It has no guard for demand below the limit, so light traffic takes the limit to the maximum.
/// - A probe refuses everything above three in flight, and lasts until fifty requests are answered, however long
///   that takes.
/// - A probe during an overload measures the overload, and a minimum above the true capacity never lets it
///   recover.
/// - At a constant load the root makes it settle where `1 − g = g / √(g × limit)`, with a queue of about a root of
///   the limit.
#[derive(Clone, Debug)]
pub struct Envoy {
    settings: EnvoySettings,
    /// The working limit, also during a probe.
    limit: usize,
    baseline_ns: f64,
    phase: Phase,
    sketch: Sketch,
    /// When the last probe began. Samples admitted before are ignored.
    epoch: Instant,
    updates_at_floor: u32,
    random: SplitMix64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Probing,
    Sampling {
        update_at: Instant,
        probe_at: Instant,
    },
    /// Sampling, but no window has told the time yet.
    Waking,
}

/// What a timer had done.
enum Rung {
    Update { reason: Reason, gradient: f64, latency_ns: f64, samples: u64 },
    Probe,
}

/// Updates at the floor in a row that call the baseline into question.
const UPDATES_AT_FLOOR: u32 = 5;

impl Envoy {
    /// # Errors
    ///
    /// [`InvalidSettings`] names the field that contradicts another or cannot hold.
    pub fn new(settings: EnvoySettings) -> Result<Self, InvalidSettings> {
        settings.check()?;
        let given = settings.baseline.map(nanos);
        Ok(Self {
            limit: settings.initial,
            baseline_ns: given.unwrap_or(0) as f64,
            phase: if given.is_some() { Phase::Waking } else { Phase::Probing },
            sketch: Sketch::new(),
            epoch: Instant::ZERO,
            updates_at_floor: 0,
            random: SplitMix64::new(settings.seed),
            settings,
        })
    }

    /// Lets the timers ring that ran out before the window closed.
    fn ring(&mut self, now: Instant) -> Option<Rung> {
        let (update_at, probe_at) = match self.phase {
            Phase::Probing => return None,
            Phase::Waking => {
                self.start_sampling(now);
                return None;
            }
            Phase::Sampling { update_at, probe_at } => (update_at, probe_at),
        };
        let mut rung = None;
        if now >= update_at {
            let interval = nanos(self.settings.update_interval);
            // On the grid of the timer, however late somebody looked.
            let missed = now.nanos_since(update_at) / interval;
            let next = update_at.plus_nanos(interval.saturating_mul(missed + 1));
            self.phase = Phase::Sampling { update_at: next, probe_at };
            rung = self.adapt();
        }
        let questioned = self.updates_at_floor >= UPDATES_AT_FLOOR && self.settings.baseline.is_none();
        if now >= probe_at || questioned {
            self.sketch.clear();
            self.epoch = now;
            self.updates_at_floor = 0;
            self.phase = Phase::Probing;
            rung = Some(Rung::Probe);
        }
        rung
    }

    fn adapt(&mut self) -> Option<Rung> {
        if self.sketch.count() == 0 {
            return None;
        }
        let latency_ns = self.sketch.quantile(self.settings.percentile) as f64;
        let samples = self.sketch.count();
        self.sketch.clear();
        let gradient = gradient(self.baseline_ns * (1.0 + self.settings.buffer), latency_ns);
        let old = self.limit;
        let scaled = gradient * old as f64;
        self.limit = bounded(scaled + scaled.sqrt(), self.settings.min, self.settings.max);
        let at_floor = old == self.settings.min && self.limit == self.settings.min;
        self.updates_at_floor = if at_floor { self.updates_at_floor + 1 } else { 0 };
        let reason = match self.limit.cmp(&old) {
            std::cmp::Ordering::Less => Reason::QueueBuilding,
            std::cmp::Ordering::Equal => Reason::Holding,
            std::cmp::Ordering::Greater => Reason::Growing,
        };
        Some(Rung::Update { reason, gradient, latency_ns, samples })
    }

    fn collect(&mut self, window: &Window) {
        for ended in [&window.successes, &window.overloads, &window.failures] {
            let latency = mean_latency_ns(ended);
            if ended.count > 0 && window.closed.nanos() >= self.epoch.nanos().saturating_add(latency) {
                self.sketch.add(latency, ended.count);
            }
        }
    }

    fn end_probe(&mut self, now: Instant) -> Decision {
        self.baseline_ns = self.sketch.quantile(self.settings.percentile) as f64;
        let samples = self.sketch.count();
        self.sketch.clear();
        self.start_sampling(now);
        Decision::new(self.limit, Reason::Measured)
            .with("baseline_ns", self.baseline_ns)
            .with("samples", samples as f64)
    }

    fn start_sampling(&mut self, now: Instant) {
        let probe_at = if self.settings.baseline.is_some() {
            Instant::FAR_FUTURE
        } else {
            let interval = nanos(self.settings.probe_interval);
            let jitter = (interval as f64 * self.settings.jitter * self.random.unit()) as u64;
            now.plus_nanos(interval).plus_nanos(jitter)
        };
        self.phase = Phase::Sampling { update_at: now + self.settings.update_interval, probe_at };
    }
}

impl Limiter for Envoy {
    fn limit(&self) -> usize {
        match self.phase {
            Phase::Probing => self.limit.min(self.settings.probe_limit),
            Phase::Sampling { .. } | Phase::Waking => self.limit,
        }
    }

    fn next_window(&self) -> WindowRule {
        match self.phase {
            Phase::Probing | Phase::Waking => WindowRule::EACH,
            Phase::Sampling { update_at, probe_at } => {
                WindowRule::EACH.no_later_than(update_at.min(probe_at))
            }
        }
    }

    fn update(&mut self, window: &Window) -> Decision {
        let rung = self.ring(window.closed);
        self.collect(window);
        if self.phase == Phase::Probing && self.sketch.count() >= self.settings.probe_samples {
            return self.end_probe(window.closed);
        }
        match rung {
            Some(Rung::Update { reason, gradient, latency_ns, samples }) => {
                Decision::new(self.limit(), reason)
                    .with("gradient", gradient)
                    .with("latency_ns", latency_ns)
                    .with("baseline_ns", self.baseline_ns)
                    .with("samples", float(samples))
            }
            Some(Rung::Probe) => {
                Decision::new(self.limit(), Reason::Probing).with("baseline_ns", self.baseline_ns)
            }
            None => {
                let reason = if self.phase == Phase::Probing { Reason::Probing } else { Reason::Undecided };
                Decision::new(self.limit(), reason).with("samples", float(self.sketch.count()))
            }
        }
    }

    fn state(&self) -> State {
        State::new()
            .with("limit", self.limit as f64)
            .with("baseline_ns", self.baseline_ns)
            .with("probing", f64::from(u8::from(self.phase == Phase::Probing)))
    }

    fn resume(&mut self, state: &State) -> Result<(), CannotResume> {
        let limit = state.number_within("limit", self.settings.min as f64, self.settings.max as f64)?;
        let baseline_ns = state.number_within("baseline_ns", 0.0, f64::MAX)?;
        let probing = state.number_within("probing", 0.0, 1.0)? > 0.5;
        self.limit = limit as usize;
        if self.settings.baseline.is_none() {
            self.baseline_ns = baseline_ns;
            self.phase = if probing { Phase::Probing } else { Phase::Waking };
        }
        Ok(())
    }
}

/// A latency of zero is as good as it gets.
fn gradient(allowed_ns: f64, latency_ns: f64) -> f64 {
    if latency_ns > 0.0 { (allowed_ns / latency_ns).clamp(0.5, 2.0) } else { 2.0 }
}

/// Settings of [`Envoy`]. Envoy has no defaults for the two intervals; those here are of its documented example.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct EnvoySettings {
    /// The limit after the first probe. Default 3.
    pub initial: usize,
    /// The least limit outside of probes. Default 3.
    pub min: usize,
    /// The greatest limit. Default 1000.
    pub max: usize,
    /// The quantile of latencies that stands for a window, within 0 and 1. Default 0.5.
    pub percentile: f64,
    /// How often the limit is updated. Default 100 ms.
    #[serde(with = "humantime_serde")]
    pub update_interval: Duration,
    /// How often latency is measured anew. Default 60 s.
    #[serde(with = "humantime_serde")]
    pub probe_interval: Duration,
    /// By which share of itself the probe interval is prolonged at most, at random, within 0 and 1. Default 0.15.
    pub jitter: f64,
    /// Requests in flight during a probe. Default 3.
    pub probe_limit: usize,
    /// Answers that end a probe. Default 50.
    pub probe_samples: u64,
    /// By which share latency may exceed the baseline without meaning a queue. Default 0.25.
    pub buffer: f64,
    /// A latency without queue that is known: probes then never happen. Default none.
    #[serde(with = "humantime_serde")]
    pub baseline: Option<Duration>,
    /// Seed of the jitter. Give each proxy its own, or all probe at once. Default 0.
    pub seed: u64,
}

impl EnvoySettings {
    fn check(&self) -> Result<(), InvalidSettings> {
        InvalidSettings::check_bounds(self.min, self.initial, self.max)?;
        let within = |value: f64| (0.0..=1.0).contains(&value);
        check(within(self.percentile), "percentile", || {
            format!("must lie within 0 and 1, not {}", self.percentile)
        })?;
        check(self.update_interval > Duration::ZERO, "update_interval", || {
            "must be longer than zero".into()
        })?;
        check(self.probe_interval > Duration::ZERO, "probe_interval", || "must be longer than zero".into())?;
        check(within(self.jitter), "jitter", || format!("must lie within 0 and 1, not {}", self.jitter))?;
        check(self.probe_limit >= 1, "probe_limit", || "must be at least 1, not 0".into())?;
        check(self.probe_samples >= 1, "probe_samples", || "must be at least 1, not 0".into())?;
        check(self.buffer.is_finite() && self.buffer >= 0.0, "buffer", || {
            format!("must be finite and at least 0, not {}", self.buffer)
        })?;
        check(self.baseline != Some(Duration::ZERO), "baseline", || "must be longer than zero".into())
    }
}

impl Default for EnvoySettings {
    fn default() -> Self {
        Self {
            initial: 3,
            min: 3,
            max: 1_000,
            percentile: 0.5,
            update_interval: Duration::from_millis(100),
            probe_interval: Duration::from_secs(60),
            jitter: 0.15,
            probe_limit: 3,
            probe_samples: 50,
            buffer: 0.25,
            baseline: None,
            seed: 0,
        }
    }
}

#[cfg(test)]
mod tests;
