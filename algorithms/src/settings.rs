use std::{borrow::Cow, time::Duration};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::*;

/// Declares [`Algorithm`] from one line per algorithm: `Limiter(Settings) = "name"`.
///
/// The limiter needs `fn new(Settings) -> Result<Self, InvalidSettings>`, the settings `Default`.
macro_rules! algorithms {
    ($($limiter:ident($settings:ident) = $name:literal,)*) => {
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
        #[serde(tag = "algorithm")]
        pub enum Algorithm {
            $(
                #[doc = concat!("`algorithm = \"", $name, "\"`: see [`", stringify!($limiter), "`].")]
                #[serde(rename = $name)]
                $limiter($settings),
            )*
        }

        impl Algorithm {
            /// The names of all algorithms, as config files spell them, in alphabetical order.
            pub const NAMES: &'static [&'static str] = &[$($name),*];

            /// Every algorithm with its default settings, in the order of [`Algorithm::NAMES`].
            #[must_use]
            pub fn all_defaults() -> Vec<Self> {
                vec![$(Self::$limiter($settings::default())),*]
            }

            /// The algorithm of that name, with its default settings.
            ///
            /// ```
            /// use goodput_algorithms::Algorithm;
            ///
            /// assert_eq!(Algorithm::from_name("aimd").unwrap().name(), "aimd");
            /// assert!(Algorithm::from_name("amid").unwrap_err().to_string().contains("aimd"));
            /// ```
            ///
            /// # Errors
            ///
            /// [`UnknownAlgorithm`], which lists the names that there are.
            pub fn from_name(name: &str) -> Result<Self, UnknownAlgorithm> {
                match name {
                    $($name => Ok(Self::$limiter($settings::default())),)*
                    _ => Err(UnknownAlgorithm { name: name.to_owned() }),
                }
            }

            /// The name by which a config file calls it.
            #[must_use]
            pub const fn name(&self) -> &'static str {
                match self {
                    $(Self::$limiter(_) => $name,)*
                }
            }

            /// A limiter with these settings.
            ///
            /// # Errors
            ///
            /// [`InvalidSettings`] names the field that contradicts another or cannot hold.
            pub fn build(&self) -> Result<Box<dyn Limiter>, InvalidSettings> {
                Ok(match self {
                    $(Self::$limiter(settings) => Box::new($limiter::new(settings.clone())?),)*
                })
            }
        }
    };
}

algorithms! {
    Aimd(AimdSettings) = "aimd",
    Brpc(BrpcSettings) = "brpc",
    Cinnamon(CinnamonSettings) = "cinnamon",
    Conjure(ConjureSettings) = "conjure",
    Crest(CrestSettings) = "crest",
    Dubbo(DubboSettings) = "dubbo",
    Envoy(EnvoySettings) = "envoy",
    Failsafe(FailsafeSettings) = "failsafe",
    Fixed(FixedSettings) = "fixed",
    GoZero(GoZeroSettings) = "go_zero",
    Gradient(GradientSettings) = "gradient",
    Gradient2(Gradient2Settings) = "gradient2",
    HillClimbing(HillClimbingSettings) = "hill_climbing",
    IncrementalSteps(IncrementalStepsSettings) = "incremental_steps",
    Kratos(KratosSettings) = "kratos",
    Parabola(ParabolaSettings) = "parabola",
    Pid(PidSettings) = "pid",
    Sentinel(SentinelSettings) = "sentinel",
    SlowStart(SlowStartSettings) = "slow_start",
    Vector(VectorSettings) = "vector",
    Vegas(VegasSettings) = "vegas",
    Windowed(WindowedSettings) = "windowed",
}

impl Algorithm {
    /// A limiter with these settings that, if it asks how busy the machine is, looks at `utilization`.
    ///
    /// ```
    /// use goodput_algorithms::{Algorithm, Utilization};
    ///
    /// let cpu = Utilization::unknown();
    /// let limiter = Algorithm::from_name("kratos").unwrap().build_with(&cpu).unwrap();
    /// cpu.set(0.7).unwrap();
    /// # let _ = limiter;
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Algorithm::build`].
    pub fn build_with(&self, utilization: &Utilization) -> Result<Box<dyn Limiter>, InvalidSettings> {
        Ok(match self {
            Self::GoZero(settings) => {
                Box::new(GoZero::with_utilization(settings.clone(), utilization.clone())?)
            }
            Self::HillClimbing(settings) => {
                Box::new(HillClimbing::with_utilization(settings.clone(), utilization.clone())?)
            }
            Self::Kratos(settings) => {
                Box::new(Kratos::with_utilization(settings.clone(), utilization.clone())?)
            }
            Self::Sentinel(settings) => {
                Box::new(Sentinel::with_utilization(settings.clone(), utilization.clone())?)
            }
            other => other.build()?,
        })
    }

    /// How the algorithm wants to be told how busy the processors are, if it asks for that and its original says how.
    #[must_use]
    pub const fn sampling(&self) -> Option<Sampling> {
        let every = match self {
            Self::GoZero(_) => Duration::from_millis(250),
            Self::Kratos(_) => Duration::from_millis(500),
            _ => return None,
        };
        Some(Sampling { every, keep: 0.95 })
    }
}

impl Default for Algorithm {
    /// [`Crest`], which needs to be told nothing about the service.
    fn default() -> Self {
        Self::Crest(CrestSettings::default())
    }
}

/// No algorithm has that name.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("there is no algorithm `{name}`; there are {}", Algorithm::NAMES.join(", "))]
pub struct UnknownAlgorithm {
    /// The name that was asked for.
    pub name: String,
}

/// Settings that cannot hold.
#[derive(Clone, Debug, Error, PartialEq)]
#[error("`{field}` {problem}")]
pub struct InvalidSettings {
    /// The field at fault, with the path to it where settings nest (`inner.max`).
    pub field: Cow<'static, str>,
    /// What is wrong with it, and what would be right.
    pub problem: String,
}

impl InvalidSettings {
    /// Says what is wrong with `field`, in words that continue its name: "must be at least 1, not 0".
    pub fn new(field: impl Into<Cow<'static, str>>, problem: impl Into<String>) -> Self {
        Self { field: field.into(), problem: problem.into() }
    }

    /// The same fault, seen from settings that hold the faulty ones in their field `outer`.
    #[must_use]
    pub fn within(mut self, outer: &str) -> Self {
        self.field = format!("{outer}.{}", self.field).into();
        self
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

    /// Requires `min` ≤ `value` ≤ `max`, which no NaN does.
    ///
    /// # Errors
    ///
    /// Names `field`.
    pub fn check_within(field: &'static str, value: f64, min: f64, max: f64) -> Result<(), Self> {
        if value >= min && value <= max {
            Ok(())
        } else {
            Err(Self::new(field, format!("must lie within {min} and {max}, not {value}")))
        }
    }

    /// Requires 0 < `value` ≤ 1: the share that a new value has in a smoothed one.
    ///
    /// # Errors
    ///
    /// Names `field`.
    pub fn check_share(field: &'static str, value: f64) -> Result<(), Self> {
        if value > 0.0 && value <= 1.0 {
            Ok(())
        } else {
            Err(Self::new(field, format!("must be above 0 and at most 1, not {value}")))
        }
    }
}
