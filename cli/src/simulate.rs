//! `goodput simulate`.

use std::path::PathBuf;

use clap::Args;

use crate::failure::Failure;

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// A scenario file
    file: PathBuf,
}

pub(crate) fn simulate(arguments: &Arguments) -> Result<(), Failure> {
    Err(Failure::Arguments(format!("{}: not yet", arguments.file.display())))
}
