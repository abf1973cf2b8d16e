use std::{io, path::PathBuf, process::ExitCode};

use goodput_recordings::ReadError;
use goodput_simulator::{Contradiction, ScenarioError};
use thiserror::Error;

use crate::contestants::InvalidContestant;

/// Why a command could not do what was asked.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    #[error(transparent)]
    Algorithm(#[from] InvalidContestant),
    #[error(transparent)]
    Recording(#[from] ReadError),
    /// What a recording holds makes no world that could be played.
    #[error("no scenario can be made of the recording: {0}")]
    World(#[from] Contradiction),
    /// Arguments that contradict each other or the files they name.
    #[error("{0}")]
    Arguments(String),
    #[error("{}: {error}", path.display())]
    File { path: PathBuf, error: io::Error },
    /// A result that has no place.
    #[error("cannot write {}: {error}", path.display())]
    Unwritable { path: PathBuf, error: io::Error },
    /// Who reads our output went away, or the disk is full.
    #[error("cannot write the result: {0}")]
    Output(#[from] io::Error),
}

impl Failure {
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |error| Self::File { path, error }
    }

    pub(crate) fn unwritable(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |error| Self::Unwritable { path, error }
    }

    /// 2 if what was asked for is at fault, 1 if the machine is.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Scenario(_)
            | Self::Algorithm(_)
            | Self::Recording(_)
            | Self::World(_)
            | Self::Arguments(_)
            | Self::File { .. } => ExitCode::from(2),
            Self::Unwritable { .. } | Self::Output(_) => ExitCode::FAILURE,
        }
    }
}
