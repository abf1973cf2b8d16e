use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    Algorithm, CannotResume, Decision, Gradient2Settings, Instant, InvalidSettings, Latencies, Limiter,
    Reason, State, Window, WindowRule,
    parts::{float, nanos},
};

/// Collects samples into windows of time, and shows another limiter one latency for each window: the mean or a
/// percentile.
///
/// ```text
/// latency < ignore_below:  the sample is passed over
/// a window closes with the first sample after its end, if it has `min_samples`; else it goes on for another length
/// length ← clamp(2 × least latency, min_window, max_window)
/// mean:        whole nanoseconds of sum / count
/// percentile:  the latency of rank max(1, floor(count × fraction + ½)) among the first `capacity`
/// ```
///
/// The limiter within sees a window in which every success and every overload took that latency; all else in it, such
/// as counts, the area of in flight and the largest in flight, is as it was. One overload in a window is enough for a
/// limiter that looks for any. Where the limiter within has a rule of its own about when windows open and close, a
/// window keeps both rules.
///
/// Source: `WindowedLimit` of Netflix concurrency-limits, with its `AverageSampleWindow` and
/// `PercentileSampleWindow`. Limits, estimates and the ends of windows equal the original's, bit for bit.
///
/// **Choose it** around [`Vegas`](crate::Vegas), [`Gradient`](crate::Gradient) and [`Gradient2`](crate::Gradient2)
/// where single latencies scatter: they then step once a window and not once a request. **Do not choose it** around a
/// limiter that counts on the latencies' spread, or that makes windows itself.
///
/// **Known to go wrong:**
/// - With the default of one second, a limiter that steps by one needs minutes.
/// - A refusal by the service behind that comes faster than `ignore_below` is passed over with its overload. Set
///   `ignore_below = "0s"` where the service refuses fast.
/// - The percentile comes from the first `capacity` samples of a window, so a burst at its end is not seen. Choose a
///   capacity above the number of requests in `max_window`.
///
/// It asks for windows of one sample, and is exact with them. In larger ones it counts their mean latency as often as
/// they have samples.
///
/// Other than in the original, a window with too few samples keeps them and goes on, where they were thrown away
/// and a service with less than ten requests a second had no working limiter at all. The first sample opens
/// the first window and is not counted, where it closed a window of one. The rank of a percentile is at least 1,
/// where a low fraction of few samples asked for the one before the first.
#[derive(Clone, Debug)]
pub struct Windowed<L> {
    windowing: Windowing,
    /// As `windowing` has them, in nanoseconds.
    ignore_below_ns: u64,
    min_window_ns: u64,
    max_window_ns: u64,
    inner: L,
    window: Window,
    latencies_ns: Vec<u64>,
    ends_at: Option<Instant>,
}

impl Windowed<Box<dyn Limiter>> {
    /// # Errors
    ///
    /// [`InvalidSettings`] names the field that is out of its bounds or contradicts another, with the path to it.
    pub fn new(settings: WindowedSettings) -> Result<Self, InvalidSettings> {
        let inner = settings.inner.build().map_err(|invalid| invalid.within("inner"))?;
        Self::around(inner, settings.windowing).map_err(|invalid| invalid.within("windowing"))
    }
}

impl<L: Limiter> Windowed<L> {
    /// Windows around a given limiter.
    ///
    /// # Errors
    ///
    /// [`InvalidSettings`] names the field that is out of its bounds or contradicts another.
    pub fn around(inner: L, windowing: Windowing) -> Result<Self, InvalidSettings> {
        windowing.check()?;
        let latencies_ns = Vec::with_capacity(windowing.summary.capacity());
        Ok(Self {
            ignore_below_ns: nanos(windowing.ignore_below),
            min_window_ns: nanos(windowing.min_window),
            max_window_ns: nanos(windowing.max_window),
            windowing,
            inner,
            window: Window::EMPTY,
            latencies_ns,
            ends_at: None,
        })
    }

    /// The limiter within.
    pub const fn inner(&self) -> &L {
        &self.inner
    }

    fn collect(&mut self, window: &Window) -> bool {
        let samples = window.samples();
        let latency_ns = whole_mean_ns(samples);
        if samples.count == 0 || latency_ns < self.ignore_below_ns {
            let passed_over = Window {
                successes: Latencies::NONE,
                overloads: Latencies::NONE,
                max_in_flight: 0,
                ..*window
            };
            self.window.absorb(&passed_over);
            return false;
        }
        self.window.absorb(window);
        let room = self.windowing.summary.capacity().saturating_sub(self.latencies_ns.len());
        let fitting = usize::try_from(samples.count).map_or(room, |count| count.min(room));
        self.latencies_ns.extend(std::iter::repeat_n(latency_ns, fitting));
        true
    }

    fn has_enough(&self, now: Instant, rule: &WindowRule) -> bool {
        self.window.sample_count() >= self.windowing.min_samples.max(rule.samples_wanted(&self.window))
            && now >= rule.not_before
    }

    fn close(&mut self) -> Decision {
        let latency_ns = self.summary_ns();
        let summarised = Window {
            successes: Latencies::same(latency_ns, self.window.successes.count),
            overloads: Latencies::same(latency_ns, self.window.overloads.count),
            ..self.window
        };
        let decision = self.inner.update(&summarised);
        if !self.inner.next_window().extend {
            self.empty();
        }
        decision
    }

    fn summary_ns(&mut self) -> u64 {
        match self.windowing.summary {
            Summary::Mean => whole_mean_ns(self.window.samples()),
            Summary::Percentile { fraction, .. } => {
                let count = self.latencies_ns.len();
                let rank = ((count as f64 * fraction + 0.5) as usize).clamp(1, count.max(1));
                if count == 0 { 0 } else { *self.latencies_ns.select_nth_unstable(rank - 1).1 }
            }
        }
    }

    fn empty(&mut self) {
        self.window = Window::EMPTY;
        self.latencies_ns.clear();
    }

    /// Where a window ends that starts now, to judge by the latencies of the one so far.
    fn end_from(&self, now: Instant) -> Instant {
        let least_ns = self.window.samples().min_ns;
        now.plus_nanos(least_ns.saturating_mul(2).clamp(self.min_window_ns, self.max_window_ns))
    }

    fn undecided(&self) -> Decision {
        Decision::new(self.inner.limit(), Reason::Undecided)
            .with("samples", float(self.window.sample_count()))
    }
}

impl<L: Limiter> Limiter for Windowed<L> {
    fn limit(&self) -> usize {
        self.inner.limit()
    }

    fn next_window(&self) -> WindowRule {
        WindowRule::EACH.no_later_than(self.inner.next_window().deadline)
    }

    fn update(&mut self, window: &Window) -> Decision {
        let now = window.closed;
        let rule = self.inner.next_window();
        if !rule.extend && now < rule.opens_at {
            return self.undecided();
        }
        let has_sample = self.collect(window);
        if now >= rule.deadline {
            self.ends_at = Some(self.end_from(now));
            return self.close();
        }
        if !has_sample {
            return self.undecided();
        }
        let Some(ends_at) = self.ends_at else {
            self.ends_at = Some(self.end_from(now));
            self.empty();
            return self.undecided();
        };
        // A clock that stepped back must not hold the window open until it has caught up.
        let latest_end = now.plus_nanos(self.max_window_ns);
        self.ends_at = Some(ends_at.min(latest_end));
        if now <= ends_at {
            return self.undecided();
        }
        self.ends_at = Some(self.end_from(now));
        if self.has_enough(now, &rule) { self.close() } else { self.undecided() }
    }

    fn state(&self) -> State {
        self.inner
            .state()
            .with("window_samples", self.window.sample_count() as f64)
            .with("window_ends_at_ns", self.ends_at.unwrap_or(Instant::ZERO).nanos() as f64)
    }

    /// Resumes the limiter within. The window that was open when the state was saved belongs to a clock that is gone,
    /// so a new one opens.
    fn resume(&mut self, state: &State) -> Result<(), CannotResume> {
        self.inner.resume(state)?;
        self.empty();
        self.ends_at = None;
        Ok(())
    }
}

/// Settings of [`Windowed`].
///
/// ```
/// use goodput_algorithms::Algorithm;
///
/// let algorithm: Algorithm = toml::from_str(
///     r#"
///     algorithm = "windowed"
///
///     [windowing]
///     min_window = "100ms"
///     max_window = "1s"
///     summary = { percentile = { fraction = 0.9, capacity = 1000 } }
///
///     [inner]
///     algorithm = "vegas"
///     max = 500
///     "#,
/// )
/// .unwrap();
/// assert!(algorithm.build().is_ok());
/// ```
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct WindowedSettings {
    /// How samples become windows.
    pub windowing: Windowing,
    /// The algorithm within. Default [`Gradient2`](crate::Gradient2).
    pub inner: Box<Algorithm>,
}

impl Default for WindowedSettings {
    fn default() -> Self {
        Self {
            windowing: Windowing::default(),
            inner: Box::new(Algorithm::Gradient2(Gradient2Settings::default())),
        }
    }
}

/// How [`Windowed`] makes windows of samples.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Windowing {
    /// The shortest window. Default 1 s.
    #[serde(with = "humantime_serde")]
    pub min_window: Duration,
    /// The longest window, if it gets its samples. Default 1 s.
    #[serde(with = "humantime_serde")]
    pub max_window: Duration,
    /// Samples that a window must have, at least 1. Default 10.
    pub min_samples: u64,
    /// Samples faster than this are passed over: nobody did any work for them. Default 100 µs.
    #[serde(with = "humantime_serde")]
    pub ignore_below: Duration,
    /// The one latency that stands for a window. Default `"mean"`.
    pub summary: Summary,
}

impl Windowing {
    fn check(&self) -> Result<(), InvalidSettings> {
        if self.max_window < self.min_window {
            let (min, max) = (self.min_window, self.max_window);
            return Err(InvalidSettings::new(
                "max_window",
                format!("must be at least `min_window` ({min:?}), not {max:?}"),
            ));
        }
        if self.min_samples == 0 {
            return Err(InvalidSettings::new("min_samples", "must be at least 1, not 0"));
        }
        let Summary::Percentile { fraction, capacity } = self.summary else { return Ok(()) };
        if !(fraction > 0.0 && fraction < 1.0) {
            return Err(InvalidSettings::new(
                "summary.percentile.fraction",
                format!("must be above 0 and below 1, not {fraction}"),
            ));
        }
        if !(1..=Summary::MAX_CAPACITY).contains(&capacity) {
            return Err(InvalidSettings::new(
                "summary.percentile.capacity",
                format!("must lie within 1 and {}, not {capacity}", Summary::MAX_CAPACITY),
            ));
        }
        Ok(())
    }
}

impl Default for Windowing {
    fn default() -> Self {
        Self {
            min_window: Duration::from_secs(1),
            max_window: Duration::from_secs(1),
            min_samples: 10,
            ignore_below: Duration::from_micros(100),
            summary: Summary::Mean,
        }
    }
}

/// The one latency that stands for a window.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Summary {
    /// The mean, in whole nanoseconds.
    Mean,
    /// A percentile of the window's first samples.
    Percentile {
        /// Which, as a fraction above 0 and below 1: 0.9 for the 90th.
        fraction: f64,
        /// How many samples of a window are kept, from 1 to [`Summary::MAX_CAPACITY`].
        capacity: usize,
    },
}

impl Summary {
    /// The most samples that a percentile can be taken of: 8 MB of them.
    pub const MAX_CAPACITY: usize = 1_000_000;

    const fn capacity(self) -> usize {
        match self {
            Self::Mean => 0,
            Self::Percentile { capacity, .. } => capacity,
        }
    }
}

fn whole_mean_ns(latencies: Latencies) -> u64 {
    match latencies.count {
        0 | 1 => latencies.sum_ns,
        count => latencies.sum_ns / count,
    }
}
