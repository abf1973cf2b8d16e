//! `goodput convert`: a recording as a plain list of requests, or as a scenario file.

use std::{
    fs::File,
    io::{self, BufWriter, Write},
    path::PathBuf,
    time::Duration,
};

use clap::Args;
use goodput_recordings::{
    Item, Record,
    scenario::{Arrivals, Place, Played, ServiceEstimate, Setup, recorded},
};

use crate::{failure::Failure, recording::Source};

/// Columns of the list.
const HEADER: [&str; 6] = ["start_ns", "latency_ns", "outcome", "service_ns", "status", "nested"];

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
        Some(path) => Box::new(BufWriter::new(File::create(path).map_err(Failure::file(path))?)),
        None => Box::new(BufWriter::new(io::stdout().lock())),
    })
}

fn write_list(arguments: &Arguments) -> Result<(), Failure> {
    let recording = arguments.source.open()?;
    let mut list = csv::Writer::from_writer(target(arguments)?);
    let mut failed = list.write_record(HEADER).err();
    let reading = recording
        .each(|item| {
            if let (Item::Request(record), None) = (item, &failed) {
                failed = list.write_record(row(&record)).err();
            }
        })
        .map_err(|error| arguments.source.named(error))?;
    if let Some(error) = failed {
        return Err(Failure::Output(error.into()));
    }
    list.flush()?;
    if reading.records == 0 {
        return Err(Failure::Arguments(format!(
            "{}: holds {} load steps and no requests, so there is no list to write; try --scenario",
            arguments.source.name(),
            reading.steps
        )));
    }
    Ok(())
}

fn row(record: &Record) -> [String; 6] {
    let number = |value: Option<u64>| value.map_or_else(String::new, |value| value.to_string());
    let between =
        record.start.zip(record.end).and_then(|(start, end)| u64::try_from(end.checked_sub(start)?).ok());
    [
        record.start.or(record.stamp).map_or_else(String::new, |start| start.to_string()),
        // Where both stamps are known they tell more than a latency that leaves stages out.
        number(between.or(record.latency)),
        record.outcome.name().to_owned(),
        number(record.service),
        record.status.to_string(),
        record.nested.to_string(),
    ]
}

fn write_scenario(arguments: &Arguments) -> Result<(), Failure> {
    let read = arguments.source.read()?;
    let reading = &read.inspection.reading;
    let nothing = |what: &str| Failure::Arguments(format!("{}: {what}", arguments.source.name()));
    let service = ServiceEstimate::of(&read.digest, reading)
        .ok_or_else(|| nothing("nothing in it says how long the service works on a request"))?;
    let setup = Setup {
        deadline: arguments.deadline.unwrap_or_else(|| service.usual_deadline()),
        place: Place::Server,
        most_requests: MOST_REQUESTS,
    };
    let arrivals = Arrivals::of(&read.digest, reading, setup.most_requests);
    let mut scenario = recorded(&Played::of(&service, 1.0), &arrivals, &setup)?
        .ok_or_else(|| nothing("nothing in it says when requests came, so there is no scenario to write"))?;
    scenario.about = format!("{} from {}.", scenario.about.trim_end_matches('.'), arguments.source.name());
    let text = toml::to_string(&scenario).map_err(|error| Failure::Arguments(error.to_string()))?;
    let mut out = target(arguments)?;
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}
