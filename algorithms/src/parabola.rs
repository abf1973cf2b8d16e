use serde::{Deserialize, Serialize};

use crate::{
    CannotResume, Decision, InvalidSettings, Limiter, Reason, State, Window, WindowRule,
    parts::{bounded, check},
};

/// Heiss and Wagner's parabola approximation: a parabola through what throughput was at which load, and its
/// vertex.
///
/// ```text
/// a window holds window_samples answers or a limit's worth, whichever is more;  X = throughput, n = load in it
/// X ≈ a₀ + a₁ n + a₂ n² by least squares over the last 32 windows, each weighing `memory` times the next one
/// a₂ < 0:  centre ← −a₁ / (2 a₂);   else, or without a spread of loads: centre a step on, the way the slope goes
/// the centre moves by max_step × limit at most;   limit ← centre ± excitation, by turns
/// ```
///
/// Source: Heiss and Wagner, "Adaptive Load Control in Transaction Processing Systems" (VLDB 1991), the second of
/// its two methods. Theirs is recursive least squares with an exponentially fading memory; this fits the same sum
/// from the last windows, which does not lose its precision at large loads. A parabola that opens upwards has no
/// maximum; the paper discusses what to do then, and that the load must vary for anything to be learnt. The
/// numbers are ours.
///
/// **Choose it** where [`IncrementalSteps`](crate::IncrementalSteps) would do and windows are noisy: it looks at
/// many of them.
///
/// **Known to go wrong:**
/// - A plateau is no parabola: behind a plain queue the vertex lies somewhere beyond the knee.
/// - After a change of the service it fits one curve through two of them until the old one is forgotten.
/// - The excitation is paid for all the time.
#[derive(Clone, Debug)]
pub struct Parabola {
    settings: ParabolaSettings,
    centre: f64,
    crest: bool,
    /// Load and throughput of the last windows, a ring.
    points: [(f64, f64); POINTS],
    next: usize,
    len: usize,
}

const POINTS: usize = 32;

/// What the least squares say.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Shape {
    Vertex(f64),
    /// No maximum: whether throughput grows with the load.
    Slope(bool),
    /// All loads are the same.
    Unknown,
}

impl Parabola {
    /// # Errors
    ///
    /// [`InvalidSettings`] names the field that contradicts another or cannot hold.
    pub fn new(settings: ParabolaSettings) -> Result<Self, InvalidSettings> {
        InvalidSettings::check_bounds(settings.min, settings.initial, settings.max)?;
        check(settings.window_samples >= 1, "window_samples", || "must be at least 1, not 0".into())?;
        let memory = settings.memory;
        check(memory > 0.0 && memory <= 1.0, "memory", || {
            format!("must be above 0 and at most 1, not {memory}")
        })?;
        for (field, share) in [("max_step", settings.max_step), ("excitation", settings.excitation)] {
            check(share > 0.0 && share < 1.0, field, || format!("must lie between 0 and 1, not {share}"))?;
        }
        let centre = settings.initial as f64;
        Ok(Self { settings, centre, crest: true, points: [(0.0, 0.0); POINTS], next: 0, len: 0 })
    }

    fn remember(&mut self, load: f64, throughput: f64) {
        self.points[self.next] = (load, throughput);
        self.next = (self.next + 1) % POINTS;
        self.len = (self.len + 1).min(POINTS);
    }

    /// Load, throughput and weight of the last windows, newest first.
    fn weighed(&self) -> impl Iterator<Item = (f64, f64, f64)> + '_ {
        let mut weight = 1.0;
        (1..=self.len).map(move |age| {
            let (load, throughput) = self.points[(self.next + POINTS - age) % POINTS];
            let own = weight;
            weight *= self.settings.memory;
            (load, throughput, own)
        })
    }

    /// Fits around the mean load and in units of its spread, so that nothing cancels.
    fn fit(&self) -> Shape {
        let (sum, load_sum) = self.weighed().fold((0.0, 0.0), |(s, l), (load, _, w)| (s + w, l + w * load));
        let mean = load_sum / sum;
        let spread =
            (self.weighed().map(|(load, _, w)| w * (load - mean) * (load - mean)).sum::<f64>() / sum).sqrt();
        if self.len < 3 || spread <= mean * 1e-6 {
            return Shape::Unknown;
        }
        // Moments of z = (load − mean) / spread, for which Σw z = 0 and Σw z² = Σw.
        let (mut z3, mut z4, mut y0, mut y1, mut y2) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for (load, throughput, weight) in self.weighed() {
            let z = (load - mean) / spread;
            let w = weight / sum;
            z3 += w * z * z * z;
            z4 += w * z * z * z * z;
            y0 += w * throughput;
            y1 += w * throughput * z;
            y2 += w * throughput * z * z;
        }
        // Normal equations of y = a + b z + c z²:  a + c = y0;  b + c z3 = y1;  a + b z3 + c z4 = y2.
        let determinant = z4 - z3 * z3 - 1.0;
        if determinant <= 1e-9 {
            // Two loads only, where a line says it all.
            return Shape::Slope(y1 > 0.0);
        }
        let c = (y2 - y0 - y1 * z3) / determinant;
        let b = y1 - c * z3;
        if c < -1e-9 * y0 { Shape::Vertex(mean - spread * b / (2.0 * c)) } else { Shape::Slope(b > 0.0) }
    }
}

impl Limiter for Parabola {
    fn limit(&self) -> usize {
        let swing = (self.settings.excitation * self.centre).max(1.0);
        let wanted = if self.crest { self.centre + swing } else { self.centre - swing };
        bounded(wanted, self.settings.min, self.settings.max)
    }

    fn next_window(&self) -> WindowRule {
        WindowRule::samples(self.settings.window_samples.max(self.limit() as u64))
    }

    fn update(&mut self, window: &Window) -> Decision {
        let (load, throughput) = (window.mean_in_flight(), window.throughput());
        if throughput <= 0.0 || load <= 0.0 {
            return Decision::new(self.limit(), Reason::Undecided);
        }
        self.remember(load, throughput);
        let shape = self.fit();
        let felt = window.limit_hits > 0 || window.refused > 0;
        let most = (self.settings.max_step * self.centre).max(1.0);
        let step = match shape {
            Shape::Vertex(vertex) => (vertex - self.centre).clamp(-most, most),
            Shape::Slope(true) => most,
            Shape::Slope(false) => -most,
            Shape::Unknown => 0.0,
        };
        if felt {
            self.centre = (self.centre + step).clamp(self.settings.min as f64, self.settings.max as f64);
            self.crest = !self.crest;
        }
        let reason = match shape {
            _ if !felt => Reason::AppLimited,
            Shape::Unknown => Reason::Starting,
            _ if step > 0.0 => Reason::Growing,
            _ if step < 0.0 => Reason::QueueBuilding,
            _ => Reason::Holding,
        };
        let vertex = if let Shape::Vertex(vertex) = shape { vertex } else { 0.0 };
        Decision::new(self.limit(), reason)
            .with("throughput", throughput)
            .with("load", load)
            .with("vertex", vertex)
            .with("centre", self.centre)
    }

    fn state(&self) -> State {
        State::new()
            .with("limit", self.limit() as f64)
            .with("centre", self.centre)
            .with("crest", f64::from(u8::from(self.crest)))
    }

    fn resume(&mut self, state: &State) -> Result<(), CannotResume> {
        let (min, max) = (self.settings.min as f64, self.settings.max as f64);
        state.number_within("limit", min, max)?;
        let centre = state.number_within("centre", min, max)?;
        self.crest = state.number_within("crest", 0.0, 1.0)? > 0.5;
        self.centre = centre;
        self.len = 0;
        Ok(())
    }
}

/// Settings of [`Parabola`]. The numbers are ours.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct ParabolaSettings {
    /// The limit to start from. Default 20.
    pub initial: usize,
    /// The least limit. Default 1.
    pub min: usize,
    /// The greatest limit. Default 1000.
    pub max: usize,
    /// Answers that make a window, if the limit is not larger. Default 200.
    pub window_samples: u64,
    /// What a window weighs against the next one, above 0 and at most 1. Default 0.9.
    pub memory: f64,
    /// The greatest move in a window, as a share of the limit, between 0 and 1. Default 0.2.
    pub max_step: f64,
    /// How far the limit swings around the vertex, as a share of it, between 0 and 1, and at least one request.
    /// Default 0.05.
    pub excitation: f64,
}

impl Default for ParabolaSettings {
    fn default() -> Self {
        Self {
            initial: 20,
            min: 1,
            max: 1_000,
            window_samples: 200,
            memory: 0.9,
            max_step: 0.2,
            excitation: 0.05,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::trials::{self, World};

    fn fitted(points: &[(f64, f64)]) -> Shape {
        let mut parabola = Parabola::new(ParabolaSettings::default()).unwrap();
        for (load, throughput) in points {
            parabola.remember(*load, *throughput);
        }
        parabola.fit()
    }

    #[test]
    fn points_on_a_parabola_give_its_vertex() {
        let on = |n: f64| (n, 1_000.0 - (n - 42.0) * (n - 42.0));
        let Shape::Vertex(vertex) = fitted(&[20.0, 25.0, 31.0, 30.0, 60.0].map(on)) else {
            panic!("a maximum")
        };
        assert!((vertex - 42.0).abs() < 1e-6, "{vertex}");
    }

    #[test]
    fn without_a_maximum_the_slope_is_followed() {
        assert_eq!(fitted(&[(1.0, 1.0), (2.0, 4.0), (3.0, 9.0)]), Shape::Slope(true));
        assert_eq!(fitted(&[(1.0, 9.0), (2.0, 4.0), (3.0, 1.0)]), Shape::Slope(false));
        assert_eq!(fitted(&[(1.0, 1.0), (2.0, 2.0), (1.0, 1.0)]), Shape::Slope(true));
        assert_eq!(fitted(&[(5.0, 1.0), (5.0, 2.0), (5.0, 3.0)]), Shape::Unknown);
    }

    #[test]
    fn it_finds_the_peak_of_a_thrashing_service() {
        let mut parabola = Parabola::new(ParabolaSettings::default()).unwrap();
        World::thrashing(10_000_000, 60.0).serve(&mut parabola, 200_000);
        assert!((55.0..=65.0).contains(&parabola.centre), "{}", parabola.centre);
    }

    #[test]
    fn it_does_not_move_where_the_limit_is_not_felt() {
        let mut parabola = Parabola::new(ParabolaSettings::default()).unwrap();
        let limit = parabola.limit();
        for i in 1..10 {
            let window = Window { limit_hits: 0, ..trials::success(i, 10, i) };
            assert_eq!(parabola.update(&window).reason, Reason::AppLimited);
        }
        assert_eq!(parabola.limit(), limit);
    }

    #[test]
    fn no_windows_take_it_out_of_its_bounds() {
        let build = || Box::new(Parabola::new(ParabolaSettings::default()).unwrap()) as _;
        trials::survives_anything(&build, 1, 1_000);
    }

    #[test]
    fn it_leaves_its_floor_and_resumes() {
        let mut parabola = Parabola::new(ParabolaSettings { initial: 1, ..Default::default() }).unwrap();
        parabola.crest = false;
        trials::leaves_its_floor(&mut parabola, 1, 10_000);
        let mut fresh = Parabola::new(ParabolaSettings::default()).unwrap();
        fresh.resume(&parabola.state()).unwrap();
        assert_eq!(fresh.centre, parabola.centre);
        assert!(fresh.resume(&State::new()).is_err());
    }

    #[test]
    fn contradictions_are_named() {
        let field = |settings| Parabola::new(settings).unwrap_err().field;
        assert_eq!(field(ParabolaSettings { memory: 0.0, ..Default::default() }), "memory");
        assert_eq!(field(ParabolaSettings { excitation: 1.0, ..Default::default() }), "excitation");
    }
}
