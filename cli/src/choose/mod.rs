//! `goodput choose`: from a service's own log to the limiter that suits it, with the evidence.

mod advice;
mod entrants;
mod page;
mod pictures;
mod question;
mod ranking;
mod report;
mod terminal;
mod tournament;

use std::{fs, path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};
use goodput_recordings::scenario::Place;

use self::{
    advice::Advice, entrants::Entrant, question::Question, ranking::Ranking, report::Report,
    tournament::Tournament,
};
use crate::{failure::Failure, recording::Source};

/// How many of the best are tried with other settings.
const TUNED: usize = 5;

/// Reads a log and says which limiter suits the service behind it, with the evidence.
///
/// The service is estimated from the log: how long it works on a request, how many it works on at once, and what it
/// can do at its best. Then every algorithm meets the recorded arrivals, an overload and a slowdown of that service in
/// the simulator, and is compared with the best that any limit could have done.
#[derive(Args, Debug)]
#[command(after_help = "\
Exit codes: 0, a recommendation was given, be it that no limiter is needed or that the log tells too little;\n\
1, the result could not be written; 2, the arguments or the log make no sense, and the message says why.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    source: Source,
    /// An answer is good if it comes within this time [default: twice the p99 without a queue]
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    deadline: Option<Duration>,
    /// What counts more: short latency, or many answers before the deadline
    #[arg(long, value_enum, default_value_t = Objective::Balanced)]
    objective: Objective,
    /// Where the limiter will stand: before the service, or at each of its clients
    #[arg(long = "where", value_enum, default_value_t = Side::Server)]
    side: Side,
    /// How many clients have a limiter each [default: 4 with --where client]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    clients: Option<u32>,
    /// How often each run is repeated with other chance; fewer than 2 cannot show how sure a difference is
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(2..=100))]
    seeds: u64,
    /// Where to write the page, its pictures and the config
    #[arg(long, value_name = "DIR", default_value = "report")]
    out: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What counts.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Objective {
    /// Latency as short as the best limits give it
    Latency,
    /// Answers before the deadline, however close to it
    Goodput,
    /// Both: latency may be half as long again as with the best limits
    Balanced,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Side {
    Server,
    Client,
}

pub(crate) fn choose(arguments: &Arguments) -> Result<(), Failure> {
    let place = arguments.place()?;
    let read = arguments.source.read()?;
    let name = arguments.source.name();
    if arguments.deadline.is_some_and(|deadline| deadline.is_zero()) {
        return Err(Failure::Arguments("--deadline: must be above 0".into()));
    }
    // Now, and not when everything has been worked out.
    fs::create_dir_all(&arguments.out).map_err(Failure::unwritable(&arguments.out))?;
    let question = Question::new(&read, &name, arguments.deadline, place)?;
    drop(read.digest);
    let mut tournament = Tournament::new(&question, arguments.seeds, arguments.objective)?;
    tournament.play(Entrant::field(&question))?;
    let leaders = Ranking::new(&tournament).best_algorithms(TUNED);
    let knee = question.knows_the_knee().then(|| question.knee_for_each());
    tournament.play(Entrant::tuned(&leaders, knee))?;
    tournament.finish();
    let ranking = Ranking::new(&tournament);
    let advice = Advice::new(&question, &tournament, &ranking)?;
    let report = Report {
        source: &name,
        inspection: &read.inspection,
        question: &question,
        tournament: &tournament,
        ranking: &ranking,
        advice: &advice,
    };
    let files = report.write(&arguments.out)?;
    if arguments.json { report.print_json(&files) } else { report.print(&files) }
}

impl Arguments {
    fn place(&self) -> Result<Place, Failure> {
        match (self.side, self.clients) {
            (Side::Server, None) => Ok(Place::Server),
            (Side::Client, clients) => Ok(Place::Clients(clients.unwrap_or(4))),
            (Side::Server, Some(_)) => Err(Failure::Arguments(
                "--clients: only with --where client; before the service there is one limiter".into(),
            )),
        }
    }
}

impl Objective {
    /// As on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Latency => "latency",
            Self::Goodput => "goodput",
            Self::Balanced => "balanced",
        }
    }
}
