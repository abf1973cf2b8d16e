//! Gates, and who waits at them.

mod waits;

use goodput::{
    Gate, ManualClock, OwnedToken, Refusal, RefusalReason, Request,
    algorithms::Instant,
    priority::CriticalityShares,
    producer::PushBackQueue,
    waiting::{Fit, Served, Ticket, WaitingRoom},
};

pub(super) use self::waits::Waits;
use crate::{
    Abandoned, Expires, Limits, ScenarioError,
    limits::fixed,
    scenario::{Door, nanos},
    trace::{Record, Witness},
};

/// A gate as a scenario sets it up.
#[derive(Debug)]
pub(super) struct Gatepost {
    pub(super) gate: Gate<ManualClock>,
    line: Line,
    shares: Option<CriticalityShares>,
    /// Whether places are given after everything else that happens at an instant.
    gives_last: bool,
    abandoned: Abandoned,
    expires: Expires,
    /// Whether its limit is set from outside.
    scheduled: bool,
    /// How often it is told that time passes.
    pub(super) tick: Option<u64>,
}

/// Where those wait who found no room.
#[derive(Debug)]
enum Line {
    /// Nowhere.
    None,
    /// In the gate's own.
    OfGate,
    Room(Box<WaitingRoom<u32>>),
    PushBack(PushBackQueue<u32>),
}

/// What a door says to a request.
pub(super) enum Answer {
    In(OwnedToken<ManualClock>),
    Refused(Refusal),
    /// It waits in the gate's own line.
    Wait,
    /// It waits in the room, for which another may have had to go.
    Joined {
        ticket: Option<Ticket>,
        displaced: Option<u32>,
    },
}

/// Who waits no more.
pub(super) enum Next {
    In(u32, OwnedToken<ManualClock>),
    Refused(u32, Refusal),
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
            Some(record) => Box::new(Witness::new(limiter, number, Record::clone(record))),
            None => limiter,
        };
        let invalid =
            |error: goodput::algorithms::InvalidSettings| ScenarioError::new(format!("`{field}`: {error}"));
        let line = match (&door.waiting, door.push_back) {
            (Some(settings), _) => Line::Room(Box::new(WaitingRoom::new(settings.clone()).map_err(invalid)?)),
            (None, Some(capacity)) => Line::PushBack(PushBackQueue::new(capacity).map_err(invalid)?),
            (None, None) if door.max_waiting > 0 => Line::OfGate,
            (None, None) => Line::None,
        };
        Ok(Some(Self {
            gate: Gate::builder(limiter).clock(clock.clone()).max_waiting(door.max_waiting).build(),
            line,
            shares: door.shares,
            gives_last: true,
            abandoned: door.abandoned,
            expires: door.expires,
            scheduled: door.limiter.is_none() && matches!(limits, Limits::Schedule(_)),
            tick: door.tick.map(nanos),
        }))
    }

    /// Gives places as they become free, instead of at the end of the instant.
    pub(super) fn give_at_once(&mut self) {
        self.gives_last = false;
    }

    /// Sets the limit from outside, if this gate's is.
    pub(super) fn set_limit(&self, limit: usize) -> Result<(), ScenarioError> {
        if self.scheduled {
            self.gate.replace_limiter(fixed(limit)?);
        }
        Ok(())
    }

    /// Asks for a request. `serving`: whether those who wait here are served, so that one may pass an empty line.
    #[inline]
    pub(super) fn ask(
        &mut self,
        slot: u32,
        request: Request,
        serving: bool,
        now: Instant,
        waits: &mut Waits,
    ) -> Answer {
        match &mut self.line {
            Line::None => Self::ask_gate(&self.gate, self.shares.as_ref(), &request),
            Line::OfGate => waits.ask(slot, &self.gate, request),
            Line::Room(room) => {
                let limit = self.gate.limit();
                let nobody_may_wait = room.settings().max_waiting.under(limit) == 0;
                if nobody_may_wait || (serving && !self.gives_last && room.is_empty()) {
                    let answer = Self::ask_gate(&self.gate, self.shares.as_ref(), &request);
                    if nobody_may_wait || matches!(answer, Answer::In(_)) {
                        return answer;
                    }
                }
                match room.join(&request, self.gate.in_flight(), limit, now, slot) {
                    Ok(joined) => Answer::Joined {
                        ticket: Some(joined.ticket),
                        displaced: joined.displaced.map(|waiter| waiter.payload),
                    },
                    Err(refusal) => Answer::Refused(refusal),
                }
            }
            Line::PushBack(queue) => match queue.offer(slot, now) {
                Ok(()) => Answer::Joined { ticket: None, displaced: None },
                Err(_) => Answer::Refused(self.refusal(RefusalReason::QueueFull)),
            },
        }
    }

    /// Whose turn it is, if anybody's.
    pub(super) fn serve(&mut self, now: Instant) -> Option<Next> {
        let (limit, in_flight) = (self.gate.limit(), self.gate.in_flight());
        if in_flight >= limit {
            return None;
        }
        let (slot, request) = match &mut self.line {
            Line::None | Line::OfGate => return None,
            Line::PushBack(queue) => (queue.take(now)?.0, Request::DEFAULT),
            Line::Room(room) => {
                let shares = self.shares.as_ref();
                let fits = |request: &Request| {
                    let used = in_flight + request.weight as usize;
                    match shares {
                        Some(shares) if !shares.admit(request, in_flight, limit) => Fit::Pass,
                        _ if used <= limit || in_flight == 0 => Fit::Now,
                        _ => Fit::NotYet,
                    }
                };
                match room.serve(now, fits)? {
                    Served::Admitted(waiter) => (waiter.payload, waiter.request),
                    Served::Refused(waiter, reason) => {
                        return Some(Next::Refused(waiter.payload, self.refusal(reason)));
                    }
                }
            }
        };
        Some(match self.gate.try_acquire_owned(&request) {
            Ok(token) => Next::In(slot, token),
            Err(refusal) => Next::Refused(slot, refusal),
        })
    }

    /// One whose time is up, if doors look for them.
    pub(super) fn expire(&mut self, now: Instant) -> Option<Next> {
        let Line::Room(room) = &mut self.line else { return None };
        let (waiter, reason) = room.expire(now)?;
        Some(Next::Refused(waiter.payload, self.refusal(reason)))
    }

    /// When that will next be the case.
    pub(super) fn next_expiry(&self) -> Option<Instant> {
        match &self.line {
            Line::Room(room) if self.expires == Expires::AtOnce => room.next_expiry(),
            _ => None,
        }
    }

    /// A request that waits is given up by its client. Whether it leaves.
    pub(super) fn abandon(&mut self, ticket: Option<Ticket>, now: Instant) -> bool {
        self.abandoned == Abandoned::Leaves && self.leave(ticket, now)
    }

    /// A request that waits goes away. Whether it waited, and could.
    pub(super) fn leave(&mut self, ticket: Option<Ticket>, now: Instant) -> bool {
        match (&mut self.line, ticket) {
            (Line::Room(room), Some(ticket)) => room.leave(ticket, now).is_some(),
            _ => false,
        }
    }

    /// Whether those who wait do so in the gate's own line.
    pub(super) const fn waits_in_gate(&self) -> bool {
        matches!(self.line, Line::OfGate)
    }

    /// A place of the limit became free.
    #[inline]
    pub(super) fn departed(&mut self, now: Instant) {
        if let Line::Room(room) = &mut self.line {
            room.departed(1, now);
        }
    }

    /// How many wait here whom [`Gatepost::serve`] would serve.
    pub(super) fn in_line(&self) -> usize {
        match &self.line {
            Line::None | Line::OfGate => 0,
            Line::Room(room) => room.waiting(),
            Line::PushBack(queue) => queue.waiting(),
        }
    }

    /// How long the oldest has waited.
    pub(super) fn oldest_wait(&self, now: Instant) -> std::time::Duration {
        match &self.line {
            Line::None | Line::OfGate => std::time::Duration::ZERO,
            Line::Room(room) => room.oldest_wait(now),
            Line::PushBack(queue) => queue.oldest_wait(now),
        }
    }

    /// The queue that pushes back, if it has one.
    pub(super) fn push_back(&mut self) -> Option<&mut PushBackQueue<u32>> {
        if let Line::PushBack(queue) = &mut self.line { Some(queue) } else { None }
    }

    #[inline]
    fn ask_gate(gate: &Gate<ManualClock>, shares: Option<&CriticalityShares>, request: &Request) -> Answer {
        if let Some(shares) = shares {
            let (limit, in_flight) = (gate.limit(), gate.in_flight());
            if in_flight < limit && !shares.admit(request, in_flight, limit) {
                let reason = RefusalReason::CriticalityShareUsed;
                return Answer::Refused(Refusal { reason, limit, in_flight, retry_after: None });
            }
        }
        match gate.try_acquire_owned(request) {
            Ok(token) => Answer::In(token),
            Err(refusal) => Answer::Refused(refusal),
        }
    }

    fn refusal(&self, reason: RefusalReason) -> Refusal {
        let (limit, in_flight) = (self.gate.limit(), self.gate.in_flight());
        Refusal { reason, limit, in_flight, retry_after: None }
    }
}
