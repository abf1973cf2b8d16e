//! Everyone plays every world, several times.

use goodput_simulator::{Limits, Measure, Oracle, Scenario, Summary, run, score::Score};
use indicatif::{ProgressBar, ProgressStyle};
use rayon::prelude::*;

use super::{Objective, entrants::Entrant, question::Question};
use crate::failure::Failure;

/// A search for an oracle takes about as long as so many runs.
const SEARCH: u64 = 25;

/// What one run came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    pub(crate) score: Score,
    /// Good answers over requests.
    pub(crate) in_time: f64,
    /// Refusals over requests.
    pub(crate) refused: f64,
    pub(crate) p50_s: f64,
    pub(crate) p99_s: f64,
}

/// One who took part, with the figures of its runs: by world, then by seed.
#[derive(Clone, Debug)]
pub(crate) struct Played {
    pub(crate) entrant: Entrant,
    pub(crate) runs: Vec<Vec<Figures>>,
}

/// The worlds with the best that was possible in them, and who has played.
pub(crate) struct Tournament<'q> {
    pub(crate) worlds: &'q [Scenario],
    pub(crate) seeds: u64,
    pub(crate) objective: Objective,
    pub(crate) played: Vec<Played>,
    /// By world, then by seed.
    pub(crate) oracles: Vec<Vec<Oracle>>,
    progress: ProgressBar,
}

impl<'q> Tournament<'q> {
    /// Searches for the oracles.
    pub(crate) fn new(question: &'q Question, seeds: u64, objective: Objective) -> Result<Self, Failure> {
        let worlds = &question.worlds;
        let games = worlds.len() as u64 * seeds;
        let progress = ProgressBar::new(games * SEARCH).with_style(
            ProgressStyle::with_template("{bar:40} {percent} %, {eta} to go; {msg}")
                .unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        progress.set_message("searching for the best limits in hindsight");
        let games: Vec<_> =
            worlds.iter().flat_map(|world| (1..=seeds).map(move |seed| (world, seed))).collect();
        let oracles: Vec<Oracle> = games
            .par_iter()
            .map(|(world, seed)| {
                let oracle = Oracle::search(world, *seed)?;
                progress.inc(SEARCH);
                Ok(oracle)
            })
            .collect::<Result<_, Failure>>()?;
        let oracles = oracles.chunks(seeds as usize).map(<[Oracle]>::to_vec).collect();
        Ok(Self { worlds, seeds, objective, played: Vec::new(), oracles, progress })
    }

    /// Lets more of them play.
    pub(crate) fn play(&mut self, entrants: Vec<Entrant>) -> Result<(), Failure> {
        self.progress.inc_length(entrants.len() as u64 * self.worlds.len() as u64 * self.seeds);
        self.progress.set_message("comparing limiters with them");
        let played = entrants.into_par_iter().map(|entrant| self.runs(entrant));
        let played: Vec<Played> = played.collect::<Result<_, Failure>>()?;
        self.played.extend(played);
        Ok(())
    }

    /// Takes the progress off the terminal.
    pub(crate) fn finish(&self) {
        self.progress.finish_and_clear();
    }

    fn runs(&self, entrant: Entrant) -> Result<Played, Failure> {
        let limits = entrant.limits();
        let runs = self.worlds.iter().zip(&self.oracles).map(|(world, oracles)| {
            let runs = oracles.par_iter().enumerate().map(|(index, oracle)| {
                let figures = self.figures(world, oracle, &limits, index as u64 + 1);
                self.progress.inc(1);
                figures
            });
            runs.collect::<Result<Vec<_>, Failure>>()
        });
        let runs = runs.collect::<Result<_, Failure>>()?;
        Ok(Played { entrant, runs })
    }

    fn figures(
        &self,
        world: &Scenario,
        oracle: &Oracle,
        limits: &Limits,
        seed: u64,
    ) -> Result<Figures, Failure> {
        let summary: Summary = run(world, limits, seed, &Measure::default())?.summary;
        let score = Score::new(world, oracle, &summary);
        let total = summary.total();
        let offered = total.counts.offered.max(1) as f64;
        Ok(Figures {
            score,
            in_time: total.counts.good as f64 / offered,
            refused: total.counts.refused.total() as f64 / offered,
            p50_s: total.latency_quantile(0.5).as_secs_f64(),
            p99_s: total.latency_quantile(0.99).as_secs_f64(),
        })
    }
}

impl Objective {
    /// How well a run did, 0.001 to 1.
    ///
    /// `balanced` is the score of `goodput score`. `goodput` leaves latency out of it: an answer before the deadline
    /// is an answer. `latency` does not forgive what the score forgives, half as much again as with the best limits.
    pub(crate) fn value(self, score: &Score) -> f64 {
        let goodput = score.goodput_ratio.min(1.0) * score.jain;
        let latency = score.p50_ratio.max(score.p99_ratio);
        match self {
            Self::Balanced => score.score,
            Self::Goodput => goodput.max(0.001),
            Self::Latency => (goodput * latency.recip().min(1.0)).max(0.001),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objectives_differ_in_what_they_forgive() {
        let score = Score {
            score: 0.9,
            goodput_ratio: 0.9,
            p50_ratio: 1.0,
            p99_ratio: 1.25,
            jain: 1.0,
            recovery_s: 0.0,
            false_refusals: 0.0,
            mean_limit: 4.0,
        };
        assert_eq!(Objective::Balanced.value(&score), 0.9);
        assert_eq!(Objective::Goodput.value(&score), 0.9);
        assert!((Objective::Latency.value(&score) - 0.72).abs() < 1e-12);
        let slow = Score { p99_ratio: 3.0, score: 0.45, ..score };
        assert_eq!(Objective::Goodput.value(&slow), 0.9);
        let nothing = Score { goodput_ratio: 0.0, score: 0.001, ..score };
        assert_eq!(Objective::Latency.value(&nothing), 0.001);
    }
}
