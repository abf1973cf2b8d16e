//! The service: who works on what, and how long it takes.

mod crowd;
mod pool;
mod sharing;
mod speed;

use self::{
    crowd::{Crowd, TooMany},
    pool::Workers,
    sharing::{Law, Shared},
    speed::Speed,
};
use super::{
    flight::{Ending, Flights},
    timer::Timer,
};
use crate::scenario::{
    Beyond, ErrorEpisode, OutageRequests, Scenario, Service, ServiceChange, Starts, nanos,
};

/// A service at work.
#[derive(Debug)]
pub(super) struct Station {
    kind: Kind,
    speed: Speed,
    stretch: f64,
    delay: u64,
    slows_with_queue: Option<u32>,
    changes: Vec<ServiceChange>,
    next_change: usize,
    errors: Vec<ErrorEpisode>,
    at_once: bool,
    /// What becomes of requests, while it is away.
    away: Option<OutageRequests>,
    /// Who came to a service without a queue while it was away, and is kept.
    kept: Vec<u32>,
    /// What becomes of those who are too many for a crowd.
    beyond: Beyond,
    timer: Timer,
    /// How long it has been busy, if somebody wants to know.
    meter: Option<Meter>,
}

/// Adds up the share of the service that is busy.
#[derive(Clone, Copy, Debug)]
struct Meter {
    busy_ns: f64,
    until: u64,
}

/// What becomes of an attempt that comes to the service.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Welcome {
    In,
    /// It is never answered.
    Lost,
}

#[derive(Debug)]
enum Kind {
    Pool(Workers),
    Shared(Shared),
    Crowd(Crowd),
}

impl Station {
    pub(super) fn new(scenario: &Scenario, length_ns: u64) -> Self {
        let service: &Service = &scenario.service;
        let mut speed = Speed::of(service, length_ns);
        let kind = match (&service.pool, &service.sharing, &service.usl, &service.crowd) {
            (Some(pool), ..) => Kind::Pool(Workers::new(pool.workers)),
            (_, Some(sharing), ..) => Kind::Shared(Shared::new(Law::Cores(sharing.cores), speed.at(0))),
            (_, _, Some(usl), _) => Kind::Shared(Shared::new(Law::Usl(usl.clone()), speed.at(0))),
            (.., Some(crowd)) => Kind::Crowd(Crowd::new(crowd.clone())),
            // Checked: one of them is there.
            (None, None, None, None) => Kind::Pool(Workers::new(1)),
        };
        Self {
            kind,
            speed,
            stretch: service.stretch,
            delay: nanos(service.delay),
            slows_with_queue: service.pool.as_ref().and_then(|pool| pool.slows_with_queue),
            changes: service.changes.clone(),
            next_change: 0,
            errors: service.errors.clone(),
            at_once: service.pool.as_ref().is_some_and(|pool| pool.starts == Starts::AtOnce),
            away: None,
            kept: Vec::new(),
            beyond: service.crowd.as_ref().map_or(Beyond::default(), |crowd| crowd.beyond),
            timer: Timer::of(scenario),
            meter: None,
        }
    }

    /// Notes from now on how busy it is.
    pub(super) fn watch(&mut self, now: u64) {
        self.meter.get_or_insert(Meter { busy_ns: 0.0, until: now });
    }

    /// How many nanoseconds all of it has been busy since it is watched. `None` where there is no measure of that.
    pub(super) fn busy_ns(&mut self, now: u64) -> Option<f64> {
        self.read_meter(now);
        self.meter.filter(|_| !matches!(self.kind, Kind::Crowd(_))).map(|meter| meter.busy_ns)
    }

    /// An outage begins. Returns the attempts that do not survive it, in the order in which they would have ended.
    pub(super) fn go_away(&mut self, requests: OutageRequests, now: u64) -> Vec<u32> {
        self.read_meter(now);
        self.away = Some(requests);
        match (&mut self.kind, requests) {
            (_, OutageRequests::Kept) => Vec::new(),
            (Kind::Pool(pool), _) => pool.clear(),
            (Kind::Shared(shared), _) => shared.clear(),
            (Kind::Crowd(crowd), _) => crowd.clear(),
        }
    }

    /// An outage ends. Returns the attempts that were kept, and now come to a service without a queue.
    pub(super) fn come_back(&mut self) -> Vec<u32> {
        self.away = None;
        std::mem::take(&mut self.kept)
    }

    /// What becomes of requests that come now, if it is away.
    #[inline]
    pub(super) const fn away(&self) -> Option<OutageRequests> {
        self.away
    }

    /// When the service changes by the scenario.
    pub(super) fn change_times(&self) -> impl Iterator<Item = u64> + '_ {
        self.changes.iter().map(|change| nanos(change.at))
    }

    /// When its speed changes, where that cannot be foreseen at the start of work.
    pub(super) fn speed_changes(&self) -> impl Iterator<Item = u64> + '_ {
        let shared = matches!(self.kind, Kind::Shared(_));
        self.speed.changes().filter(move |_| shared)
    }

    /// Makes the next of the scenario's changes.
    pub(super) fn change(&mut self, now: u64) {
        self.read_meter(now);
        let Some(change) = self.changes.get(self.next_change) else { return };
        self.next_change += 1;
        self.stretch = change.stretch.unwrap_or(self.stretch);
        self.delay = change.delay.map_or(self.delay, nanos);
        match &mut self.kind {
            Kind::Pool(pool) => change.workers.into_iter().for_each(|workers| pool.set_workers(workers)),
            Kind::Shared(shared) => change.cores.into_iter().for_each(|cores| shared.set_cores(cores, now)),
            Kind::Crowd(_) => {}
        }
    }

    /// Takes notice that the speed has changed.
    pub(super) fn change_speed(&mut self, now: u64) {
        let speed = self.speed.at(now);
        if let Kind::Shared(shared) = &mut self.kind {
            shared.set_speed(speed, now);
        }
    }

    /// Takes an attempt in.
    #[inline]
    pub(super) fn enter(&mut self, slot: u32, now: u64, flights: &mut Flights) -> Welcome {
        if let Kind::Pool(pool) = &mut self.kind {
            pool.enter(slot);
            return Welcome::In;
        }
        if self.away.is_some() {
            self.kept.push(slot);
            return Welcome::In;
        }
        self.read_meter(now);
        let work = self.work_to_do(slot, now, 0, flights);
        match &mut self.kind {
            Kind::Pool(_) => {}
            Kind::Shared(shared) => shared.enter(slot, work, now),
            Kind::Crowd(crowd) => {
                let flight = &mut flights[slot];
                match crowd.welcome(now) {
                    Ok(slowness) if slowness != 1.0 => {
                        flight.work_done = libm::round(work as f64 * slowness) as u64;
                    }
                    Ok(_) => {}
                    Err(TooMany) if self.beyond == Beyond::Lost => return Welcome::Lost,
                    Err(TooMany) => flight.ending = Ending::Refused,
                }
                let finish = self.speed.finish(now, flight.work_done);
                crowd.enter(slot, self.timer.after(now, finish - now));
            }
        }
        Welcome::In
    }

    /// Starts whatever can be started, while so many wait at the door before the service.
    #[inline]
    pub(super) fn start(&mut self, now: u64, waiting: usize, flights: &mut Flights) {
        self.read_meter(now);
        loop {
            let Kind::Pool(pool) = &mut self.kind else { return };
            let Some(slot) = pool.next_to_start() else { return };
            let work = self.work_to_do(slot, now, waiting, flights);
            let finish = self.speed.finish(now, work);
            if let Kind::Pool(pool) = &mut self.kind {
                pool.start(slot, finish);
            }
        }
    }

    /// When the next attempt is done.
    #[inline]
    pub(super) fn next_completion(&self) -> Option<u64> {
        match &self.kind {
            Kind::Pool(pool) => pool.next_completion(),
            Kind::Shared(shared) => shared.next_completion(),
            Kind::Crowd(crowd) => crowd.next_completion(),
        }
    }

    /// The attempt that is done now.
    #[inline]
    pub(super) fn complete(&mut self, now: u64) -> Option<u32> {
        self.read_meter(now);
        match &mut self.kind {
            Kind::Pool(pool) => pool.complete(),
            Kind::Shared(shared) => shared.complete(now),
            Kind::Crowd(crowd) => crowd.complete(),
        }
    }

    #[inline]
    pub(super) fn can_start(&self) -> bool {
        matches!(&self.kind, Kind::Pool(pool) if pool.can_start()) && self.away.is_none()
    }

    /// Whether one more request would be worked on at once, at no cost to the service as a whole.
    pub(super) fn has_room(&self) -> bool {
        let room = match &self.kind {
            Kind::Pool(pool) => pool.has_room(),
            Kind::Shared(shared) => shared.has_room(),
            Kind::Crowd(crowd) => crowd.has_room(),
        };
        room && self.away.is_none()
    }

    /// Whether work starts as it comes, instead of at the end of the instant.
    pub(super) const fn starts_at_once(&self) -> bool {
        self.at_once
    }

    pub(super) const fn delay(&self) -> u64 {
        self.delay
    }

    pub(super) fn queued(&self) -> usize {
        match &self.kind {
            Kind::Pool(pool) => pool.queued(),
            Kind::Shared(_) | Kind::Crowd(_) => self.kept.len(),
        }
    }

    pub(super) fn in_service(&self) -> usize {
        match &self.kind {
            Kind::Pool(pool) => pool.in_service(),
            Kind::Shared(shared) => shared.in_service(),
            Kind::Crowd(crowd) => crowd.in_service(),
        }
    }

    /// To be called before anybody comes or goes.
    #[inline]
    fn read_meter(&mut self, now: u64) {
        let Some(meter) = &mut self.meter else { return };
        let share = match &self.kind {
            Kind::Pool(pool) => pool.busy_share(),
            Kind::Shared(shared) => shared.busy_share(),
            Kind::Crowd(_) => 0.0,
        };
        meter.busy_ns += share * (now - meter.until) as f64;
        meter.until = now;
    }

    /// How long the attempt takes that starts now, at speed 1.
    #[inline]
    fn work_to_do(&mut self, slot: u32, now: u64, waiting: usize, flights: &mut Flights) -> u64 {
        let flight = &mut flights[slot];
        let mut work = flight.work;
        if let Some(after) = self.fails_after(now, flight.luck) {
            flight.ending = Ending::Failed;
            work = after;
        } else if self.stretch != 1.0 {
            work = libm::round(work as f64 * self.stretch) as u64;
        }
        if let Some(slows) = self.slows_with_queue {
            let longer = u128::from(work) * (self.queued() + waiting) as u128 / u128::from(slows);
            work = work.saturating_add(u64::try_from(longer).unwrap_or(u64::MAX));
        }
        flight.work_done = work;
        work
    }

    fn fails_after(&self, now: u64, luck: f64) -> Option<u64> {
        let episode = self.errors.iter().find(|episode| {
            nanos(episode.from) <= now && episode.until.is_none_or(|until| now < nanos(until))
        })?;
        (luck < episode.share).then(|| nanos(episode.after))
    }
}
