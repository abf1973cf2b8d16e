//! What a scenario file says.

mod check;
mod clients;
mod crowd;
mod doors;
mod error;
mod rates;
mod retries;
mod segments;
mod service;
mod work;

use std::{fs, path::Path, time::Duration};

use serde::{Deserialize, Serialize};

pub use self::{
    clients::{Bursts, Class, Clients, Closed, Listed, Open, Paced, Process, RateChange, Sine},
    doors::{Abandoned, Door, Doors},
    error::{Contradiction, ScenarioError},
    retries::{Retries, RetryOn},
    segments::Segment,
    service::{
        Beyond, Crowd, ErrorEpisode, Knee, Outage, OutageRequests, Pauses, Pool, Service, ServiceChange,
        Sharing, Starts, Usl,
    },
    work::Work,
};

/// Clients, doors, a service, and the events that befall them: one TOML file.
///
/// Times are written with their unit (`"20ms"`, `"1m 30s"`), rates as numbers in fields that name their unit
/// (`per_second`). Instants (`at`, `from`, `until`, `joins`) count from the start of the run.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What tables and plots call it. A file without a name is called after itself.
    #[serde(default)]
    pub name: String,
    /// What it shows, in a sentence or two.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub about: String,
    /// How long the run lasts.
    #[serde(with = "humantime_serde")]
    pub length: Duration,
    /// An answer is good if it comes within this time of its attempt's sending. Without one, every success is good.
    #[serde(default, with = "humantime_serde", skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Duration>,
    /// What happens first of what is due at one instant. Default `retries_first`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub ties: Ties,
    /// The resolution of timers: timeouts, waits before retries and the work of a crowd end at the first whole multiple
    /// of it, counted from their beginning, that is longer. Default: none, they end to the nanosecond.
    #[serde(default, with = "humantime_serde", skip_serializing_if = "Option::is_none")]
    pub timer: Option<Duration>,
    /// Who does the work.
    pub service: Service,
    /// Who asks for it.
    pub clients: Vec<Clients>,
    /// Where gates stand.
    #[serde(default)]
    pub door: Doors,
}

/// In which order answers come, and retries and first attempts are sent, that are due at one instant.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ties {
    /// Answers, then all retries, then the first attempts; of a kind whichever was planned first.
    #[default]
    RetriesFirst,
    /// Answers, then whichever was planned first: a retry when its last attempt failed, a first attempt when the one before
    /// it was sent or answered.
    AsPlanned,
    /// As `retries_first`, but answers after all that is sent: it was planned before they were.
    AnswersLast,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Scenario {
    /// Reads and checks a scenario file.
    ///
    /// # Errors
    ///
    /// [`ScenarioError`] names file, line and field, and says what would be right.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, ScenarioError> {
        let path = path.as_ref();
        let text = fs::read_to_string(path)
            .map_err(|error| ScenarioError::new(error.to_string()).in_file(path.to_path_buf()))?;
        let mut scenario = Self::parse(&text).map_err(|error| error.in_file(path.to_path_buf()))?;
        if scenario.name.is_empty() {
            scenario.name =
                path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        }
        Ok(scenario)
    }

    /// Parses and checks the text of a scenario file.
    ///
    /// # Errors
    ///
    /// [`ScenarioError`] names line and field, and says what would be right.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        let scenario: Self = toml::from_str(text).map_err(|error| ScenarioError::of_toml(&error, text))?;
        scenario.check().map_err(|contradiction| ScenarioError::of_contradiction(contradiction, text))?;
        Ok(scenario)
    }
}

/// Nanoseconds; more than 584 years count as that.
pub(crate) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
