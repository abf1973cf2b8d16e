use serde::{Deserialize, Serialize};

use crate::{
    Allowance, CannotResume, Decision, InvalidSettings, Limiter, Reason, State, Window, WindowRule,
    parts::float, split_mix::SplitMix64,
};

/// Estimates the queue inside the service from latency, and keeps it between two bounds.
///
/// ```text
/// queue ← ceil(limit × (1 − baseline / latency))
/// overload:               limit − decrease
/// 2 × in flight < limit:  stays, since demand did not test it
/// queue ≤ threshold:      limit + beta
/// queue < alpha:          limit + increase
/// queue > beta:           limit − decrease
/// else:                   stays
/// limit ← (1 − smoothing) × limit + smoothing × clamp(that, 1, max)
/// ```
///
/// The baseline is the least latency seen since the last probe. A probe comes after about `probe_multiplier` × limit
/// windows (times a jitter in `[0.5, 1)`, drawn anew for each) and takes the next latency as the new baseline. The
/// window that sets a baseline moves nothing. Steps and bounds are those of the limit's whole part before the move.
///
/// Source: `VegasLimit` of Netflix concurrency-limits, after TCP Vegas (Brakmo and Peterson 1995). Limits and
/// estimates equal the original's bit for bit.
///
/// **Choose it** where latency without load is steady, and its mean tells a queue from noise: it settles within a few
/// requests of the least limit that uses the whole service. **Do not choose it** where latency scatters: the least
/// latency is then far below the ordinary one, and the difference counts as queue.
///
/// **Known to go wrong:**
/// - The probe does not lower the limit, so under lasting load it measures the queue itself as the baseline. The
///   limit then climbs with each probe.
/// - Steps follow every window of one sample, so a loaded limiter moves about `limit` times in one round trip, and
///   decides again before it can see what the last move did. [`Windowed`](crate::Windowed) helps.
/// - The whole logarithm of the published steps jumps at limits of 100 and 1,000; there, two limits can hold equally
///   well, and which one it is depends on where it came from. Set [`Allowance::Log10Times`] for steps without jumps.
/// - A probe by an overloaded request takes its latency for the baseline, as any other.
///
/// Other than in the original, a latency of zero is not an error: it sets no baseline, and moves the limit only if
/// the request was overloaded. And at least every second window is one that is not a probe, without which a
/// multiplier of 1 would hold the limit at 1 for ever.
#[derive(Clone, Debug)]
pub struct Vegas {
    settings: VegasSettings,
    estimate: f64,
    baseline_ns: Option<f64>,
    probe_count: u64,
    probe_jitter: f64,
    random: SplitMix64,
}

impl Vegas {
    /// # Errors
    ///
    /// [`InvalidSettings`] names the field that is out of its bounds or contradicts another.
    pub fn new(settings: VegasSettings) -> Result<Self, InvalidSettings> {
        settings.check()?;
        let mut random = SplitMix64::new(settings.seed);
        Ok(Self {
            estimate: settings.initial as f64,
            baseline_ns: None,
            probe_count: 0,
            probe_jitter: draw_jitter(&mut random),
            random,
            settings,
        })
    }

    fn step(&mut self, latency_ns: f64, in_flight: u64, overloaded: bool) -> (Reason, f64) {
        let mut queue = 0.0;
        if latency_ns > 0.0 {
            self.probe_count = self.probe_count.saturating_add(1);
            if self.probe_is_due() {
                self.probe_jitter = draw_jitter(&mut self.random);
                self.probe_count = 0;
                self.baseline_ns = Some(latency_ns);
                return (Reason::Measured, queue);
            }
            let baseline_ns = match self.baseline_ns {
                Some(baseline_ns) if baseline_ns <= latency_ns => baseline_ns,
                _ => {
                    self.baseline_ns = Some(latency_ns);
                    return (Reason::Measured, queue);
                }
            };
            queue = (self.estimate * (1.0 - baseline_ns / latency_ns)).ceil();
        } else if !overloaded {
            return (Reason::Undecided, queue);
        }

        let limit = self.limit();
        let settings = &self.settings;
        let (target, reason) = if overloaded {
            (self.estimate - settings.decrease.at(limit), Reason::Overload)
        } else if float(in_flight) * 2.0 < self.estimate {
            return (Reason::AppLimited, queue);
        } else if queue <= settings.threshold.at(limit) {
            (self.estimate + settings.beta.at(limit), Reason::Growing)
        } else if queue < settings.alpha.at(limit) {
            (self.estimate + settings.increase.at(limit), Reason::Growing)
        } else if queue > settings.beta.at(limit) {
            (self.estimate - settings.decrease.at(limit), Reason::QueueBuilding)
        } else {
            return (Reason::Holding, queue);
        };
        let target = target.clamp(1.0, settings.max as f64);
        self.estimate = (1.0 - settings.smoothing) * self.estimate + settings.smoothing * target;
        (reason, queue)
    }

    fn probe_is_due(&self) -> bool {
        self.probe_count >= 2
            && self.probe_jitter * float(self.settings.probe_multiplier) * self.estimate
                <= float(self.probe_count)
    }
}

impl Limiter for Vegas {
    fn limit(&self) -> usize {
        (self.estimate as usize).clamp(1, self.settings.max)
    }

    fn next_window(&self) -> WindowRule {
        WindowRule::EACH
    }

    fn update(&mut self, window: &Window) -> Decision {
        let samples = window.samples();
        let latency_ns = samples.mean_ns();
        let (reason, queue) = if samples.count == 0 {
            (Reason::Undecided, 0.0)
        } else {
            self.step(latency_ns, window.max_in_flight, window.overloads.count > 0)
        };
        Decision::new(self.limit(), reason)
            .with("latency_ns", latency_ns)
            .with("baseline_ns", self.baseline_ns.unwrap_or(0.0))
            .with("queue", queue)
            .with("in_flight", float(window.max_in_flight))
            .with("estimate", self.estimate)
    }

    fn state(&self) -> State {
        State::new()
            .with("limit", self.limit() as f64)
            .with("estimate", self.estimate)
            .with("baseline_ns", self.baseline_ns.unwrap_or(0.0))
            .with("probe_count", self.probe_count as f64)
            .with("probe_jitter", self.probe_jitter)
            .with("draws", self.random.draws() as f64)
    }

    fn resume(&mut self, state: &State) -> Result<(), CannotResume> {
        let estimate = state.number_within("estimate", 1.0, self.settings.max as f64)?;
        let baseline_ns = state.number_within("baseline_ns", 0.0, f64::MAX)?;
        let probe_count = state.number_within("probe_count", 0.0, u64::MAX as f64)?;
        let probe_jitter = state.number_within("probe_jitter", 0.5, 1.0)?;
        let draws = state.number_within("draws", 0.0, u64::MAX as f64)?;
        self.estimate = estimate;
        self.baseline_ns = (baseline_ns > 0.0).then_some(baseline_ns);
        self.probe_count = probe_count as u64;
        self.probe_jitter = probe_jitter;
        self.random = self.random.after(draws as u64);
        Ok(())
    }
}

/// Settings of [`Vegas`].
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct VegasSettings {
    /// The limit to start from. Default 20.
    pub initial: usize,
    /// The greatest limit; the least is 1. Default 1,000.
    pub max: usize,
    /// The share of a step that is taken, above 0 and at most 1. Default 1.
    pub smoothing: f64,
    /// The queue below which the limit grows by `increase`. Default `{ whole_log10_times = 3 }`.
    pub alpha: Allowance,
    /// The queue above which the limit shrinks by `decrease`, and the step by which it grows while the queue is at
    /// most `threshold`. Not below `alpha`. Default `{ whole_log10_times = 6 }`.
    pub beta: Allowance,
    /// The queue up to which the limit grows by `beta`. Default `{ whole_log10_times = 1 }`.
    pub threshold: Allowance,
    /// The step by which the limit grows between `threshold` and `alpha`. Default `{ whole_log10_times = 1 }`.
    pub increase: Allowance,
    /// The step by which the limit shrinks. Default `{ whole_log10_times = 1 }`.
    pub decrease: Allowance,
    /// Windows per request of limit between two probes, at most; half as many at least. Default 30.
    pub probe_multiplier: u64,
    /// The seed of the probes' jitter. Give each of several instances its own, or they probe in step. Default 0.
    pub seed: u64,
}

impl VegasSettings {
    fn check(&self) -> Result<(), InvalidSettings> {
        InvalidSettings::check_bounds(1, self.initial, self.max)?;
        InvalidSettings::check_share("smoothing", self.smoothing)?;
        self.alpha.check("alpha")?;
        self.beta.check_positive("beta")?;
        self.threshold.check("threshold")?;
        self.increase.check_positive("increase")?;
        self.decrease.check_positive("decrease")?;
        let powers_of_ten = (0..=self.max.ilog10()).map(|power| 10_usize.pow(power));
        if let Some(limit) = powers_of_ten.chain([self.max]).find(|l| self.beta.at(*l) < self.alpha.at(*l)) {
            return Err(InvalidSettings::new(
                "beta",
                format!(
                    "must not be below `alpha`, but at a limit of {limit} it is {} and `alpha` is {}",
                    self.beta.at(limit),
                    self.alpha.at(limit)
                ),
            ));
        }
        if self.probe_multiplier == 0 {
            return Err(InvalidSettings::new("probe_multiplier", "must be at least 1, not 0"));
        }
        Ok(())
    }
}

impl Default for VegasSettings {
    fn default() -> Self {
        Self {
            initial: 20,
            max: 1_000,
            smoothing: 1.0,
            alpha: Allowance::WholeLog10Times(3),
            beta: Allowance::WholeLog10Times(6),
            threshold: Allowance::WholeLog10Times(1),
            increase: Allowance::WholeLog10Times(1),
            decrease: Allowance::WholeLog10Times(1),
            probe_multiplier: 30,
            seed: 0,
        }
    }
}

fn draw_jitter(random: &mut SplitMix64) -> f64 {
    0.5 + random.unit() / 2.0
}
