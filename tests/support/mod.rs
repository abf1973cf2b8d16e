//! What the tests of middleware share: a gate that remembers all it was told.
#![allow(dead_code, unreachable_pub, reason = "each test uses its part")]

use std::sync::{Arc, Mutex};

use goodput::{
    Clock, Gate, SystemClock,
    algorithms::{CannotResume, Decision, Instant, Limiter, Reason, State, Window, WindowRule},
};

/// Every window that a gate closed, added up.
#[derive(Clone, Debug)]
pub struct Ledger(Arc<Mutex<Window>>);

/// Counts of ended requests by outcome.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Ended {
    pub success: u64,
    pub overload: u64,
    pub failure: u64,
    pub cancelled: u64,
}

impl Ledger {
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(Window::EMPTY)))
    }

    /// A limiter that never moves and writes down what it is shown.
    pub fn limiter(&self, limit: usize) -> Box<dyn Limiter> {
        Box::new(Bookkeeper { limit, ledger: self.clone() })
    }

    /// What `gate` was told since it was made.
    pub fn read<C: Clock>(&self, gate: &Gate<C>) -> Window {
        gate.tick();
        *self.0.lock().unwrap()
    }

    /// How requests ended.
    pub fn ended<C: Clock>(&self, gate: &Gate<C>) -> Ended {
        let window = self.read(gate);
        Ended {
            success: window.successes.count,
            overload: window.overloads.count,
            failure: window.failures.count,
            cancelled: window.cancelled,
        }
    }
}

/// A gate of a fixed limit that never queues, and its ledger.
pub fn gate(limit: usize) -> (Gate<SystemClock>, Ledger) {
    waiting_gate(limit, 0)
}

/// A gate of a fixed limit at which some may wait, and its ledger.
pub fn waiting_gate(limit: usize, max_waiting: usize) -> (Gate<SystemClock>, Ledger) {
    let ledger = Ledger::new();
    (Gate::builder(ledger.limiter(limit)).max_waiting(max_waiting).build(), ledger)
}

#[derive(Debug)]
struct Bookkeeper {
    limit: usize,
    ledger: Ledger,
}

impl Limiter for Bookkeeper {
    fn limit(&self) -> usize {
        self.limit
    }

    fn next_window(&self) -> WindowRule {
        WindowRule::samples(1).no_later_than(Instant::ZERO)
    }

    fn update(&mut self, window: &Window) -> Decision {
        let mut sum = self.ledger.0.lock().unwrap();
        *sum = sum.merge(*window);
        Decision::new(self.limit, Reason::Set)
    }

    fn resume(&mut self, _: &State) -> Result<(), CannotResume> {
        Ok(())
    }
}
