//! The world: plays a scenario on virtual time.

mod agenda;
mod client;
mod doors;
mod flight;
mod recorder;
mod service;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use goodput::{Gate, ManualClock, Outcome, Refusal, Request, algorithms::Instant};

use self::{
    agenda::{Agenda, Event, Kind},
    client::Client,
    doors::{Answer, Gatepost, Waits},
    flight::{Flight, Flights, Place},
    recorder::{Recorder, Standing},
    service::Station,
};
use crate::{
    Limits, RetryOn, Scenario, ScenarioError, Summary,
    scenario::nanos,
    trace::{Record, Trace},
};

/// What to measure beside the totals.
#[derive(Clone, Debug, Default)]
pub struct Measure {
    /// Cuts the run into parts, each with its own counts and latencies.
    pub cuts: Vec<Duration>,
    /// The length of a step. Default: a thousandth of the run.
    pub step: Option<Duration>,
    /// Whether to record what happens in each step, and every decision.
    pub trace: bool,
    /// Ends the run before the scenario's end.
    pub until: Option<Duration>,
}

/// What a run yields.
#[derive(Clone, Debug)]
pub struct Run {
    /// The figures.
    pub summary: Summary,
    /// What happened in each step, if [`Measure::trace`] asked for it.
    pub trace: Option<Trace>,
}

/// Plays a scenario. The same arguments give the same run, to the bit.
///
/// # Errors
///
/// [`ScenarioError`] if the scenario contradicts itself or a limiter's settings cannot hold.
pub fn run(scenario: &Scenario, limits: &Limits, seed: u64, measure: &Measure) -> Result<Run, ScenarioError> {
    scenario.check()?;
    World::new(scenario, limits, seed, measure)?.play()
}

struct World<'s> {
    scenario: &'s Scenario,
    limits: &'s Limits,
    seed: u64,
    end: u64,
    now: u64,
    clock: ManualClock,
    agenda: Agenda,
    station: Station,
    clients: Vec<Client>,
    flights: Flights,
    gates: Vec<Gatepost>,
    /// The gate before the service.
    service_gate: Option<usize>,
    waits: Waits,
    recorder: Recorder,
    decisions: Option<Record>,
    draws_luck: bool,
    events: u64,
}

impl<'s> World<'s> {
    fn new(
        scenario: &'s Scenario,
        limits: &'s Limits,
        seed: u64,
        measure: &Measure,
    ) -> Result<Self, ScenarioError> {
        let end = nanos(scenario.length).min(measure.until.map_or(u64::MAX, nanos));
        let mut clients = Vec::new();
        for described in &scenario.clients {
            for _ in 0..described.count {
                clients.push(Client::new(described, &scenario.service.work, seed, clients.len(), end));
            }
        }
        let mut world = Self {
            scenario,
            limits,
            seed,
            end,
            now: 0,
            clock: ManualClock::new(),
            agenda: Agenda::default(),
            station: Station::new(scenario, end),
            recorder: Recorder::new(scenario, measure, clients.len(), end),
            clients,
            flights: Flights::default(),
            gates: Vec::new(),
            service_gate: None,
            waits: Waits::default(),
            decisions: measure.trace.then(|| Arc::new(Mutex::new(Vec::new()))),
            draws_luck: !scenario.service.errors.is_empty(),
            events: 0,
        };
        if let Some(door) = &scenario.door.service {
            world.service_gate = world.build_gate(door, "door.service")?;
        }
        for at in world.station.change_times() {
            world.agenda.add(at, Event::ServiceChanges);
        }
        for at in world.station.speed_changes() {
            world.agenda.add(at, Event::SpeedChanges);
        }
        for (index, &(at, _)) in limits.schedule().iter().enumerate().skip(1) {
            world.agenda.add(nanos(at), Event::LimitSet(index as u32));
        }
        for (index, client) in world.clients.iter().enumerate() {
            world.agenda.add(client.joins(), Event::Joins(index as u32));
        }
        Ok(world)
    }

    fn play(mut self) -> Result<Run, ScenarioError> {
        loop {
            let completion = self.station.next_completion();
            let (at, from_station) = match (self.agenda.next(), completion) {
                (Some((at, kind)), Some(done)) => {
                    // The station's completions are older than what else completes at this instant.
                    let first = done < at || (done == at && kind >= Kind::Completion);
                    (at.min(done), first)
                }
                (Some((at, _)), None) => (at, false),
                (None, Some(done)) => (done, true),
                (None, None) => (self.end, false),
            };
            if at > self.now && self.settle() {
                continue;
            }
            while at >= self.recorder.next_step() && self.recorder.next_step() <= self.end {
                let standing = self.standing();
                self.recorder.end_step(standing);
            }
            if at >= self.end {
                break;
            }
            if at > self.now {
                self.now = at;
                self.clock.set(Instant::from_nanos(at));
            }
            self.events += 1;
            if from_station {
                self.complete();
            } else if let Some(event) = self.agenda.pop() {
                self.happen(event)?;
            }
            if self.station.starts_at_once() {
                self.settle();
            }
        }
        Ok(self.finish())
    }

    fn happen(&mut self, event: Event) -> Result<(), ScenarioError> {
        match event {
            Event::ServiceChanges => self.station.change(self.now),
            Event::SpeedChanges => self.station.change_speed(self.now),
            Event::LimitSet(index) => {
                let limit = self.limits.schedule()[index as usize].1;
                self.gates.iter().try_for_each(|post| post.set_limit(limit))?;
            }
            Event::Joins(client) => self.join(client)?,
            Event::Tick(gate) => {
                let post = &self.gates[gate as usize];
                post.gate.tick();
                if let Some(tick) = post.tick {
                    self.agenda.add(self.now.saturating_add(tick), Event::Tick(gate));
                }
            }
            Event::Answer { slot, stamp } => {
                if self.flights.is(slot, stamp) {
                    self.answer(slot);
                }
            }
            Event::Timeout { slot, stamp } => {
                if self.flights.is(slot, stamp) && self.flights[slot].awaited {
                    self.time_out(slot);
                }
            }
            Event::Retry { slot, stamp } => {
                if self.flights.is(slot, stamp) {
                    self.send(slot);
                }
            }
            Event::Arrival(client) => self.arrive(client),
        }
        Ok(())
    }

    /// The end of an instant: those who were woken ask again, and free workers start. Whether anything happened.
    #[inline]
    fn settle(&mut self) -> bool {
        let mut happened = false;
        while let Some(slot) = self.waits.take_woken() {
            happened = true;
            let answer = self.waits.ask_again(slot);
            self.hear(slot, answer.unwrap_or(Answer::Wait));
        }
        if self.station.can_start() {
            happened = true;
            self.station.start(self.now, &mut self.flights);
        }
        if happened {
            self.recorder.queued(self.station.queued());
        }
        happened
    }

    fn join(&mut self, index: u32) -> Result<(), ScenarioError> {
        if let Some(door) = &self.scenario.door.clients {
            let shared = door.shared.then(|| self.clients.iter().find_map(|client| client.gate)).flatten();
            self.clients[index as usize].gate = match shared {
                Some(gate) => Some(gate),
                None => self.build_gate(door, "door.clients")?,
            };
        }
        for at in self.clients[index as usize].first_arrivals() {
            self.agenda.add(at, Event::Arrival(index));
        }
        Ok(())
    }

    /// The number of the new gate, or `None` if the door has none in this run.
    fn build_gate(&mut self, door: &crate::Door, field: &str) -> Result<Option<usize>, ScenarioError> {
        let number = self.gates.len();
        let Some(post) =
            Gatepost::new(door, field, self.limits, &self.clock, number, self.decisions.as_ref())?
        else {
            return Ok(None);
        };
        // Who joins later finds the limit that is set by then.
        let set = self.limits.schedule().iter().rev().find(|(at, _)| nanos(*at) <= self.now);
        set.map_or(Ok(()), |&(_, limit)| post.set_limit(limit))?;
        if let Some(tick) = post.tick {
            self.agenda.add(self.now.saturating_add(tick), Event::Tick(number as u32));
        }
        self.gates.push(post);
        Ok(Some(number))
    }

    /// A client sends a new request.
    fn arrive(&mut self, index: u32) {
        let client = &mut self.clients[index as usize];
        if !client.still_there(self.now) {
            return;
        }
        let (work, next) = client.send();
        let luck = if self.draws_luck { client.luck(false) } else { 1.0 };
        if let Some(next) = next {
            self.agenda.add(next, Event::Arrival(index));
        }
        let part = self.recorder.offered(self.now, index);
        let slot = self.flights.add(Flight {
            stamp: 0,
            client: index,
            part,
            tries: 0,
            born: self.now,
            sent: self.now,
            work,
            work_done: 0,
            luck,
            fails: false,
            place: Place::Client,
            awaited: true,
            client_token: None,
            service_token: None,
        });
        self.send(slot);
    }

    /// An attempt leaves its client.
    fn send(&mut self, slot: u32) {
        let flight = &mut self.flights[slot];
        flight.sent = self.now;
        let client = &self.clients[flight.client as usize];
        self.recorder.attempted(self.now, flight);
        if let Some(timeout) = client.timeout {
            let event = Event::Timeout { slot, stamp: flight.stamp };
            self.agenda.add(self.now.saturating_add(timeout), event);
        }
        match client.gate {
            Some(gate) => {
                flight.place = Place::ClientDoor;
                let answer = self.waits.ask(slot, &self.gates[gate], Request::DEFAULT);
                self.hear(slot, answer);
            }
            None => self.come_to_service(slot),
        }
    }

    fn come_to_service(&mut self, slot: u32) {
        match self.service_gate {
            Some(gate) => {
                self.flights[slot].place = Place::ServiceDoor;
                let answer = self.waits.ask(slot, &self.gates[gate], Request::DEFAULT);
                self.hear(slot, answer);
            }
            None => self.enter(slot),
        }
    }

    /// A gate has answered.
    fn hear(&mut self, slot: u32, answer: Answer) {
        match answer {
            Answer::Wait => {}
            Answer::Refused(refusal) => self.turn_away(slot, &refusal),
            Answer::In(token) => {
                let flight = &mut self.flights[slot];
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

    fn enter(&mut self, slot: u32) {
        let flight = &mut self.flights[slot];
        flight.place = Place::Service;
        self.recorder.admitted(flight);
        self.station.enter(slot, self.now, &mut self.flights);
    }

    fn turn_away(&mut self, slot: u32, refusal: &Refusal) {
        let flight = &mut self.flights[slot];
        self.recorder.refused(flight, refusal, self.station.has_room());
        flight.place = Place::Client;
        if let Some(token) = flight.client_token.take() {
            token.release(Outcome::Overload);
        }
        self.end_attempt(slot, Some(RetryOn::Refusal));
    }

    fn complete(&mut self) {
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
    fn answer(&mut self, slot: u32) {
        let flight = &mut self.flights[slot];
        self.recorder.answered(self.now, flight);
        let outcome = if flight.fails { Outcome::Failure } else { Outcome::Success };
        if let Some(token) = flight.service_token.take() {
            token.release(outcome);
        }
        if let Some(token) = flight.client_token.take() {
            token.release(outcome);
        }
        flight.place = Place::Client;
        let failure = flight.fails.then_some(RetryOn::Failure);
        if flight.awaited {
            self.end_attempt(slot, failure);
        } else {
            self.flights.remove(slot);
        }
    }

    fn time_out(&mut self, slot: u32) {
        let flight = &mut self.flights[slot];
        self.recorder.timed_out(flight);
        if matches!(flight.place, Place::ClientDoor | Place::ServiceDoor) {
            self.waits.leave(slot);
            flight.place = Place::Client;
        }
        if let Some(token) = flight.client_token.take() {
            token.release(Outcome::Overload);
        }
        self.end_attempt(slot, Some(RetryOn::Timeout));
    }

    /// The client is done with an attempt: it plans a retry, or lets its user go on.
    fn end_attempt(&mut self, slot: u32, trouble: Option<RetryOn>) {
        let flight = &mut self.flights[slot];
        flight.awaited = false;
        let at_service = flight.place == Place::Service;
        let client = &mut self.clients[flight.client as usize];
        let tries = flight.tries + 1;
        let retries = client.retries.as_ref().is_some_and(|retries| {
            trouble.is_some_and(|trouble| retries.on.contains(&trouble))
                && retries.at_most.is_none_or(|most| tries <= most)
        });
        if !retries {
            if let Some(next) = client.next_of_user(self.now) {
                self.agenda.add(next, Event::Arrival(flight.client));
            }
            if !at_service {
                self.flights.remove(slot);
            }
            return;
        }
        let at = self.now.saturating_add(client.wait(tries));
        let next = Flight {
            stamp: 0,
            tries,
            work_done: 0,
            luck: if self.draws_luck { client.luck(true) } else { 1.0 },
            fails: false,
            place: Place::Client,
            awaited: true,
            client_token: None,
            service_token: None,
            ..*flight
        };
        if !at_service {
            self.flights.remove(slot);
        }
        let slot = self.flights.add(next);
        self.agenda.add(at, Event::Retry { slot, stamp: self.flights[slot].stamp });
    }

    fn standing(&self) -> Standing {
        let (limit, in_flight) = match self.service_gate {
            Some(gate) => {
                let gate = &self.gates[gate].gate;
                (Some(gate.limit() as f64), gate.in_flight())
            }
            None if self.gates.is_empty() => (None, self.station.queued() + self.station.in_service()),
            None => {
                let sum = |read: fn(&Gate<ManualClock>) -> usize| -> usize {
                    self.gates.iter().map(|post| read(&post.gate)).sum()
                };
                (Some(sum(Gate::limit) as f64 / self.gates.len() as f64), sum(Gate::in_flight))
            }
        };
        Standing {
            limit,
            in_flight,
            waiting: self.waits.len(),
            queued: self.station.queued(),
            in_service: self.station.in_service(),
        }
    }

    fn finish(mut self) -> Run {
        for flight in self.flights.iter().filter(|flight| flight.place == Place::Service) {
            self.recorder.left_over(self.end, flight);
        }
        let (summary, mut trace) = self.recorder.finish(Summary {
            scenario: self.scenario.name.clone(),
            limits: self.limits.name(),
            seed: self.seed,
            length: Duration::from_nanos(self.end),
            parts: Vec::new(),
            clients: Vec::new(),
            mean_limit: 0.0,
            step: Duration::ZERO,
            good_per_step: Vec::new(),
            largest_queue: 0,
            queued_at_end: self.station.queued(),
            in_service_at_end: self.station.in_service(),
            idle_refusals: 0,
            low_load_attempts: 0,
            low_load_refusals: 0,
            events: self.events,
        });
        if let (Some(trace), Some(decisions)) = (&mut trace, self.decisions) {
            trace.decisions = std::mem::take(&mut *decisions.lock().unwrap_or_else(PoisonError::into_inner));
        }
        Run { summary, trace }
    }
}
