//! Plays what is drawn.

use std::time::Duration;

use goodput::algorithms::Algorithm;
use goodput_simulator::{
    Band, ClassName, Limits, Measure, Moment, Oracle, Scenario, Segment, Summary, Trace, run,
    score::{Convergence, Score},
};
use rayon::prelude::*;

use crate::{contestants::Contestant, failure::Failure};

/// No gate at all.
const NONE: &str = "none";

/// As the scenario says.
const WRITTEN: &str = "written";

/// What decides the limits in one column of a picture.
#[derive(Clone, Debug)]
pub(super) struct Entrant {
    /// As in tables.
    pub(super) name: String,
    pub(super) limits: Limits,
}

/// How a run went.
#[derive(Clone, Debug)]
pub(super) struct Column {
    /// As in tables of figures.
    pub(super) name: String,
    /// As pictures call it.
    pub(super) label: String,
    /// The algorithm in whose colour it is drawn.
    pub(super) ink: String,
    pub(super) summary: Summary,
    /// In the steps of the picture.
    pub(super) trace: Trace,
    /// Against the oracle, where there is one.
    pub(super) verdict: Option<Verdict>,
}

/// A run against the best that was possible.
#[derive(Clone, Debug)]
pub(super) struct Verdict {
    pub(super) score: Score,
    pub(super) convergence: Convergence,
}

/// A scenario, how it went under each algorithm, and the best that was possible.
#[derive(Clone, Debug)]
pub(super) struct Played {
    pub(super) scenario: Scenario,
    pub(super) segments: Vec<Segment>,
    /// The best limits and their bands; `None` if the scenario leaves no limiter open.
    pub(super) best: Option<(Oracle, Vec<Band>)>,
    pub(super) columns: Vec<Column>,
}

impl Played {
    /// The classes of requests, the same in all columns.
    pub(super) fn classes(&self) -> &[ClassName] {
        self.columns.first().map_or(&[], |column| &column.summary.classes)
    }

    /// Every step of every column.
    pub(super) fn moments(&self) -> impl Iterator<Item = &Moment> {
        self.columns.iter().flat_map(|column| &column.trace.moments)
    }

    /// The most of something in a step, per second.
    pub(super) fn most_per_step(&self, count: impl Fn(&Moment) -> u64) -> f64 {
        let step = self.columns.first().map_or(1.0, |column| column.trace.step.as_secs_f64());
        self.moments().map(|moment| count(moment) as f64 / step).fold(0.0, f64::max)
    }
}

impl Entrant {
    /// Reads names with commas between: as `goodput score` knows them, or `none` for no gate at all.
    pub(super) fn parse_list(text: &str) -> Result<Vec<Self>, Failure> {
        let (mut entrants, mut between) = (Vec::new(), Vec::new());
        for piece in text.split(',').chain([NONE]) {
            if piece.trim() != NONE {
                between.push(piece);
                continue;
            }
            let contestants = Contestant::parse_list(&between.join(","))?;
            entrants.extend(
                contestants
                    .into_iter()
                    .map(|one| Self { name: one.name, limits: Limits::Algorithm(one.algorithm) }),
            );
            between.clear();
            entrants.push(Self { name: NONE.into(), limits: Limits::None });
        }
        entrants.pop();
        Ok(entrants)
    }

    /// For a scenario that says itself what decides.
    pub(super) fn written() -> Vec<Self> {
        vec![
            Self { name: NONE.into(), limits: Limits::None },
            Self { name: WRITTEN.into(), limits: Limits::Written },
        ]
    }

    /// What a picture calls it: settings without their names, as `aimd 200ms`.
    pub(super) fn label(name: &str) -> String {
        match name {
            NONE => "no limit".to_owned(),
            WRITTEN => "as written".to_owned(),
            name => {
                let (base, settings) = name.split_once(':').unwrap_or((name, ""));
                let values = settings.split(',').map(|setting| setting.rsplit('=').next().unwrap_or(setting));
                [base].into_iter().chain(values).collect::<Vec<_>>().join(" ").trim_end().replace('_', " ")
            }
        }
    }
}

/// Plays a scenario under each entrant, with a trace of so many steps.
pub(super) fn play(
    scenario: &Scenario,
    entrants: &[Entrant],
    seed: u64,
    steps: usize,
) -> Result<Played, Failure> {
    let open = scenario.open_doors() > 0;
    let (best, runs) = rayon::join(
        || open.then(|| best(scenario, seed)).transpose(),
        || {
            let runs = entrants.par_iter().map(|entrant| play_twice(scenario, &entrant.limits, seed, steps));
            runs.collect::<Result<Vec<_>, Failure>>()
        },
    );
    Ok(compare(scenario, entrants, best?, runs?))
}

/// Plays variations of a scenario, each with its own doors, with a trace of so many steps.
pub(super) fn play_variations(
    variations: &[(String, Scenario)],
    seed: u64,
    steps: usize,
) -> Result<Played, Failure> {
    let columns = variations.par_iter().map(|(label, scenario)| {
        let (summary, _, trace) = play_twice(scenario, &Limits::Written, seed, steps)?;
        let ink = scenario.door.service.as_ref().and_then(|door| door.limiter.as_ref());
        let ink = ink.map_or(NONE, Algorithm::name).to_owned();
        Ok(Column { name: label.clone(), label: label.clone(), ink, summary, trace, verdict: None })
    });
    let columns: Vec<_> = columns.collect::<Result<_, Failure>>()?;
    let Some((_, scenario)) = variations.first() else {
        return Err(Failure::Arguments("there is no variation to draw: the first table has no rows".into()));
    };
    Ok(Played { scenario: scenario.clone(), segments: scenario.segments(), best: None, columns })
}

/// The same for a scenario whose oracle is known.
pub(super) fn play_knowing(
    scenario: &Scenario,
    entrants: &[Entrant],
    oracle: &Oracle,
    seed: u64,
    steps: usize,
) -> Result<Played, Failure> {
    let bands = oracle.bands(scenario, seed)?;
    let runs = entrants.par_iter().map(|entrant| play_twice(scenario, &entrant.limits, seed, steps));
    let runs = runs.collect::<Result<Vec<_>, Failure>>()?;
    Ok(compare(scenario, entrants, Some((oracle.clone(), bands)), runs))
}

fn compare(
    scenario: &Scenario,
    entrants: &[Entrant],
    best: Option<(Oracle, Vec<Band>)>,
    runs: Vec<(Summary, Trace, Trace)>,
) -> Played {
    let columns = entrants.iter().zip(runs).map(|(entrant, (summary, fine, trace))| Column {
        name: entrant.name.clone(),
        label: Entrant::label(&entrant.name),
        ink: entrant.name.clone(),
        verdict: best.as_ref().map(|(oracle, bands)| Verdict {
            score: Score::new(scenario, oracle, &summary),
            convergence: Convergence::new(scenario, bands, &fine),
        }),
        summary,
        trace,
    });
    let columns = columns.collect();
    Played { scenario: scenario.clone(), segments: scenario.segments(), best, columns }
}

fn best(scenario: &Scenario, seed: u64) -> Result<(Oracle, Vec<Band>), Failure> {
    let oracle = Oracle::search(scenario, seed)?;
    let bands = oracle.bands(scenario, seed)?;
    Ok((oracle, bands))
}

/// Once in the fine steps by which runs are judged, and once in those of the picture.
fn play_twice(
    scenario: &Scenario,
    limits: &Limits,
    seed: u64,
    steps: usize,
) -> Result<(Summary, Trace, Trace), Failure> {
    let fine = Measure { trace: true, ..Measure::default() };
    let step = scenario.length.as_nanos().div_ceil(steps.max(1) as u128);
    let coarse = Measure { step: Some(Duration::from_nanos(step as u64)), ..fine.clone() };
    let judged = run(scenario, limits, seed, &fine)?;
    let shown = run(scenario, limits, seed, &coarse)?;
    Ok((judged.summary, judged.trace.unwrap_or_default(), shown.trace.unwrap_or_default()))
}
