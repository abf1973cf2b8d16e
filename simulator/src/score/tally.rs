//! Scores of many runs, put together.

use serde::Serialize;

use super::Score;

/// How one algorithm did in one scenario: the median of each figure over the seeds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScenarioScore {
    /// The scenario's name.
    pub name: String,
    /// The medians.
    #[serde(flatten)]
    pub figures: Score,
}

impl ScenarioScore {
    /// The medians over runs of one scenario with different seeds. `None` without any.
    #[must_use]
    pub fn of(name: impl Into<String>, runs: &[Score]) -> Option<Self> {
        if runs.is_empty() {
            return None;
        }
        let middle = |figure: fn(&Score) -> f64| median(runs.iter().map(figure).collect());
        let figures = Score {
            score: middle(|run| run.score),
            goodput_ratio: middle(|run| run.goodput_ratio),
            p50_ratio: middle(|run| run.p50_ratio),
            p99_ratio: middle(|run| run.p99_ratio),
            jain: middle(|run| run.jain),
            recovery_s: middle(|run| run.recovery_s),
            false_refusals: middle(|run| run.false_refusals),
            mean_limit: middle(|run| run.mean_limit),
        };
        Some(Self { name: name.into(), figures })
    }
}

/// How one algorithm did over all scenarios.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Standing {
    /// The algorithm, as it was asked for.
    pub name: String,
    /// Geometric mean of the scenarios' scores: one collapse costs more than ten draws bring.
    pub total: f64,
    /// Arithmetic mean of the scores.
    pub mean: f64,
    /// The lowest score.
    pub worst: f64,
    /// Each scenario.
    pub scenarios: Vec<ScenarioScore>,
}

impl Standing {
    /// Puts scenarios together. Zero without any.
    #[must_use]
    pub fn new(name: impl Into<String>, scenarios: Vec<ScenarioScore>) -> Self {
        let scores = || scenarios.iter().map(|scenario| scenario.figures.score);
        let count = scenarios.len().max(1) as f64;
        let worst = scores().reduce(f64::min).unwrap_or(0.0);
        Self {
            name: name.into(),
            total: geometric_mean(scores()),
            mean: scores().sum::<f64>() / count,
            worst,
            scenarios,
        }
    }
}

/// The geometric mean of numbers above zero; zero without any.
#[must_use]
pub fn geometric_mean(numbers: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = numbers.fold((0.0, 0), |(sum, count), number| (sum + libm::log(number), count + 1));
    if count == 0 { 0.0 } else { libm::exp(sum / f64::from(count)) }
}

/// The middle one, or the mean of the middle two; zero without any.
#[must_use]
pub fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    match numbers.len() {
        0 => 0.0,
        count if count % 2 == 1 => numbers[count / 2],
        count => f64::midpoint(numbers[count / 2 - 1], numbers[count / 2]),
    }
}
