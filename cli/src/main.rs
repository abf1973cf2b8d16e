//! The command line: plays scenarios and compares limiters.

mod contestants;
mod failure;
mod league;
mod memory;
mod plot;
mod report;
mod score;
mod simulate;

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
