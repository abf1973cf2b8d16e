use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    runtime::Handle,
    time::{Sleep, sleep},
};

use super::{Acquire, OwnedToken};
use crate::{Clock, Refusal};

/// On a clock that runs slower than tokio's, how long to sleep until it is looked at again.
const LEAST_SLEEP: Duration = Duration::from_millis(1);

/// An [`Acquire`] that polls itself when its time is up.
#[derive(Debug)]
#[must_use = "a request waits only while it is polled"]
pub struct TimedAcquire<C: Clock> {
    acquire: Acquire<C>,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl<C: Clock> TimedAcquire<C> {
    pub(super) const fn new(acquire: Acquire<C>) -> Self {
        Self { acquire, sleep: None }
    }

    fn sleep(&mut self) -> Option<&mut Pin<Box<Sleep>>> {
        let left = self.acquire.expires_at()?.since(self.acquire.now());
        Handle::try_current().ok()?;
        Some(self.sleep.get_or_insert_with(|| Box::pin(sleep(left.max(LEAST_SLEEP)))))
    }
}

impl<C: Clock> Future for TimedAcquire<C> {
    type Output = Result<OwnedToken<C>, Refusal>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            if let Poll::Ready(answer) = Pin::new(&mut self.acquire).poll(context) {
                return Poll::Ready(answer);
            }
            let Some(sleep) = self.sleep() else { return Poll::Pending };
            if sleep.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            self.sleep = None;
        }
    }
}
