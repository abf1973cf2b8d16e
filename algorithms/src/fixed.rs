use serde::{Deserialize, Serialize};

use crate::{CannotResume, Decision, InvalidSettings, Limiter, Reason, State, Window, WindowRule};

/// A limit that never moves.
///
/// Choose it when the right limit is known and stays: a pool of a given size behind the gate. It is also the
/// control that every adaptive limit has to beat.
#[derive(Clone, Debug)]
pub struct Fixed {
    limit: usize,
}

impl Fixed {
    /// # Errors
    ///
    /// [`InvalidSettings`] if the limit is zero.
    pub fn new(settings: FixedSettings) -> Result<Self, InvalidSettings> {
        if settings.limit == 0 {
            return Err(InvalidSettings::new("limit", "must be at least 1, not 0"));
        }
        Ok(Self { limit: settings.limit })
    }
}

impl Limiter for Fixed {
    fn limit(&self) -> usize {
        self.limit
    }

    fn next_window(&self) -> WindowRule {
        // Nothing to learn: look so rarely that it costs nothing.
        WindowRule::samples(u64::MAX)
    }

    fn update(&mut self, _: &Window) -> Decision {
        Decision::new(self.limit, Reason::Set)
    }

    fn resume(&mut self, _: &State) -> Result<(), CannotResume> {
        Ok(())
    }
}

/// Settings of [`Fixed`].
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct FixedSettings {
    /// Requests that may be in flight. Default 20.
    pub limit: usize,
}

impl Default for FixedSettings {
    fn default() -> Self {
        Self { limit: 20 }
    }
}
