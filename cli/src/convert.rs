//! `goodput convert`: a recording as a plain list of requests, or as a scenario file.

use std::{
    fs::File,
    io::{self, BufWriter, Write},
    path::PathBuf,
    time::Duration,
};

use clap::Args;
use goodput_recordings::{
    ConvertError,
    scenario::{Place, Played, Replay, Setup, recorded, usual_deadline},
};

use crate::{failure::Failure, recording::Source};

/// Requests of a scenario file, at most.
const MOST_REQUESTS: usize = 100_000;

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(flatten)]
    source: Source,
    /// Write a scenario file, which `goodput simulate`, `plot` and `score` play, instead of a list (CSV)
    #[arg(long)]
    scenario: bool,
    /// In a scenario: an answer is good within this time [default: twice the p99 without a queue]
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, requires = "scenario")]
    deadline: Option<Duration>,
    /// Where to write [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(crate) fn convert(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.scenario { write_scenario(arguments) } else { write_list(arguments) }
}

fn target(arguments: &Arguments) -> Result<Box<dyn Write>, Failure> {
    Ok(match &arguments.out {
        Some(path) => Box::new(BufWriter::new(File::create(path).map_err(Failure::unwritable(path))?)),
        None => Box::new(BufWriter::new(io::stdout().lock())),
    })
}

fn write_list(arguments: &Arguments) -> Result<(), Failure> {
    match goodput_recordings::convert(arguments.source.open()?, target(arguments)?) {
        Ok(_) => Ok(()),
        Err(ConvertError::Read(error)) => Err(arguments.source.named(error).into()),
        Err(ConvertError::Write(error)) => Err(Failure::Output(error)),
        Err(error @ ConvertError::Aggregate { .. }) => {
            Err(Failure::Arguments(format!("{}: {error}; try --scenario", arguments.source.name())))
        }
    }
}

fn write_scenario(arguments: &Arguments) -> Result<(), Failure> {
    let read = arguments.source.read()?;
    let workload = &read.inspection.workload;
    let nothing = |what: &str| Failure::Arguments(format!("{}: {what}", arguments.source.name()));
    let (service, usual) = Played::of(workload, 1.0)
        .zip(usual_deadline(workload))
        .ok_or_else(|| nothing("nothing in it says how long the service works on a request"))?;
    let setup = Setup {
        deadline: arguments.deadline.unwrap_or(usual),
        place: Place::Server,
        most_requests: MOST_REQUESTS,
    };
    let replay = Replay::of(&read.digest, &read.inspection.reading, setup.most_requests);
    let mut scenario = recorded(&service, &replay, &setup)?
        .ok_or_else(|| nothing("nothing in it says when requests came, so there is no scenario to write"))?;
    scenario.about = format!("{} from {}.", scenario.about.trim_end_matches('.'), arguments.source.name());
    let text = toml::to_string(&scenario).map_err(|error| Failure::Arguments(error.to_string()))?;
    let mut out = target(arguments)?;
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}
