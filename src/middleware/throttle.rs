use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
};

use goodput_algorithms::InvalidSettings;
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use super::{ByResult, Classify, GateError, random::random};
use crate::{
    Clock, Outcome, Refusal, RefusalReason, SystemClock,
    client::{Throttle, ThrottleSettings},
};

/// Holds calls back at the client while most of them are refused: a [`Throttle`] as a layer. One for each host that is
/// called; all services made by one layer, and by its clones, share it.
///
/// What is held back fails with [`GateError::Refused`], as [`RefusalReason::Throttled`], and is never sent. An answer
/// is accepted unless its outcome is [`Outcome::Overload`]. A call whose future is dropped before says nothing.
///
/// ```
/// use goodput::{client::ThrottleSettings, middleware::ThrottleLayer};
/// use tower::ServiceBuilder;
///
/// # fn main() -> Result<(), goodput::algorithms::InvalidSettings> {
/// let service = ServiceBuilder::new()
///     .layer(ThrottleLayer::new(ThrottleSettings::default())?)
///     .service_fn(|name: &'static str| async move { Ok::<_, std::io::Error>(format!("hello {name}")) });
/// # Ok(())
/// # }
/// ```
pub struct ThrottleLayer<K = ByResult, C: Clock = SystemClock> {
    throttle: Arc<Mutex<Throttle>>,
    classify: K,
    clock: C,
}

impl ThrottleLayer {
    /// `Ok` and errors alike are accepted until [`ThrottleLayer::classify`] says what an overload is.
    ///
    /// # Errors
    ///
    /// [`InvalidSettings`] names the field that cannot hold.
    pub fn new(settings: ThrottleSettings) -> Result<Self, InvalidSettings> {
        let throttle = Arc::new(Mutex::new(Throttle::new(settings)?));
        Ok(Self { throttle, classify: ByResult, clock: SystemClock::new() })
    }
}

impl<K, C: Clock> ThrottleLayer<K, C> {
    /// The same with another way to tell outcomes: a closure `Fn(&Result<Res, Err>) -> Outcome`, or `http::ByStatus`.
    #[must_use]
    pub fn classify<L>(self, classify: L) -> ThrottleLayer<L, C> {
        ThrottleLayer { throttle: self.throttle, classify, clock: self.clock }
    }

    /// The same on another clock.
    #[must_use]
    pub fn clock<D: Clock>(self, clock: D) -> ThrottleLayer<K, D> {
        ThrottleLayer { throttle: self.throttle, classify: self.classify, clock }
    }
}

impl<S, K: Clone, C: Clock + Clone> Layer<S> for ThrottleLayer<K, C> {
    type Service = ThrottleService<S, K, C>;

    fn layer(&self, inner: S) -> Self::Service {
        ThrottleService { inner, layer: self.clone() }
    }
}

impl<K: Clone, C: Clock + Clone> Clone for ThrottleLayer<K, C> {
    fn clone(&self) -> Self {
        Self {
            throttle: Arc::clone(&self.throttle),
            classify: self.classify.clone(),
            clock: self.clock.clone(),
        }
    }
}

impl<K, C: Clock> fmt::Debug for ThrottleLayer<K, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThrottleLayer").field("throttle", &self.throttle).finish_non_exhaustive()
    }
}

/// A service with a throttle in front. Made by [`ThrottleLayer`].
#[derive(Clone, Debug)]
pub struct ThrottleService<S, K: Clone = ByResult, C: Clock + Clone = SystemClock> {
    inner: S,
    layer: ThrottleLayer<K, C>,
}

impl<Req, S, K, C> Service<Req> for ThrottleService<S, K, C>
where
    S: Service<Req>,
    K: Classify<S::Response, S::Error> + Clone,
    C: Clock + Clone,
{
    type Response = S::Response;
    type Error = GateError<S::Error>;
    type Future = ThrottleFuture<S::Future, K, C>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context).map_err(GateError::Service)
    }

    fn call(&mut self, request: Req) -> Self::Future {
        let sends = lock(&self.layer.throttle).admits(random(), self.layer.clock.now());
        ThrottleFuture { answer: sends.then(|| self.inner.call(request)), layer: self.layer.clone() }
    }
}

pin_project! {
    /// The answer of a throttled service to come.
    pub struct ThrottleFuture<F, K, C>
    where
        C: Clock,
    {
        // None if the call was held back.
        #[pin]
        answer: Option<F>,
        layer: ThrottleLayer<K, C>,
    }
}

impl<F, Res, Err, K, C> Future for ThrottleFuture<F, K, C>
where
    F: Future<Output = Result<Res, Err>>,
    K: Classify<Res, Err>,
    C: Clock,
{
    type Output = Result<Res, GateError<Err>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let Some(answer) = this.answer.as_pin_mut() else {
            return Poll::Ready(Err(GateError::Refused(HELD_BACK)));
        };
        let answer = ready!(answer.poll(context));
        let accepted = this.layer.classify.outcome(&answer) != Outcome::Overload;
        lock(&this.layer.throttle).record(accepted, this.layer.clock.now());
        Poll::Ready(answer.map_err(GateError::Service))
    }
}

impl<F, K, C: Clock> fmt::Debug for ThrottleFuture<F, K, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThrottleFuture").field("sent", &self.answer.is_some()).finish_non_exhaustive()
    }
}

/// No gate was asked, so there is no limit to tell of.
const HELD_BACK: Refusal =
    Refusal { reason: RefusalReason::Throttled, limit: 0, in_flight: 0, retry_after: None };

fn lock(throttle: &Mutex<Throttle>) -> std::sync::MutexGuard<'_, Throttle> {
    throttle.lock().unwrap_or_else(PoisonError::into_inner)
}
