use std::{borrow::Cow, collections::BTreeMap};

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A limiter's inner state: numbers by name, to look at, to export and to resume from.
///
/// Times are in nanoseconds and say so in their name. A name that ends in `_at_ns` is a point on the gate's clock: it
/// is there to look at, and means nothing after a restart.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(transparent)]
pub struct State(BTreeMap<Cow<'static, str>, f64>);

impl State {
    /// Nothing yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Adds a number.
    #[must_use]
    pub fn with(mut self, name: impl Into<Cow<'static, str>>, value: f64) -> Self {
        self.0.insert(name.into(), value);
        self
    }

    /// The number of that name.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }

    /// The number of that name, which must be finite and lie in `min..=max`.
    ///
    /// # Errors
    ///
    /// [`CannotResume`] with the name and what is wrong with it.
    pub fn number_within(&self, name: &'static str, min: f64, max: f64) -> Result<f64, CannotResume> {
        let value = self.number(name).ok_or(CannotResume::Missing { name })?;
        if value >= min && value <= max {
            Ok(value)
        } else {
            Err(CannotResume::OutOfBounds { name, value, min, max })
        }
    }

    /// All numbers, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, f64)> + '_ {
        self.0.iter().map(|(name, value)| (name.as_ref(), *value))
    }
}

/// Why a saved state was not taken.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum CannotResume {
    /// The state lacks a number. It was probably saved by another algorithm: start without it.
    #[error("the saved state has no `{name}`: was it saved by another algorithm?")]
    Missing {
        /// Which.
        name: &'static str,
    },
    /// A number does not fit the settings. Widen the settings, or start without the state.
    #[error("`{name}` is {value} in the saved state, which is not within {min} and {max}")]
    OutOfBounds {
        /// Which.
        name: &'static str,
        /// What the state says.
        value: f64,
        /// The least that fits.
        min: f64,
        /// The most that fits.
        max: f64,
    },
}
