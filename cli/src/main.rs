//! The command line: plays scenarios, compares limiters, and chooses one for a service by its own log.

mod choose;
mod contestants;
mod convert;
mod failure;
mod figures;
mod inspect;
mod league;
mod memory;
mod plot;
mod recording;
mod report;
mod score;
mod simulate;
mod text;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Finds how many requests a service should work on at once.
#[derive(Debug, Parser)]
#[command(name = "goodput", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Reads a log and says which limiter suits the service behind it, with the evidence.
    Choose(choose::Arguments),
    /// Says what is in a log, and what it tells about the service behind it.
    Inspect(inspect::Arguments),
    /// Writes a log as a plain list of requests, or as a scenario file.
    Convert(convert::Arguments),
    /// Draws how limits converge: a picture for each scenario.
    Plot(plot::Arguments),
    /// Plays a scenario and prints every figure of the run.
    Simulate(simulate::Arguments),
    /// Compares algorithms with the best that any limit could have done.
    Score(score::Arguments),
}

fn main() -> ExitCode {
    // Arguments that make no sense end here, with exit code 2.
    let result = match Arguments::parse().command {
        Command::Choose(arguments) => choose::choose(&arguments),
        Command::Inspect(arguments) => inspect::inspect(&arguments),
        Command::Convert(arguments) => convert::convert(&arguments),
        Command::Plot(arguments) => plot::plot(&arguments),
        Command::Simulate(arguments) => simulate::simulate(&arguments),
        Command::Score(arguments) => score::score(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            failure.exit_code()
        }
    }
}
