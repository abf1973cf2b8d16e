//! Writes the requests of a recording as a plain list: `cargo run --example convert -- access.log > list.csv`.

use std::process::ExitCode;

use goodput_recordings::{Options, Recording, convert};

fn main() -> ExitCode {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("usage: convert FILE");
        return ExitCode::FAILURE;
    };
    let converted = Recording::open(path, &Options::default())
        .map_err(Into::into)
        .and_then(|recording| convert(recording, std::io::stdout().lock()));
    match converted {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
