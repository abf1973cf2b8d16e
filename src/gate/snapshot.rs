use goodput_algorithms::{Decision, Instant, State};

/// What a gate knows at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The gate's name.
    pub name: String,
    /// Requests that may be in flight.
    pub limit: usize,
    /// Requests in flight, by weight.
    pub in_flight: usize,
    /// Requests that wait to be admitted.
    pub waiting: usize,
    /// The last decisions, oldest first.
    pub decisions: Vec<TimedDecision>,
    /// The limiter's inner state by name.
    pub state: State,
}

/// A decision, and when it was taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimedDecision {
    /// When.
    pub at: Instant,
    /// The limit before it.
    pub previous_limit: usize,
    /// What was decided.
    pub decision: Decision,
}
