use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
};

use http::{Response, header::CONTENT_LENGTH};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use super::{
    is_grpc,
    outcome::{grpc_outcome, grpc_status},
};
use crate::{Clock, Outcome, OwnedToken, SystemClock, middleware::SharedToken};

pin_project! {
    /// A response's body that holds the request's place in the gate until it ends, fails or is dropped.
    pub struct GuardedBody<B, C = SystemClock>
    where
        C: Clock,
    {
        #[pin]
        inner: Option<B>,
        guard: Option<Guard<C>>,
    }
}

/// Holds a token, and releases it with what is then known of the outcome.
pub(in crate::middleware) struct Guard<C: Clock> {
    token: Option<Held<C>>,
    /// If the body comes to its end.
    outcome: Outcome,
    /// If it is dropped before that.
    if_dropped: Outcome,
    /// What gRPC says of the outcome comes after the body.
    awaits_grpc_status: bool,
    /// Bytes still to come, where that is known: a server that has sent as many as it promised does not ask for more.
    remaining: Option<u64>,
}

pub(in crate::middleware) enum Held<C: Clock> {
    Alone(OwnedToken<C>),
    Shared(SharedToken<C>),
}

impl<C: Clock> Held<C> {
    pub(in crate::middleware) fn release(self, outcome: Outcome) {
        match self {
            Self::Alone(token) => token.release(outcome),
            Self::Shared(token) => token.end(outcome),
        }
    }
}

impl<B, C: Clock> GuardedBody<B, C> {
    /// The body of a refusal: nothing.
    pub(super) const fn empty() -> Self {
        Self { inner: None, guard: None }
    }

    /// A body that holds no place.
    pub(super) const fn free(inner: B) -> Self {
        Self { inner: Some(inner), guard: None }
    }
}

impl<B: Body, C: Clock> GuardedBody<B, C> {
    /// Lets the body of `response` hold `token`, unless it has ended already.
    ///
    /// If the body is dropped before its end, an answer that was no success by its head ends as its head says;
    /// one that was ends with `early_drop`.
    pub(in crate::middleware) fn guard(
        response: Response<B>,
        token: Held<C>,
        outcome: Outcome,
        early_drop: Outcome,
    ) -> Response<Self> {
        let headers = response.headers();
        let awaits_grpc_status =
            outcome == Outcome::Success && is_grpc(headers) && grpc_status(headers).is_none();
        let promised = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        let guard = Guard {
            token: Some(token),
            outcome,
            if_dropped: match outcome {
                Outcome::Success if awaits_grpc_status => Outcome::Cancelled,
                Outcome::Success => early_drop,
                known => known,
            },
            awaits_grpc_status,
            remaining: response.body().size_hint().exact().or(promised),
        };
        let ended = response.body().is_end_stream() || guard.is_all_sent();
        response.map(|inner| {
            let mut body = Self { inner: Some(inner), guard: Some(guard) };
            if ended {
                end(&mut body.guard);
            }
            body
        })
    }
}

impl<B: Body, C: Clock> Body for GuardedBody<B, C> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let mut this = self.project();
        let Some(mut inner) = this.inner.as_mut().as_pin_mut() else {
            return Poll::Ready(None);
        };
        let frame = ready!(inner.as_mut().poll_frame(context));
        match (&frame, this.guard.as_mut()) {
            (Some(Ok(frame)), Some(guard)) => {
                guard.see(frame);
                // Whoever sends the body may not ask again for what it knows to be the end.
                if frame.is_trailers() || guard.is_all_sent() || inner.is_end_stream() {
                    end(this.guard);
                }
            }
            (Some(Err(_)), Some(guard)) => {
                guard.fail();
                end(this.guard);
            }
            (None, _) => end(this.guard),
            (Some(_), None) => {}
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}

impl<C: Clock> Guard<C> {
    fn see<D: bytes::Buf>(&mut self, frame: &Frame<D>) {
        if let (Some(remaining), Some(data)) = (self.remaining.as_mut(), frame.data_ref()) {
            *remaining = remaining.saturating_sub(data.remaining() as u64);
        }
        if let Some(code) = frame.trailers_ref().and_then(grpc_status).filter(|_| self.awaits_grpc_status) {
            self.outcome = grpc_outcome(code);
            self.awaits_grpc_status = false;
        }
    }

    /// A body that breaks spoils a success; what was bad before remains what it was.
    fn fail(&mut self) {
        if self.outcome == Outcome::Success {
            self.outcome = Outcome::Failure;
        }
        self.awaits_grpc_status = false;
    }

    fn is_all_sent(&self) -> bool {
        self.remaining == Some(0)
    }
}

impl<C: Clock> Drop for Guard<C> {
    fn drop(&mut self) {
        if let Some(token) = self.token.take() {
            token.release(self.if_dropped);
        }
    }
}

/// Releases the token at the end of the body. A gRPC call that ends without a status has failed.
fn end<C: Clock>(guard: &mut Option<Guard<C>>) {
    if let Some(mut guard) = guard.take() {
        guard.if_dropped = if guard.awaits_grpc_status { Outcome::Failure } else { guard.outcome };
    }
}

impl<B: Default, C: Clock> Default for GuardedBody<B, C> {
    fn default() -> Self {
        Self::free(B::default())
    }
}

impl<B: fmt::Debug, C: Clock> fmt::Debug for GuardedBody<B, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardedBody")
            .field("inner", &self.inner)
            .field("holds_a_place", &self.guard.is_some())
            .finish()
    }
}
