//! A scenario and variations of it, side by side.

mod merge;
mod table;

use std::{collections::BTreeMap, fs, path::Path, time::Duration};

use serde::Deserialize;

pub use self::table::{Cell, ComparedRow, ComparedTable};
use self::{merge::merge, table::Play};
use crate::{Limits, Measure, Run, Scenario, ScenarioError, run};

/// A scenario, variations of it, and tables that compare them: one TOML file.
///
/// `[scenario]` is what a scenario file would say. Each of `[variations.NAME]` says what is different, in the same
/// terms: tables are merged field by field, lists of tables entry by entry if they are of the same length, and
/// everything else replaces what was there. Each row of `[[tables]]` plays the scenario with a list of variations, one
/// after the other.
///
/// Every door must name its limiter.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    /// What it shows.
    #[serde(default)]
    pub about: String,
    /// What all have in common.
    scenario: toml::Table,
    #[serde(default)]
    variations: BTreeMap<String, toml::Table>,
    /// The tables.
    pub tables: Vec<TablePlan>,
}

/// A table to be filled.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct TablePlan {
    /// What stands above it.
    pub title: String,
    /// What it tells of each row.
    pub columns: Columns,
    /// What it compares.
    pub rows: Vec<RowPlan>,
}

/// A row to be filled.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct RowPlan {
    /// What stands before it.
    pub label: String,
    /// The variations, by name, in the order in which they are applied. Default: none.
    #[serde(default)]
    pub with: Vec<String>,
}

/// What a table tells of each row.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Columns {
    /// The share of requests that succeeded, by the window of time in which they were first sent; and how many attempts
    /// the requests of one window took.
    Success {
        /// Where the windows begin. Each ends where the next begins.
        #[serde(with = "times")]
        from: Vec<Duration>,
        /// Where the last ends.
        #[serde(with = "humantime_serde")]
        until: Duration,
        /// The beginning of the window whose attempts are counted.
        #[serde(with = "humantime_serde")]
        tries_from: Duration,
    },
    /// What became of all attempts.
    Counts,
    /// The share of requests that succeeded, by class, of those first sent in one window of time.
    Classes {
        /// Where it begins.
        #[serde(with = "humantime_serde")]
        from: Duration,
        /// Where it ends.
        #[serde(with = "humantime_serde")]
        until: Duration,
    },
}

impl Comparison {
    /// Whether a file is one of these, and not a scenario: it has `tables`.
    #[must_use]
    pub fn is_one(text: &str) -> bool {
        text.parse::<toml::Table>().is_ok_and(|table| table.contains_key("tables"))
    }

    /// Reads a file, and checks every row's scenario.
    ///
    /// # Errors
    ///
    /// [`ScenarioError`] names file and, where it can, line and field, and says what would be right.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, ScenarioError> {
        let path = path.as_ref();
        let text = fs::read_to_string(path)
            .map_err(|error| ScenarioError::new(error.to_string()).in_file(path.to_path_buf()))?;
        Self::parse(&text).map_err(|error| error.in_file(path.to_path_buf()))
    }

    /// Parses and checks the text of a file.
    ///
    /// # Errors
    ///
    /// [`ScenarioError`] names the line or the row, and says what would be right.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        let comparison: Self = toml::from_str(text).map_err(|error| ScenarioError::of_toml(&error, text))?;
        for table in &comparison.tables {
            for row in &table.rows {
                comparison.scenario(row)?;
            }
            table.columns.check(&table.title)?;
        }
        Ok(comparison)
    }

    /// The scenario of a row.
    ///
    /// # Errors
    ///
    /// [`ScenarioError`] if the row names no variation of this file, or what they make together cannot be played.
    pub fn scenario(&self, row: &RowPlan) -> Result<Scenario, ScenarioError> {
        let mut scenario = self.scenario.clone();
        for name in &row.with {
            let variation = self.variations.get(name).ok_or_else(|| {
                let known: Vec<_> = self.variations.keys().map(|name| format!("`{name}`")).collect();
                ScenarioError::new(format!(
                    "row `{}`: there is no variation `{name}`; there are {}",
                    row.label,
                    known.join(", ")
                ))
            })?;
            merge(&mut scenario, variation);
        }
        let wrong = |problem: &dyn std::fmt::Display| {
            ScenarioError::new(format!("row `{}` with {:?}: {problem}", row.label, row.with))
        };
        let scenario: Scenario =
            scenario.try_into().map_err(|error: toml::de::Error| wrong(&error.message()))?;
        scenario.check().map_err(|contradiction| wrong(&contradiction))?;
        Ok(Scenario { name: row.label.clone(), ..scenario })
    }

    /// Plays every row, and fills the tables. Rows with the same variations are played once.
    ///
    /// # Errors
    ///
    /// [`ScenarioError`] if a door names no limiter.
    pub fn play(&self, seed: u64) -> Result<Vec<ComparedTable>, ScenarioError> {
        let measure = Measure {
            cuts: self.tables.iter().flat_map(|table| table.columns.cuts()).collect(),
            ..Measure::default()
        };
        let mut runs: BTreeMap<&[String], Run> = BTreeMap::new();
        for row in self.tables.iter().flat_map(|table| &table.rows) {
            if !runs.contains_key(row.with.as_slice()) {
                let scenario = self.scenario(row)?;
                runs.insert(&row.with, run(&scenario, &Limits::Written, seed, &measure)?);
            }
        }
        Ok(self.tables.iter().map(|table| Play { table, runs: &runs }.fill()).collect())
    }
}

impl Columns {
    fn cuts(&self) -> Vec<Duration> {
        match self {
            Self::Success { from, until, .. } => from.iter().chain([until]).copied().collect(),
            Self::Counts => Vec::new(),
            Self::Classes { from, until } => vec![*from, *until],
        }
    }

    fn check(&self, title: &str) -> Result<(), ScenarioError> {
        let wrong = |problem: &str| Err(ScenarioError::new(format!("table `{title}`: {problem}")));
        let cuts = self.cuts();
        if cuts.windows(2).any(|cut| cut[0] >= cut[1]) {
            return wrong("`from` and `until` must be in order of time");
        }
        match self {
            Self::Success { from, tries_from, .. } if !from.contains(tries_from) => {
                wrong("`tries_from` must be one of `from`")
            }
            _ => Ok(()),
        }
    }
}

/// A list of times, each written as a text with its unit.
mod times {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer};

    #[derive(Deserialize)]
    struct Time(#[serde(with = "humantime_serde")] Duration);

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Duration>, D::Error> {
        Ok(Vec::<Time>::deserialize(deserializer)?.into_iter().map(|Time(time)| time).collect())
    }
}
