//! What becomes of an attempt, from its sending to its end.

use goodput::{Outcome, Refusal, RefusalReason, Request, algorithms::Instant, client::Call};

use super::{
    World,
    agenda::Event,
    doors::{Answer, Next},
    flight::{Flight, Place},
};
use crate::{RetryOn, scenario::OutageRequests};

impl World<'_> {
    /// A client sends a new request.
    pub(super) fn arrive(&mut self, index: u32) {
        let client = &mut self.clients[index as usize];
        if !client.still_there(self.now) {
            return;
        }
        if client.pace().is_some() {
            self.tick(index);
            return;
        }
        let due = client.send();
        let call = client.start_call(self.now);
        if let Some(next) = due.next {
            self.agenda.add(next, Event::Arrival(index));
        }
        self.begin(index, due.work, due.class, call, false);
    }

    /// A client goes on with a request that failed before the run began.
    pub(super) fn resume(&mut self, index: u32) {
        let client = &mut self.clients[index as usize];
        let failed = client.already_failed().map_or(0, |(failed, _)| failed);
        let due = client.send();
        let call = client.resume_call(failed, self.now);
        self.begin(index, due.work, due.class, call, true);
    }

    fn begin(&mut self, index: u32, work: u64, class: u16, call: Option<Call>, retrying: bool) {
        let slot = self.new_flight(index, work, class, call, retrying);
        let flight = &mut self.flights[slot];
        flight.part = self.recorder.offered(self.now, index, class);
        self.send(slot);
    }

    pub(super) fn new_flight(
        &mut self,
        client: u32,
        work: u64,
        class: u16,
        call: Option<Call>,
        retrying: bool,
    ) -> u32 {
        let luck = if self.draws_luck { self.clients[client as usize].luck(false) } else { 1.0 };
        self.flights.add(Flight {
            stamp: 0,
            client,
            part: 0,
            class,
            call,
            retrying,
            poll: None,
            born: self.now,
            sent: self.now,
            work,
            work_done: 0,
            luck,
            fails: false,
            place: Place::Client,
            ticket: None,
            awaited: true,
            client_token: None,
            service_token: None,
        })
    }

    /// An attempt leaves its client.
    pub(super) fn send(&mut self, slot: u32) {
        let flight = &mut self.flights[slot];
        flight.sent = self.now;
        let index = flight.client as usize;
        self.recorder.attempted(self.now, flight);
        if self.clients[index].retries_from_send() {
            self.plan_next(slot);
        }
        let client = &mut self.clients[index];
        if !client.may_send(self.now) {
            self.turn_away(slot, RefusalReason::Throttled);
            return;
        }
        let flight = &mut self.flights[slot];
        if let Some(timeout) = client.timeout {
            let event = Event::Timeout { slot, stamp: flight.stamp };
            self.agenda.add(self.now.saturating_add(timeout), event);
        }
        match client.gate {
            Some(gate) => {
                flight.place = Place::ClientDoor;
                self.ask(slot, gate);
            }
            None => self.come_to_service(slot),
        }
    }

    fn come_to_service(&mut self, slot: u32) {
        match self.station.away() {
            None | Some(OutageRequests::Kept) => {}
            Some(requests) => {
                self.meet_outage(slot, requests);
                return;
            }
        }
        match self.service_gate {
            Some(gate) => {
                self.flights[slot].place = Place::ServiceDoor;
                self.ask(slot, gate);
            }
            None => self.enter(slot),
        }
    }

    fn ask(&mut self, slot: u32, gate: usize) {
        let flight = &self.flights[slot];
        let criticality = self.classes.criticality(flight.class);
        let request: Request = self.clients[flight.client as usize].request(criticality, flight.sent);
        let now = Instant::from_nanos(self.now);
        let serving = self.serves(gate);
        let answer = self.gates[gate].ask(slot, request, serving, now, &mut self.waits);
        let joined = matches!(answer, Answer::Joined { .. });
        self.hear(slot, answer);
        if joined && let Some(expiry) = self.gates[gate].next_expiry() {
            self.agenda.add(expiry.nanos(), Event::Expiry(gate as u32));
        }
    }

    /// A gate has answered.
    pub(super) fn hear(&mut self, slot: u32, answer: Answer) {
        match answer {
            Answer::Wait => {}
            Answer::Joined { ticket, displaced } => {
                self.flights[slot].ticket = ticket;
                self.in_line += 1;
                if let Some(displaced) = displaced {
                    self.in_line -= 1;
                    self.drop_waiting(displaced, RefusalReason::Displaced);
                }
            }
            Answer::Refused(Refusal { reason, .. }) => self.turn_away(slot, reason),
            Answer::In(token) => {
                let flight = &mut self.flights[slot];
                flight.ticket = None;
                if flight.place == Place::ClientDoor {
                    flight.client_token = Some(token);
                    self.come_to_service(slot);
                } else {
                    flight.service_token = Some(token);
                    self.enter(slot);
                }
            }
        }
    }

    /// Serves those who wait in line as far as there is room. Whether anybody was.
    pub(super) fn serve_lines(&mut self) -> bool {
        let mut happened = false;
        for gate in 0..self.gates.len() {
            if !self.serves(gate) {
                continue;
            }
            let now = self.instant();
            while self.gates[gate].in_line() > 0
                && let Some(next) = self.gates[gate].serve(now)
            {
                happened = true;
                self.go_on(next);
            }
        }
        happened
    }

    /// Whether those who wait at a gate are served: while the service is away, nobody is at its door.
    #[inline]
    fn serves(&self, gate: usize) -> bool {
        self.station.away().is_none() || self.service_gate != Some(gate)
    }

    /// The time of those who wait in a room may be up.
    pub(super) fn expire(&mut self, gate: u32) {
        let now = self.instant();
        while let Some(next) = self.gates[gate as usize].expire(now) {
            self.go_on(next);
        }
    }

    /// Somebody waits no more.
    fn go_on(&mut self, next: Next) {
        self.in_line -= 1;
        match next {
            Next::In(slot, token) => self.hear(slot, Answer::In(token)),
            Next::Refused(slot, refusal) => self.drop_waiting(slot, refusal.reason),
        }
    }

    fn enter(&mut self, slot: u32) {
        let flight = &mut self.flights[slot];
        flight.place = Place::Service;
        self.recorder.admitted(flight);
        self.station.enter(slot, self.now, &mut self.flights);
    }

    /// A request that waited is refused. Its client may have given it up before.
    fn drop_waiting(&mut self, slot: u32, reason: RefusalReason) {
        self.recorder.dropped(&self.flights[slot]);
        self.flights[slot].ticket = None;
        self.turn_away(slot, reason);
    }

    fn turn_away(&mut self, slot: u32, reason: RefusalReason) {
        let flight = &mut self.flights[slot];
        self.recorder.refused(flight, reason, self.station.has_room());
        flight.place = Place::Client;
        self.release(slot, Outcome::Overload);
        if self.flights[slot].awaited {
            // The throttle knows what it held back itself.
            if reason != RefusalReason::Throttled {
                self.learn(slot, false);
            }
            self.end_attempt(slot, Some(RetryOn::Refusal));
        } else {
            self.flights.remove(slot);
        }
    }

    pub(super) fn complete(&mut self) {
        let Some(slot) = self.station.complete(self.now) else { return };
        match self.station.delay() {
            0 => self.answer(slot),
            delay => {
                let event = Event::Answer { slot, stamp: self.flights[slot].stamp };
                self.agenda.add(self.now.saturating_add(delay), event);
            }
        }
    }

    /// The answer leaves the service and is with the client.
    pub(super) fn answer(&mut self, slot: u32) {
        let flight = &mut self.flights[slot];
        self.recorder.answered(self.now, flight);
        flight.place = Place::Client;
        let (fails, awaited) = (flight.fails, flight.awaited);
        self.release(slot, if fails { Outcome::Failure } else { Outcome::Success });
        if awaited {
            self.learn(slot, true);
            self.end_attempt(slot, fails.then_some(RetryOn::Failure));
        } else {
            self.flights.remove(slot);
        }
    }

    /// Frees the places of an attempt.
    #[inline]
    pub(super) fn release(&mut self, slot: u32, outcome: Outcome) {
        let now = Instant::from_nanos(self.now);
        let flight = &mut self.flights[slot];
        if let Some(token) = flight.service_token.take() {
            token.release(outcome);
            self.service_gate.into_iter().for_each(|gate| self.gates[gate].departed(now));
        }
        if let Some(token) = flight.client_token.take() {
            token.release(outcome);
            let gate = self.clients[flight.client as usize].gate;
            gate.into_iter().for_each(|gate| self.gates[gate].departed(now));
        }
    }

    pub(super) fn time_out(&mut self, slot: u32) {
        self.recorder.timed_out(&self.flights[slot]);
        self.abandon(slot);
        self.learn(slot, false);
        self.end_attempt(slot, Some(RetryOn::Timeout));
    }

    /// A client learns what became of an attempt.
    pub(super) fn learn(&mut self, slot: u32, accepted: bool) {
        let client = self.flights[slot].client;
        self.clients[client as usize].learn(accepted, self.now);
    }

    /// A client stops waiting for an attempt: its own place is free, and the doors may hear of it.
    pub(super) fn abandon(&mut self, slot: u32) {
        let flight = &self.flights[slot];
        let gate = match flight.place {
            Place::ClientDoor => self.clients[flight.client as usize].gate,
            Place::ServiceDoor => self.service_gate,
            _ => None,
        };
        if let Some(gate) = gate {
            let now = Instant::from_nanos(self.now);
            let post = &mut self.gates[gate];
            if post.waits_in_gate() {
                self.waits.leave(slot);
                self.flights[slot].place = Place::Client;
            } else if post.abandon(flight.ticket, now) {
                self.in_line -= 1;
                self.flights[slot].place = Place::Client;
            }
        }
        if let Some(token) = self.flights[slot].client_token.take() {
            token.release(Outcome::Overload);
            let gate = self.clients[self.flights[slot].client as usize].gate;
            gate.into_iter().for_each(|gate| self.gates[gate].departed(Instant::from_nanos(self.now)));
        }
    }

    /// The client is done with an attempt: it plans a retry, or lets its user go on.
    pub(super) fn end_attempt(&mut self, slot: u32, trouble: Option<RetryOn>) {
        let flight = &mut self.flights[slot];
        flight.awaited = false;
        let client = &mut self.clients[flight.client as usize];
        if flight.poll.is_some() {
            self.end_attempt_of_poll(slot, trouble);
            return;
        }
        let wait = match trouble {
            Some(trouble) => client.wait_before_retry(flight.call.as_mut(), trouble, self.now),
            None => {
                client.succeeded(flight.call.as_ref());
                None
            }
        };
        let Some(wait) = wait else {
            if flight.retrying {
                self.recorder.stop_retrying(self.now);
            }
            self.end_request(slot);
            return;
        };
        if !flight.retrying {
            self.recorder.start_retrying(1);
        }
        let next = self.next_attempt(slot);
        self.flights[next].retrying = true;
        self.remove_if_gone(slot);
        let event = Event::Retry { slot: next, stamp: self.flights[next].stamp };
        self.agenda.add(self.now.saturating_add(wait), event);
    }

    /// A request came to its end with this attempt.
    pub(super) fn end_request(&mut self, slot: u32) {
        let index = self.flights[slot].client;
        if let Some(next) = self.clients[index as usize].next_of_user(self.now) {
            self.agenda.add(next, Event::Arrival(index));
        }
        self.remove_if_gone(slot);
    }

    /// The attempt that comes after one of the same request.
    pub(super) fn next_attempt(&mut self, slot: u32) -> u32 {
        let flight = &self.flights[slot];
        let luck = if self.draws_luck { self.clients[flight.client as usize].luck(true) } else { 1.0 };
        self.flights.add(Flight {
            stamp: 0,
            work_done: 0,
            luck,
            fails: false,
            place: Place::Client,
            ticket: None,
            awaited: true,
            client_token: None,
            service_token: None,
            ..*flight
        })
    }

    /// Forgets an attempt that nobody has to do with any more.
    pub(super) fn remove_if_gone(&mut self, slot: u32) {
        if matches!(self.flights[slot].place, Place::Client | Place::Lost) {
            self.flights.remove(slot);
        }
    }
}
