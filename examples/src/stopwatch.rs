//! What a request costs the server, measured inside it: neither the sockets nor the client are in it.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::{Duration, Instant},
};

use goodput::middleware::http::REFUSAL_HEADER;
use http::{Request, Response};
use tower_layer::Layer;
use tower_service::Service;

/// A layer that times every request from its call to the head of its answer. Put it around a gate's.
#[derive(Clone, Debug, Default)]
pub struct Stopwatch(Arc<Mutex<Times>>);

/// Times from a call to the head of its answer.
#[derive(Clone, Debug, Default)]
pub struct Times {
    /// Of requests that the gate admitted and the service answered.
    pub admitted: Vec<Duration>,
    /// Of requests that the gate refused.
    pub refused: Vec<Duration>,
}

impl Stopwatch {
    /// Nothing timed yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What was timed so far, each from the shortest to the longest.
    #[must_use]
    pub fn times(&self) -> Times {
        let mut times = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        times.admitted.sort_unstable();
        times.refused.sort_unstable();
        times
    }

    fn note(&self, refused: bool, time: Duration) {
        let mut times = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if refused { times.refused.push(time) } else { times.admitted.push(time) }
    }
}

impl<S> Layer<S> for Stopwatch {
    type Service = Timed<S>;

    fn layer(&self, inner: S) -> Timed<S> {
        Timed { inner, stopwatch: self.clone() }
    }
}

/// A service that is timed.
#[derive(Clone, Debug)]
pub struct Timed<S> {
    inner: S,
    stopwatch: Stopwatch,
}

impl<S, A, B> Service<Request<A>> for Timed<S>
where
    S: Service<Request<A>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let called = Instant::now();
        let (answer, stopwatch) = (self.inner.call(request), self.stopwatch.clone());
        Box::pin(async move {
            let answer = answer.await;
            if let Ok(response) = &answer {
                stopwatch.note(response.headers().contains_key(REFUSAL_HEADER), called.elapsed());
            }
            answer
        })
    }
}
