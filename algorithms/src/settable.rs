use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use crate::{CannotResume, Decision, Instant, Limiter, Reason, State, Window, WindowRule};

/// A limit that somebody sets while it is in use.
///
/// ```
/// use goodput_algorithms::{Limiter, Settable};
///
/// let settable = Settable::new(20);
/// let handle = settable.handle();
/// handle.set(0); // Lets nobody in, which is allowed here and nowhere else.
/// assert_eq!(settable.limit(), 0);
/// ```
///
/// Choose it for a limit that an operator, a file or another control loop decides, or to drive a test. It has no name
/// in a config file, because what a file describes has no [`LimitHandle`] to set it by: use
/// [`Fixed`](crate::Fixed) there.
///
/// A new limit takes hold when the current window closes: with the next request that ends, or with whatever looks at
/// the gate's clock 10 ms after the last one closed.
#[derive(Debug)]
pub struct Settable {
    handle: LimitHandle,
    last_closed: Instant,
}

impl Settable {
    const POLL: Duration = Duration::from_millis(10);

    /// A limiter that starts from `limit`. Any number will do, also 0.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { handle: LimitHandle(Arc::new(AtomicUsize::new(limit))), last_closed: Instant::ZERO }
    }

    /// What sets this limiter's limit.
    #[must_use]
    pub fn handle(&self) -> LimitHandle {
        self.handle.clone()
    }
}

impl Limiter for Settable {
    fn limit(&self) -> usize {
        self.handle.limit()
    }

    fn next_window(&self) -> WindowRule {
        WindowRule::EACH.no_later_than(self.last_closed + Self::POLL)
    }

    fn update(&mut self, window: &Window) -> Decision {
        self.last_closed = window.closed;
        Decision::new(self.limit(), Reason::Set)
    }

    fn resume(&mut self, state: &State) -> Result<(), CannotResume> {
        self.handle.set(state.number_within("limit", 0.0, usize::MAX as f64)? as usize);
        Ok(())
    }
}

/// Sets the limit of a [`Settable`]. Clones set the same one.
#[derive(Clone)]
pub struct LimitHandle(Arc<AtomicUsize>);

impl LimitHandle {
    /// Lets `limit` requests be in flight; none with 0.
    pub fn set(&self, limit: usize) {
        self.0.store(limit, Ordering::Release);
    }

    /// The limit that was set last.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }
}

impl fmt::Debug for LimitHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LimitHandle").field(&self.limit()).finish()
    }
}
