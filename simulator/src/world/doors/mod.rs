//! Gates, and who waits at them.

mod waits;

use goodput::{
    Gate, ManualClock, OwnedToken, Refusal, RefusalReason, Request,
    algorithms::{Instant, InvalidSettings, Utilization},
    producer::PushBackQueue,
    waiting::WaitingSettings,
};

pub(super) use self::waits::Waits;
use super::feed::Feed;
use crate::{
    Abandoned, Limits, ScenarioError,
    limits::fixed,
    scenario::{Door, nanos},
    trace::{Record, Witness},
};

/// A gate as a scenario sets it up.
#[derive(Debug)]
pub(super) struct Gatepost {
    pub(super) gate: Gate<ManualClock>,
    /// Whether who finds no room may wait at the gate.
    lets_wait: bool,
    /// A queue before the gate that pushes back.
    push_back: Option<PushBackQueue<u32>>,
    /// Whether places are given after everything else that happens at an instant: until then the gate pauses.
    gives_last: bool,
    abandoned: Abandoned,
    /// Whether its limit is set from outside.
    scheduled: bool,
    /// How often it is told that time passes.
    pub(super) tick: Option<u64>,
    /// What its limiter is told of how busy the service is.
    pub(super) feed: Option<Feed>,
}

/// What a door says to a request.
pub(super) enum Answer {
    In(OwnedToken<ManualClock>),
    Refused(Refusal),
    /// It waits at the gate.
    Wait,
    /// It waits in the queue that pushes back.
    Queued,
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
        let utilization = Utilization::unknown();
        let limiter = match &door.limiter {
            Some(written) => Some(written.build_with(&utilization).map_err(|error| {
                ScenarioError::new(format!("`{field}.limiter.{}` {}", error.field, error.problem))
            })?),
            None => limits.limiter(field, &utilization)?,
        };
        let algorithm = match limits {
            Limits::Algorithm(tried) => door.limiter.as_ref().or(Some(tried)),
            _ => door.limiter.as_ref(),
        };
        let Some(limiter) = limiter else { return Ok(None) };
        let limiter = match record {
            Some(record) => Box::new(Witness::new(limiter, number, Record::clone(record))),
            None => limiter,
        };
        let invalid = |error: InvalidSettings| ScenarioError::new(format!("`{field}`: {error}"));
        let waiting = door.waiting();
        let lets_wait = waiting.lets_wait();
        let mut gate = Gate::builder(limiter).clock(clock.clone()).waiting(waiting).map_err(invalid)?;
        if let Some(shares) = door.shares {
            gate = gate.shares(shares);
        }
        if let Some(cohorts) = &door.cohorts {
            gate = gate.cohorts(cohorts.clone()).map_err(invalid)?;
        }
        if let Some(partitions) = &door.partitions {
            gate = gate.partitions(partitions.clone()).map_err(invalid)?;
        }
        Ok(Some(Self {
            gate: gate.build(),
            lets_wait,
            push_back: door.push_back.map(PushBackQueue::new).transpose().map_err(invalid)?,
            gives_last: false,
            abandoned: door.abandoned,
            scheduled: door.limiter.is_none() && matches!(limits, Limits::Schedule(_)),
            tick: door.tick.map(nanos),
            feed: algorithm.and_then(|algorithm| Feed::new(algorithm, &utilization)),
        }))
    }

    /// Gives places after everything else that happens at an instant, if anybody may wait for one.
    pub(super) fn give_last(&mut self) {
        self.gives_last = self.lets_wait;
        self.pause();
    }

    /// Sets the limit from outside, if this gate's is.
    pub(super) fn set_limit(&self, limit: usize) -> Result<(), ScenarioError> {
        if self.scheduled {
            self.gate.replace_limiter(fixed(limit)?);
        }
        Ok(())
    }

    /// Asks for a request.
    #[inline]
    pub(super) fn ask(&mut self, slot: u32, request: Request, now: Instant, waits: &mut Waits) -> Answer {
        if self.lets_wait {
            return waits.ask(slot, &self.gate, request);
        }
        let Some(queue) = &mut self.push_back else { return self.ask_gate(&request) };
        match queue.offer(slot, now) {
            Ok(()) => Answer::Queued,
            Err(_) => {
                let (limit, in_flight) = (self.gate.limit(), self.gate.in_flight());
                let reason = RefusalReason::QueueFull;
                Answer::Refused(Refusal { reason, limit, in_flight, retry_after: None })
            }
        }
    }

    /// Lets nobody in who may wait, until places are given again.
    pub(super) fn pause(&self) {
        if self.lets_wait {
            self.gate.pause();
        }
    }

    /// Gives places as they become free, unless they are given last.
    pub(super) fn resume(&self) {
        if self.lets_wait && !self.gives_last {
            self.gate.resume();
        }
    }

    /// Gives those places to who waits at the gate that are given last.
    pub(super) fn give_places(&self) {
        if self.gives_last {
            self.gate.resume();
            self.gate.pause();
        }
    }

    /// Whose turn it is in the queue that pushes back, if anybody's.
    pub(super) fn serve(&mut self, now: Instant) -> Option<(u32, Answer)> {
        if self.gate.in_flight() >= self.gate.limit() {
            return None;
        }
        let (slot, _) = self.push_back.as_mut()?.take(now)?;
        Some((slot, self.ask_gate(&Request::DEFAULT)))
    }

    /// Whether a request that waits at the gate leaves when its client gives it up.
    pub(super) const fn lets_go(&self) -> bool {
        self.lets_wait && matches!(self.abandoned, Abandoned::Leaves)
    }

    /// Whether who waits does so at the gate, and can leave.
    pub(super) const fn lets_wait(&self) -> bool {
        self.lets_wait
    }

    /// How many wait in the queue that pushes back.
    pub(super) fn queued(&self) -> usize {
        self.push_back.as_ref().map_or(0, PushBackQueue::waiting)
    }

    /// How many wait here.
    pub(super) fn waiting(&self) -> usize {
        if self.lets_wait { self.gate.waiting() } else { self.queued() }
    }

    /// How long the oldest has waited.
    pub(super) fn oldest_wait(&self, now: Instant) -> std::time::Duration {
        match &self.push_back {
            Some(queue) => queue.oldest_wait(now),
            None if self.waiting() > 0 => {
                self.gate.snapshot().queue_age + now.since(goodput::Clock::now(self.gate.clock()))
            }
            None => std::time::Duration::ZERO,
        }
    }

    /// The queue that pushes back, if it has one.
    pub(super) const fn push_back(&mut self) -> Option<&mut PushBackQueue<u32>> {
        self.push_back.as_mut()
    }

    #[inline]
    fn ask_gate(&self, request: &Request) -> Answer {
        match self.gate.try_acquire_owned(request) {
            Ok(token) => Answer::In(token),
            Err(refusal) => Answer::Refused(refusal),
        }
    }
}

impl Door {
    /// How requests wait at the gate.
    fn waiting(&self) -> WaitingSettings {
        match &self.waiting {
            Some(settings) => settings.clone(),
            None if self.max_waiting > 0 => WaitingSettings::plain(self.max_waiting),
            None => WaitingSettings::none(),
        }
    }
}
