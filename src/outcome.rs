use serde::{Deserialize, Serialize};

/// How an admitted request ended.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was answered well. Its latency counts.
    Success,
    /// It says that there is too much load: a timeout, a missed deadline, a 429 or 503 from behind. Its latency
    /// counts, and the limiter is told.
    Overload,
    /// It failed in a way that says nothing about load. Its time in flight counts, its latency does not.
    Failure,
    /// The caller went away, or the token was dropped. It teaches nothing.
    Cancelled,
}
