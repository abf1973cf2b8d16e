//! Who did best, and whether that could be chance.

use goodput_simulator::score::geometric_mean;
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

use super::{
    entrants::Kind,
    tournament::{Figures, Played, Tournament},
};

/// Whoever loses less than this to the best is as good for every purpose.
const NEGLIGIBLE: f64 = 0.02;

/// Whoever loses more than this on average is not called as good, however much chance there is in it.
const MATERIAL: f64 = 0.05;

/// A share with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Range {
    pub(crate) value: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// One who took part, and how well.
#[derive(Clone, Debug)]
pub(crate) struct Standing {
    /// Place among [`Tournament::played`].
    pub(crate) index: usize,
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// Geometric mean over the worlds, of what the best limits in hindsight could do.
    pub(crate) total: Range,
    /// What it loses against the best one, in pairs of runs that met the same chance.
    pub(crate) loss: Range,
    /// Whether that is next to nothing, or little and no more than chance.
    pub(crate) as_good: bool,
    /// Means over the seeds, by world.
    pub(crate) worlds: Vec<Figures>,
}

/// All, the best first.
#[derive(Clone, Debug)]
pub(crate) struct Ranking {
    pub(crate) standings: Vec<Standing>,
}

impl Ranking {
    pub(crate) fn new(tournament: &Tournament<'_>) -> Self {
        // Logarithms of the totals, by entrant and seed.
        let totals: Vec<Vec<f64>> = tournament
            .played
            .iter()
            .map(|played| {
                (0..tournament.seeds as usize)
                    .map(|seed| {
                        let values =
                            played.runs.iter().map(|runs| tournament.objective.value(&runs[seed].score));
                        libm::log(geometric_mean(values))
                    })
                    .collect()
            })
            .collect();
        let best = (0..totals.len()).max_by(|&a, &b| mean(&totals[a]).total_cmp(&mean(&totals[b])));
        let mut standings: Vec<Standing> = tournament
            .played
            .iter()
            .enumerate()
            .map(|(index, played)| {
                let best = best.map_or(&totals[index], |best| &totals[best]);
                let losses: Vec<f64> =
                    best.iter().zip(&totals[index]).map(|(best, own)| best - own).collect();
                let loss = interval(&losses, |loss| 1.0 - libm::exp(-loss));
                let total = interval(&totals[index], libm::exp);
                Standing {
                    index,
                    name: played.entrant.name.clone(),
                    kind: played.entrant.kind,
                    // No score exceeds 1, and so no mean of them.
                    total: Range { high: total.high.min(1.0), ..total },
                    loss,
                    as_good: loss.value <= NEGLIGIBLE || (loss.low <= NEGLIGIBLE && loss.value <= MATERIAL),
                    worlds: played.runs.iter().map(|runs| means(runs)).collect(),
                }
            })
            .collect();
        standings.sort_by(|a, b| b.total.value.total_cmp(&a.total.value).then(a.kind.cmp(&b.kind)));
        Self { standings }
    }

    /// The best so many algorithms that follow the service, each once, as they were asked for.
    pub(crate) fn best_algorithms(&self, count: usize) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        let base = |name: &str| name.split(':').next().unwrap_or_default().to_owned();
        for standing in self.standings.iter().filter(|standing| standing.kind >= Kind::Defaults) {
            if !names.iter().any(|known| base(known) == base(&standing.name)) {
                names.push(standing.name.clone());
            }
        }
        names.truncate(count);
        names
    }

    /// The best of a kind.
    pub(crate) fn best_of(&self, of: impl Fn(Kind) -> bool) -> Option<&Standing> {
        self.standings.iter().find(|standing| of(standing.kind))
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Mean and interval by Student's t, put through a function that grows.
fn interval(values: &[f64], through: impl Fn(f64) -> f64) -> Range {
    let middle = mean(values);
    let count = values.len() as f64;
    let variance =
        values.iter().map(|value| (value - middle) * (value - middle)).sum::<f64>() / (count - 1.0);
    let half = match StudentsT::new(0.0, 1.0, count - 1.0) {
        Ok(student) if count > 1.0 => student.inverse_cdf(0.975) * libm::sqrt(variance / count),
        _ => 0.0,
    };
    Range { value: through(middle), low: through(middle - half), high: through(middle + half) }
}

/// Of each figure.
fn means(runs: &[Figures]) -> Figures {
    let of = |figure: fn(&Figures) -> f64| runs.iter().map(figure).sum::<f64>() / runs.len().max(1) as f64;
    let mut score = runs[0].score;
    score.score = of(|run| run.score.score);
    score.goodput_ratio = of(|run| run.score.goodput_ratio);
    score.p50_ratio = of(|run| run.score.p50_ratio);
    score.p99_ratio = of(|run| run.score.p99_ratio);
    score.mean_limit = of(|run| run.score.mean_limit);
    Figures {
        score,
        in_time: of(|run| run.in_time),
        refused: of(|run| run.refused),
        p50_s: of(|run| run.p50_s),
        p99_s: of(|run| run.p99_s),
    }
}

impl Played {
    /// The mean over the seeds of the share of requests that were answered in time, in one world.
    pub(crate) fn in_time(&self, world: usize) -> f64 {
        self.runs
            .get(world)
            .map_or(0.0, |runs| runs.iter().map(|run| run.in_time).sum::<f64>() / runs.len() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Student's t for 3 degrees of freedom and 97.5 %: 3.182, from any table of it.
    #[test]
    fn an_interval_is_that_of_student() {
        let range = interval(&[1.0, 2.0, 3.0, 4.0], |value| value);
        let half = 3.182_45 * (5.0_f64 / 3.0 / 4.0).sqrt();
        assert!((range.value - 2.5).abs() < 1e-12);
        assert!((range.high - range.value - half).abs() < 1e-3, "{range:?}");
        assert!((range.value - range.low - half).abs() < 1e-3, "{range:?}");
    }

    #[test]
    fn without_any_difference_there_is_no_interval() {
        let range = interval(&[0.0, 0.0], |loss| 1.0 - libm::exp(-loss));
        assert_eq!(range, Range { value: 0.0, low: 0.0, high: 0.0 });
    }
}
