use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use crate::{Clock, Outcome, OwnedToken, SystemClock};

/// A token with several holders; the place is free when the last of them is gone.
///
/// For work that outlives the future that answers: a task that a handler spawns goes on when its client leaves and
/// the handler is dropped. It keeps its place in the gate by keeping a clone.
///
/// ```
/// use goodput::{Gate, Outcome, Request, middleware::SharedToken};
/// use goodput::algorithms::{Fixed, FixedSettings};
///
/// let gate = Gate::new(Fixed::new(FixedSettings { limit: 1 }).unwrap());
/// let handler = SharedToken::new(gate.try_acquire_owned(&Request::DEFAULT).unwrap());
/// let work = handler.clone();
/// drop(handler);
/// assert_eq!(gate.in_flight(), 1);
/// work.end(Outcome::Success);
/// assert_eq!(gate.in_flight(), 0);
/// ```
pub struct SharedToken<C: Clock = SystemClock> {
    shared: Arc<Shared<C>>,
}

impl<C: Clock> SharedToken<C> {
    /// Shares `token`.
    pub fn new(token: OwnedToken<C>) -> Self {
        Self { shared: Arc::new(Shared { token: Some(token), outcome: OnceLock::new() }) }
    }

    /// Says how the request ended, and gives this share up. The first to say so is believed; if nobody does, the
    /// request counts as one whose token was dropped.
    pub fn end(self, outcome: Outcome) {
        let _ = self.shared.outcome.set(outcome);
    }
}

impl<C: Clock> Clone for SharedToken<C> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<C: Clock> fmt::Debug for SharedToken<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedToken").field("outcome", &self.shared.outcome.get()).finish_non_exhaustive()
    }
}

struct Shared<C: Clock> {
    token: Option<OwnedToken<C>>,
    outcome: OnceLock<Outcome>,
}

impl<C: Clock> Drop for Shared<C> {
    fn drop(&mut self) {
        if let (Some(token), Some(&outcome)) = (self.token.take(), self.outcome.get()) {
            token.release(outcome);
        }
    }
}
