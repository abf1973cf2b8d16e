use serde::{Deserialize, Serialize};

use crate::{
    CannotResume, Decision, InvalidSettings, Limiter, Reason, State, Window, WindowRule,
    parts::{bounded, check},
};

/// Heiss and Wagner's incremental steps: on in the direction in which throughput grew, back where it fell.
///
/// ```text
/// a window holds window_samples answers or a limit's worth, whichever is more;  X = throughput in it
/// s = gain × limit × (X − X₁) / X₁, not smaller than min_step nor larger than max_step × limit
/// limit ← limit + s in the direction of the last step if X > X₁, against it if not
/// the load stays below (1 − slack) × limit:  no step, and X is not compared
/// ```
///
/// Source: Heiss and Wagner, "Adaptive Load Control in Transaction Processing Systems" (VLDB 1991), the first of
/// its two methods: the bound moves by the gain times the change in performance, in the sense of its own last
/// move, as long as the load is near the bound. Their gain has the unit of a performance, so it must be found for
/// every system; here the change is a share of the throughput and the step a share of the limit, with numbers of
/// ours.
///
/// **Choose it**, or [`Parabola`](crate::Parabola), where throughput has a maximum: locks, caches, garbage
/// collection. It was made against thrashing.
///
/// **Known to go wrong:**
/// - Where throughput stays level, as behind any plain queue, only noise tells up from down, and the limit drifts.
/// - A change in traffic or service between two windows is taken for the effect of the last step.
#[derive(Clone, Debug)]
pub struct IncrementalSteps {
    settings: IncrementalStepsSettings,
    limit: f64,
    upwards: bool,
    last_throughput: Option<f64>,
}

impl IncrementalSteps {
    /// # Errors
    ///
    /// [`InvalidSettings`] names the field that contradicts another or cannot hold.
    pub fn new(settings: IncrementalStepsSettings) -> Result<Self, InvalidSettings> {
        InvalidSettings::check_bounds(settings.min, settings.initial, settings.max)?;
        check(settings.window_samples >= 1, "window_samples", || "must be at least 1, not 0".into())?;
        for (field, value) in
            [("gain", settings.gain), ("min_step", settings.min_step), ("max_step", settings.max_step)]
        {
            check(value.is_finite() && value > 0.0, field, || {
                format!("must be finite and above 0, not {value}")
            })?;
        }
        let slack = settings.slack;
        check((0.0..1.0).contains(&slack), "slack", || {
            format!("must be at least 0 and below 1, not {slack}")
        })?;
        Ok(Self { limit: settings.initial as f64, upwards: true, last_throughput: None, settings })
    }
}

impl Limiter for IncrementalSteps {
    fn limit(&self) -> usize {
        bounded(self.limit, self.settings.min, self.settings.max)
    }

    fn next_window(&self) -> WindowRule {
        WindowRule::samples(self.settings.window_samples.max(self.limit() as u64))
    }

    fn update(&mut self, window: &Window) -> Decision {
        let throughput = window.throughput();
        let load = window.mean_in_flight();
        if throughput <= 0.0 {
            return Decision::new(self.limit(), Reason::Undecided);
        }
        if load < (1.0 - self.settings.slack) * self.limit() as f64 {
            self.last_throughput = None;
            return Decision::new(self.limit(), Reason::AppLimited).with("load", load);
        }
        let change = self.last_throughput.map_or(0.0, |last| (throughput - last) / last);
        if self.last_throughput.is_some() && change <= 0.0 {
            self.upwards = !self.upwards;
        }
        self.last_throughput = Some(throughput);
        let most = (self.settings.max_step * self.limit).max(self.settings.min_step);
        let size = (self.settings.gain * self.limit * change.abs()).clamp(self.settings.min_step, most);
        let step = if self.upwards { size } else { -size };
        let (min, max) = (self.settings.min as f64, self.settings.max as f64);
        self.limit = (self.limit + step).clamp(min, max);
        // There is only one way to go from a bound.
        self.upwards = if self.limit <= min { true } else { self.upwards && self.limit < max };
        let reason = if step > 0.0 { Reason::Growing } else { Reason::QueueBuilding };
        Decision::new(self.limit(), reason)
            .with("throughput", throughput)
            .with("change", change)
            .with("step", step)
            .with("load", load)
    }

    fn state(&self) -> State {
        State::new()
            .with("limit", self.limit)
            .with("upwards", f64::from(u8::from(self.upwards)))
            .with("throughput", self.last_throughput.unwrap_or(0.0))
    }

    fn resume(&mut self, state: &State) -> Result<(), CannotResume> {
        self.limit = state.number_within("limit", self.settings.min as f64, self.settings.max as f64)?;
        self.last_throughput = None;
        Ok(())
    }
}

/// Settings of [`IncrementalSteps`]. The numbers are ours: those of the paper have the unit of its simulation.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct IncrementalStepsSettings {
    /// The limit to start from. Default 20.
    pub initial: usize,
    /// The least limit. Default 1.
    pub min: usize,
    /// The greatest limit. Default 1000.
    pub max: usize,
    /// Answers that make a window, if the limit is not larger. Default 200.
    pub window_samples: u64,
    /// Share of the limit to move for a change of throughput by its whole self, above 0. Default 1.
    pub gain: f64,
    /// The least step, in requests, above 0. Default 1.
    pub min_step: f64,
    /// The greatest step, as a share of the limit, above 0. Default 0.2.
    pub max_step: f64,
    /// By which share the load may stay below the limit, at least 0 and below 1. Default 0.2.
    pub slack: f64,
}

impl Default for IncrementalStepsSettings {
    fn default() -> Self {
        Self {
            initial: 20,
            min: 1,
            max: 1_000,
            window_samples: 200,
            gain: 1.0,
            min_step: 1.0,
            max_step: 0.2,
            slack: 0.2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Instant, Latencies,
        parts::trials::{self, World},
    };

    /// A second with that throughput at the limit.
    fn second(limiter: &IncrementalSteps, answers: u64) -> Window {
        Window {
            opened: Instant::ZERO,
            closed: Instant::from_nanos(1_000_000_000),
            successes: Latencies { count: answers, sum_ns: answers, ..Latencies::NONE },
            in_flight_area_ns: limiter.limit() as u128 * 1_000_000_000,
            ..Window::EMPTY
        }
    }

    #[test]
    fn steps_are_in_proportion_to_the_change_and_turn_where_it_is_for_the_worse() {
        let mut limiter =
            IncrementalSteps::new(IncrementalStepsSettings { initial: 100, ..Default::default() }).unwrap();
        let mut limits = Vec::new();
        for answers in [1_000, 1_050, 1_000, 900, 1_800] {
            limits.push(limiter.update(&second(&limiter, answers)).limit);
        }
        // One to begin with; 5 % of 101 up; 50 / 1050 of 106.05 (5.05) down; a tenth of 101 (10.1) up again;
        // at most a fifth of 111.1 on.
        assert_eq!(limits, [101, 106, 101, 111, 133]);
    }

    #[test]
    fn it_does_not_move_where_the_load_stays_below_the_limit() {
        let mut limiter = IncrementalSteps::new(IncrementalStepsSettings::default()).unwrap();
        let mut window = second(&limiter, 1_000);
        window.in_flight_area_ns = 15_000_000_000;
        assert_eq!(limiter.update(&window).reason, Reason::AppLimited);
        assert_eq!(limiter.limit(), 20);
    }

    #[test]
    fn it_circles_the_peak_of_a_thrashing_service() {
        let mut limiter = IncrementalSteps::new(IncrementalStepsSettings::default()).unwrap();
        World::thrashing(10_000_000, 60.0).serve(&mut limiter, 200_000);
        assert!((55..=65).contains(&limiter.limit()), "{}", limiter.limit());
    }

    #[test]
    fn no_windows_take_it_out_of_its_bounds() {
        let build = || Box::new(IncrementalSteps::new(IncrementalStepsSettings::default()).unwrap()) as _;
        trials::survives_anything(&build, 1, 1_000);
    }

    #[test]
    fn it_leaves_its_floor_and_resumes() {
        let settings = IncrementalStepsSettings { initial: 1, ..Default::default() };
        let mut limiter = IncrementalSteps::new(settings).unwrap();
        trials::leaves_its_floor(&mut limiter, 1, 5_000);
        trials::resumes(&limiter, &mut IncrementalSteps::new(IncrementalStepsSettings::default()).unwrap());
    }

    #[test]
    fn contradictions_are_named() {
        let field = |settings| IncrementalSteps::new(settings).unwrap_err().field;
        assert_eq!(field(IncrementalStepsSettings { gain: 0.0, ..Default::default() }), "gain");
        assert_eq!(field(IncrementalStepsSettings { slack: 1.0, ..Default::default() }), "slack");
    }
}
