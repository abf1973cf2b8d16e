//! The shared door of a service.

mod acquire;
mod observer;
mod snapshot;
mod token;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use goodput_algorithms::{Instant, Limiter, State};

pub use self::{
    acquire::Acquire,
    snapshot::{Snapshot, TimedDecision},
    token::{OwnedToken, Token},
};
use self::{acquire::Waiters, observer::Observer};
use crate::{Clock, Outcome, Refusal, RefusalReason, Request, SystemClock};

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
        GateBuilder { limiter, clock: SystemClock::new(), name: String::from("default"), max_waiting: 0 }
    }
}

impl<C: Clock> Gate<C> {
    /// Admits a request of weight 1 if there is room.
    ///
    /// # Errors
    ///
    /// [`Refusal`] if the limit is reached.
    pub fn try_acquire(&self) -> Result<Token<'_, C>, Refusal> {
        self.try_acquire_for(&Request::DEFAULT)
    }

    /// Admits a request of the given weight if there is room. One that weighs more than the limit may run alone.
    ///
    /// # Errors
    ///
    /// [`Refusal`] if it does not fit.
    pub fn try_acquire_many(&self, weight: u32) -> Result<Token<'_, C>, Refusal> {
        self.try_acquire_for(&Request::DEFAULT.weighing(weight))
    }

    /// Admits `request` if there is room.
    ///
    /// # Errors
    ///
    /// [`Refusal`] if it does not fit.
    pub fn try_acquire_for(&self, request: &Request) -> Result<Token<'_, C>, Refusal> {
        let admitted = self.shared.try_admit(request)?;
        Ok(Token::new(&self.shared, admitted))
    }

    /// As [`Gate::try_acquire_for`], with a token that does not borrow the gate.
    ///
    /// # Errors
    ///
    /// [`Refusal`] if it does not fit.
    pub fn try_acquire_owned(&self, request: &Request) -> Result<OwnedToken<C>, Refusal> {
        let admitted = self.shared.try_admit(request)?;
        Ok(OwnedToken::new(Arc::clone(&self.shared), admitted))
    }

    /// Waits for room if there is none, as far as the gate's bounds on waiting allow.
    pub fn acquire(&self, request: Request) -> Acquire<C> {
        Acquire::new(Arc::clone(&self.shared), request)
    }

    /// Lets the limiter act on the passing of time alone, as at the end of a window without traffic.
    pub fn tick(&self) {
        self.shared.observe_time();
    }

    /// Replaces the limiter. Tokens that are out stay valid, and count against the new limit.
    pub fn replace_limiter(&self, limiter: Box<dyn Limiter>) {
        self.shared.replace_limiter(limiter);
    }

    /// Requests that may be in flight.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.shared.lock().limit
    }

    /// Requests in flight, by weight.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.shared.lock().in_flight
    }

    /// Requests that wait to be admitted.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.shared.lock().waiters.len()
    }

    /// What the gate knows, for a person who looks.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let door = self.shared.lock();
        Snapshot {
            name: self.shared.name.clone(),
            limit: door.limit,
            in_flight: door.in_flight,
            waiting: door.waiters.len(),
            decisions: door.observer.decisions(),
            state: door.observer.limiter_state(),
        }
    }

    /// The limiter's inner state, to resume from after a restart.
    #[must_use]
    pub fn limiter_state(&self) -> State {
        self.shared.lock().observer.limiter_state()
    }

    /// The clock that the gate reads.
    #[must_use]
    pub fn clock(&self) -> &C {
        &self.shared.clock
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
        GateBuilder { clock, limiter: self.limiter, name: self.name, max_waiting: self.max_waiting }
    }

    /// How many requests may wait for room. Default 0: refuse at once.
    #[must_use]
    pub const fn max_waiting(mut self, max_waiting: usize) -> Self {
        self.max_waiting = max_waiting;
        self
    }

    /// The gate.
    pub fn build(self) -> Gate<C> {
        let now = self.clock.now();
        let door = Door {
            limit: self.limiter.limit(),
            in_flight: 0,
            waiters: Waiters::new(self.max_waiting),
            observer: Observer::new(self.limiter, now),
        };
        Gate { shared: Arc::new(Shared { clock: self.clock, name: self.name, door: Mutex::new(door) }) }
    }
}

pub(crate) struct Shared<C> {
    clock: C,
    name: String,
    door: Mutex<Door>,
}

struct Door {
    limit: usize,
    in_flight: usize,
    waiters: Waiters,
    observer: Observer,
}

/// What a token remembers of its admission.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Admitted {
    at: Instant,
    weight: u32,
    in_flight: usize,
}

impl<C: Clock> Shared<C> {
    fn try_admit(&self, request: &Request) -> Result<Admitted, Refusal> {
        let now = self.clock.now();
        let mut door = self.lock();
        if !door.waiters.is_empty() || !door.fits(request.weight) {
            return Err(door.refuse(RefusalReason::LimitReached));
        }
        Ok(door.admit(request.weight, now))
    }

    fn release(&self, admitted: Admitted, outcome: Outcome) {
        let now = self.clock.now();
        let mut door = self.lock();
        door.leave(admitted, now);
        door.observer.record(admitted, now, outcome);
        door.follow_limiter(now);
    }

    fn observe_time(&self) {
        let now = self.clock.now();
        let mut door = self.lock();
        door.follow_limiter(now);
    }

    fn replace_limiter(&self, limiter: Box<dyn Limiter>) {
        let now = self.clock.now();
        let mut door = self.lock();
        door.observer.replace(limiter, now);
        door.limit = door.observer.limit();
        door.wake_as_many_as_fit();
    }

    fn lock(&self) -> MutexGuard<'_, Door> {
        self.door.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Door {
    fn fits(&self, weight: u32) -> bool {
        let room = self.limit.saturating_sub(self.in_flight);
        weight as usize <= room || (self.in_flight == 0 && self.limit > 0)
    }

    fn admit(&mut self, weight: u32, now: Instant) -> Admitted {
        self.in_flight += weight as usize;
        self.observer.enter(weight, now, self.in_flight >= self.limit);
        Admitted { at: now, weight, in_flight: self.in_flight }
    }

    fn refuse(&mut self, reason: RefusalReason) -> Refusal {
        self.observer.refuse();
        Refusal { reason, limit: self.limit, in_flight: self.in_flight, retry_after: None }
    }

    fn leave(&mut self, admitted: Admitted, now: Instant) {
        self.in_flight -= admitted.weight as usize;
        self.observer.leave(admitted.weight, now);
        self.wake_as_many_as_fit();
    }

    fn follow_limiter(&mut self, now: Instant) {
        if self.observer.close_window_if_due(now) {
            self.limit = self.observer.limit();
            self.wake_as_many_as_fit();
        }
    }

    fn wake_as_many_as_fit(&mut self) {
        let mut room = self.limit.saturating_sub(self.in_flight);
        for waiter in self.waiters.iter() {
            let alone = self.in_flight == 0 && room == self.limit;
            if waiter.weight as usize > room && !alone {
                break;
            }
            room = room.saturating_sub(waiter.weight as usize);
            waiter.waker.wake_by_ref();
        }
    }
}
