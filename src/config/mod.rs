//! Everything that can be set on a gate, in one struct and one file.
//!
//! [`GateConfig`] is what a config file holds, what a gate is [built from](GateConfig::builder), and what it is
//! [reconfigured](crate::Gate::reconfigure) with while running. Whatever is left out has its default, so the shortest
//! file is
//!
//! ```toml
//! [limiter]
//! algorithm = "aimd"
//! ```
//!
//! With the feature `toml`, `GateConfig::from_toml` reads one, and says what is wrong with a bad one, where, and what
//! would be right. Every field is described in `docs/configuration.md`.

#[cfg(feature = "toml")]
mod file;

use goodput_algorithms::Algorithm;
use serde::{Deserialize, Serialize};

#[cfg(feature = "toml")]
pub use self::file::ConfigError;
use crate::{
    priority::{CohortSettings, CriticalityShares, PartitionsSettings, TenantSettings},
    waiting::WaitingSettings,
};

/// The settings of a gate.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct GateConfig {
    /// The name that metrics, events and snapshots carry. Default `default`. It cannot change while running.
    pub name: String,
    /// Whether to admit everybody, and only count whom the other settings would have refused or had wait. Default no.
    ///
    /// Those who would have been refused take no place of the limit, and the limiter is not shown how they fared, only
    /// that they came. So the counts are those of a gate that refuses, as far as the service behind fares alike.
    pub observe_only: bool,
    /// The algorithm and its settings. Without it a gate cannot be built; one that is reconfigured keeps what it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limiter: Option<Algorithm>,
    /// How requests wait for room. Default a short queue: at most half the limit, for at most a second.
    pub waiting: WaitingSettings,
    /// How much of the limit each criticality may use. Default all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shares: Option<CriticalityShares>,
    /// How the least critical are shed under overload. Default not by cohorts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cohorts: Option<CohortSettings>,
    /// Which parts of the limit are guaranteed to whom. Default none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partitions: Option<PartitionsSettings>,
    /// How tenants are kept from taking what others need. Default not at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenants: Option<TenantSettings>,
}

impl Default for GateConfig {
    fn default() -> Self {
        Self {
            name: String::from("default"),
            observe_only: false,
            limiter: None,
            waiting: WaitingSettings::default(),
            shares: None,
            cohorts: None,
            partitions: None,
            tenants: None,
        }
    }
}
