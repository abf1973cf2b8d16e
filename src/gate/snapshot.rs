use std::time::Duration;

use goodput_algorithms::{Decision, Instant, State, Window};

use crate::refusal::RefusalCounts;

/// What a gate knows at one moment. Counts are since the gate was built.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Snapshot {
    /// The gate's name.
    pub name: String,
    /// Requests that may be in flight.
    pub limit: usize,
    /// Requests in flight, by weight.
    pub in_flight: usize,
    /// Requests that wait to be admitted.
    pub waiting: usize,
    /// How long the oldest of them has waited.
    pub queue_age: Duration,
    /// Every window there was, the present one included, and what lay between them. `refused` in it counts those
    /// refused because the limit was reached, whatever they were told.
    pub totals: Window,
    /// Requests admitted to places of the limit.
    pub admitted: u64,
    /// Requests refused.
    pub refused: RefusalCounts,
    /// Requests that were let past the limit because they [bypass](crate::Request::bypass) it.
    pub bypassed: u64,
    /// Requests in flight that take no place: they bypass the limit, or would have been refused.
    pub outside: usize,
    /// Whether the gate admits everybody, and only counts.
    pub observe_only: bool,
    /// Requests admitted in observe-only mode that would have been refused.
    pub would_have_refused: RefusalCounts,
    /// Requests admitted in observe-only mode that would have had to wait, and perhaps been refused after that.
    pub would_have_waited: u64,
    /// The last decisions, oldest first.
    pub decisions: Vec<TimedDecision>,
    /// The limiter's inner state by name.
    pub state: State,
}

impl Snapshot {
    /// The part of the demand since `earlier` that felt the limit: requests whose admission reached it, and those
    /// refused because it was reached. From 0 to 1; 0 if there was no demand. Near 1 the service needs more capacity,
    /// however good its latency looks.
    #[must_use]
    pub fn limit_bound_since(&self, earlier: &Self) -> f64 {
        let felt = self.totals.limit_hits.saturating_sub(earlier.totals.limit_hits);
        let demand = |snapshot: &Self| snapshot.admitted.saturating_add(snapshot.totals.refused);
        let asked = demand(self).saturating_sub(demand(earlier));
        if asked == 0 { 0.0 } else { (felt as f64 / asked as f64).min(1.0) }
    }
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
