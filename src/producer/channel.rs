use std::{
    collections::BTreeMap,
    fmt,
    future::{Future, poll_fn},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::Duration,
};

use super::PushBackQueue;
use crate::{Clock, SystemClock};

/// A queue with a producer's and a consumer's end, on a clock from which waits are told.
pub fn channel<T, C: Clock>(queue: PushBackQueue<T>, clock: C) -> (Producer<T, C>, Consumer<T, C>) {
    let state = State {
        queue,
        pausing: BTreeMap::new(),
        next_pause: 0,
        consumer: None,
        producers: 1,
        consumed: true,
    };
    let shared = Arc::new(Shared { state: Mutex::new(state), clock });
    (Producer { shared: Arc::clone(&shared) }, Consumer { shared })
}

/// The end of a channel into which work is put. Clones share it.
pub struct Producer<T, C: Clock = SystemClock> {
    shared: Arc<Shared<T, C>>,
}

/// The end of a channel from which work is taken.
pub struct Consumer<T, C: Clock = SystemClock> {
    shared: Arc<Shared<T, C>>,
}

/// An item that was not taken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NotTaken<T> {
    /// The queue is full. A producer that can wait should pause until it is [ready](Producer::ready).
    Full(T),
    /// There is no consumer any more.
    Closed(T),
}

struct Shared<T, C> {
    state: Mutex<State<T>>,
    clock: C,
}

struct State<T> {
    queue: PushBackQueue<T>,
    /// Producers that pause.
    pausing: BTreeMap<u64, Waker>,
    next_pause: u64,
    consumer: Option<Waker>,
    producers: usize,
    /// Whether there is a consumer.
    consumed: bool,
}

impl<T, C> Shared<T, C> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> State<T> {
    /// Everybody who may go on, to be woken once the lock is free.
    fn whoever_is_ready(&mut self) -> BTreeMap<u64, Waker> {
        if self.queue.is_ready() || !self.consumed {
            std::mem::take(&mut self.pausing)
        } else {
            BTreeMap::new()
        }
    }
}

impl<T, C: Clock> Producer<T, C> {
    /// Puts an item in, if there is room.
    ///
    /// # Errors
    ///
    /// [`NotTaken`], with the item.
    pub fn offer(&self, item: T) -> Result<(), NotTaken<T>> {
        let now = self.shared.clock.now();
        let mut state = self.shared.lock();
        if !state.consumed {
            return Err(NotTaken::Closed(item));
        }
        state.queue.offer(item, now).map_err(NotTaken::Full)?;
        let consumer = state.consumer.take();
        drop(state);
        wake(consumer);
        Ok(())
    }

    /// Waits until a producer that can wait should go on: since an item was refused, half of the queue has been worked
    /// off. Ready at once if none was, or if there is no consumer any more.
    pub fn ready(&self) -> Ready<'_, T, C> {
        Ready { producer: self, pause: None }
    }

    /// Puts an item in, and waits for as long as that takes. The item is lost if the future is dropped before: in a
    /// `select`, or under a time-out, wait for [`Producer::ready`] and then [`Producer::offer`], which gives the item
    /// back if others were faster.
    ///
    /// # Errors
    ///
    /// The item, if there is no consumer any more.
    pub async fn send(&self, mut item: T) -> Result<(), T> {
        loop {
            match self.offer(item) {
                Ok(()) => return Ok(()),
                Err(NotTaken::Closed(item)) => return Err(item),
                Err(NotTaken::Full(again)) => item = again,
            }
            self.ready().await;
        }
    }

    /// Items in the queue.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.shared.lock().queue.waiting()
    }

    /// How long the oldest item has waited.
    #[must_use]
    pub fn oldest_wait(&self) -> Duration {
        let now = self.shared.clock.now();
        self.shared.lock().queue.oldest_wait(now)
    }

    pub(super) fn poll_ready(&self, pause: &mut Option<u64>, context: &Context<'_>) -> Poll<()> {
        let waker = context.waker().clone();
        let mut state = self.shared.lock();
        if state.queue.is_ready() || !state.consumed {
            self.forget(&mut state, pause);
            return Poll::Ready(());
        }
        let number = *pause.get_or_insert(state.next_pause);
        state.next_pause = state.next_pause.max(number + 1);
        let stale = state.pausing.insert(number, waker);
        drop(state);
        drop(stale);
        Poll::Pending
    }

    pub(super) fn stop_pausing(&self, pause: &mut Option<u64>) {
        if pause.is_some() {
            self.forget(&mut self.shared.lock(), pause);
        }
    }

    fn forget(&self, state: &mut State<T>, pause: &mut Option<u64>) {
        if let Some(number) = pause.take() {
            state.pausing.remove(&number);
        }
    }
}

impl<T, C: Clock> Consumer<T, C> {
    /// The oldest item, and how long it waited. Waits for one; `None` once there are neither items nor producers.
    pub async fn take(&mut self) -> Option<(T, Duration)> {
        poll_fn(|context| self.poll_take(context)).await
    }

    /// The oldest item, and how long it waited, if there is one now.
    pub fn try_take(&mut self) -> Option<(T, Duration)> {
        let now = self.shared.clock.now();
        let mut state = self.shared.lock();
        let taken = state.queue.take(now);
        let ready = state.whoever_is_ready();
        drop(state);
        wake(ready.into_values());
        taken
    }

    fn poll_take(&mut self, context: &Context<'_>) -> Poll<Option<(T, Duration)>> {
        if let Some(taken) = self.try_take() {
            return Poll::Ready(Some(taken));
        }
        let waker = context.waker().clone();
        let mut state = self.shared.lock();
        // One may have come in between.
        if state.queue.waiting() > 0 {
            drop(state);
            return Poll::Ready(self.try_take());
        }
        if state.producers == 0 {
            return Poll::Ready(None);
        }
        let stale = state.consumer.replace(waker);
        drop(state);
        drop(stale);
        Poll::Pending
    }
}

impl<T, C: Clock> Clone for Producer<T, C> {
    fn clone(&self) -> Self {
        self.shared.lock().producers += 1;
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<T, C: Clock> Drop for Producer<T, C> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.producers -= 1;
        let consumer = if state.producers == 0 { state.consumer.take() } else { None };
        drop(state);
        wake(consumer);
    }
}

impl<T, C: Clock> Drop for Consumer<T, C> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.consumed = false;
        let ready = state.whoever_is_ready();
        drop(state);
        wake(ready.into_values());
    }
}

impl<T, C: Clock> fmt::Debug for Producer<T, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Producer").field("waiting", &self.waiting()).finish_non_exhaustive()
    }
}

impl<T, C: Clock> fmt::Debug for Consumer<T, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waiting = self.shared.lock().queue.waiting();
        f.debug_struct("Consumer").field("waiting", &waiting).finish_non_exhaustive()
    }
}

/// Waits until a producer should go on. Made by [`Producer::ready`].
#[must_use = "a producer pauses only while this is polled"]
pub struct Ready<'producer, T, C: Clock = SystemClock> {
    producer: &'producer Producer<T, C>,
    pause: Option<u64>,
}

impl<T, C: Clock> Future for Ready<'_, T, C> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        this.producer.poll_ready(&mut this.pause, context)
    }
}

impl<T, C: Clock> Drop for Ready<'_, T, C> {
    fn drop(&mut self) {
        self.producer.stop_pausing(&mut self.pause);
    }
}

impl<T, C: Clock> fmt::Debug for Ready<'_, T, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ready").field("pauses", &self.pause.is_some()).finish_non_exhaustive()
    }
}

fn wake(wakers: impl IntoIterator<Item = Waker>) {
    for waker in wakers {
        waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use tokio_test::{assert_pending, assert_ready, assert_ready_eq, task::spawn};

    use super::*;
    use crate::ManualClock;

    fn of_capacity(capacity: usize) -> (Producer<u32, ManualClock>, Consumer<u32, ManualClock>) {
        channel(PushBackQueue::new(capacity).unwrap(), ManualClock::new())
    }

    #[test]
    fn a_producer_that_was_refused_goes_on_when_half_is_worked_off() {
        let (producer, mut consumer) = of_capacity(4);
        for item in 0..4 {
            producer.offer(item).unwrap();
        }
        assert_ready!(spawn(producer.ready()).poll());
        let mut sending = spawn(producer.send(4));
        assert_pending!(sending.poll());
        consumer.try_take();
        assert!(!sending.is_woken());
        consumer.try_take();
        assert!(sending.is_woken());
        assert_ready_eq!(sending.poll(), Ok(()));
        let taken: Vec<_> = std::iter::from_fn(|| consumer.try_take()).map(|(item, _)| item).collect();
        assert_eq!(taken, [2, 3, 4]);
    }

    #[test]
    fn an_item_knows_how_long_it_waited() {
        let clock = ManualClock::new();
        let (producer, mut consumer) = channel(PushBackQueue::new(1).unwrap(), clock.clone());
        producer.offer(7).unwrap();
        clock.advance(Duration::from_millis(30));
        assert_eq!(producer.oldest_wait(), Duration::from_millis(30));
        assert_eq!(consumer.try_take(), Some((7, Duration::from_millis(30))));
    }

    #[test]
    fn a_consumer_is_woken_by_an_item_and_ends_with_the_last_producer() {
        let (producer, mut consumer) = of_capacity(1);
        let other = producer.clone();
        let mut taking = spawn(consumer.take());
        assert_pending!(taking.poll());
        producer.offer(1).unwrap();
        assert!(taking.is_woken());
        assert_eq!(assert_ready!(taking.poll()).unwrap().0, 1);
        drop(taking);
        let mut taking = spawn(consumer.take());
        assert_pending!(taking.poll());
        drop(producer);
        assert!(!taking.is_woken());
        drop(other);
        assert!(taking.is_woken());
        assert_ready_eq!(taking.poll(), None);
    }

    #[test]
    fn producers_go_on_and_learn_of_it_when_the_consumer_leaves() {
        let (producer, consumer) = of_capacity(1);
        producer.offer(1).unwrap();
        let mut sending = spawn(producer.send(2));
        assert_pending!(sending.poll());
        drop(consumer);
        assert!(sending.is_woken());
        assert_ready_eq!(sending.poll(), Err(2));
        assert_eq!(producer.offer(3), Err(NotTaken::Closed(3)));
    }

    #[test]
    fn a_pause_that_is_given_up_leaves_nothing_behind() {
        let (producer, _consumer) = of_capacity(1);
        producer.offer(1).unwrap();
        assert_eq!(producer.offer(2), Err(NotTaken::Full(2)));
        let mut pause = spawn(producer.ready());
        assert_pending!(pause.poll());
        assert_eq!(producer.shared.lock().pausing.len(), 1);
        drop(pause);
        assert_eq!(producer.shared.lock().pausing.len(), 0);
    }
}
