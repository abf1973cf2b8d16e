use std::{collections::VecDeque, time::Duration};

use goodput_algorithms::{Instant, InvalidSettings};

/// A bounded queue that pushes back: once it was full, it asks its producer to pause until half of it is worked off,
/// so that producer and consumer do not take turns item by item.
///
/// A producer that can wait keeps an item that was not taken, and goes on when [`PushBackQueue::is_ready`]. One that
/// cannot, drops it, and may offer the next one at once: there is room as soon as one was taken.
#[derive(Clone, Debug)]
pub struct PushBackQueue<T> {
    items: VecDeque<(Instant, T)>,
    capacity: usize,
    was_full: bool,
}

impl<T> PushBackQueue<T> {
    /// An empty queue.
    ///
    /// # Errors
    ///
    /// [`InvalidSettings`] if the capacity is zero.
    pub fn new(capacity: usize) -> Result<Self, InvalidSettings> {
        if capacity == 0 {
            return Err(InvalidSettings::new("capacity", "must be at least 1, not 0"));
        }
        Ok(Self { items: VecDeque::new(), capacity, was_full: false })
    }

    /// Puts an item in.
    ///
    /// # Errors
    ///
    /// The item, if the queue is full. A producer that can wait should then pause.
    pub fn offer(&mut self, item: T, now: Instant) -> Result<(), T> {
        if self.items.len() >= self.capacity {
            self.was_full = true;
            return Err(item);
        }
        self.items.push_back((now, item));
        Ok(())
    }

    /// Takes the oldest item, and how long it waited.
    pub fn take(&mut self, now: Instant) -> Option<(T, Duration)> {
        let (joined, item) = self.items.pop_front()?;
        if self.items.len() <= self.capacity / 2 {
            self.was_full = false;
        }
        Some((item, now.since(joined)))
    }

    /// Whether a producer that can wait should send: the queue did not refuse an item since it was last half empty.
    #[must_use]
    pub const fn is_ready(&self) -> bool {
        !self.was_full
    }

    /// Items in the queue.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.items.len()
    }

    /// How long the oldest item has waited.
    #[must_use]
    pub fn oldest_wait(&self, now: Instant) -> Duration {
        self.items.front().map_or(Duration::ZERO, |&(joined, _)| now.since(joined))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, PartialEq)]
    enum Mode {
        Unbounded,
        Drop,
        PushBack,
    }

    struct Run {
        made: u32,
        handled: u32,
        /// Waiting, age of the oldest in ms, dropped, and paused in ms, every 15 s.
        reports: Vec<(usize, u128, u32, u32)>,
    }

    /// The published model: a producer of 1.2 items per ms, a consumer of one, for a minute in ticks of 1 ms. The sum
    /// of 1.2 in floating point is part of it.
    fn run(mode: Mode) -> Run {
        let capacity = if mode == Mode::Unbounded { usize::MAX } else { 100 };
        let mut queue = PushBackQueue::new(capacity).unwrap();
        let (mut owed, mut paused, mut dropped) = (0.0, 0, 0);
        let mut run = Run { made: 0, handled: 0, reports: Vec::new() };
        for tick in 1..=60_000 {
            let now = Instant::from_nanos(tick * 1_000_000);
            let mut pausing = mode == Mode::PushBack && !queue.is_ready();
            if pausing {
                paused += 1;
            } else {
                owed += 1.2;
            }
            while owed >= 1.0 && !pausing {
                owed -= 1.0;
                match queue.offer((), now) {
                    Ok(()) => run.made += 1,
                    Err(()) if mode == Mode::PushBack => {
                        owed += 1.0;
                        pausing = true;
                    }
                    Err(()) => {
                        run.made += 1;
                        dropped += 1;
                    }
                }
            }
            run.handled += u32::from(queue.take(now).is_some());
            if tick % 15_000 == 0 {
                run.reports.push((queue.waiting(), queue.oldest_wait(now).as_millis(), dropped, paused));
            }
        }
        run
    }

    #[test]
    fn without_a_bound_the_published_queue_grows_without_end() {
        let run = run(Mode::Unbounded);
        assert_eq!((run.made, run.handled), (71_999, 60_000));
        assert_eq!(
            run.reports,
            [(2_999, 2_499, 0, 0), (5_999, 4_999, 0, 0), (8_999, 7_499, 0, 0), (11_999, 9_999, 0, 0)]
        );
    }

    #[test]
    fn the_published_queue_that_drops_keeps_a_standing_queue() {
        let run = run(Mode::Drop);
        assert_eq!((run.made, run.handled), (71_999, 60_000));
        assert_eq!(
            run.reports,
            [(99, 98, 2_900, 0), (99, 98, 5_900, 0), (99, 98, 8_900, 0), (99, 98, 11_900, 0)]
        );
    }

    #[test]
    fn the_published_producer_that_is_pushed_back_loses_nothing() {
        let run = run(Mode::PushBack);
        assert_eq!((run.made, run.handled), (60_063, 60_000));
        let rounded: Vec<_> = run
            .reports
            .iter()
            .map(|&(waiting, age, dropped, ms)| (waiting, age, dropped, (ms + 500) / 1_000))
            .collect();
        assert_eq!(rounded, [(59, 98, 0, 2), (61, 49, 0, 5), (62, 51, 0, 7), (63, 52, 0, 10)]);
        assert_eq!(run.reports[3].3, 9_947);
    }

    #[test]
    fn a_queue_without_room_is_refused() {
        assert_eq!(PushBackQueue::<()>::new(0).unwrap_err().field, "capacity");
    }
}
