//! What becomes of an attempt, from its sending to its end.

use goodput::{Outcome, Refusal, RefusalReason, Request, algorithms::Instant, client::Call};

use super::{
    World,
    agenda::Event,
    doors::Answer,
    flight::{Ending, Flight, Place},
    service::Welcome,
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
            placed: self.now,
            sent: self.now,
            work,
            work_done: 0,
            luck,
            ending: Ending::Well,
            place: Place::Client,
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
        let keeps_place = client.keeps_place();
        let gate = client.gate.filter(|_| self.flights[slot].client_token.is_none());
        if !keeps_place {
            self.set_timeout(slot);
        }
        match gate {
            Some(gate) => {
                self.flights[slot].place = Place::ClientDoor;
                self.ask(slot, gate);
            }
            None => self.leave_for_service(slot),
        }
    }

    fn set_timeout(&mut self, slot: u32) {
        let flight = &self.flights[slot];
        if let Some(timeout) = self.clients[flight.client as usize].timeout {
            let event = Event::Timeout { slot, stamp: flight.stamp };
            self.agenda.add(self.timer.after(self.now, timeout), event);
        }
    }

    /// An attempt has a place at its client's gate, if there is one. Where that is the place of the whole request, an
    /// attempt begins only here.
    fn leave_for_service(&mut self, slot: u32) {
        let flight = &mut self.flights[slot];
        if self.clients[flight.client as usize].keeps_place() {
            flight.sent = self.now;
            self.set_timeout(slot);
        }
        self.come_to_service(slot);
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
        let answer = self.gates[gate].ask(slot, request, now, &mut self.waits);
        if let (Answer::Wait, Some(expiry)) = (&answer, self.waits.expires_at(slot)) {
            let event = Event::Expiry { slot, stamp: self.flights[slot].stamp };
            self.agenda.add(expiry.nanos(), event);
        }
        self.hear(slot, answer);
    }

    /// A request that waits at a gate asks again.
    pub(super) fn ask_again(&mut self, slot: u32) {
        match self.waits.ask_again(slot) {
            Some(Answer::Refused(refusal)) => self.drop_waiting(slot, refusal.reason),
            Some(answer) => self.hear(slot, answer),
            None => {}
        }
    }

    /// A gate has answered.
    pub(super) fn hear(&mut self, slot: u32, answer: Answer) {
        match answer {
            Answer::Wait => {}
            Answer::Queued => self.in_line += 1,
            Answer::Refused(Refusal { reason, .. }) => self.turn_away(slot, reason),
            Answer::In(token) => {
                let flight = &mut self.flights[slot];
                if flight.place == Place::ClientDoor {
                    (flight.client_token, flight.placed) = (Some(token), self.now);
                    self.leave_for_service(slot);
                } else {
                    flight.service_token = Some(token);
                    self.enter(slot);
                }
            }
        }
    }

    /// Serves the queues that push back as far as there is room. Whether anybody was.
    pub(super) fn serve_lines(&mut self) -> bool {
        let mut happened = false;
        for gate in 0..self.gates.len() {
            if !self.serves(gate) {
                continue;
            }
            let now = self.instant();
            while self.gates[gate].queued() > 0
                && let Some((slot, answer)) = self.gates[gate].serve(now)
            {
                happened = true;
                self.in_line -= 1;
                self.hear(slot, answer);
            }
        }
        happened
    }

    /// Gives those places to who waits at gates that are given last.
    pub(super) fn give_places(&mut self) {
        (0..self.gates.len())
            .filter(|&gate| self.serves(gate))
            .for_each(|gate| self.gates[gate].give_places());
    }

    /// Whether those who wait at a gate are served: while the service is away, nobody is at its door.
    #[inline]
    fn serves(&self, gate: usize) -> bool {
        self.station.away().is_none() || self.service_gate != Some(gate)
    }

    fn enter(&mut self, slot: u32) {
        let flight = &mut self.flights[slot];
        flight.place = Place::Service;
        self.recorder.admitted(flight);
        self.enter_station(slot);
    }

    pub(super) fn enter_station(&mut self, slot: u32) {
        if self.station.enter(slot, self.now, &mut self.flights) == Welcome::Lost {
            self.lose(slot);
            if !self.flights[slot].awaited {
                self.flights.remove(slot);
            }
        }
    }

    /// The service forgets an attempt, whose client waits on.
    pub(super) fn lose(&mut self, slot: u32) {
        let flight = &mut self.flights[slot];
        flight.place = Place::Lost;
        if let Some(token) = flight.service_token.take() {
            token.release(Outcome::Failure);
        }
    }

    /// A request that waited is refused. Its client may have given it up before.
    fn drop_waiting(&mut self, slot: u32, reason: RefusalReason) {
        self.recorder.dropped(&self.flights[slot]);
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
        let awaited = flight.awaited;
        let (outcome, trouble) = match flight.ending {
            Ending::Well => (Outcome::Success, None),
            Ending::Failed => (Outcome::Failure, Some(RetryOn::Failure)),
            Ending::Refused => (Outcome::Overload, Some(RetryOn::Refusal)),
        };
        self.release(slot, outcome);
        if awaited {
            self.learn(slot, trouble != Some(RetryOn::Refusal));
            self.end_attempt(slot, trouble);
        } else {
            self.flights.remove(slot);
        }
    }

    /// Frees the places of an attempt.
    #[inline]
    pub(super) fn release(&mut self, slot: u32, outcome: Outcome) {
        let flight = &mut self.flights[slot];
        if let Some(token) = flight.service_token.take() {
            token.release(outcome);
        }
        if !self.clients[flight.client as usize].keeps_place() {
            self.leave_client(slot, outcome);
        }
    }

    /// Frees the place at the client.
    #[inline]
    fn leave_client(&mut self, slot: u32, outcome: Outcome) {
        if let Some(token) = self.flights[slot].client_token.take() {
            token.release(outcome);
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
        if gate.is_some_and(|gate| self.gates[gate].lets_go()) {
            self.waits.leave(slot);
            self.flights[slot].place = Place::Client;
        }
        let client = self.flights[slot].client;
        if !self.clients[client as usize].keeps_place() {
            self.leave_client(slot, Outcome::Overload);
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
            self.leave_client(slot, outcome_of(trouble));
            self.end_request(slot);
            return;
        };
        if !flight.retrying {
            self.recorder.start_retrying(1);
        }
        let next = self.next_attempt(slot);
        let kept = self.flights[slot].client_token.take();
        let flight = &mut self.flights[next];
        (flight.retrying, flight.client_token) = (true, kept);
        self.remove_if_gone(slot);
        let event = Event::Retry { slot: next, stamp: self.flights[next].stamp };
        self.agenda.add(self.timer.after(self.now, wait), event);
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
            ending: Ending::Well,
            place: Place::Client,
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

/// What a gate is told of a request that ended with this trouble, or none.
const fn outcome_of(trouble: Option<RetryOn>) -> Outcome {
    match trouble {
        None => Outcome::Success,
        Some(RetryOn::Failure) => Outcome::Failure,
        Some(RetryOn::Timeout | RetryOn::Refusal) => Outcome::Overload,
    }
}
