//! The ways of a request through a gate that are not simply to be admitted or refused.

use std::{task::Waker, time::Duration};

use goodput_algorithms::Instant;

use super::{
    admitted::{Admitted, Entry},
    classes::{Account, Classes},
    desk::{Desk, Settled, Waiting},
    door::{Occupancy, Part},
    rules::Flags,
    shared::Shared,
    stripe::Refused,
    stripes::Writer,
    visit::Stopped,
};
use crate::{
    Clock, Refusal, RefusalReason, Request,
    sync::{MutexGuard, lock},
    waiting::{Fit, Served, Ticket, Waiter},
};

/// What came of a request that may wait.
pub(super) enum Admission {
    Entered(Entry),
    Waits { ticket: Ticket, expires: Instant },
}

/// Why a request is not admitted now.
struct Obstacle {
    reason: RefusalReason,
    retry_after: Option<Duration>,
    seen: Occupancy,
}

impl Obstacle {
    const fn new(reason: RefusalReason, seen: Occupancy) -> Self {
        Self { reason, retry_after: None, seen }
    }

    /// Of a request that finds no room within its part of the limit, or others before it.
    fn of_room(request: &Request, part: Part, seen: Occupancy) -> Self {
        let weight = request.weight.max(1);
        let at_share = seen.has_room(weight, Part::ALL) && !seen.has_room(weight, part);
        let reason = if at_share { RefusalReason::CriticalityShareUsed } else { RefusalReason::LimitReached };
        Self::new(reason, seen)
    }

    /// Whether time alone may remove it.
    const fn passes(&self) -> bool {
        matches!(
            self.reason,
            RefusalReason::LimitReached | RefusalReason::CriticalityShareUsed | RefusalReason::PartitionFull
        )
    }
}

/// Whom to wake, once no lock is held.
#[derive(Default)]
#[must_use]
struct ToWake(Vec<Waker>);

impl ToWake {
    fn wake(self) {
        for waker in self.0 {
            waker.wake();
        }
    }
}

impl<C: Clock> Shared<C> {
    #[cold]
    pub(super) fn try_admit_by_rules(&self, request: &Request) -> Result<Entry, Refusal> {
        if request.bypass {
            self.tallies.count_bypassed();
            return Ok(self.enter_outside(request, self.clock.now()));
        }
        let flags = self.rules.0.flags();
        self.try_enforce(request, flags).or_else(|obstacle| {
            if flags.has(Flags::OBSERVE_ONLY) {
                Ok(self.enter_in_spite_of(&obstacle, request))
            } else {
                Err(self.refuse(obstacle, request))
            }
        })
    }

    /// Admits a request, or has it wait with the waker that `waker` makes.
    pub(super) fn admit_or_wait(
        &self,
        request: &Request,
        waker: impl FnOnce() -> Waker,
    ) -> Result<Admission, Refusal> {
        let flags = self.rules.0.flags();
        if request.bypass || !flags.has(Flags::WAITING) {
            return self.try_admit(request, Admission::Entered);
        }
        if flags.has(Flags::OBSERVE_ONLY) {
            return Ok(Admission::Entered(self.enter_without_waiting(request, flags)));
        }
        if !flags.has(Flags::CLASSES) && !flags.has(Flags::PAUSED) {
            let part = self.part_of(request, flags);
            match self.admit(request, part, self.occupancy()) {
                Ok(admitted) => return Ok(Admission::Entered(Entry::new(admitted, request))),
                Err(Stopped::Late(seen)) => return Err(self.refuse_late(seen, request)),
                Err(Stopped::Full(_)) => {}
            }
        }
        self.wait_at_desk(request, self.part_of(request, flags), waker())
    }

    /// What became of a request that waits, or a promise that `waker` will be woken.
    pub(super) fn ask_again(&self, ticket: Ticket, expires: Instant, waker: Waker) -> Option<Settled> {
        let now = self.clock.now();
        let mut desk = lock(&self.desk);
        let to_wake = if now >= expires { self.serve(&mut desk, now).0 } else { ToWake::default() };
        let settled = desk.take_settled(ticket);
        let stale = if settled.is_none() { desk.replace_waker(ticket, waker) } else { None };
        drop(desk);
        drop(stale);
        to_wake.wake();
        settled
    }

    /// Takes a waiter out of the queue. If it was admitted already, its place is given back.
    pub(super) fn give_up(&self, ticket: Ticket) {
        let now = self.clock.now();
        let mut desk = lock(&self.desk);
        let settled = desk.take_settled(ticket);
        let left = desk.room.leave(ticket, now);
        // Those behind it may be lighter.
        let to_wake = if left.is_some() { self.serve(&mut desk, now).0 } else { ToWake::default() };
        drop(desk);
        drop(left);
        to_wake.wake();
        if let Some(Ok(entry)) = settled {
            self.drop_entry(entry);
        }
    }

    pub(super) fn pause(&self) {
        let _config = lock(&self.config);
        self.rules.0.set_paused(true);
        self.keep_no_places();
    }

    pub(super) fn resume(&self) {
        let config = lock(&self.config);
        self.rules.0.set_paused(false);
        drop(config);
        self.let_waiters_in(self.clock.now());
    }

    /// A place became free that somebody waits for, or that belongs to a class.
    #[cold]
    pub(super) fn place_is_free(&self, weight: u32, account: Account, now: Instant) {
        let mut desk = lock(&self.desk);
        desk.classes.leave(account, weight, now);
        desk.room.departed(weight, now);
        let (to_wake, _) = self.serve(&mut desk, now);
        drop(desk);
        to_wake.wake();
    }

    /// Admits as many waiters as fit.
    #[cold]
    pub(super) fn let_waiters_in(&self, now: Instant) {
        let mut desk = lock(&self.desk);
        let (to_wake, _) = self.serve(&mut desk, now);
        drop(desk);
        to_wake.wake();
    }

    fn try_enforce(&self, request: &Request, flags: Flags) -> Result<Entry, Obstacle> {
        let part = self.part_of(request, flags);
        if flags.has(Flags::CLASSES) || flags.has(Flags::PAUSED) {
            return self.try_at_desk(request, part);
        }
        match self.admit(request, part, self.occupancy()) {
            Ok(admitted) => Ok(Entry::new(admitted, request)),
            Err(Stopped::Late(seen)) => Err(Obstacle::new(RefusalReason::DeadlineExpired, seen)),
            // Those who wait may all wait for a part of the limit that this one need not keep to.
            Err(Stopped::Full(seen))
                if seen.someone_waits() && seen.has_room(request.weight.max(1), part) =>
            {
                self.try_at_desk(request, part)
            }
            Err(Stopped::Full(seen)) => Err(Obstacle::of_room(request, part, seen)),
        }
    }

    fn try_at_desk(&self, request: &Request, part: Part) -> Result<Entry, Obstacle> {
        let now = self.clock.now();
        let mut desk = lock(&self.desk);
        let (to_wake, blocked) = self.serve(&mut desk, now);
        let result = self.enter_at_desk(&mut desk, request, part, now, blocked);
        drop(desk);
        to_wake.wake();
        result
    }

    fn wait_at_desk(&self, request: &Request, part: Part, waker: Waker) -> Result<Admission, Refusal> {
        let now = self.clock.now();
        let mut desk = lock(&self.desk);
        let (to_wake, blocked) = self.serve(&mut desk, now);
        let entered = self.enter_at_desk(&mut desk, request, part, now, blocked);
        let result = match entered {
            Ok(entry) => Ok(Admission::Entered(entry)),
            Err(obstacle) if !obstacle.passes() => Err(obstacle),
            Err(obstacle) => return self.join(desk, to_wake, obstacle, request, now, waker),
        };
        drop(desk);
        to_wake.wake();
        result.map_err(|obstacle| self.refuse(obstacle, request))
    }

    fn join(
        &self,
        mut desk: MutexGuard<'_, Desk>,
        mut to_wake: ToWake,
        obstacle: Obstacle,
        request: &Request,
        now: Instant,
        waker: Waker,
    ) -> Result<Admission, Refusal> {
        let at_limit = obstacle.reason == RefusalReason::LimitReached;
        let (in_flight, limit) = (obstacle.seen.in_flight() as usize, obstacle.seen.limit());
        let waiting = Waiting { waker, at_limit };
        let result = match desk.room.join(request, in_flight, limit, now, waiting) {
            Ok(joined) => {
                if let Some(displaced) = joined.displaced {
                    to_wake.0.push(self.turn_away(&mut desk, displaced, RefusalReason::Displaced, now));
                }
                let expires = desk.room.leaves_by(joined.ticket);
                self.raise_flag();
                // Once more, now that whoever frees a place sees the flag.
                to_wake.0.extend(self.serve(&mut desk, now).0.0);
                match desk.take_settled(joined.ticket) {
                    Some(Ok(entry)) => Ok(Admission::Entered(entry)),
                    Some(Err(refusal)) => Err(refusal),
                    None => Ok(Admission::Waits { ticket: joined.ticket, expires }),
                }
            }
            Err(refusal) => {
                if at_limit {
                    self.tallies.limit_felt();
                }
                self.tallies.refused.count(refusal.reason, request.criticality);
                let retry_after =
                    refusal.retry_after.or_else(|| self.watch.0.hint().behind_queue(request.weight));
                Err(Refusal { retry_after, ..refusal })
            }
        };
        drop(desk);
        to_wake.wake();
        result
    }

    /// Admits a request that asks for the first time. `blocked`: those who wait, wait for the limit.
    fn enter_at_desk(
        &self,
        desk: &mut Desk,
        request: &Request,
        part: Part,
        now: Instant,
        blocked: bool,
    ) -> Result<Entry, Obstacle> {
        let seen = self.door.0.look();
        if request.deadline.is_some_and(|deadline| deadline <= now) {
            return Err(Obstacle::new(RefusalReason::DeadlineExpired, seen));
        }
        if !desk.classes.offer(request, seen, now) {
            return Err(Obstacle::new(RefusalReason::Shed, seen));
        }
        if blocked && desk.room.waits_before(request) {
            return Err(Obstacle::new(RefusalReason::LimitReached, seen));
        }
        let writer = self.stripes.writer(self.stripes.own());
        let places = self.take_places(&mut desk.classes, request, part, now, false)?;
        Ok(self.note_places(&mut desk.classes, &writer, request, &places, now))
    }

    /// Lets those in who wait and fit, and turns those away whose time is up. Tells whom to wake, and whether the
    /// first of those who are left waits for the limit, so that nobody may pass it.
    fn serve(&self, desk: &mut Desk, now: Instant) -> (ToWake, bool) {
        let mut to_wake = ToWake::default();
        if desk.room.is_empty() {
            // The last one may just have left.
            self.queue_changed(desk);
            return (to_wake, false);
        }
        while let Some((waiter, reason)) = desk.room.expire(now) {
            to_wake.0.push(self.turn_away(desk, waiter, reason, now));
        }
        let flags = self.rules.0.flags();
        let observe_only = flags.has(Flags::OBSERVE_ONLY);
        if flags.has(Flags::PAUSED) && !observe_only {
            self.queue_changed(desk);
            return (to_wake, true);
        }
        let mut blocked = false;
        loop {
            let writer = self.stripes.writer(self.stripes.own());
            let mut places: Option<Places> = None;
            let Desk { room, classes, .. } = &mut *desk;
            let served = room.serve(now, |request| {
                if observe_only {
                    return Fit::Now;
                }
                match self.take_places(classes, request, self.part_of(request, flags), now, true) {
                    Ok(taken) => {
                        places = Some(taken);
                        Fit::Now
                    }
                    Err(obstacle) if obstacle.reason == RefusalReason::LimitReached => {
                        blocked = true;
                        Fit::NotYet
                    }
                    Err(_) => Fit::Pass,
                }
            });
            let waker = match served {
                None => break,
                Some(Served::Refused(waiter, reason)) if !observe_only => {
                    if let Some(places) = places {
                        self.hand_back(classes, &places, now);
                    }
                    self.turn_away(desk, waiter, reason, now)
                }
                Some(Served::Admitted(waiter) | Served::Refused(waiter, _)) => {
                    let entry = if let Some(places) = places {
                        self.note_places(classes, &writer, &waiter.request, &places, now)
                    } else {
                        self.tallies.count_would_have_waited();
                        self.enter_outside(&waiter.request, now)
                    };
                    desk.settle(waiter.ticket, Ok(entry));
                    waiter.payload.waker
                }
            };
            to_wake.0.push(waker);
        }
        self.queue_changed(desk);
        (to_wake, blocked)
    }

    fn queue_changed(&self, desk: &Desk) {
        if desk.room.is_empty() {
            self.door.0.nobody_waits();
        }
        self.watch.0.hint().set_queue(desk.room.weight());
    }

    /// Refuses one who waited. Tells whom to wake.
    fn turn_away(
        &self,
        desk: &mut Desk,
        waiter: Waiter<Waiting>,
        reason: RefusalReason,
        now: Instant,
    ) -> Waker {
        if waiter.payload.at_limit {
            self.tallies.limit_felt();
        }
        self.tallies.refused.count(reason, waiter.request.criticality);
        let seen = self.door.0.look();
        let retry_after = if reason.forbids_retry() { None } else { desk.room.hint(&waiter.request, now) };
        let refusal = Refusal { reason, limit: seen.limit(), in_flight: self.in_flight(seen), retry_after };
        desk.settle(waiter.ticket, Err(refusal));
        waiter.payload.waker
    }
}

/// Places that were taken, and have not been noted yet.
struct Places {
    weight: u32,
    after: Occupancy,
    account: Account,
}

impl<C: Clock> Shared<C> {
    fn part_of(&self, request: &Request, flags: Flags) -> Part {
        if flags.has(Flags::SHARES) { self.rules.0.part_of(request) } else { Part::ALL }
    }

    fn take_places(
        &self,
        classes: &mut Classes,
        request: &Request,
        part: Part,
        now: Instant,
        again: bool,
    ) -> Result<Places, Obstacle> {
        let weight = request.weight.max(1);
        let has_room = move |seen: Occupancy| seen.has_room(weight, part);
        let looked = self.look_whether(self.occupancy(), has_room);
        let (Ok(seen) | Err(seen)) = looked;
        if self.rules.0.flags().has(Flags::PAUSED) {
            return Err(Obstacle::new(RefusalReason::LimitReached, seen));
        }
        if again && looked.is_err() {
            return Err(Obstacle::of_room(request, part, seen));
        }
        let account = classes.enter(request, seen, now, again).map_err(|obstacle| {
            let full = !seen.has_room(weight, Part::ALL);
            let reason = if full && obstacle.reason == RefusalReason::PartitionFull {
                RefusalReason::LimitReached
            } else {
                obstacle.reason
            };
            Obstacle { reason, retry_after: obstacle.retry_after, seen }
        })?;
        match looked.and_then(|seen| self.enter(weight, seen, has_room)) {
            Ok(after) => Ok(Places { weight, after, account }),
            Err(seen) => {
                classes.take_back(account, weight, now);
                Err(Obstacle::of_room(request, part, seen))
            }
        }
    }

    fn note_places(
        &self,
        classes: &mut Classes,
        writer: &Writer<'_>,
        request: &Request,
        places: &Places,
        now: Instant,
    ) -> Entry {
        classes.admitted();
        let admitted = self.note_entry(writer, places.weight, now, places.after);
        Entry::new(admitted, request).on(places.account)
    }

    fn hand_back(&self, classes: &mut Classes, places: &Places, now: Instant) {
        self.door.0.leave(places.weight);
        classes.take_back(places.account, places.weight, now);
    }

    fn enter_outside(&self, request: &Request, now: Instant) -> Entry {
        self.tallies.enter_outside();
        Entry::new(Admitted::outside(now), request)
    }

    /// Admits a request that should be refused, in observe-only mode.
    fn enter_in_spite_of(&self, obstacle: &Obstacle, request: &Request) -> Entry {
        if obstacle.reason == RefusalReason::LimitReached {
            self.tallies.limit_felt();
        }
        self.tallies.would_have_refused.count(obstacle.reason, request.criticality);
        self.enter_outside(request, self.clock.now())
    }

    /// Admits a request that may wait, in observe-only mode.
    fn enter_without_waiting(&self, request: &Request, flags: Flags) -> Entry {
        self.try_enforce(request, flags).unwrap_or_else(|obstacle| {
            if !obstacle.passes() {
                return self.enter_in_spite_of(&obstacle, request);
            }
            if obstacle.reason == RefusalReason::LimitReached {
                self.tallies.limit_felt();
            }
            self.tallies.count_would_have_waited();
            self.enter_outside(request, self.clock.now())
        })
    }

    fn refuse(&self, obstacle: Obstacle, request: &Request) -> Refusal {
        let Obstacle { reason, retry_after, seen } = obstacle;
        let criticality = request.criticality;
        match reason {
            RefusalReason::LimitReached => return self.refuse_at_limit(seen, request),
            RefusalReason::CriticalityShareUsed => self.stripes.refuse(Refused::at_share(criticality)),
            _ => self.tallies.refused.count(reason, criticality),
        }
        let hint =
            || if reason.forbids_retry() { None } else { self.watch.0.hint().behind_queue(request.weight) };
        Refusal {
            reason,
            limit: seen.limit(),
            in_flight: self.in_flight(seen),
            retry_after: retry_after.or_else(hint),
        }
    }
}
