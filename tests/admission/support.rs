//! Gates on a clock that is moved by hand, and requests that wait at them.

use std::time::Duration;

use goodput::{
    Acquire, Criticality, Gate, GateBuilder, ManualClock, OwnedToken, Refusal, Request,
    algorithms::{Fixed, FixedSettings, Instant, Limiter},
    waiting::WaitingSettings,
};
use tokio_test::task::{Spawn, spawn};

pub(crate) type Token = OwnedToken<ManualClock>;

pub(crate) const SHEDDABLE: Request = Request::DEFAULT.of(Criticality::Sheddable);
pub(crate) const CRITICAL_PLUS: Request = Request::DEFAULT.of(Criticality::CriticalPlus);

pub(crate) fn fixed(limit: usize) -> Box<dyn Limiter> {
    Box::new(Fixed::new(FixedSettings { limit }).unwrap())
}

/// A gate of a fixed limit that refuses at once.
pub(crate) fn plain(limit: usize) -> (GateBuilder<ManualClock>, ManualClock) {
    let clock = ManualClock::new();
    (Gate::builder(fixed(limit)).clock(clock.clone()), clock)
}

/// A gate of a fixed limit at which some may wait.
pub(crate) fn waiting(limit: usize, settings: WaitingSettings) -> (Gate<ManualClock>, ManualClock) {
    let (builder, clock) = plain(limit);
    (builder.waiting(settings).unwrap().build(), clock)
}

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) fn at(millis: u64) -> Instant {
    Instant::ZERO + ms(millis)
}

pub(crate) type Asking = Spawn<Acquire<ManualClock>>;

/// A request that must wait.
pub(crate) fn queued(gate: &Gate<ManualClock>, request: Request) -> Asking {
    let mut asking = spawn(gate.acquire(request));
    assert!(asking.poll().is_pending(), "it does not wait");
    asking
}

/// What comes of a request at once.
pub(crate) fn ask(gate: &Gate<ManualClock>, request: Request) -> Result<Token, Refusal> {
    answer(&mut spawn(gate.acquire(request)))
}

pub(crate) fn answer(asking: &mut Asking) -> Result<Token, Refusal> {
    match asking.poll() {
        std::task::Poll::Ready(answer) => answer,
        std::task::Poll::Pending => panic!("it still waits"),
    }
}

pub(crate) fn expires(asking: &mut Asking) -> Option<Instant> {
    asking.enter(|_, acquire| acquire.as_ref().get_ref().expires_at())
}
