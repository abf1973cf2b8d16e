//! Where the limit comes from in a run.

use std::{fmt, sync::Arc, time::Duration};

use goodput::algorithms::{Algorithm, Fixed, FixedSettings, InvalidSettings, Limiter, Utilization};

use crate::ScenarioError;

/// What decides the limit at the doors whose scenario does not name a limiter.
#[derive(Clone)]
pub enum Limits {
    /// Nothing: there is no gate at these doors.
    None,
    /// As the scenario says; a door without a limiter is an error.
    Written,
    /// This algorithm, a limiter of its own at each gate. One that asks how busy the processors are is told how many of
    /// the service's workers or cores are, as its original measures it ([`Algorithm::sampling`]), on a machine that was
    /// idle before the run.
    Algorithm(Algorithm),
    /// Limits set from outside: each holds from its instant on, at every gate. The first is at the start.
    Schedule(Vec<(Duration, usize)>),
    /// Any limiter, by name; the function makes one for each gate.
    Custom(String, Arc<dyn Fn() -> Box<dyn Limiter> + Send + Sync>),
}

impl Limits {
    /// The same limit all the time.
    #[must_use]
    pub fn fixed(limit: usize) -> Self {
        Self::Schedule(vec![(Duration::ZERO, limit)])
    }

    /// What tables call it.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::None => "none".into(),
            Self::Written => "written".into(),
            Self::Algorithm(algorithm) => algorithm.name().into(),
            Self::Schedule(steps) if steps.len() == 1 => format!("fixed {}", steps[0].1),
            Self::Schedule(_) => "schedule".into(),
            Self::Custom(name, _) => name.clone(),
        }
    }

    /// The limits to be set from outside.
    pub(crate) fn schedule(&self) -> &[(Duration, usize)] {
        if let Self::Schedule(steps) = self { steps } else { &[] }
    }

    /// A limiter for one gate; `None` for no gate.
    pub(crate) fn limiter(
        &self,
        field: &str,
        utilization: &Utilization,
    ) -> Result<Option<Box<dyn Limiter>>, ScenarioError> {
        match self {
            Self::None => Ok(None),
            Self::Written => Err(ScenarioError::new(format!(
                "`{field}` names no limiter; write one, as {field}.limiter = {{ algorithm = \"fixed\", limit = 20 }}, \
                 or run it with an algorithm"
            ))),
            Self::Algorithm(algorithm) => algorithm.build_with(utilization).map(Some).map_err(invalid),
            Self::Schedule(steps) => match steps.first() {
                Some(&(at, limit)) if at.is_zero() => fixed(limit).map(Some),
                _ => Err(ScenarioError::new("a schedule of limits must begin with one at 0s")),
            },
            Self::Custom(_, make) => Ok(Some(make())),
        }
    }
}

impl fmt::Debug for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Limits").field(&self.name()).finish()
    }
}

/// A limiter that never moves.
pub(crate) fn fixed(limit: usize) -> Result<Box<dyn Limiter>, ScenarioError> {
    Ok(Box::new(Fixed::new(FixedSettings { limit }).map_err(invalid)?))
}

fn invalid(error: InvalidSettings) -> ScenarioError {
    ScenarioError::new(format!("the limiter's settings: {error}"))
}
