//! What a run recorded over time.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use goodput::algorithms::{CannotResume, Decision, Limiter, State, Window, WindowRule};

use crate::figures::Counts;

/// How a run went, in even steps, and what its limiters decided.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// The length of a step.
    pub step: Duration,
    /// One for each step, in order.
    pub moments: Vec<Moment>,
    /// Every decision of every gate's limiter, in order.
    pub decisions: Vec<DoorDecision>,
    /// Every answer that is no error, late or not, in order, if [`Measure::answers`](crate::Measure::answers) asked for
    /// them.
    pub answers: Vec<Answered>,
}

/// An answer that is no error.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Answered {
    /// When.
    pub at: Duration,
    /// When its request came up.
    pub asked: Duration,
    /// When it got its place at its client's gate. Without one, when it came up.
    pub placed: Duration,
}

/// One step of a trace: how things stood at its end, and what happened in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Moment {
    /// The end of the step.
    pub at: Duration,
    /// The limit: of the gate before the service, or else the mean of the gates at clients. `None` without a gate.
    pub limit: Option<f64>,
    /// Tokens that are out: of the gate before the service, or else of all gates at clients. Without a gate, the
    /// attempts at the service.
    pub in_flight: usize,
    /// Attempts that wait at a gate.
    pub waiting: usize,
    /// How long the one that has waited longest in a waiting room, or in a queue that pushes back, has waited.
    pub oldest_wait: Duration,
    /// Requests that have failed and are tried again.
    pub retrying: u64,
    /// Attempts that queue inside the service.
    pub queued: usize,
    /// Attempts that are worked on.
    pub in_service: usize,
    /// What happened in the step.
    pub counts: Counts,
    /// The same for each of [`Summary::classes`](crate::Summary::classes). Empty without classes.
    pub classes: Vec<Counts>,
    /// Median latency of what was answered well in the step, late or not. Zero if nothing was.
    pub p50: Duration,
    /// 99th percentile of the same.
    pub p99: Duration,
}

/// A decision of the limiter of one gate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DoorDecision {
    /// Which gate: in the order in which they were set up, the one before the service first.
    pub gate: usize,
    /// When.
    pub at: Duration,
    /// The limit before it.
    pub previous_limit: usize,
    /// What was decided, and why.
    pub decision: Decision,
}

/// Where the witnesses of a run write.
pub(crate) type Record = Arc<Mutex<Vec<DoorDecision>>>;

/// Watches a limiter decide.
pub(crate) struct Witness {
    limiter: Box<dyn Limiter>,
    gate: usize,
    record: Record,
}

impl Witness {
    pub(crate) fn new(limiter: Box<dyn Limiter>, gate: usize, record: Record) -> Self {
        Self { limiter, gate, record }
    }
}

impl Limiter for Witness {
    fn limit(&self) -> usize {
        self.limiter.limit()
    }

    fn next_window(&self) -> WindowRule {
        self.limiter.next_window()
    }

    fn update(&mut self, window: &Window) -> Decision {
        let previous_limit = self.limiter.limit();
        let decision = self.limiter.update(window);
        self.record.lock().unwrap_or_else(PoisonError::into_inner).push(DoorDecision {
            gate: self.gate,
            at: Duration::from_nanos(window.closed.nanos()),
            previous_limit,
            decision,
        });
        decision
    }

    fn state(&self) -> State {
        self.limiter.state()
    }

    fn resume(&mut self, state: &State) -> Result<(), CannotResume> {
        self.limiter.resume(state)
    }
}

impl fmt::Debug for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.limiter.fmt(f)
    }
}
