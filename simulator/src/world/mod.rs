//! The world: plays a scenario on virtual time.

mod agenda;
mod attempts;
mod classes;
mod client;
mod doors;
mod feed;
mod flight;
mod outages;
mod pace;
mod polls;
mod recorder;
mod service;
mod timer;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use goodput::{Gate, ManualClock, algorithms::Instant};

use self::{
    agenda::{Agenda, Event, Kind},
    classes::Classes,
    client::Client,
    doors::{Gatepost, Waits},
    flight::{Flights, Place},
    polls::Polls,
    recorder::{Recorder, Standing},
    service::Station,
    timer::Timer,
};
use crate::{
    Limits, Scenario, ScenarioError, Summary, Ties,
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
    /// Whether to record every answer as well.
    pub answers: bool,
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
    timer: Timer,
    station: Station,
    clients: Vec<Client>,
    classes: Classes,
    flights: Flights,
    polls: Polls,
    gates: Vec<Gatepost>,
    /// The gate before the service.
    service_gate: Option<usize>,
    waits: Waits,
    /// How many wait in queues that push back.
    in_line: usize,
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
        let mut classes = Classes::default();
        for described in &scenario.clients {
            for _ in 0..described.count {
                let index = clients.len();
                clients.push(Client::new(scenario, described, &mut classes, seed, index, end)?);
            }
        }
        let mut world = Self {
            scenario,
            limits,
            seed,
            end,
            now: 0,
            clock: ManualClock::new(),
            agenda: Agenda::new(scenario.ties),
            timer: Timer::of(scenario),
            station: Station::new(scenario, end),
            recorder: Recorder::new(scenario, measure, clients.len(), classes.names().len(), end),
            clients,
            classes,
            flights: Flights::default(),
            polls: Polls::default(),
            gates: Vec::new(),
            service_gate: None,
            waits: Waits::default(),
            in_line: 0,
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
        for (index, outage) in scenario.service.outages.iter().enumerate() {
            world.agenda.add(nanos(outage.from), Event::OutageBegins(index as u32));
            world.agenda.add(nanos(outage.until), Event::OutageEnds);
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
        let answers_last = self.scenario.ties == Ties::AnswersLast;
        loop {
            let completion = self.station.next_completion();
            let (at, from_station) = match (self.agenda.next(), completion) {
                (Some((at, kind)), Some(done)) => {
                    // The station's completions are older than what else completes at this instant.
                    let first = done < at || (done == at && kind >= Kind::Completion && !answers_last);
                    (at.min(done), first)
                }
                (Some((at, _)), None) => (at, false),
                (None, Some(done)) => (done, true),
                (None, None) => (self.end, false),
            };
            if at > self.now {
                if self.settle() {
                    continue;
                }
                self.recorder.end_instant(self.station.queued(), self.waiting());
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
            Event::OutageBegins(index) => self.begin_outage(index),
            Event::OutageEnds => self.end_outage(),
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
            Event::Feed(gate) => {
                let busy_ns = self.station.busy_ns(self.now);
                if let (Some(feed), Some(busy_ns)) = (&mut self.gates[gate as usize].feed, busy_ns) {
                    feed.tell(busy_ns);
                    self.agenda.add(self.now.saturating_add(feed.every()), Event::Feed(gate));
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
            Event::Expiry { slot, stamp } => {
                if self.flights.is(slot, stamp) {
                    self.ask_again(slot);
                }
            }
            Event::Arrival(client) => self.arrive(client),
            Event::Resumption(client) => self.resume(client),
        }
        Ok(())
    }

    /// The end of an instant: those who wait and those who were woken ask again, and free workers start. Whether
    /// anything happened.
    #[inline]
    fn settle(&mut self) -> bool {
        let mut happened = self.in_line > 0 && self.serve_lines();
        if self.waits.len() > 0 {
            self.give_places();
        }
        while let Some(slot) = self.waits.take_woken() {
            happened = true;
            self.ask_again(slot);
        }
        if self.station.can_start() {
            happened = true;
            let waiting = self.service_gate.map_or(0, |gate| self.gates[gate].waiting());
            self.station.start(self.now, waiting, &mut self.flights);
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
        let client = &mut self.clients[index as usize];
        let failed = client.already_failed();
        let first = client.first_arrivals();
        failed.into_iter().for_each(|(_, users)| self.recorder.start_retrying(users));
        for at in first {
            let event = if failed.is_some() { Event::Resumption(index) } else { Event::Arrival(index) };
            self.agenda.add(at, event);
        }
        Ok(())
    }

    /// The number of the new gate, or `None` if the door has none in this run.
    fn build_gate(&mut self, door: &crate::Door, field: &str) -> Result<Option<usize>, ScenarioError> {
        let number = self.gates.len();
        let Some(mut post) =
            Gatepost::new(door, field, self.limits, &self.clock, number, self.decisions.as_ref())?
        else {
            return Ok(None);
        };
        if !self.station.starts_at_once() {
            post.give_last();
        }
        // Who joins later finds the limit that is set by then.
        let set = self.limits.schedule().iter().rev().find(|(at, _)| nanos(*at) <= self.now);
        set.map_or(Ok(()), |&(_, limit)| post.set_limit(limit))?;
        if let Some(tick) = post.tick {
            self.agenda.add(self.now.saturating_add(tick), Event::Tick(number as u32));
        }
        if post.feed.is_some() {
            self.station.watch(self.now);
        }
        if let (Some(feed), Some(busy_ns)) = (&mut post.feed, self.station.busy_ns(self.now)) {
            feed.start(busy_ns);
            self.agenda.add(self.now.saturating_add(feed.every()), Event::Feed(number as u32));
        }
        self.gates.push(post);
        Ok(Some(number))
    }

    /// How many wait at gates.
    fn waiting(&self) -> usize {
        self.waits.len() + self.in_line
    }

    fn instant(&self) -> Instant {
        Instant::from_nanos(self.now)
    }

    fn standing(&self) -> Standing {
        let at = Instant::from_nanos(self.recorder.next_step());
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
            waiting: self.waiting(),
            oldest_wait: self.gates.iter().map(|post| post.oldest_wait(at)).max().unwrap_or_default(),
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
            classes: self.classes.names().to_vec(),
            waiting_at_end: self.waits.len() + self.in_line,
            queued_at_end: self.station.queued(),
            in_service_at_end: self.station.in_service(),
            events: self.events,
            ..Summary::default()
        });
        if let (Some(trace), Some(decisions)) = (&mut trace, self.decisions) {
            trace.decisions = std::mem::take(&mut *decisions.lock().unwrap_or_else(PoisonError::into_inner));
        }
        Run { summary, trace }
    }
}
