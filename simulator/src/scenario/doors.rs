use std::time::Duration;

use goodput::{
    algorithms::Algorithm,
    priority::{CohortSettings, CriticalityShares, PartitionsSettings},
    waiting::WaitingSettings,
};
use serde::{Deserialize, Serialize};

/// Where gates stand: before the service, at each client, at both or nowhere.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Doors {
    /// One gate before the service. Its token is held until the answer leaves, whether or not the client still waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<Door>,
    /// A gate at each client. Its token is held until the client has the answer or its timeout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<Door>,
}

/// How a gate is set up.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Door {
    /// The algorithm with its settings. Default: the one that is tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limiter: Option<Algorithm>,
    /// How many requests may wait for room, first in, first out, for as long as they like. Default 0: refuse at once.
    #[serde(default)]
    pub max_waiting: usize,
    /// How much of the limit each criticality may use. Default: everybody everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shares: Option<CriticalityShares>,
    /// Sheds the least critical by cohorts under overload. Default: it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cohorts: Option<CohortSettings>,
    /// Guarantees parts of the limit to partitions. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partitions: Option<PartitionsSettings>,
    /// How requests wait for room, with the gate's settings. Default: not at all. Places are given as
    /// [`Pool::starts`](crate::Pool::starts) says: if `last`, all who come wait, and those whose turn it is are admitted
    /// after everything else that happens at an instant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<WaitingSettings>,
    /// A queue of so many places that pushes back on producers that can wait, as goodput's. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub push_back: Option<usize>,
    /// What becomes of a request that waits here when its client stops waiting for it. Default `leaves`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub abandoned: Abandoned,
    /// How often the gate is told that time passes, beside what requests tell it. Default: never.
    #[serde(default, with = "humantime_serde", skip_serializing_if = "Option::is_none")]
    pub tick: Option<Duration>,
    /// One gate for all clients, instead of one each. Only at clients.
    #[serde(default)]
    pub shared: bool,
}

/// What becomes of a request that waits at a door when its client stops waiting for it.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Abandoned {
    /// It leaves: the door is told.
    #[default]
    Leaves,
    /// It stays: nobody tells the door.
    Stays,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
