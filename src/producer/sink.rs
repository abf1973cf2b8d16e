use std::{
    convert::Infallible,
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures_sink::Sink;

use super::{NotTaken, Producer};
use crate::{Clock, SystemClock};

/// A [`Producer`] as a [`Sink`]: bounded, and pending while its producer should pause. Holds one item of its own
/// besides the queue. Items for which there is no consumer any more are lost, as [`PushBackSink::lost`] tells.
pub struct PushBackSink<T, C: Clock = SystemClock> {
    producer: Producer<T, C>,
    item: Option<T>,
    pause: Option<u64>,
    lost: u64,
}

impl<T, C: Clock> Producer<T, C> {
    /// The same as a sink.
    #[must_use]
    pub const fn into_sink(self) -> PushBackSink<T, C> {
        PushBackSink { producer: self, item: None, pause: None, lost: 0 }
    }
}

impl<T, C: Clock> PushBackSink<T, C> {
    /// How many items nobody was there to take.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    fn poll_empty(&mut self, context: &Context<'_>) -> Poll<()> {
        while let Some(item) = self.item.take() {
            match self.producer.offer(item) {
                Ok(()) => {}
                Err(NotTaken::Closed(_)) => self.lost += 1,
                Err(NotTaken::Full(item)) => {
                    self.item = Some(item);
                    ready!(self.producer.poll_ready(&mut self.pause, context));
                }
            }
        }
        Poll::Ready(())
    }
}

impl<T: Unpin, C: Clock> Sink<T> for PushBackSink<T, C> {
    type Error = Infallible;

    fn poll_ready(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        let this = &mut *self;
        ready!(this.poll_empty(context));
        this.producer.poll_ready(&mut this.pause, context).map(Ok)
    }

    fn start_send(mut self: Pin<&mut Self>, item: T) -> Result<(), Infallible> {
        self.item = Some(item);
        Ok(())
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.poll_empty(context).map(Ok)
    }

    fn poll_close(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.poll_flush(context)
    }
}

impl<T, C: Clock> Drop for PushBackSink<T, C> {
    fn drop(&mut self) {
        self.producer.stop_pausing(&mut self.pause);
    }
}

impl<T, C: Clock> fmt::Debug for PushBackSink<T, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PushBackSink").field("producer", &self.producer).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio_test::{assert_pending, assert_ready, task::spawn};

    use super::*;
    use crate::{
        ManualClock,
        producer::{PushBackQueue, channel},
    };

    #[test]
    fn a_sink_is_pending_from_a_full_queue_until_half_of_it_is_worked_off() {
        let (producer, mut consumer) = channel(PushBackQueue::new(2).unwrap(), ManualClock::new());
        let mut sink = producer.into_sink();
        for item in 0..3 {
            assert_ready!(spawn(poll_fn(|context| Pin::new(&mut sink).poll_ready(context))).poll()).unwrap();
            Pin::new(&mut sink).start_send(item).unwrap();
        }
        let mut flushing = spawn(poll_fn(|context| Pin::new(&mut sink).poll_flush(context)));
        assert_pending!(flushing.poll());
        consumer.try_take();
        assert!(flushing.is_woken());
        assert_ready!(flushing.poll()).unwrap();
        drop(flushing);
        let taken: Vec<_> = std::iter::from_fn(|| consumer.try_take()).map(|(item, _)| item).collect();
        assert_eq!((taken, sink.lost()), (vec![1, 2], 0));
    }
}
