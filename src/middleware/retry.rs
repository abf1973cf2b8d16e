//! Retries: [`Retries`] as a policy of tower's own retry layer.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use goodput_algorithms::{Instant, InvalidSettings};
use tokio::time::{Sleep, sleep};
use tower::retry::Policy;

use super::random::random;
use crate::{
    Clock, SystemClock,
    client::{Call, Failure, Retries, RetrySettings},
};

/// Says which calls of a client are tried again, and when, to `tower::retry::RetryLayer`. All clones share one budget.
///
/// Put the retry layer outside of everything else: a [`GateLayer`](super::GateLayer) and a
/// [`ThrottleLayer`](super::ThrottleLayer) within it then admit and time each attempt by itself, and no place is held
/// during the wait before the next.
///
/// ```
/// use goodput::{
///     Gate, Outcome,
///     client::{Failure, RetrySettings, ThrottleSettings},
///     middleware::{GateError, GateLayer, ThrottleLayer, retry::RetryPolicy},
/// };
/// use tower::{Service, ServiceBuilder, ServiceExt, retry::RetryLayer};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// type Answer = Result<String, GateError<GateError<std::io::Error>>>;
/// // What is worth another attempt: errors of the service, not refusals by our own gate.
/// let failed = |_: &&str, answer: &Answer| match answer {
///     Err(GateError::Service(GateError::Service(_))) => Some(Failure::PLAIN),
///     _ => None,
/// };
/// let mut client = ServiceBuilder::new()
///     .layer(RetryLayer::new(RetryPolicy::new(RetrySettings::default(), failed)?))
///     .layer(ThrottleLayer::new(ThrottleSettings::default())?)
///     .layer(GateLayer::new(Gate::default()))
///     .service_fn(|name: &'static str| async move { Ok::<_, std::io::Error>(format!("hello {name}")) });
/// assert_eq!(client.ready().await?.call("you").await?, "hello you");
/// # Ok(())
/// # }
/// ```
pub struct RetryPolicy<J, C: Clock = SystemClock> {
    retries: Arc<Mutex<Retries>>,
    judge: J,
    clock: C,
    call: Option<Call>,
}

/// Says what of an answer calls for another attempt. Implemented by closures
/// `Fn(&Req, &Result<Res, Err>) -> Option<Failure>`.
pub trait Judge<Req, Res, Err> {
    /// How an attempt failed. `None` if it did not, or if another one may not be made: it could do twice what is to be
    /// done once.
    fn failure(&self, request: &Req, answer: &Result<Res, Err>) -> Option<Failure>;

    /// Tells the server, in the next attempt, how many there were before it.
    fn mark(&self, _request: &mut Req, _previous_attempts: u32) {}

    /// When the caller stops waiting, on the policy's clock. There is no attempt after that.
    fn deadline(&self, _request: &Req) -> Option<Instant> {
        None
    }
}

impl<Req, Res, Err, F: Fn(&Req, &Result<Res, Err>) -> Option<Failure>> Judge<Req, Res, Err> for F {
    fn failure(&self, request: &Req, answer: &Result<Res, Err>) -> Option<Failure> {
        self(request, answer)
    }
}

impl<J> RetryPolicy<J> {
    /// A policy that tries again what `judge` says has failed.
    ///
    /// # Errors
    ///
    /// [`InvalidSettings`] names the field that cannot hold.
    pub fn new(settings: RetrySettings, judge: J) -> Result<Self, InvalidSettings> {
        let retries = Arc::new(Mutex::new(Retries::new(settings)?));
        Ok(Self { retries, judge, clock: SystemClock::new(), call: None })
    }
}

impl<J, C: Clock> RetryPolicy<J, C> {
    /// The same on another clock. Waits are by tokio's timer all the same.
    #[must_use]
    pub fn clock<D: Clock>(self, clock: D) -> RetryPolicy<J, D> {
        RetryPolicy { retries: self.retries, judge: self.judge, clock, call: self.call }
    }

    /// Other settings from now on, for all clones. What was saved up in the budget stays.
    ///
    /// # Errors
    ///
    /// [`InvalidSettings`], and nothing changes.
    pub fn reconfigure(&self, settings: RetrySettings) -> Result<(), InvalidSettings> {
        let now = self.clock.now();
        lock(&self.retries).reconfigure(settings, now)
    }
}

impl<Req, Res, Err, J, C> Policy<Req, Res, Err> for RetryPolicy<J, C>
where
    Req: Clone,
    J: Judge<Req, Res, Err>,
    C: Clock,
{
    type Future = Sleep;

    /// Asked after every attempt, by a clone of its own for every request.
    fn retry(&mut self, request: &mut Req, answer: &mut Result<Res, Err>) -> Option<Sleep> {
        let now = self.clock.now();
        let failure = self.judge.failure(request, answer);
        let deadline = self.judge.deadline(request);
        let mut retries = lock(&self.retries);
        let call = self.call.get_or_insert_with(|| retries.start(now));
        let Some(failure) = failure else {
            retries.succeeded(call);
            return None;
        };
        let wait = retries.failed(call, failure, deadline, random(), now).ok()?;
        let previous = call.attempts() - 1;
        drop(retries);
        self.judge.mark(request, previous);
        Some(sleep(wait))
    }

    fn clone_request(&mut self, request: &Req) -> Option<Req> {
        Some(request.clone())
    }
}

impl<J: Clone, C: Clock + Clone> Clone for RetryPolicy<J, C> {
    fn clone(&self) -> Self {
        Self {
            retries: Arc::clone(&self.retries),
            judge: self.judge.clone(),
            clock: self.clock.clone(),
            call: self.call,
        }
    }
}

impl<J, C: Clock> fmt::Debug for RetryPolicy<J, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryPolicy").field("retries", &self.retries).finish_non_exhaustive()
    }
}

fn lock(retries: &Mutex<Retries>) -> MutexGuard<'_, Retries> {
    retries.lock().unwrap_or_else(PoisonError::into_inner)
}
