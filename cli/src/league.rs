//! Everyone plays every scenario.

use goodput_simulator::{
    Limits, Measure, Oracle, Scenario, run,
    score::{ScenarioScore, Score, Standing},
};
use indicatif::{ProgressBar, ProgressStyle};
use rayon::prelude::*;

use crate::{
    contestants::Contestant,
    failure::Failure,
    memory::{KnownOracle, Memory},
};

/// How everyone did, in the order of the contestants.
pub(crate) fn play(
    scenarios: &[Scenario],
    contestants: &[Contestant],
    seeds: u64,
    memory: &Memory,
) -> Result<Vec<Standing>, Failure> {
    let mut matches: Vec<Match<'_>> = scenarios
        .iter()
        .enumerate()
        .flat_map(|(place, scenario)| (1..=seeds).map(move |seed| Match { place, scenario, seed }))
        .collect();
    // Long ones first, so that none is left alone at the end.
    matches.sort_by(|a, b| b.effort().total_cmp(&a.effort()));
    let progress = ProgressBar::new((matches.len() * (contestants.len() + 1)) as u64).with_style(
        ProgressStyle::with_template("{bar:40} {pos}/{len} runs, {eta} to go; {msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar()),
    );
    let scores: Vec<Vec<Score>> =
        matches.par_iter().map(|game| game.play(contestants, memory, &progress)).collect::<Result<_, _>>()?;
    progress.finish_and_clear();
    Ok(contestants
        .iter()
        .enumerate()
        .map(|(index, contestant)| {
            let of_scenario = |place: usize| {
                let runs = matches.iter().zip(&scores).filter(|(game, _)| game.place == place);
                let runs: Vec<Score> = runs.map(|(_, scores)| scores[index]).collect();
                ScenarioScore::of(&scenarios[place].name, &runs)
            };
            Standing::new(&contestant.name, (0..scenarios.len()).filter_map(of_scenario).collect())
        })
        .collect())
}

/// The oracle of a scenario: remembered, if the world is still the same, or else searched for.
pub(crate) fn oracle(scenario: &Scenario, seed: u64, memory: &Memory) -> Result<Oracle, Failure> {
    let key = Memory::oracle_key(scenario, seed);
    if let Some(known) = memory.oracle(&key) {
        let oracle = Oracle::play(scenario, seed, known.limits())?;
        if KnownOracle::of(&oracle) == known {
            return Ok(oracle);
        }
    }
    let oracle = Oracle::search(scenario, seed)?;
    memory.learn_oracle(&key, &oracle)?;
    Ok(oracle)
}

/// A scenario with a seed.
struct Match<'a> {
    place: usize,
    scenario: &'a Scenario,
    seed: u64,
}

impl Match<'_> {
    /// Each contestant's score.
    fn play(
        &self,
        contestants: &[Contestant],
        memory: &Memory,
        progress: &ProgressBar,
    ) -> Result<Vec<Score>, Failure> {
        let keys: Vec<_> = contestants
            .iter()
            .map(|contestant| memory.score_key(self.scenario, self.seed, &contestant.algorithm))
            .collect();
        let known: Vec<_> = keys.iter().map(|key| memory.score(key)).collect();
        if known.iter().all(Option::is_some) {
            progress.inc(contestants.len() as u64 + 1);
            return Ok(known.into_iter().flatten().collect());
        }
        progress.set_message(self.scenario.name.clone());
        let oracle = oracle(self.scenario, self.seed, memory)?;
        progress.inc(1);
        contestants
            .par_iter()
            .zip(&keys)
            .zip(known)
            .map(|((contestant, key), known)| {
                let score = match known {
                    Some(score) => score,
                    None => {
                        let limits = Limits::Algorithm(contestant.algorithm.clone());
                        let run = run(self.scenario, &limits, self.seed, &Measure::default())?;
                        let score = Score::new(self.scenario, &oracle, &run.summary);
                        memory.learn_score(key, score)?;
                        score
                    }
                };
                progress.inc(1);
                Ok(score)
            })
            .collect()
    }

    /// What it takes, roughly: requests, times segments.
    fn effort(&self) -> f64 {
        let segments = self.scenario.segments();
        let requests: f64 = segments
            .iter()
            .map(|segment| {
                let rate = segment.offered_per_second.unwrap_or(segment.capacity_per_second);
                rate * (segment.until - segment.from).as_secs_f64()
            })
            .sum();
        requests * segments.len() as f64
    }
}
