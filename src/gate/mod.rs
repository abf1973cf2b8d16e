//! The shared door of a service.

mod acquire;
mod admitted;
mod builder;
mod classes;
mod decisions;
mod desk;
mod door;
mod hint;
mod keep;
mod observer;
mod queue;
mod reconfigure;
mod rules;
mod shared;
mod snapshot;
mod stripe;
mod stripes;
mod tallies;
mod thread_index;
#[cfg(feature = "tokio")]
mod timed;
mod token;
mod visit;
mod watch;

use std::{fmt, sync::Arc};

use goodput_algorithms::{Algorithm, InvalidSettings, Limiter, State};

#[cfg(feature = "tokio")]
pub use self::timed::TimedAcquire;
pub use self::{
    acquire::Acquire,
    builder::GateBuilder,
    snapshot::{MoveCounts, Snapshot, TimedDecision},
    token::{OwnedToken, Token},
};
use self::{builder::OnDecision, shared::Shared};
use crate::{Clock, GateConfig, Refusal, Request, SystemClock};

/// The shared door of a service: admits as many requests as the limiter allows, and refuses or queues the rest.
///
/// Clones are handles to the same gate.
///
/// In flight never exceeds the limit, but for a single request that weighs more than the limit and runs alone, and for
/// what was in flight already when the limit was lowered: that drains, and nobody is admitted until there is room
/// again. A limit above 2²⁹ − 1 counts as that.
///
/// # Memory ordering
///
/// What a thread did before it released a token happens before what another does after an admission that this made
/// possible: with a limit of 1, a gate orders as a mutex does. While at most half of the limit is in flight, a thread
/// may keep the place that it frees for its own next request, which orders nothing with others. A refusal orders nothing:
/// it may rest on what the gate was like a moment ago, as may [`Gate::limit`] and [`Gate::in_flight`]; the latter counts
/// no place that is only kept.
///
/// On the way in or out nothing is allocated while nobody waits, and no lock is taken but one: after threads kept places,
/// the first to need them back takes them all under a lock, for which only those wait who find no room otherwise. The
/// limiter runs on the thread whose release closes a window, after its place was freed; other threads go on meanwhile.
pub struct Gate<C: Clock = SystemClock> {
    shared: Arc<Shared<C>>,
}

impl Gate {
    /// A gate on the system's clock that refuses at once whoever finds no room. [`Gate::builder`] makes one that has a
    /// queue, or rules.
    pub fn new(limiter: impl Limiter + 'static) -> Self {
        Self::builder(Box::new(limiter)).build()
    }

    /// A gate to be configured in code. [`GateConfig::builder`] makes one from a config file.
    pub fn builder(limiter: Box<dyn Limiter>) -> GateBuilder<SystemClock> {
        GateBuilder::new(limiter)
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

    /// Admits `request` if there is room, and the gate's rules have nothing against it. Never waits.
    ///
    /// # Errors
    ///
    /// [`Refusal`] if it does not fit, or is refused by a rule.
    #[inline]
    pub fn try_acquire_for(&self, request: &Request) -> Result<Token<'_, C>, Refusal> {
        self.shared.try_admit_and_tell(request, |entry| Token::new(&self.shared, entry))
    }

    /// As [`Gate::try_acquire_for`], with a token that does not borrow the gate.
    ///
    /// # Errors
    ///
    /// [`Refusal`] if it does not fit.
    #[inline]
    pub fn try_acquire_owned(&self, request: &Request) -> Result<OwnedToken<C>, Refusal> {
        self.shared.try_admit_and_tell(request, |entry| OwnedToken::new(Arc::clone(&self.shared), entry))
    }

    /// Waits for room if there is none, as far as the gate's bounds on waiting allow.
    pub fn acquire(&self, request: Request) -> Acquire<C> {
        Acquire::new(Arc::clone(&self.shared), request)
    }

    /// As [`Gate::acquire`], with tokio's timer for the bound on the time waited. Outside of a tokio runtime it is just
    /// [`Gate::acquire`].
    #[cfg(feature = "tokio")]
    pub fn acquire_timed(&self, request: Request) -> TimedAcquire<C> {
        TimedAcquire::new(self.acquire(request))
    }

    /// Lets time pass without traffic: the limiter closes a window that is due, and whoever has waited too long is
    /// refused.
    pub fn tick(&self) {
        self.shared.look_at_time();
    }

    /// Admits nobody from now on, until [`Gate::resume`]: who may wait waits, within the bounds on waiting, and the others
    /// are refused as if the limit were reached. Who is in stays in. For a moment in which the service cannot work, while
    /// what it depends on restarts.
    pub fn pause(&self) {
        self.shared.pause();
    }

    /// Ends a pause, and lets in as many of those who wait as fit, in their order.
    pub fn resume(&self) {
        self.shared.resume();
    }

    /// Replaces the limiter. Tokens that are out stay valid, and count against the new limit.
    pub fn replace_limiter(&self, limiter: Box<dyn Limiter>) {
        self.shared.replace_limiter_by_hand(limiter);
    }

    /// Puts other settings in force, all of them or none. Tokens stay valid and waiters keep waiting.
    ///
    /// What did not change keeps what it has learned. A limiter of the same algorithm with other settings goes on from
    /// the state of the old one where its new bounds allow. A `limiter` that is not given stays. Partitions and tenants
    /// that changed count only what they admit from then on.
    ///
    /// # Errors
    ///
    /// [`InvalidSettings`] names the field that cannot hold, or the name, which cannot change. Everything stays as it
    /// was.
    pub fn reconfigure(&self, config: &GateConfig) -> Result<(), InvalidSettings> {
        self.shared.reconfigure(config)
    }

    /// Switches observe-only mode ([`GateConfig::observe_only`]) on or off.
    pub fn set_observe_only(&self, observe_only: bool) {
        self.shared.set_observe_only(observe_only);
    }

    /// The settings in force. Without a `limiter` if that was made in code.
    #[must_use]
    pub fn config(&self) -> GateConfig {
        self.shared.config()
    }

    /// Requests that may be in flight. At most 2²⁹ − 1.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.shared.occupancy().limit()
    }

    /// Requests in flight, by weight.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.shared.in_flight(self.shared.occupancy())
    }

    /// Requests that wait to be admitted.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.shared.waiting()
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

impl Default for Gate {
    /// A gate on the system's clock with the default of every setting, as a config file has it: a short queue
    /// ([`WaitingSettings`](crate::waiting::WaitingSettings)), and the limiter that needs to be told nothing,
    /// [`Crest`](goodput_algorithms::Crest).
    fn default() -> Self {
        let config = GateConfig { limiter: Some(Algorithm::default()), ..GateConfig::default() };
        // A test of `goodput-algorithms` builds every algorithm with its defaults, and every other default is tested here.
        config.builder().expect("default settings are valid").build()
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
