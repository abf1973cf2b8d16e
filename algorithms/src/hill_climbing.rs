use std::time::Duration;

use serde::{Deserialize, Serialize};

use self::sounds::{Listener, Sums};
use crate::{
    CannotResume, Decision, Instant, InvalidSettings, Limiter, Reason, State, Utilization, Window,
    WindowRule,
    parts::{bounded, check, float, nanos},
    split_mix::SplitMix64,
};

/// Waves in the limit, and where throughput follows them: the hill climbing of .NET's thread pool.
///
/// ```text
/// an interval lasts U[interval_min, interval_max], drawn anew with every change; longer until
/// (limit − 1) / completions < sample_error.  Over the last 3 to wave_history whole periods, at the wave's frequency:
///     C, T = amplitudes of the limit and of throughput, each by its mean (complex)
///     noise = the greater of T's two neighbouring frequencies;   average noise ← 0.99 old + 0.01 new
///     r = Re(T / C) − bias;   confidence = |C| / max(noise, average noise) / signal_to_noise
/// move = |clamp(r, ±1) × clamp(confidence, 0, 1)| ^ gain_exponent × sign, × change_per_second × seconds,
///     at most change_per_interval;   no increase while utilization > utilization_ceiling
/// control ← control + move;   wave = clamp(trunc(½ + 2 × control × average noise × signal_to_noise × wave_multiplier), 1,
///     wave_max);   limit ← trunc(control + wave in every other half period)
/// at min with r < 0, the next interval is up to ten times as long
/// ```
///
/// Source: `PortableThreadPool.HillClimbing.cs` of dotnet/runtime
/// (`src/libraries/System.Private.CoreLib/src/System/ Threading`), after Hellerstein, Morrison and Eilebrecht,
/// "Optimizing Concurrency Levels in the .NET ThreadPool" (2008). Its completions are answers here, and the pool's
/// watch for starvation is left out. The pool climbs only while work waits for threads; likewise a window in which
/// the limit was not felt is passed over.
///
/// **Choose it** where throughput falls with too much concurrency, and latency says little. Behind a plain queue,
/// whose throughput stays level, the bias of 0.15 alone stops it.
///
/// **Known to go wrong:**
/// - Four a second at best: hundreds take minutes.
/// - Work of different kinds makes throughput jump for reasons that have nothing to do with the limit; its
///   maintainers report as much, and that it is hardly better than none.
/// - An interval has no unit of latency, so services slower than it are measured by chance.
#[derive(Clone, Debug)]
pub struct HillClimbing {
    settings: HillClimbingSettings,
    utilization: Utilization,
    control: f64,
    limit: usize,
    listener: Listener,
    average_noise: f64,
    interval_ns: u64,
    /// Intervals are as long as this, and longer by up to `spread_ns`.
    shortest_ns: u64,
    spread_ns: f64,
    /// Completions and nanoseconds of intervals that were too short to tell.
    carried: (u64, u64),
    next: Option<Instant>,
    random: SplitMix64,
}

/// What a look at the waves says.
#[derive(Clone, Copy, Debug, Default)]
struct Waves {
    ratio: f64,
    confidence: f64,
}

impl HillClimbing {
    /// A limiter that is never told how busy the machine is.
    ///
    /// # Errors
    ///
    /// As [`HillClimbing::with_utilization`].
    pub fn new(settings: HillClimbingSettings) -> Result<Self, InvalidSettings> {
        Self::with_utilization(settings, Utilization::unknown())
    }

    /// A limiter that is told by `utilization` how busy the processors are; while nobody tells, they may be busier.
    ///
    /// # Errors
    ///
    /// [`InvalidSettings`] names the field that contradicts another or cannot hold.
    pub fn with_utilization(
        settings: HillClimbingSettings,
        utilization: Utilization,
    ) -> Result<Self, InvalidSettings> {
        settings.check()?;
        let mut limiter = Self {
            utilization,
            control: settings.initial as f64,
            limit: settings.initial,
            listener: Listener::new(settings.wave_period, settings.wave_period * settings.wave_history),
            average_noise: 0.0,
            interval_ns: 0,
            shortest_ns: nanos(settings.interval_min),
            spread_ns: (nanos(settings.interval_max) - nanos(settings.interval_min)) as f64,
            carried: (0, 0),
            next: None,
            random: SplitMix64::new(settings.seed),
            settings,
        };
        limiter.draw_interval();
        Ok(limiter)
    }

    fn draw_interval(&mut self) {
        self.interval_ns = self.shortest_ns + (self.spread_ns * self.random.unit()) as u64;
    }

    fn wait(&mut self, now: Instant, interval_ns: u64) {
        self.next = Some(now.plus_nanos(interval_ns.max(1)));
    }

    fn look(&mut self, throughput: f64, limit: f64) -> Option<Waves> {
        let Sums { throughput, limit, wave, lower, upper, limit_wave } =
            self.listener.hear(throughput, limit)?;
        if throughput <= 0.0 || limit <= 0.0 {
            return None;
        }
        let dot = |a: [f64; 2], b: [f64; 2]| a[0] * b[0] + a[1] * b[1];
        let noise = greater(dot(lower, lower), dot(upper, upper)).sqrt() * (1.0 / throughput);
        let smoothing = self.settings.error_smoothing;
        self.average_noise = if self.average_noise == 0.0 {
            noise
        } else {
            smoothing * noise + (1.0 - smoothing) * self.average_noise
        };
        let power = dot(limit_wave, limit_wave);
        if power == 0.0 {
            return Some(Waves::default());
        }
        let noise = greater(noise, self.average_noise) * self.settings.signal_to_noise;
        let confidence = if noise > 0.0 { power.sqrt() / (limit * noise) } else { 1.0 };
        // Re(T / C) = T · C / |C|².
        let ratio = dot(wave, limit_wave) * limit / (power * throughput);
        Some(Waves { ratio: ratio - self.settings.bias, confidence })
    }

    fn climb(&mut self, seconds: f64, waves: Waves) -> f64 {
        let settings = &self.settings;
        let wanted = lesser(greater(waves.ratio, -1.0), 1.0) * lesser(waves.confidence, 1.0);
        let gain = settings.change_per_second * seconds;
        // `pow` says the same of a square, but asks much before.
        let power = if settings.gain_exponent == 2.0 {
            wanted * wanted
        } else {
            libm::pow(wanted.abs(), settings.gain_exponent)
        };
        let size = power * gain;
        let mut step = if wanted < 0.0 { -size } else { size.min(settings.change_per_interval) };
        if step > 0.0 && self.utilization.value().is_some_and(|busy| busy > settings.utilization_ceiling) {
            step = 0.0;
        }
        self.control += step;
        let scale = 2.0 * settings.signal_to_noise * settings.wave_multiplier * self.average_noise;
        let wave = 0.5 + self.control * scale;
        // Where throughput is calm it is 1, which a processor foresees rather than wait for the noise.
        let wave = if wave < 2.0 { 1.0 } else { float(bounded(wave, 1, settings.wave_max) as u64) };
        let (min, max) = (float(settings.min as u64), float(settings.max as u64));
        self.control = greater(lesser(self.control, max - wave), min);
        let crest = if self.listener.is_crest() { wave } else { 0.0 };
        self.limit = bounded(self.control + crest, settings.min, settings.max);
        step
    }
}

impl Limiter for HillClimbing {
    fn limit(&self) -> usize {
        self.limit
    }

    fn next_window(&self) -> WindowRule {
        match self.next {
            None => WindowRule::EACH,
            Some(next) => WindowRule::samples(0).not_before(next).no_later_than(next),
        }
    }

    fn update(&mut self, window: &Window) -> Decision {
        let now = window.closed;
        if self.next.is_none() {
            self.wait(now, self.interval_ns);
            return Decision::new(self.limit, Reason::Starting);
        }
        if window.limit_hits == 0 && window.refused == 0 {
            self.wait(now, self.interval_ns);
            return Decision::new(self.limit, Reason::AppLimited);
        }
        let completions = window.sample_count().saturating_add(self.carried.0);
        let duration_ns = window.duration_ns().saturating_add(self.carried.1);
        let (before, limit) = (self.limit, float(self.limit as u64));
        let (answered, nanoseconds) = (float(completions), float(duration_ns));
        if completions == 0
            || duration_ns == 0
            || (self.listener.total > 0 && limit - 1.0 >= self.settings.sample_error * answered)
        {
            self.carried = (completions, duration_ns);
            self.wait(now, nanos(ANOTHER_LOOK));
            return Decision::new(self.limit, Reason::Undecided).with("completions", answered);
        }
        self.carried = (0, 0);
        let throughput = 1e9 * answered / nanoseconds;
        let looked = self.look(throughput, limit);
        let waves = looked.unwrap_or_default();
        let step = self.climb(1e-9 * nanoseconds, waves);
        if self.limit != before {
            self.draw_interval();
        }
        let patience = if waves.ratio < 0.0 && self.limit == self.settings.min {
            10.0 * (-waves.ratio).min(1.0)
        } else {
            1.0
        };
        self.wait(now, (float(self.interval_ns) * patience) as u64);
        let reason = match looked {
            None => Reason::Starting,
            Some(_) if step > 0.0 => Reason::Growing,
            Some(_) if step < 0.0 => Reason::QueueBuilding,
            Some(_) => Reason::Holding,
        };
        Decision::new(self.limit, reason)
            .with("throughput", throughput)
            .with("ratio", waves.ratio)
            .with("confidence", waves.confidence)
            .with("noise", self.average_noise)
            .with("control", self.control)
    }

    fn state(&self) -> State {
        State::new()
            .with("limit", self.limit as f64)
            .with("control", self.control)
            .with("noise", self.average_noise)
    }

    fn resume(&mut self, state: &State) -> Result<(), CannotResume> {
        let limit = state.number_within("limit", self.settings.min as f64, self.settings.max as f64)?;
        self.control = state.number_within("control", self.settings.min as f64, self.settings.max as f64)?;
        self.limit = limit as usize;
        Ok(())
    }
}

/// As [`f64::max`], which takes five instructions instead of one because it asks whether both are numbers. Here they are.
fn greater(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

fn lesser(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}

/// When a window with too few completions is looked at again.
const ANOTHER_LOOK: Duration = Duration::from_millis(10);

/// Settings of [`HillClimbing`].
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct HillClimbingSettings {
    /// The limit to start from. Published: the number of processors. Default 8.
    pub initial: usize,
    /// The least limit. Published: the number of processors. Default 1.
    pub min: usize,
    /// The greatest limit. Default 32,767.
    pub max: usize,
    /// Intervals in a wave, even. Default 4.
    pub wave_period: usize,
    /// Waves that are looked back on, at least 3. Default 8.
    pub wave_history: usize,
    /// The greatest height of a wave. Default 20.
    pub wave_max: usize,
    /// Factor of the height of a wave, at least 0. Default 1.
    pub wave_multiplier: f64,
    /// What throughput must gain, as a share of what the limit gains. Default 0.15.
    pub bias: f64,
    /// How far the wave should stand out from the noise, above 0. Default 3.
    pub signal_to_noise: f64,
    /// The greatest change in a second. Default 4.
    pub change_per_second: f64,
    /// The greatest increase in an interval. Default 20.
    pub change_per_interval: f64,
    /// The shortest interval. Default 10 ms.
    #[serde(with = "humantime_serde")]
    pub interval_min: Duration,
    /// The longest interval. Default 200 ms.
    #[serde(with = "humantime_serde")]
    pub interval_max: Duration,
    /// The weight of a new measurement of noise, within 0 and 1. Default 0.01.
    pub error_smoothing: f64,
    /// Exponent that makes small moves smaller, above 0. Default 2.
    pub gain_exponent: f64,
    /// The greatest share of completions that may be uncertain, above 0. Default 0.15.
    pub sample_error: f64,
    /// The share of busy processors above which the limit is not raised. Default 0.95.
    pub utilization_ceiling: f64,
    /// Seed of the lengths of intervals. Default 0.
    pub seed: u64,
}

impl HillClimbingSettings {
    fn check(&self) -> Result<(), InvalidSettings> {
        InvalidSettings::check_bounds(self.min, self.initial, self.max)?;
        check(self.wave_period >= 2 && self.wave_period.is_multiple_of(2), "wave_period", || {
            format!("must be even and at least 2, not {}", self.wave_period)
        })?;
        check((3..=1_000).contains(&self.wave_history), "wave_history", || {
            format!("must lie within 3 and 1000, not {}", self.wave_history)
        })?;
        check(self.wave_period <= 1_000, "wave_period", || {
            format!("must be at most 1000, not {}", self.wave_period)
        })?;
        check(self.wave_max >= 1, "wave_max", || "must be at least 1, not 0".into())?;
        check(self.interval_min > Duration::ZERO, "interval_min", || "must be longer than zero".into())?;
        check(self.interval_max >= self.interval_min, "interval_max", || {
            format!("must be at least `interval_min` ({:?}), not {:?}", self.interval_min, self.interval_max)
        })?;
        check((0.0..=1.0).contains(&self.error_smoothing), "error_smoothing", || {
            format!("must lie within 0 and 1, not {}", self.error_smoothing)
        })?;
        for (field, value) in [
            ("signal_to_noise", self.signal_to_noise),
            ("change_per_second", self.change_per_second),
            ("change_per_interval", self.change_per_interval),
            ("gain_exponent", self.gain_exponent),
            ("sample_error", self.sample_error),
        ] {
            check(value.is_finite() && value > 0.0, field, || {
                format!("must be finite and above 0, not {value}")
            })?;
        }
        for (field, value) in [
            ("wave_multiplier", self.wave_multiplier),
            ("bias", self.bias),
            ("utilization_ceiling", self.utilization_ceiling),
        ] {
            check(value.is_finite() && value >= 0.0, field, || {
                format!("must be finite and at least 0, not {value}")
            })?;
        }
        Ok(())
    }
}

impl Default for HillClimbingSettings {
    fn default() -> Self {
        Self {
            initial: 8,
            min: 1,
            max: 32_767,
            wave_period: 4,
            wave_history: 8,
            wave_max: 20,
            wave_multiplier: 1.0,
            bias: 0.15,
            signal_to_noise: 3.0,
            change_per_second: 4.0,
            change_per_interval: 20.0,
            interval_min: Duration::from_millis(10),
            interval_max: Duration::from_millis(200),
            error_smoothing: 0.01,
            gain_exponent: 2.0,
            sample_error: 0.15,
            utilization_ceiling: 0.95,
            seed: 0,
        }
    }
}

mod sounds;
#[cfg(test)]
mod tests;
