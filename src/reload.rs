//! A config file that is watched: what it says is put in force while the gate runs, and a bad one is refused.
//!
//! ```no_run
//! use goodput::{GateConfig, reload::{ConfigFile, read}};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let gate = read("gate.toml")?.builder()?.build();
//! let mut file = ConfigFile::new("gate.toml", gate);
//! // Now and then, or by `file.watch(..)`:
//! if let Err(error) = file.check_now() {
//!     eprintln!("{error}; the old settings stay");
//! }
//! # Ok(())
//! # }
//! ```

use std::{
    fmt,
    fs::File,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use crate::{Clock, Gate, GateConfig, SystemClock, config::ConfigError};

/// Config files have some hundred bytes. What is longer than this is none, and is not read into memory.
const LONGEST: u64 = 1 << 20;

/// Reads a config file.
///
/// # Errors
///
/// [`ReloadError`] if there is none, or it is bad.
pub fn read(path: impl AsRef<Path>) -> Result<GateConfig, ReloadError> {
    let path = path.as_ref();
    let text = read_text(path).map_err(|error| ReloadError::unreadable(path, error))?;
    GateConfig::from_toml(&text).map_err(|error| ReloadError::bad(path, error))
}

/// A config file, and the gate that follows it.
///
/// Every look reads the whole file and compares it with what was seen last: that is as cheap as to ask for its time of
/// change, which says nothing where a link was turned to another file or two writes fell into one tick. Write a new file
/// beside the old one and rename it, so that no look falls on half of one.
#[derive(Debug)]
pub struct ConfigFile<C: Clock = SystemClock> {
    path: PathBuf,
    gate: Gate<C>,
    seen: Option<Seen>,
}

/// What a look found.
#[derive(Debug, Eq, PartialEq)]
enum Seen {
    Text(String),
    Nothing(io::ErrorKind),
}

/// What came of a look at a config file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Reload {
    /// What the file says is in force.
    Applied,
    /// The file is as it was at the last look, good or bad.
    Unchanged,
}

/// Why a config file was refused.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// It could not be read.
    #[error("{}: {error}", path.display())]
    Unreadable {
        /// Where it should be.
        path: PathBuf,
        /// Why not.
        #[source]
        error: io::Error,
    },
    /// It says what cannot be.
    #[error("{}: {error}", path.display())]
    Bad {
        /// Where it is.
        path: PathBuf,
        /// What is wrong, and where.
        #[source]
        error: ConfigError,
    },
}

impl<C: Clock> ConfigFile<C> {
    /// `gate` will follow the file at `path`. Nothing is read before the first look.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>, gate: Gate<C>) -> Self {
        Self { path: path.into(), gate, seen: None }
    }

    /// Looks at the file, and puts what it says in force if it has changed since the last look. All of it or nothing: a
    /// bad file leaves everything as it was. What a person set by hand in the meantime, as observe-only mode, holds
    /// until the file changes.
    ///
    /// # Errors
    ///
    /// [`ReloadError`] if the file has become unreadable or bad since the last look: each fault is told once.
    pub fn check_now(&mut self) -> Result<Reload, ReloadError> {
        let (seen, fault) = match read_text(&self.path) {
            Ok(text) => (Seen::Text(text), None),
            Err(error) => (Seen::Nothing(error.kind()), Some(error)),
        };
        if self.seen.as_ref() == Some(&seen) {
            return Ok(Reload::Unchanged);
        }
        let result = match (&seen, fault) {
            (Seen::Text(text), _) => self.apply(text).map_err(|error| ReloadError::bad(&self.path, error)),
            (Seen::Nothing(_), Some(error)) => Err(ReloadError::unreadable(&self.path, error)),
            (Seen::Nothing(kind), None) => Err(ReloadError::unreadable(&self.path, (*kind).into())),
        };
        self.seen = Some(seen);
        self.tell(&result);
        result.map(|()| Reload::Applied)
    }

    /// The gate that follows the file.
    #[must_use]
    pub const fn gate(&self) -> &Gate<C> {
        &self.gate
    }

    fn apply(&self, text: &str) -> Result<(), ConfigError> {
        let config = GateConfig::from_toml(text)?;
        self.gate.reconfigure(&config).map_err(|error| ConfigError::of_settings(error, text))
    }

    #[cfg_attr(
        not(any(feature = "tracing", feature = "metrics")),
        allow(unused_variables, clippy::unused_self)
    )]
    fn tell(&self, result: &Result<(), ReloadError>) {
        #[cfg(any(feature = "tracing", feature = "metrics"))]
        let config = self.gate.config();
        #[cfg(feature = "tracing")]
        match result {
            Ok(()) => tracing::event!(
                target: "goodput::config",
                tracing::Level::INFO,
                gate = config.name,
                path = %self.path.display(),
                observe_only = config.observe_only,
                limit = self.gate.limit(),
                "config file put in force"
            ),
            Err(error) => tracing::event!(
                target: "goodput::config",
                tracing::Level::ERROR,
                gate = config.name,
                %error,
                "config file refused, the old settings stay"
            ),
        }
        #[cfg(feature = "metrics")]
        crate::observe::count_reload(&config.name, result.is_ok());
    }
}

#[cfg(feature = "tokio")]
impl<C: Clock + 'static> ConfigFile<C> {
    /// Looks at the file again and again, at once and then after every pause of `every`, until it is dropped. Reads on
    /// tokio's threads for blocking work. `told` hears of what came of every look that found a change; with the feature
    /// `tracing` there is an event as well.
    ///
    /// # Errors
    ///
    /// [`InvalidSettings`](goodput_algorithms::InvalidSettings) if `every` is zero.
    pub fn watch(
        mut self,
        every: std::time::Duration,
        mut told: impl FnMut(Result<(), ReloadError>),
    ) -> Result<impl Future<Output = std::convert::Infallible>, goodput_algorithms::InvalidSettings> {
        if every.is_zero() {
            return Err(goodput_algorithms::InvalidSettings::new("every", "must be above 0"));
        }
        Ok(async move {
            loop {
                let look = tokio::task::spawn_blocking(move || {
                    let result = self.check_now();
                    (self, result)
                });
                let result;
                (self, result) = match look.await {
                    Ok(looked) => looked,
                    Err(error) => match error.try_into_panic() {
                        Ok(panic) => std::panic::resume_unwind(panic),
                        // The runtime shuts down.
                        Err(_) => std::future::pending().await,
                    },
                };
                match result {
                    Ok(Reload::Applied) => told(Ok(())),
                    Ok(Reload::Unchanged) => {}
                    Err(error) => told(Err(error)),
                }
                tokio::time::sleep(every).await;
            }
        })
    }
}

impl ReloadError {
    fn unreadable(path: &Path, error: io::Error) -> Self {
        Self::Unreadable { path: path.to_owned(), error }
    }

    fn bad(path: &Path, error: ConfigError) -> Self {
        Self::Bad { path: path.to_owned(), error }
    }
}

impl fmt::Display for Reload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Applied => "applied",
            Self::Unchanged => "unchanged",
        })
    }
}

fn read_text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let read = File::open(path)?.take(LONGEST + 1).read_to_string(&mut text)?;
    if read as u64 > LONGEST {
        let problem = format!("is longer than {LONGEST} bytes, which no config file is");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, problem));
    }
    Ok(text)
}
