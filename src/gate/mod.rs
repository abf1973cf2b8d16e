//! The shared door of a service.

mod acquire;
mod door;
mod observer;
mod shared;
mod snapshot;
mod stripe;
mod stripes;
mod thread_index;
mod token;
mod waiters;

use std::{
    fmt,
    num::NonZero,
    sync::{Arc, LazyLock},
    thread,
};

use goodput_algorithms::{Limiter, State};

pub(crate) use self::shared::{Admitted, Shared};
pub use self::{
    acquire::Acquire,
    snapshot::{Snapshot, TimedDecision},
    token::{OwnedToken, Token},
};
use crate::{Clock, Refusal, Request, SystemClock};

/// The shared door of a service: admits as many requests as the limiter allows, and refuses or queues the rest.
///
/// Clones are handles to the same gate.
pub struct Gate<C: Clock = SystemClock> {
    shared: Arc<Shared<C>>,
}

impl Gate {
    /// A gate on the system's clock that never queues.
    pub fn new(limiter: impl Limiter + 'static) -> Self {
        Self::builder(Box::new(limiter)).build()
    }

    /// A gate to be configured.
    #[must_use]
    pub fn builder(limiter: Box<dyn Limiter>) -> GateBuilder<SystemClock> {
        GateBuilder {
            limiter,
            clock: SystemClock::new(),
            name: String::from("default"),
            max_waiting: 0,
            stripes: default_stripes(),
        }
    }
}

impl<C: Clock> Gate<C> {
    /// Admits a request of weight 1 if there is room.
    ///
    /// # Errors
    ///
    /// [`Refusal`] if the limit is reached.
    #[inline]
    pub fn try_acquire(&self) -> Result<Token<'_, C>, Refusal> {
        self.try_acquire_for(&Request::DEFAULT)
    }

    /// Admits a request of the given weight if there is room. One that weighs more than the limit may run alone.
    ///
    /// # Errors
    ///
    /// [`Refusal`] if it does not fit.
    #[inline]
    pub fn try_acquire_many(&self, weight: u32) -> Result<Token<'_, C>, Refusal> {
        self.try_acquire_for(&Request::DEFAULT.weighing(weight))
    }

    /// Admits `request` if there is room.
    ///
    /// # Errors
    ///
    /// [`Refusal`] if it does not fit.
    #[inline]
    pub fn try_acquire_for(&self, request: &Request) -> Result<Token<'_, C>, Refusal> {
        let admitted = self.shared.try_admit(request.weight.max(1))?;
        Ok(Token::new(&self.shared, admitted))
    }

    /// As [`Gate::try_acquire_for`], with a token that does not borrow the gate.
    ///
    /// # Errors
    ///
    /// [`Refusal`] if it does not fit.
    #[inline]
    pub fn try_acquire_owned(&self, request: &Request) -> Result<OwnedToken<C>, Refusal> {
        let admitted = self.shared.try_admit(request.weight.max(1))?;
        Ok(OwnedToken::new(Arc::clone(&self.shared), admitted))
    }

    /// Waits for room if there is none, as far as the gate's bounds on waiting allow.
    pub fn acquire(&self, request: Request) -> Acquire<C> {
        Acquire::new(Arc::clone(&self.shared), request)
    }

    /// Lets the limiter act on the passing of time alone, as at the end of a window without traffic.
    pub fn tick(&self) {
        self.shared.look_at_time();
    }

    /// Replaces the limiter. Tokens that are out stay valid, and count against the new limit.
    pub fn replace_limiter(&self, limiter: Box<dyn Limiter>) {
        self.shared.replace_limiter(limiter);
    }

    /// Requests that may be in flight.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.shared.occupancy().limit()
    }

    /// Requests in flight, by weight.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.shared.occupancy().in_flight() as usize
    }

    /// Requests that wait to be admitted.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.shared.waiters().len()
    }

    /// What the gate knows, for a person who looks.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.shared.snapshot()
    }

    /// The limiter's inner state, to resume from after a restart.
    #[must_use]
    pub fn limiter_state(&self) -> State {
        self.shared.limiter_state()
    }

    /// The clock that the gate reads.
    #[must_use]
    pub fn clock(&self) -> &C {
        self.shared.clock()
    }
}

impl<C: Clock> Clone for Gate<C> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<C: Clock> fmt::Debug for Gate<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").field("snapshot", &self.snapshot()).finish()
    }
}

/// Configures a [`Gate`].
#[derive(Debug)]
pub struct GateBuilder<C: Clock = SystemClock> {
    limiter: Box<dyn Limiter>,
    clock: C,
    name: String,
    max_waiting: usize,
    stripes: usize,
}

impl<C: Clock> GateBuilder<C> {
    /// The name that metrics, events and snapshots carry. Default `default`.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Another clock.
    #[must_use]
    pub fn clock<D: Clock>(self, clock: D) -> GateBuilder<D> {
        GateBuilder {
            clock,
            limiter: self.limiter,
            name: self.name,
            max_waiting: self.max_waiting,
            stripes: self.stripes,
        }
    }

    /// How many requests may wait for room. Default 0: refuse at once.
    #[must_use]
    pub const fn max_waiting(mut self, max_waiting: usize) -> Self {
        self.max_waiting = max_waiting;
        self
    }

    /// How many threads note what they observe each in a stripe of its own, without a thought for the others; more
    /// threads than that take turns at two further ones. A stripe takes 640 bytes. Default: twice the machine's
    /// processors, at most 64.
    #[must_use]
    pub const fn stripes(mut self, stripes: usize) -> Self {
        self.stripes = stripes;
        self
    }

    /// The gate.
    pub fn build(self) -> Gate<C> {
        Gate { shared: Arc::new(Shared::new(self)) }
    }
}

/// Threads that wait for a processor are many, but those that run are few.
fn default_stripes() -> usize {
    static STRIPES: LazyLock<usize> =
        LazyLock::new(|| thread::available_parallelism().map_or(8, NonZero::get).saturating_mul(2).min(64));
    *STRIPES
}
