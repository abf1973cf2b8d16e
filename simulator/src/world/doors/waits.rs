//! The requests that wait in the line of a gate: futures polled by hand, and the bells by which gates wake them.

use std::{
    collections::VecDeque,
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, Wake, Waker},
};

use goodput::{Acquire, Gate, ManualClock, Request, algorithms::Instant};

use super::Answer;

/// The requests that wait at gates.
#[derive(Default)]
pub(in crate::world) struct Waits {
    /// By slot.
    places: Vec<Place>,
    rung: Arc<Rung>,
    waiting: usize,
}

/// The slots that were woken, in order.
type Rung = Mutex<VecDeque<u32>>;

struct Place {
    acquire: Option<Pin<Box<Acquire<ManualClock>>>>,
    waker: Waker,
}

impl Waits {
    /// Asks at a gate. If the request has to wait, `take_woken` will name it when it is worth asking again.
    pub(super) fn ask(&mut self, slot: u32, gate: &Gate<ManualClock>, request: Request) -> Answer {
        while self.places.len() <= slot as usize {
            let bell = Bell { slot: self.places.len() as u32, rung: Arc::clone(&self.rung) };
            self.places.push(Place { acquire: None, waker: Waker::from(Arc::new(bell)) });
        }
        self.places[slot as usize].acquire = Some(Box::pin(gate.acquire(request)));
        self.waiting += 1;
        self.ask_again(slot).unwrap_or(Answer::Wait)
    }

    /// Asks again for a request that waits. `None` if none does.
    pub(in crate::world) fn ask_again(&mut self, slot: u32) -> Option<Answer> {
        let place = self.places.get_mut(slot as usize)?;
        let acquire = place.acquire.as_mut()?;
        let answer = match acquire.as_mut().poll(&mut Context::from_waker(&place.waker)) {
            Poll::Pending => return Some(Answer::Wait),
            Poll::Ready(Ok(token)) => Answer::In(token),
            Poll::Ready(Err(refusal)) => Answer::Refused(refusal),
        };
        place.acquire = None;
        self.waiting -= 1;
        Some(answer)
    }

    /// Until when a request waits at the longest, if it is known.
    pub(in crate::world) fn expires_at(&self, slot: u32) -> Option<Instant> {
        self.places.get(slot as usize)?.acquire.as_ref()?.expires_at()
    }

    /// The request goes away.
    pub(in crate::world) fn leave(&mut self, slot: u32) {
        if let Some(place) = self.places.get_mut(slot as usize)
            && place.acquire.take().is_some()
        {
            self.waiting -= 1;
        }
    }

    /// The next request that a gate has woken.
    #[inline]
    pub(in crate::world) fn take_woken(&mut self) -> Option<u32> {
        if self.waiting == 0 {
            return None;
        }
        self.rung.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    /// How many wait.
    pub(in crate::world) const fn len(&self) -> usize {
        self.waiting
    }
}

impl fmt::Debug for Waits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waits").field("waiting", &self.waiting).finish_non_exhaustive()
    }
}

/// Wakes one slot.
struct Bell {
    slot: u32,
    rung: Arc<Rung>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.rung.lock().unwrap_or_else(PoisonError::into_inner).push_back(self.slot);
    }
}
