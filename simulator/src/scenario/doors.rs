use std::time::Duration;

use goodput::algorithms::Algorithm;
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
    /// How many requests may wait for room. Default 0: refuse at once.
    #[serde(default)]
    pub max_waiting: usize,
    /// How often the gate is told that time passes, beside what requests tell it. Default: never.
    #[serde(default, with = "humantime_serde", skip_serializing_if = "Option::is_none")]
    pub tick: Option<Duration>,
    /// One gate for all clients, instead of one each. Only at clients.
    #[serde(default)]
    pub shared: bool,
}
