use std::{
    collections::VecDeque,
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use super::{OwnedToken, Shared};
use crate::{Clock, Refusal, RefusalReason, Request};

/// The requests that wait for room, first in, first out.
pub(super) struct Waiters {
    queue: VecDeque<Waiter>,
    max_waiting: usize,
    next_ticket: u64,
}

pub(super) struct Waiter {
    ticket: u64,
    pub(super) weight: u32,
    pub(super) waker: Waker,
}

impl Waiters {
    pub(super) fn new(max_waiting: usize) -> Self {
        Self { queue: VecDeque::new(), max_waiting, next_ticket: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Waiter> {
        self.queue.iter()
    }

    fn join(&mut self, weight: u32, waker: Waker) -> Option<u64> {
        if self.queue.len() >= self.max_waiting {
            return None;
        }
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.queue.push_back(Waiter { ticket, weight, waker });
        Some(ticket)
    }

    fn leave(&mut self, ticket: u64) {
        self.queue.retain(|waiter| waiter.ticket != ticket);
    }
}

/// A request on its way in. Resolves to a token, or to the reason why there is none.
///
/// Dropping it leaves the queue at once. It needs no async runtime, only somebody who polls.
pub struct Acquire<C: Clock> {
    shared: Arc<Shared<C>>,
    request: Request,
    ticket: Option<u64>,
}

impl<C: Clock> Acquire<C> {
    pub(super) fn new(shared: Arc<Shared<C>>, request: Request) -> Self {
        Self { shared, request, ticket: None }
    }
}

impl<C: Clock> Future for Acquire<C> {
    type Output = Result<OwnedToken<C>, Refusal>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let now = self.shared.clock.now();
        let mut door = self.shared.lock();
        let first = door.waiters.queue.front().is_none_or(|waiter| Some(waiter.ticket) == self.ticket);
        if first && door.fits(self.request.weight) {
            if let Some(ticket) = self.ticket {
                door.waiters.leave(ticket);
            }
            let admitted = door.admit(self.request.weight, now);
            door.wake_as_many_as_fit();
            drop(door);
            self.ticket = None;
            return Poll::Ready(Ok(OwnedToken::new(Arc::clone(&self.shared), admitted)));
        }
        let joined = match self.ticket {
            Some(ticket) => {
                if let Some(waiter) = door.waiters.queue.iter_mut().find(|waiter| waiter.ticket == ticket) {
                    waiter.waker.clone_from(context.waker());
                }
                self.ticket
            }
            None => door.waiters.join(self.request.weight, context.waker().clone()),
        };
        if joined.is_none() {
            let reason = if door.waiters.max_waiting == 0 {
                RefusalReason::LimitReached
            } else {
                RefusalReason::QueueFull
            };
            return Poll::Ready(Err(door.refuse(reason)));
        }
        drop(door);
        self.ticket = joined;
        Poll::Pending
    }
}

impl<C: Clock> Drop for Acquire<C> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            let mut door = self.shared.lock();
            door.waiters.leave(ticket);
            door.wake_as_many_as_fit();
        }
    }
}

impl<C: Clock> fmt::Debug for Acquire<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acquire").field("request", &self.request).finish_non_exhaustive()
    }
}
