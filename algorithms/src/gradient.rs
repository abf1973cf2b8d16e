use serde::{Deserialize, Serialize};

use crate::{
    Allowance, CannotResume, Decision, InvalidSettings, Limiter, Reason, State, Window, WindowRule,
    parts::float, split_mix::SplitMix64,
};

/// Scales the limit by how far latency is above its minimum, and leaves room for a small queue.
///
/// ```text
/// queue    ← queue_size at the limit's whole part
/// gradient ← clamp(tolerance × baseline / latency, 0.5, 1)
/// overload:               target ← limit × backoff_ratio
/// in flight < limit / 2:  stays, since demand did not test it
/// else:                   target ← limit × gradient + queue
/// if target < limit:      target ← max(min, (1 − smoothing) × limit + smoothing × target)
/// limit ← min(max, max(target, queue))
/// ```
///
/// The baseline is the least latency seen since the last probe. After `probe_interval` to twice as many windows comes
/// a probe: the limit falls to the queue size, the baseline is forgotten, and the limit grows anew. While demand
/// holds the limit full, it rests at queue / (1 − gradient).
///
/// Source: `GradientLimit` of Netflix concurrency-limits, which [`Gradient2`](crate::Gradient2) superseded there.
/// Estimates equal the original's bit for bit.
///
/// **Choose it** where the least latency is the true one and may change for good, as after a deployment: its probes
/// find that out, so it does not drift. **Do not choose it** where a burst of refusals at each probe hurts, or where
/// latency scatters by more than `tolerance`.
///
/// **Known to go wrong:**
/// - Each probe drops the limit to about its square root, under whatever load there is.
/// - An overload takes off only `smoothing` × (1 − `backoff_ratio`), 2 % with the defaults.
/// - The queue size is a floor of its own: with the defaults the limit never falls below 4.
/// - Growth is not smoothed, so a limit that is held full doubles within a few windows of one sample.
///
/// Other than in the original, the queue size does not overrule `max` (there, a maximum of 2 gives a limit of 4), nor
/// does a probe; and a latency of zero is not taken for the baseline, where a first one made the limit 0 for ever.
#[derive(Clone, Debug)]
pub struct Gradient {
    settings: GradientSettings,
    estimate: f64,
    queue: Queue,
    baseline_ns: Option<f64>,
    probe_countdown: u64,
    random: SplitMix64,
}

impl Gradient {
    /// # Errors
    ///
    /// [`InvalidSettings`] names the field that is out of its bounds or contradicts another.
    pub fn new(settings: GradientSettings) -> Result<Self, InvalidSettings> {
        settings.check()?;
        let mut random = SplitMix64::new(settings.seed);
        Ok(Self {
            estimate: settings.initial as f64,
            queue: Queue::at(settings.initial, settings.queue_size),
            baseline_ns: None,
            probe_countdown: draw_countdown(&mut random, settings.probe_interval),
            random,
            settings,
        })
    }

    fn step(&mut self, latency_ns: f64, in_flight: u64, overloaded: bool) -> (Reason, f64) {
        let settings = &self.settings;
        let (min, max) = (settings.min as f64, settings.max as f64);
        let limit = self.limit();
        if limit != self.queue.limit {
            self.queue = Queue::at(limit, settings.queue_size);
        }
        let queue = self.queue.size;

        if settings.probe_interval > 0 {
            if self.probe_countdown == 0 {
                self.probe_countdown = draw_countdown(&mut self.random, settings.probe_interval);
                self.estimate = queue.max(min).min(max);
                self.baseline_ns = None;
                return (Reason::Probing, 1.0);
            }
            self.probe_countdown -= 1;
        }

        let mut gradient = 1.0;
        if latency_ns > 0.0 {
            let baseline_ns = self.baseline_ns.map_or(latency_ns, |baseline_ns| baseline_ns.min(latency_ns));
            self.baseline_ns = Some(baseline_ns);
            gradient = (settings.tolerance * baseline_ns / latency_ns).clamp(0.5, 1.0);
        } else if !overloaded {
            return (Reason::Undecided, gradient);
        }

        let (mut target, reason) = if overloaded {
            (self.estimate * settings.backoff_ratio, Reason::Overload)
        } else if float(in_flight) < self.estimate / 2.0 {
            return (Reason::AppLimited, gradient);
        } else {
            let target = self.estimate * gradient + queue;
            (target, if target < self.estimate { Reason::QueueBuilding } else { Reason::Growing })
        };
        if target < self.estimate {
            target = (self.estimate * (1.0 - settings.smoothing) + settings.smoothing * target).max(min);
        }
        self.estimate = target.max(queue).min(max);
        (reason, gradient)
    }
}

impl Limiter for Gradient {
    fn limit(&self) -> usize {
        (self.estimate as usize).clamp(self.settings.min, self.settings.max)
    }

    fn next_window(&self) -> WindowRule {
        WindowRule::EACH
    }

    fn update(&mut self, window: &Window) -> Decision {
        let samples = window.samples();
        let latency_ns = samples.mean_ns();
        let (reason, gradient) = if samples.count == 0 {
            (Reason::Undecided, 1.0)
        } else {
            self.step(latency_ns, window.max_in_flight, window.overloads.count > 0)
        };
        Decision::new(self.limit(), reason)
            .with("latency_ns", latency_ns)
            .with("baseline_ns", self.baseline_ns.unwrap_or(0.0))
            .with("gradient", gradient)
            .with("in_flight", float(window.max_in_flight))
            .with("estimate", self.estimate)
    }

    fn state(&self) -> State {
        State::new()
            .with("limit", self.limit() as f64)
            .with("estimate", self.estimate)
            .with("baseline_ns", self.baseline_ns.unwrap_or(0.0))
            .with("probe_countdown", self.probe_countdown as f64)
            .with("draws", self.random.draws() as f64)
    }

    fn resume(&mut self, state: &State) -> Result<(), CannotResume> {
        let (min, max) = (self.settings.min as f64, self.settings.max as f64);
        let estimate = state.number_within("estimate", min, max)?;
        let baseline_ns = state.number_within("baseline_ns", 0.0, f64::MAX)?;
        let probe_countdown = state.number_within("probe_countdown", 0.0, u64::MAX as f64)?;
        let draws = state.number_within("draws", 0.0, u64::MAX as f64)?;
        self.estimate = estimate;
        self.baseline_ns = (baseline_ns > 0.0).then_some(baseline_ns);
        self.probe_countdown = probe_countdown as u64;
        self.random = self.random.after(draws as u64);
        Ok(())
    }
}

/// Settings of [`Gradient`].
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct GradientSettings {
    /// The limit to start from. Default 50.
    pub initial: usize,
    /// The least limit. Default 1, where the queue size holds it at 4.
    pub min: usize,
    /// The greatest limit. Default 1,000.
    pub max: usize,
    /// The share of a step down that is taken, above 0 and at most 1. Default 0.2.
    pub smoothing: f64,
    /// How many times its minimum latency may be before the limit shrinks, at least 1. Default 2.
    pub tolerance: f64,
    /// What an overload leaves of the limit before smoothing, in `[0.5, 1]`. Default 0.9.
    pub backoff_ratio: f64,
    /// The queue that the limit leaves room for. Default `{ sqrt_at_least = 4 }`.
    pub queue_size: Allowance,
    /// Windows between two probes, at least; twice as many at most. 0 for no probes. Default 1,000.
    pub probe_interval: u64,
    /// The seed of the probes' intervals. Give each of several instances its own, or they probe in step. Default 0.
    pub seed: u64,
}

impl GradientSettings {
    fn check(&self) -> Result<(), InvalidSettings> {
        InvalidSettings::check_bounds(self.min, self.initial, self.max)?;
        InvalidSettings::check_share("smoothing", self.smoothing)?;
        InvalidSettings::check_within("tolerance", self.tolerance, 1.0, f64::MAX)?;
        InvalidSettings::check_within("backoff_ratio", self.backoff_ratio, 0.5, 1.0)?;
        self.queue_size.check_positive("queue_size")
    }
}

impl Default for GradientSettings {
    fn default() -> Self {
        Self {
            initial: 50,
            min: 1,
            max: 1_000,
            smoothing: 0.2,
            tolerance: 2.0,
            backoff_ratio: 0.9,
            queue_size: Allowance::SqrtAtLeast(4),
            probe_interval: 1_000,
            seed: 0,
        }
    }
}

/// What the queue size comes to at a limit. Kept, as a root takes longer than the rest of a step, and most steps leave the
/// limit's whole part where it was.
#[derive(Clone, Copy, Debug)]
struct Queue {
    limit: usize,
    size: f64,
}

impl Queue {
    fn at(limit: usize, size: Allowance) -> Self {
        Self { limit, size: size.at(limit) }
    }
}

fn draw_countdown(random: &mut SplitMix64, interval: u64) -> u64 {
    interval.saturating_add(random.below(interval))
}
