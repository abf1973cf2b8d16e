//! `goodput simulate`.

use std::{
    fs,
    io::{self, Write},
    path::PathBuf,
    time::Duration,
};

use clap::Args;
use goodput_simulator::{Comparison, Limits, Measure, Scenario, run};

use crate::{
    contestants::Contestant,
    failure::Failure,
    figures::Figures,
    league,
    memory::{Memory, Place},
};

/// Parts of a run whose success is told apart.
const PARTS: u32 = 10;

/// Steps of the trace on which convergence is measured.
const STEPS: u32 = 5_000;

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// A scenario file, or one that compares variations of a scenario and prints tables
    file: PathBuf,
    /// What decides the limit at doors without a limiter: an algorithm as a config file names it, with settings if
    /// wanted (vegas:initial=50,max=500); `none` for no gate; `oracle` for the best limits in hindsight
    #[arg(long, value_name = "NAME")]
    algorithm: Option<String>,
    /// Where chance begins
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print JSON
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print CSV
    #[arg(long)]
    csv: bool,
    /// Leave out the figures that need an oracle, whose search takes as long as some thirty runs
    #[arg(long)]
    no_oracle: bool,
    #[command(flatten)]
    cache: Place,
}

pub(crate) fn simulate(arguments: &Arguments) -> Result<(), Failure> {
    if fs::read_to_string(&arguments.file).is_ok_and(|text| Comparison::is_one(&text)) {
        return compare(arguments);
    }
    let scenario = Scenario::read(&arguments.file)?;
    if arguments.algorithm.is_none() && scenario.open_doors() > 0 {
        return Err(Failure::Arguments(format!(
            "{}: a door has no limiter; say which one to try, as --algorithm vegas, or write it into the file",
            arguments.file.display()
        )));
    }
    let wants_oracle = arguments.algorithm.as_deref() == Some("oracle");
    let oracle = if scenario.open_doors() > 0 && (wants_oracle || !arguments.no_oracle) {
        Some(league::oracle(&scenario, arguments.seed, &Memory::open(&arguments.cache.folder())?)?)
    } else {
        None
    };
    let limits = match (arguments.algorithm.as_deref(), &oracle) {
        (None, _) => Limits::Written,
        (Some("none"), _) => Limits::None,
        (Some("oracle"), Some(oracle)) => Limits::Schedule(oracle.limits.clone()),
        (Some("oracle"), None) => {
            return Err(Failure::Arguments(format!(
                "{}: every door has its limiter, so there is nothing for an oracle to decide",
                arguments.file.display()
            )));
        }
        (Some(text), _) => Limits::Algorithm(Contestant::parse_stock(text)?.algorithm),
    };
    let measure = Measure {
        cuts: (1..PARTS).map(|part| scenario.length / PARTS * part).collect(),
        step: Some((scenario.length / STEPS).max(Duration::from_nanos(1))),
        trace: true,
        ..Measure::default()
    };
    let run = run(&scenario, &limits, arguments.seed, &measure)?;
    let mut figures = Figures::of(&run, arguments.algorithm.as_deref().unwrap_or("written"));
    if let Some(oracle) = oracle {
        figures.compare(&scenario, arguments.seed, &oracle, &run)?;
    }
    let mut out = io::stdout().lock();
    if arguments.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&figures.json()).map_err(io::Error::from)?)?;
    } else if arguments.csv {
        out.write_all(&figures.csv()?)?;
    } else {
        writeln!(out, "{}", figures.table())?;
    }
    Ok(())
}

/// Plays the variations of a file that holds several, and prints their tables.
fn compare(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.json || arguments.csv || arguments.algorithm.is_some() {
        return Err(Failure::Arguments(format!(
            "{}: this file compares variations of a scenario, each with its own limits, and prints tables; leave out \
             --algorithm, --json and --csv",
            arguments.file.display()
        )));
    }
    let mut out = io::stdout().lock();
    for table in Comparison::read(&arguments.file)?.play(arguments.seed)? {
        writeln!(out, "{table}")?;
    }
    Ok(())
}
