use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use goodput_algorithms::Instant;

use super::{OwnedToken, queue::Admission, shared::Shared};
use crate::{Clock, Refusal, Request, waiting::Ticket};

/// A request on its way in. Resolves to a token, or to the reason why there is none.
///
/// Dropping it leaves the queue at once, and gives back a place that was already assigned. It needs no async runtime,
/// only somebody who polls.
///
/// When its turn comes the place is taken for it and it is woken; a future that is then neither polled nor dropped
/// keeps the place.
///
/// It knows until when it may wait, but has no timer: it is refused by the first poll or release after
/// [`Acquire::expires_at`]. Whoever has a timer polls it then; `Gate::acquire_timed` is one that has (feature `tokio`).
#[must_use = "a request waits only while it is polled"]
pub struct Acquire<C: Clock> {
    shared: Arc<Shared<C>>,
    request: Request,
    waits: Option<(Ticket, Instant)>,
}

impl<C: Clock> Acquire<C> {
    pub(super) fn new(shared: Arc<Shared<C>>, request: Request) -> Self {
        Self { shared, request, waits: None }
    }

    /// Until when it waits at the longest, on the gate's clock. `None` unless it waits, and if it waits without end.
    #[must_use]
    pub fn expires_at(&self) -> Option<Instant> {
        self.waits.map(|(_, expires)| expires).filter(|&expires| expires < Instant::FAR_FUTURE)
    }

    #[cfg(feature = "tokio")]
    pub(super) fn now(&self) -> Instant {
        self.shared.clock().now()
    }
}

impl<C: Clock> Future for Acquire<C> {
    type Output = Result<OwnedToken<C>, Refusal>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let settled = match self.waits {
            None => match self.shared.admit_or_wait(&self.request, || context.waker().clone()) {
                Ok(Admission::Waits { ticket, expires }) => {
                    self.waits = Some((ticket, expires));
                    return Poll::Pending;
                }
                Ok(Admission::Entered(entry)) => Ok(entry),
                Err(refusal) => Err(refusal),
            },
            Some((ticket, expires)) => {
                match self.shared.ask_again(ticket, expires, context.waker().clone()) {
                    Some(settled) => settled,
                    None => return Poll::Pending,
                }
            }
        };
        self.waits = None;
        Poll::Ready(match settled {
            Ok(entry) => Ok(OwnedToken::new(Arc::clone(&self.shared), entry)),
            Err(refusal) => {
                self.shared.tell(&self.request, &refusal);
                Err(refusal)
            }
        })
    }
}

impl<C: Clock> Drop for Acquire<C> {
    fn drop(&mut self) {
        if let Some((ticket, _)) = self.waits {
            self.shared.give_up(ticket);
        }
    }
}

impl<C: Clock> fmt::Debug for Acquire<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acquire").field("request", &self.request).finish_non_exhaustive()
    }
}
