use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use super::{
    OwnedToken,
    shared::{Admission, Shared},
};
use crate::{Clock, Refusal, RefusalReason, Request};

/// A request on its way in. Resolves to a token, or to the reason why there is none.
///
/// Dropping it leaves the queue at once, and gives back a place that was already assigned. It needs no async runtime,
/// only somebody who polls.
///
/// When its turn comes the place is taken for it and it is woken; a future that is then neither polled nor dropped
/// keeps the place.
#[must_use = "a request waits only while it is polled"]
pub struct Acquire<C: Clock> {
    shared: Arc<Shared<C>>,
    request: Request,
    ticket: Option<u64>,
}

impl<C: Clock> Acquire<C> {
    pub(super) fn new(shared: Arc<Shared<C>>, request: Request) -> Self {
        Self { shared, request, ticket: None }
    }

    fn enter_or_wait(&mut self, context: &mut Context<'_>) -> Poll<Result<OwnedToken<C>, Refusal>> {
        let weight = self.request.weight.max(1);
        let admission = match self.shared.admit(weight) {
            Ok(admitted) => Ok(Admission::Admitted(admitted)),
            Err(seen) if self.shared.max_waiting() == 0 => {
                Err(self.shared.refuse(seen, RefusalReason::LimitReached))
            }
            Err(_) => self.shared.admit_or_wait(weight, context.waker().clone()),
        };
        match admission {
            Ok(Admission::Admitted(admitted)) => {
                Poll::Ready(Ok(OwnedToken::new(Arc::clone(&self.shared), admitted)))
            }
            Ok(Admission::Waits { ticket }) => {
                self.ticket = Some(ticket);
                Poll::Pending
            }
            Err(refusal) => Poll::Ready(Err(refusal)),
        }
    }
}

impl<C: Clock> Future for Acquire<C> {
    type Output = Result<OwnedToken<C>, Refusal>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(ticket) = self.ticket else {
            return self.enter_or_wait(context);
        };
        let waker = context.waker().clone();
        let mut waiters = self.shared.waiters();
        let Some(admitted) = waiters.take_place(ticket) else {
            let stale = waiters.replace_waker(ticket, waker);
            drop(waiters);
            drop(stale);
            return Poll::Pending;
        };
        drop(waiters);
        self.ticket = None;
        Poll::Ready(Ok(OwnedToken::new(Arc::clone(&self.shared), admitted)))
    }
}

impl<C: Clock> Drop for Acquire<C> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.shared.give_up(ticket);
        }
    }
}

impl<C: Clock> fmt::Debug for Acquire<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acquire").field("request", &self.request).finish_non_exhaustive()
    }
}
