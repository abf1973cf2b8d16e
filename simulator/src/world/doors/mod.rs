//! Gates, and who waits at them.

use std::{
    collections::VecDeque,
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, Wake, Waker},
};

use goodput::{Acquire, Gate, ManualClock, OwnedToken, Refusal, Request};

use crate::{
    Limits, ScenarioError,
    limits::fixed,
    scenario::{Door, nanos},
    trace::{Record, Witness},
};

/// A gate as a scenario sets it up.
#[derive(Debug)]
pub(super) struct Gatepost {
    pub(super) gate: Gate<ManualClock>,
    /// Whether requests may wait at it.
    pub(super) waits: bool,
    /// Whether its limit is set from outside.
    pub(super) scheduled: bool,
    /// How often it is told that time passes.
    pub(super) tick: Option<u64>,
}

impl Gatepost {
    /// `None` if the door has no gate in this run.
    pub(super) fn new(
        door: &Door,
        field: &str,
        limits: &Limits,
        clock: &ManualClock,
        number: usize,
        record: Option<&Record>,
    ) -> Result<Option<Self>, ScenarioError> {
        let limiter = match &door.limiter {
            Some(written) => Some(written.build().map_err(|error| {
                ScenarioError::new(format!("`{field}.limiter.{}` {}", error.field, error.problem))
            })?),
            None => limits.limiter(field)?,
        };
        let Some(limiter) = limiter else { return Ok(None) };
        let limiter = match record {
            Some(record) => Box::new(Witness::new(limiter, number, Arc::clone(record))),
            None => limiter,
        };
        let gate = Gate::builder(limiter).clock(clock.clone()).max_waiting(door.max_waiting).build();
        Ok(Some(Self {
            gate,
            waits: door.max_waiting > 0,
            scheduled: door.limiter.is_none() && matches!(limits, Limits::Schedule(_)),
            tick: door.tick.map(nanos),
        }))
    }

    /// Sets the limit from outside, if this gate's is.
    pub(super) fn set_limit(&self, limit: usize) -> Result<(), ScenarioError> {
        if self.scheduled {
            self.gate.replace_limiter(fixed(limit)?);
        }
        Ok(())
    }
}

/// What a gate says to a request.
pub(super) enum Answer {
    In(OwnedToken<ManualClock>),
    Refused(Refusal),
    Wait,
}

/// The requests that wait at gates: futures polled by hand, and the bells by which gates wake them.
#[derive(Default)]
pub(super) struct Waits {
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
    #[inline]
    pub(super) fn ask(&mut self, slot: u32, post: &Gatepost, request: Request) -> Answer {
        if !post.waits {
            return match post.gate.try_acquire_owned(&request) {
                Ok(token) => Answer::In(token),
                Err(refusal) => Answer::Refused(refusal),
            };
        }
        while self.places.len() <= slot as usize {
            let bell = Bell { slot: self.places.len() as u32, rung: Arc::clone(&self.rung) };
            self.places.push(Place { acquire: None, waker: Waker::from(Arc::new(bell)) });
        }
        self.places[slot as usize].acquire = Some(Box::pin(post.gate.acquire(request)));
        self.waiting += 1;
        self.ask_again(slot).unwrap_or(Answer::Wait)
    }

    /// Asks again for a request that waits. `None` if none does.
    pub(super) fn ask_again(&mut self, slot: u32) -> Option<Answer> {
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

    /// The request goes away.
    pub(super) fn leave(&mut self, slot: u32) {
        if let Some(place) = self.places.get_mut(slot as usize)
            && place.acquire.take().is_some()
        {
            self.waiting -= 1;
        }
    }

    /// The next request that a gate has woken.
    #[inline]
    pub(super) fn take_woken(&mut self) -> Option<u32> {
        if self.waiting == 0 {
            return None;
        }
        self.rung.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    /// How many wait.
    pub(super) const fn len(&self) -> usize {
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
