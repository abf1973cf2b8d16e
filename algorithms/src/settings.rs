use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{Aimd, AimdSettings, Fixed, FixedSettings, Limiter};

/// Any algorithm with its settings, as a config file names it.
///
/// ```
/// use goodput_algorithms::{Algorithm, Limiter};
///
/// let algorithm: Algorithm = toml::from_str("algorithm = \"aimd\"\nmax = 500").unwrap();
/// assert_eq!(algorithm.name(), "aimd");
/// assert_eq!(algorithm.build().unwrap().limit(), 20);
/// ```
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(tag = "algorithm", rename_all = "snake_case")]
pub enum Algorithm {
    /// See [`Fixed`].
    Fixed(FixedSettings),
    /// See [`Aimd`].
    Aimd(AimdSettings),
}

impl Algorithm {
    /// The name by which a config file calls it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Fixed(_) => "fixed",
            Self::Aimd(_) => "aimd",
        }
    }

    /// A limiter with these settings.
    ///
    /// # Errors
    ///
    /// [`InvalidSettings`] names the field that contradicts another or cannot hold.
    pub fn build(&self) -> Result<Box<dyn Limiter>, InvalidSettings> {
        Ok(match self {
            Self::Fixed(settings) => Box::new(Fixed::new(settings.clone())?),
            Self::Aimd(settings) => Box::new(Aimd::new(settings.clone())?),
        })
    }
}

/// Settings that cannot hold.
#[derive(Clone, Debug, Error, PartialEq)]
#[error("`{field}` {problem}")]
pub struct InvalidSettings {
    /// The field at fault.
    pub field: &'static str,
    /// What is wrong with it, and what would be right.
    pub problem: String,
}

impl InvalidSettings {
    /// Says what is wrong with `field`, in words that continue its name: "must be at least 1, not 0".
    pub fn new(field: &'static str, problem: impl Into<String>) -> Self {
        Self { field, problem: problem.into() }
    }

    /// Requires 1 ≤ `min` ≤ `initial` ≤ `max`, as the bounds of nearly every limiter.
    ///
    /// # Errors
    ///
    /// Names the first of `min`, `max` and `initial` that breaks the order.
    pub fn check_bounds(min: usize, initial: usize, max: usize) -> Result<(), Self> {
        if min < 1 {
            return Err(Self::new("min", "must be at least 1, not 0"));
        }
        if max < min {
            return Err(Self::new("max", format!("must be at least `min` ({min}), not {max}")));
        }
        if !(min..=max).contains(&initial) {
            return Err(Self::new(
                "initial",
                format!("must lie within `min` ({min}) and `max` ({max}), not {initial}"),
            ));
        }
        Ok(())
    }
}
