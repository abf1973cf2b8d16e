use serde::{Deserialize, Serialize};

use crate::{
    CannotResume, Decision, InvalidSettings, Limiter, Reason, State, Window, WindowRule,
    parts::{bounded, check},
};

/// A PID controller that holds the queueing delay at a share of the latency without a queue.
///
/// ```text
/// a window holds window_samples answers or a limit's worth, whichever is more;  W = mean latency in it
/// e = clamp(1 − (W / W₀) / (1 + target), −1, 1);   −1 where half of the answers or more were overloads
/// Δ = kp (e − e₁) + ki e + kd (e − 2 e₁ + e₂);    limit ← limit × exp(clamp(Δ, −max_step, max_step))
/// W₀ ← W if lower;   every probe_windows windows, at half of the limit: one to drain, and one that sets W₀ ← W
/// ```
///
/// The form is the textbook's (the velocity form, which needs no guard against wind-up: Åström and Hägglund, *PID
/// Controllers*, 1995). The error has no unit and the move is a ratio, so gains need not be tuned to a service.
/// That a PID finds the rate of refusals quickly and without oscillating is Uber's experience ("PID Controller for
/// Cinnamon", November 2023), with another error: the excess of arrivals over departures. Controlling the delay
/// itself is the idea of many papers, and of CoDel's target. The gains are ours: with a queue, the logarithm of
/// latency follows that of the limit one for one, so an integral gain of 0.3 takes away 0.3 of an error in each
/// window.
///
/// **Choose it** where a set-point for delay is what is wanted: so much of a queue, and no more.
///
/// **Known to go wrong:**
/// - A mean over a limit's worth of answers is late by a round trip and noisy where latency is heavy-tailed.
/// - The set-point is a queue, also where none is needed to keep the service busy.
/// - Half of the limit may still be a queue, and then what the probe measures is too high until the limit has come
///   down.
#[derive(Clone, Debug)]
pub struct Pid {
    settings: PidSettings,
    limit: f64,
    baseline_ns: f64,
    errors: [f64; 2],
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// The first window measures at the first limit.
    Starting,
    Controlling {
        windows: u64,
    },
    Draining,
    Measuring,
}

impl Pid {
    /// # Errors
    ///
    /// [`InvalidSettings`] names the field that contradicts another or cannot hold.
    pub fn new(settings: PidSettings) -> Result<Self, InvalidSettings> {
        InvalidSettings::check_bounds(settings.min, settings.initial, settings.max)?;
        for (field, gain) in [
            ("target", settings.target),
            ("proportional", settings.proportional),
            ("integral", settings.integral),
            ("derivative", settings.derivative),
        ] {
            check(gain.is_finite() && gain >= 0.0, field, || {
                format!("must be finite and at least 0, not {gain}")
            })?;
        }
        check(settings.target > 0.0, "target", || "must be above 0".into())?;
        check(settings.integral > 0.0, "integral", || {
            "must be above 0, or no error is ever taken away".into()
        })?;
        check(settings.max_step.is_finite() && settings.max_step > 0.0, "max_step", || {
            format!("must be finite and above 0, not {}", settings.max_step)
        })?;
        check(settings.window_samples >= 1, "window_samples", || "must be at least 1, not 0".into())?;
        check(settings.probe_windows >= 1, "probe_windows", || "must be at least 1, not 0".into())?;
        Ok(Self {
            limit: settings.initial as f64,
            baseline_ns: 0.0,
            errors: [0.0; 2],
            phase: Phase::Starting,
            settings,
        })
    }

    const fn is_probing(&self) -> bool {
        matches!(self.phase, Phase::Draining | Phase::Measuring)
    }

    /// Tells why, by which error, and what it makes of the limit's logarithm.
    fn control(&mut self, window: &Window, latency_ns: f64) -> (Reason, f64, f64) {
        self.baseline_ns = self.baseline_ns.min(latency_ns);
        let overloaded = window.overloads.count > 0 && window.overloads.count >= window.successes.count;
        let ratio = latency_ns / self.baseline_ns.max(1.0);
        let error =
            if overloaded { -1.0 } else { (1.0 - ratio / (1.0 + self.settings.target)).clamp(-1.0, 1.0) };
        let [e1, e2] = self.errors;
        self.errors = [error, e1];
        let PidSettings { proportional: kp, integral: ki, derivative: kd, max_step, .. } = self.settings;
        let delta = kp * (error - e1) + ki * error + kd * (error - 2.0 * e1 + e2);
        let delta = delta.clamp(-max_step, max_step);
        let felt = window.limit_hits > 0 || window.refused > 0;
        let reason = if overloaded {
            Reason::Overload
        } else if delta > 0.0 && !felt {
            Reason::AppLimited
        } else if delta > 0.0 {
            Reason::Growing
        } else {
            Reason::QueueBuilding
        };
        if reason != Reason::AppLimited {
            let wanted = self.limit * libm::exp(delta);
            self.limit = wanted.clamp(self.settings.min as f64, self.settings.max as f64);
        }
        (reason, error, delta)
    }
}

impl Limiter for Pid {
    fn limit(&self) -> usize {
        let dip = if self.is_probing() { 0.5 } else { 1.0 };
        bounded(self.limit * dip, self.settings.min, self.settings.max)
    }

    fn next_window(&self) -> WindowRule {
        WindowRule::samples(self.settings.window_samples.max(self.limit() as u64))
    }

    fn update(&mut self, window: &Window) -> Decision {
        let answers = window.samples();
        let latency_ns = answers.mean_ns();
        if answers.count == 0 {
            return Decision::new(self.limit(), Reason::Undecided);
        }
        let reason = match self.phase {
            Phase::Controlling { windows } => {
                let (reason, error, delta) = self.control(window, latency_ns);
                let probe = windows + 1 >= self.settings.probe_windows;
                self.phase =
                    if probe { Phase::Draining } else { Phase::Controlling { windows: windows + 1 } };
                return Decision::new(self.limit(), reason)
                    .with("latency_ns", latency_ns)
                    .with("baseline_ns", self.baseline_ns)
                    .with("error", error)
                    .with("delta", delta);
            }
            Phase::Draining => {
                self.phase = Phase::Measuring;
                Reason::Probing
            }
            Phase::Starting | Phase::Measuring => {
                self.baseline_ns = latency_ns;
                self.phase = Phase::Controlling { windows: 0 };
                Reason::Measured
            }
        };
        Decision::new(self.limit(), reason)
            .with("latency_ns", latency_ns)
            .with("baseline_ns", self.baseline_ns)
    }

    fn state(&self) -> State {
        State::new()
            .with("limit", self.limit)
            .with("baseline_ns", self.baseline_ns)
            .with("error", self.errors[0])
            .with("probing", f64::from(u8::from(self.is_probing())))
    }

    fn resume(&mut self, state: &State) -> Result<(), CannotResume> {
        let limit = state.number_within("limit", self.settings.min as f64, self.settings.max as f64)?;
        let baseline_ns = state.number_within("baseline_ns", 0.0, f64::MAX)?;
        let probing = state.number_within("probing", 0.0, 1.0)? > 0.5;
        self.limit = limit;
        self.baseline_ns = baseline_ns;
        self.phase = match (probing, baseline_ns > 0.0) {
            (true, _) => Phase::Draining,
            (false, true) => Phase::Controlling { windows: 0 },
            (false, false) => Phase::Starting,
        };
        Ok(())
    }
}

/// Settings of [`Pid`].
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct PidSettings {
    /// The limit to start from. Default 20.
    pub initial: usize,
    /// The least limit. Default 1.
    pub min: usize,
    /// The greatest limit. Default 1000.
    pub max: usize,
    /// The queueing delay to hold, as a share of the latency without a queue, above 0. Default 0.5.
    pub target: f64,
    /// Gain of the change of the error, at least 0. Default 0.3.
    pub proportional: f64,
    /// Gain of the error, above 0. Default 0.3.
    pub integral: f64,
    /// Gain of the change of the change, at least 0. Default 0.1.
    pub derivative: f64,
    /// The greatest move in a window, as a natural logarithm, above 0. Default 0.5: a factor of 1.65.
    pub max_step: f64,
    /// Answers that make a window, if the limit is not larger. Default 50.
    pub window_samples: u64,
    /// Windows between two measurements of the latency without a queue. Default 50.
    pub probe_windows: u64,
}

impl Default for PidSettings {
    fn default() -> Self {
        Self {
            initial: 20,
            min: 1,
            max: 1_000,
            target: 0.5,
            proportional: 0.3,
            integral: 0.3,
            derivative: 0.1,
            max_step: 0.5,
            window_samples: 50,
            probe_windows: 50,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::trials::{self, World, overload, success};

    const MS: u64 = 1_000_000;

    fn measured(settings: PidSettings) -> Pid {
        let mut pid = Pid::new(settings).unwrap();
        assert_eq!(pid.update(&success(1, 10 * MS, 20)).reason, Reason::Measured);
        pid
    }

    #[test]
    fn the_move_is_the_sum_of_its_three_terms() {
        let mut pid = measured(PidSettings::default());
        // W = 1.2 W₀: e = 1 − 1.2 / 1.5 = 0.2: 0.3 × 0.2 + 0.3 × 0.2 + 0.1 × 0.2 = 0.14
        let decision = pid.update(&success(2, 12 * MS, 20));
        assert!((decision.evidence.number("delta").unwrap() - 0.14).abs() < 1e-12);
        assert!((pid.limit - 20.0 * 0.14_f64.exp()).abs() < 1e-9);
        // e = 1 − 1.8 / 1.5 = −0.2: 0.3 × −0.4 + 0.3 × −0.2 + 0.1 × (−0.2 − 0.4) = −0.24
        let decision = pid.update(&success(3, 18 * MS, 20));
        assert!((decision.evidence.number("delta").unwrap() + 0.24).abs() < 1e-12);
        assert_eq!(decision.reason, Reason::QueueBuilding);
    }

    #[test]
    fn an_overload_counts_as_the_greatest_error_and_a_step_is_bounded() {
        let mut pid = measured(PidSettings::default());
        // 0.3 + 0.3 + 0.1 is above 0.5.
        let decision = pid.update(&overload(2, 10 * MS, 20));
        assert_eq!((decision.limit, decision.reason), (12, Reason::Overload));
    }

    #[test]
    fn it_does_not_grow_where_the_limit_is_not_felt() {
        let mut pid = measured(PidSettings::default());
        let window = Window { limit_hits: 0, ..success(2, 10 * MS, 3) };
        assert_eq!(pid.update(&window).reason, Reason::AppLimited);
        assert_eq!(pid.limit(), 20);
    }

    #[test]
    fn a_probe_drains_one_window_and_measures_the_next_at_half_the_limit() {
        let mut pid = measured(PidSettings { probe_windows: 1, ..Default::default() });
        let at_target = success(2, 15 * MS, 20);
        assert_eq!(pid.update(&at_target).limit, 10);
        assert_eq!(pid.update(&success(3, 15 * MS, 10)).reason, Reason::Probing);
        assert_eq!(pid.baseline_ns, 10e6);
        assert_eq!(pid.update(&success(4, 12 * MS, 10)).reason, Reason::Measured);
        assert_eq!((pid.baseline_ns, pid.limit()), (12e6, 20));
    }

    #[test]
    fn behind_a_pool_it_holds_half_as_much_again() {
        let mut pid = Pid::new(PidSettings::default()).unwrap();
        World::pool(10 * MS, 40.0).serve(&mut pid, 40_000);
        assert!((55.0..=65.0).contains(&pid.limit), "{}", pid.limit);
    }

    #[test]
    fn no_windows_take_it_out_of_its_bounds() {
        let settings = PidSettings { probe_windows: 3, ..Default::default() };
        trials::survives_anything(&|| Box::new(Pid::new(settings.clone()).unwrap()) as _, 1, 1_000);
    }

    #[test]
    fn it_leaves_its_floor_and_resumes() {
        let mut pid = Pid::new(PidSettings { initial: 1, ..Default::default() }).unwrap();
        trials::leaves_its_floor(&mut pid, 1, 5_000);
        trials::resumes(&pid, &mut Pid::new(PidSettings::default()).unwrap());
    }

    #[test]
    fn contradictions_are_named() {
        let field = |settings| Pid::new(settings).unwrap_err().field;
        assert_eq!(field(PidSettings { target: 0.0, ..Default::default() }), "target");
        assert_eq!(field(PidSettings { integral: 0.0, ..Default::default() }), "integral");
        assert_eq!(field(PidSettings { max_step: f64::NAN, ..Default::default() }), "max_step");
    }
}
