use serde::{Deserialize, Serialize};

use crate::{
    Allowance, CannotResume, Decision, InvalidSettings, Limiter, Reason, State, Window, WindowRule,
    parts::float,
};

/// Scales the limit by how far latency is above its own long average, and leaves room for a small queue.
///
/// ```text
/// long     ← exponential average of latency over `long_window` windows; times 0.95 where it is above 2 × latency
/// in flight < limit / 2:  stays, since demand did not test it
/// gradient ← clamp(tolerance × long / latency, 0.5, 1)
/// target   ← limit × gradient + queue_size
/// limit    ← clamp((1 − smoothing) × limit + smoothing × target, min, max)
/// ```
///
/// The long average is the plain mean of the first ten latencies, and goes on from there. The gradient uses it as it
/// was before it is cut by 0.95.
///
/// Source: `Gradient2Limit` of Netflix concurrency-limits. Limits and estimates equal the original's bit for bit.
///
/// **Choose it** where latency scatters or drifts and there is no steady minimum to compare with; it asks only whether
/// latency is worse than usual. **Do not choose it** where overload lasts: what is usual then follows the overload.
///
/// **Known to go wrong:**
/// - Refusals and timeouts of the service behind teach it nothing: only latency does.
/// - A queue that builds slowly, or stays, becomes the long average. With the defaults the limit climbs to `max`
///   whenever latency stays within 1.5 times its own average.
/// - `long_window` counts windows, not time: at 1,000 requests a second and a window for each, 600 of them are 0.6 s.
///   Within [`Windowed`](crate::Windowed) of one second they are ten minutes.
/// - It grows by at most `smoothing` × `queue_size` a window, 0.8 with the defaults, at any limit.
///
/// Other than in the original, a latency of zero is passed over, where a first one made the limit 0 for ever.
#[derive(Clone, Debug)]
pub struct Gradient2 {
    settings: Gradient2Settings,
    estimate: f64,
    long: LongAverage,
}

impl Gradient2 {
    /// # Errors
    ///
    /// [`InvalidSettings`] names the field that is out of its bounds or contradicts another.
    pub fn new(settings: Gradient2Settings) -> Result<Self, InvalidSettings> {
        settings.check()?;
        Ok(Self {
            estimate: settings.initial as f64,
            long: LongAverage::over(settings.long_window),
            settings,
        })
    }

    fn step(&mut self, latency_ns: f64, in_flight: u64) -> (Reason, f64) {
        let settings = &self.settings;
        let queue = settings.queue_size.at(self.limit());
        let long_ns = self.long.add(latency_ns);
        if long_ns / latency_ns > 2.0 {
            self.long.mean_ns *= 0.95;
        }
        let gradient = (settings.tolerance * long_ns / latency_ns).clamp(0.5, 1.0);
        if float(in_flight) < self.estimate / 2.0 {
            return (Reason::AppLimited, gradient);
        }
        let target = self.estimate * gradient + queue;
        let reason = if target < self.estimate { Reason::QueueBuilding } else { Reason::Growing };
        self.estimate = (self.estimate * (1.0 - settings.smoothing) + target * settings.smoothing)
            .clamp(settings.min as f64, settings.max as f64);
        (reason, gradient)
    }
}

impl Limiter for Gradient2 {
    fn limit(&self) -> usize {
        (self.estimate as usize).clamp(self.settings.min, self.settings.max)
    }

    fn next_window(&self) -> WindowRule {
        WindowRule::EACH
    }

    fn update(&mut self, window: &Window) -> Decision {
        let latency_ns = window.samples().mean_ns();
        let (reason, gradient) = if latency_ns > 0.0 {
            self.step(latency_ns, window.max_in_flight)
        } else {
            (Reason::Undecided, 1.0)
        };
        Decision::new(self.limit(), reason)
            .with("latency_ns", latency_ns)
            .with("long_latency_ns", self.long.mean_ns)
            .with("gradient", gradient)
            .with("in_flight", float(window.max_in_flight))
            .with("estimate", self.estimate)
    }

    fn state(&self) -> State {
        State::new()
            .with("limit", self.limit() as f64)
            .with("estimate", self.estimate)
            .with("long_latency_ns", self.long.mean_ns)
            .with("warm_up_windows", f64::from(self.long.warm_up_windows))
            .with("warm_up_sum_ns", self.long.warm_up_sum_ns)
    }

    fn resume(&mut self, state: &State) -> Result<(), CannotResume> {
        let (min, max) = (self.settings.min as f64, self.settings.max as f64);
        let estimate = state.number_within("estimate", min, max)?;
        let mean_ns = state.number_within("long_latency_ns", 0.0, f64::MAX)?;
        let warm_up_windows = state.number_within("warm_up_windows", 0.0, f64::from(LongAverage::WARM_UP))?;
        let warm_up_sum_ns = state.number_within("warm_up_sum_ns", 0.0, f64::MAX)?;
        self.estimate = estimate;
        self.long = LongAverage {
            mean_ns,
            warm_up_windows: warm_up_windows as u32,
            warm_up_sum_ns,
            share: self.long.share,
        };
        Ok(())
    }
}

/// Settings of [`Gradient2`].
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Gradient2Settings {
    /// The limit to start from. Default 20.
    pub initial: usize,
    /// The least limit. Default 20.
    pub min: usize,
    /// The greatest limit. Default 200.
    pub max: usize,
    /// The share of a step that is taken, above 0 and at most 1. Default 0.2.
    pub smoothing: f64,
    /// How many times its long average latency may be before the limit shrinks, at least 1. Default 1.5.
    pub tolerance: f64,
    /// The queue that the limit leaves room for. Default `{ constant = 4 }`.
    pub queue_size: Allowance,
    /// Windows over which the long average of latency reaches, at least 1. Default 600.
    pub long_window: u32,
}

impl Gradient2Settings {
    fn check(&self) -> Result<(), InvalidSettings> {
        InvalidSettings::check_bounds(self.min, self.initial, self.max)?;
        InvalidSettings::check_share("smoothing", self.smoothing)?;
        InvalidSettings::check_within("tolerance", self.tolerance, 1.0, f64::MAX)?;
        self.queue_size.check_positive("queue_size")?;
        if self.long_window == 0 {
            return Err(InvalidSettings::new("long_window", "must be at least 1, not 0"));
        }
        Ok(())
    }
}

impl Default for Gradient2Settings {
    fn default() -> Self {
        Self {
            initial: 20,
            min: 20,
            max: 200,
            smoothing: 0.2,
            tolerance: 1.5,
            queue_size: Allowance::Constant(4),
            long_window: 600,
        }
    }
}

/// An exponential average that begins as a plain mean.
#[derive(Clone, Debug)]
struct LongAverage {
    mean_ns: f64,
    warm_up_windows: u32,
    warm_up_sum_ns: f64,
    /// The share of a new latency after the warm-up.
    share: f64,
}

impl LongAverage {
    const WARM_UP: u32 = 10;

    fn over(windows: u32) -> Self {
        Self {
            mean_ns: 0.0,
            warm_up_windows: 0,
            warm_up_sum_ns: 0.0,
            share: 2.0 / (f64::from(windows) + 1.0),
        }
    }

    fn add(&mut self, latency_ns: f64) -> f64 {
        if self.warm_up_windows < Self::WARM_UP {
            self.warm_up_windows += 1;
            self.warm_up_sum_ns += latency_ns;
            self.mean_ns = self.warm_up_sum_ns / f64::from(self.warm_up_windows);
        } else {
            self.mean_ns = self.mean_ns * (1.0 - self.share) + latency_ns * self.share;
        }
        self.mean_ns
    }
}
