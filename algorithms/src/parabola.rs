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
/// X ≈ a₀ + a₁ n + a₂ n² by least squares over all windows so far, each weighing `memory` times the next one
/// a₂ < 0:  centre ← −a₁ / (2 a₂);   else, or without a spread of loads: centre a step on, the way the slope goes
/// the centre moves by max_step × limit at most;   limit ← centre ± excitation, by turns
/// ```
///
/// Source: Heiss and Wagner, "Adaptive Load Control in Transaction Processing Systems" (VLDB 1991), the second of
/// its two methods: recursive least squares with an exponentially fading memory, here by moments around the mean
/// load, which lose no precision at large loads. A parabola that opens upwards has no maximum; the paper discusses
/// what to do then, and that the load must vary for anything to be learnt. The numbers are ours.
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
    moments: Moments,
}

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
        Ok(Self { settings, centre, crest: true, moments: Moments::default() })
    }
}

/// Weighted sums over points (load, throughput) that fade.
#[derive(Clone, Copy, Debug, Default)]
struct Moments {
    points: u64,
    /// Of the weights.
    weight: f64,
    mean_load: f64,
    /// Of the second, third and fourth power of what the load is above its mean.
    powers: [f64; 3],
    /// Of throughput, times the power 0, 1 and 2 of what the load is above its mean.
    throughput: [f64; 3],
}

impl Moments {
    /// Adds a point of weight 1; those before weigh `memory` times what they did.
    ///
    /// The sums are moved to the new mean by the binomial theorem, as in Pébay, "Formulas for Robust, One-Pass Parallel
    /// Computation of Covariances and Arbitrary-Order Statistical Moments" (2008).
    fn add(&mut self, load: f64, throughput: f64, memory: f64) {
        self.points = self.points.saturating_add(1);
        let old = self.weight * memory;
        let [m2, m3, m4] = self.powers.map(|power| power * memory);
        let [y0, y1, y2] = self.throughput.map(|sum| sum * memory);
        self.weight = old + 1.0;
        let moved = (load - self.mean_load) / self.weight;
        self.mean_load += moved;
        let own = load - self.mean_load;
        let (moved2, own2) = (moved * moved, own * own);
        self.powers = [
            m2 + old * moved2 + own2,
            m3 - 3.0 * moved * m2 - old * moved2 * moved + own2 * own,
            m4 - 4.0 * moved * m3 + 6.0 * moved2 * m2 + old * moved2 * moved2 + own2 * own2,
        ];
        self.throughput = [
            y0 + throughput,
            y1 - moved * y0 + own * throughput,
            y2 - 2.0 * moved * y1 + moved2 * y0 + own2 * throughput,
        ];
    }

    /// Fits around the mean load and in units of its spread, so that nothing cancels.
    fn fit(&self) -> Shape {
        let per_weight = 1.0 / self.weight;
        let spread = (self.powers[0] * per_weight).sqrt();
        if self.points < 3 || spread <= self.mean_load * 1e-6 {
            return Shape::Unknown;
        }
        // Moments of z = (load − mean) / spread, for which Σw z = 0 and Σw z² = Σw.
        let per_spread = 1.0 / spread;
        let per_spread2 = per_spread * per_spread;
        let z3 = self.powers[1] * per_weight * per_spread2 * per_spread;
        let z4 = self.powers[2] * per_weight * per_spread2 * per_spread2;
        let y0 = self.throughput[0] * per_weight;
        let y1 = self.throughput[1] * per_weight * per_spread;
        let y2 = self.throughput[2] * per_weight * per_spread2;
        // Normal equations of y = a + b z + c z²:  a + c = y0;  b + c z3 = y1;  a + b z3 + c z4 = y2.
        let determinant = z4 - z3 * z3 - 1.0;
        if determinant <= 1e-9 {
            // Two loads only, where a line says it all.
            return Shape::Slope(y1 > 0.0);
        }
        let c = (y2 - y0 - y1 * z3) / determinant;
        let b = y1 - c * z3;
        if c < -1e-9 * y0 {
            Shape::Vertex(self.mean_load - spread * b / (2.0 * c))
        } else {
            Shape::Slope(b > 0.0)
        }
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
        self.moments.add(load, throughput, self.settings.memory);
        let shape = self.moments.fit();
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
        self.moments = Moments::default();
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
        let mut moments = Moments::default();
        for (load, throughput) in points {
            moments.add(*load, *throughput, 0.9);
        }
        moments.fit()
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
    fn moments_that_fade_are_the_weighted_sums_of_all_points() {
        let points: Vec<(f64, f64)> =
            (0..60).map(|i| (1e6 + f64::from(i * i % 37), f64::from(i % 11) + 1.0)).collect();
        let mut moments = Moments::default();
        for (load, throughput) in &points {
            moments.add(*load, *throughput, 0.95);
        }
        let weighed = || {
            let ages = (0..points.len() as i32).rev();
            points.iter().zip(ages).map(|((load, throughput), age)| (load, throughput, 0.95_f64.powi(age)))
        };
        let sum = |part: &dyn Fn(f64, f64) -> f64| {
            weighed().map(|(load, throughput, weight)| weight * part(*load, *throughput)).sum::<f64>()
        };
        let weight = sum(&|_, _| 1.0);
        let mean = sum(&|load, _| load - 1e6) / weight + 1e6;
        let near = |found: f64, expected: f64| {
            assert!((found / expected - 1.0).abs() < 1e-6, "{found} {expected}");
        };
        near(moments.weight, weight);
        near(moments.mean_load, mean);
        for (power, found) in [2, 3, 4].into_iter().zip(moments.powers) {
            near(found, sum(&|load, _| (load - mean).powi(power)));
        }
        for (power, found) in [0, 1, 2].into_iter().zip(moments.throughput) {
            near(found, sum(&|load, throughput| throughput * (load - mean).powi(power)));
        }
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
