//! Prints what a recording holds, as JSON: `cargo run --example inspect -- access.log`.

use std::process::ExitCode;

use goodput_recordings::{Inspection, Options};

fn main() -> ExitCode {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("usage: inspect FILE");
        return ExitCode::FAILURE;
    };
    match Inspection::open(path, &Options::default()).map(|seen| serde_json::to_string_pretty(&seen)) {
        Ok(Ok(json)) => println!("{json}"),
        Ok(Err(error)) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
