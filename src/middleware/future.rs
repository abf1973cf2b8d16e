use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use pin_project_lite::pin_project;

use super::{GateLayer, Protocol, WhenFull};
use crate::{Clock, Gate, Refusal, Request};

/// A service that waits for its one request to be admitted.
pub trait Call<Req> {
    /// What it answers.
    type Response;
    /// What it fails with.
    type Error;
    /// The answer to come.
    type Future: Future<Output = Result<Self::Response, Self::Error>>;

    /// Calls the service.
    fn call(self, request: Req) -> Self::Future;
}

pin_project! {
    /// The answer of a guarded service to come. Dropping it leaves the gate's queue, or gives the place back.
    pub struct ResponseFuture<S, Req, P, C>
    where
        S: Call<Req>,
        P: Protocol<Req, S::Response, S::Error, C>,
        C: Clock,
    {
        protocol: P,
        #[pin]
        state: State<S, Req, S::Future, P::Note, P::Held, C>,
    }
}

pin_project! {
    #[project = StateProjection]
    enum State<S, Req, F, N, H, C>
    where
        C: Clock,
    {
        Waiting {
            #[pin]
            acquire: Waiting<C>,
            call: Option<(S, Req, N)>,
        },
        Working {
            // Dropped in this order: the work ends before its place is free.
            #[pin]
            answer: F,
            held: Option<H>,
        },
        Refused {
            refusal: Option<(Refusal, N)>,
        },
    }
}

impl<S, Req, P, C> ResponseFuture<S, Req, P, C>
where
    S: Call<Req>,
    P: Protocol<Req, S::Response, S::Error, C> + Clone,
    C: Clock,
{
    /// Asks the gate, at once or when first polled, and calls the service if it is admitted.
    pub(super) fn new(layer: &GateLayer<P, C>, mut request: Req, service: impl FnOnce() -> S) -> Self {
        let protocol = layer.protocol.clone();
        let (asked, note) = protocol.read(&request, layer.now());
        let state = match layer.when_full {
            WhenFull::Wait => {
                State::Waiting { acquire: wait(&layer.gate, asked), call: Some((service(), request, note)) }
            }
            WhenFull::Refuse => match layer.gate.try_acquire_owned(&asked) {
                Ok(token) => {
                    let held = Some(protocol.admitted(&mut request, token, note));
                    State::Working { answer: service().call(request), held }
                }
                Err(refusal) => State::Refused { refusal: Some((refusal, note)) },
            },
        };
        Self { protocol, state }
    }
}

impl<S, Req, P, C> Future for ResponseFuture<S, Req, P, C>
where
    S: Call<Req>,
    P: Protocol<Req, S::Response, S::Error, C>,
    C: Clock,
{
    type Output = Result<P::Response, P::Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            let next = match this.state.as_mut().project() {
                StateProjection::Waiting { acquire, call } => {
                    let admission = ready!(acquire.poll(context));
                    let (service, mut request, note) = call.take().expect(POLLED_AGAIN);
                    match admission {
                        Ok(token) => {
                            let held = Some(this.protocol.admitted(&mut request, token, note));
                            State::Working { answer: service.call(request), held }
                        }
                        Err(refusal) => State::Refused { refusal: Some((refusal, note)) },
                    }
                }
                StateProjection::Working { answer, held } => {
                    let answer = ready!(answer.poll(context));
                    return Poll::Ready(this.protocol.answered(answer, held.take().expect(POLLED_AGAIN)));
                }
                StateProjection::Refused { refusal } => {
                    let (refusal, note) = refusal.take().expect(POLLED_AGAIN);
                    return Poll::Ready(this.protocol.refused(refusal, note));
                }
            };
            this.state.set(next);
        }
    }
}

impl<S, Req, P, C> fmt::Debug for ResponseFuture<S, Req, P, C>
where
    S: Call<Req>,
    P: Protocol<Req, S::Response, S::Error, C>,
    C: Clock,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Waiting { .. } => "waiting",
            State::Working { .. } => "working",
            State::Refused { .. } => "refused",
        };
        f.debug_struct("ResponseFuture").field("state", &state).finish_non_exhaustive()
    }
}

#[cfg(feature = "tokio")]
type Waiting<C> = crate::TimedAcquire<C>;
#[cfg(not(feature = "tokio"))]
type Waiting<C> = crate::Acquire<C>;

fn wait<C: Clock>(gate: &Gate<C>, request: Request) -> Waiting<C> {
    #[cfg(feature = "tokio")]
    return gate.acquire_timed(request);
    #[cfg(not(feature = "tokio"))]
    gate.acquire(request)
}

const POLLED_AGAIN: &str = "a future that has given its answer must not be polled again";
