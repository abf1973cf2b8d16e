//! How long a request may wait for room, and who goes first.
//!
//! A short queue rides out gusts that a limit alone would refuse; a long one only makes everybody late. So the queue of
//! a gate ([`GateBuilder::waiting`](crate::GateBuilder::waiting), or the table `[waiting]` of a config file) is bounded
//! in number and in time.
//!
//! * **Who may wait.** At most [`max_waiting`](WaitingSettings::max_waiting), the less critical only a part of that. A
//!   more critical request takes the place of a less critical one. Nobody waits whose deadline has passed, or would pass
//!   before his turn.
//! * **Who goes first.** Work that was begun already, then the more critical; among equals as [`Order`] says. A heavy
//!   request is not passed by light ones, for it would starve; one that waits for the share of its own criticality or
//!   partition is, for it is not the limit that it waits for.
//! * **For how long.** Until [`max_wait`](WaitingSettings::max_wait) or the deadline, whichever comes first; then it is
//!   refused without having cost anything. With [`CoDelSettings`] a queue that stands, rather than absorb a gust, is cut
//!   at its head.
//!
//! [`Gate::acquire`](crate::Gate::acquire) waits in such a room. [`WaitingRoom`] is the room by itself, as a state
//! machine, for whoever has a queue of his own to keep.

mod codel;
mod drain;
mod lines;
mod settings;
#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, time::Duration};

use goodput_algorithms::{Instant, InvalidSettings};

use self::{codel::CoDel, drain::Drain, lines::Lines};
pub use self::{
    codel::CoDelSettings,
    settings::{Expiry, Order, QueueBound, WaitingSettings},
};
use crate::{Criticality, Refusal, RefusalReason, Request, refusal::retry_after};

/// One line for each criticality, and one for work that was begun already.
const LINES: usize = Criticality::ALL.len() + 1;

/// An estimate that turns requests away rests on this many departures at least.
const MIN_DEPARTURES: usize = 8;

/// Requests that wait for room: bounded in number and in time, the more important first, and never past their deadline.
///
/// A state machine: it holds what the caller puts in (`T`: a waker, a request) and does nothing by itself. Its owner
/// calls [`WaitingRoom::join`] for a request that found no room, [`WaitingRoom::serve`] as long as there may be room,
/// [`WaitingRoom::expire`] as time passes, [`WaitingRoom::departed`] as places become free, and
/// [`WaitingRoom::leave`] for a caller who went away.
///
/// ```
/// use goodput::{Request, waiting::{Fit, Served, WaitingRoom, WaitingSettings}};
/// use goodput::algorithms::Instant;
///
/// let mut room = WaitingRoom::new(WaitingSettings::default()).unwrap();
/// room.join(&Request::DEFAULT, 10, 10, Instant::ZERO, "first").unwrap();
/// room.join(&Request::DEFAULT, 10, 10, Instant::ZERO, "second").unwrap();
/// let Some(Served::Admitted(next)) = room.serve(Instant::ZERO, |_| Fit::Now) else { panic!() };
/// assert_eq!(next.payload, "first");
/// ```
#[derive(Clone, Debug)]
pub struct WaitingRoom<T> {
    settings: WaitingSettings,
    lines: Lines<T, LINES>,
    by_expiry: BTreeSet<(Instant, Ticket)>,
    codel: [CoDel; LINES],
    /// Those served from a better line while this one waited.
    passed_over: [u32; LINES],
    drain: Drain,
    bound: usize,
    standing_since: Option<Instant>,
}

/// A place in a [`WaitingRoom`]. Never given twice.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Ticket {
    slot: u32,
    generation: u32,
}

/// One that waits, or did.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Waiter<T> {
    /// Its place.
    pub ticket: Ticket,
    /// What it asks for.
    pub request: Request,
    /// Since when.
    pub joined: Instant,
    /// Until when at the longest.
    pub expires: Instant,
    /// What the caller put in.
    pub payload: T,
}

/// A request that was let in to wait.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Joined<T> {
    /// Its place.
    pub ticket: Ticket,
    /// Who had to go for it, refused as [`RefusalReason::Displaced`].
    pub displaced: Option<Waiter<T>>,
}

/// Whether a waiting request fits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fit {
    /// It does.
    Now,
    /// Not yet, and nobody may pass it: it would starve otherwise.
    NotYet,
    /// Not yet, for a reason of its own (its partition is full, its criticality's share is used): others may pass it.
    Pass,
}

/// One that waits no more.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Served<T> {
    /// It is its turn.
    Admitted(Waiter<T>),
    /// Its turn came, and it was refused.
    Refused(Waiter<T>, RefusalReason),
}

impl<T> WaitingRoom<T> {
    /// An empty room.
    ///
    /// # Errors
    ///
    /// [`InvalidSettings`] names the field that cannot hold.
    pub fn new(settings: WaitingSettings) -> Result<Self, InvalidSettings> {
        settings.check()?;
        Ok(Self {
            settings,
            lines: Lines::new(),
            by_expiry: BTreeSet::new(),
            codel: Default::default(),
            passed_over: [0; LINES],
            drain: Drain::default(),
            bound: 0,
            standing_since: None,
        })
    }

    /// Other settings from now on. Those who wait already stay where they are, and until when they might.
    ///
    /// # Errors
    ///
    /// [`InvalidSettings`], and nothing changes.
    pub fn reconfigure(&mut self, settings: WaitingSettings) -> Result<(), InvalidSettings> {
        settings.check()?;
        self.settings = settings;
        Ok(())
    }

    /// Lets a request in to wait that found `in_flight` of `limit` taken, or refuses it at the door.
    ///
    /// # Errors
    ///
    /// [`Refusal`] for [`RefusalReason::LimitReached`] where nobody may wait, [`RefusalReason::QueueFull`],
    /// [`RefusalReason::DeadlineExpired`] or [`RefusalReason::DeadlineUnreachable`].
    pub fn join(
        &mut self,
        request: &Request,
        in_flight: usize,
        limit: usize,
        now: Instant,
        payload: T,
    ) -> Result<Joined<T>, Refusal> {
        self.bound = self.settings.max_waiting.under(limit);
        let line = self.line_of(request);
        let expires = match self.expiry(request, now) {
            Ok(expires) if self.bound > 0 => self.turn_before(expires, request, now).map(|()| expires),
            Ok(_) => Err(RefusalReason::LimitReached),
            Err(reason) => Err(reason),
        };
        let displaced = expires.and_then(|expires| Ok((expires, self.make_room(request, line)?)));
        let (expires, displaced) = displaced.map_err(|reason| Refusal {
            reason,
            limit,
            in_flight,
            retry_after: self.hint(request, now),
        })?;
        let ticket = self.lines.join(line, |ticket| Waiter {
            ticket,
            request: *request,
            joined: now,
            expires,
            payload,
        });
        if expires < Instant::FAR_FUTURE {
            self.by_expiry.insert((expires, ticket));
        }
        self.length_changed(now);
        Ok(Joined { ticket, displaced })
    }

    /// Whose turn it is, if anybody's: call again as long as it answers. `fits` is asked, in order of service, whether
    /// a request can be admitted now.
    pub fn serve(&mut self, now: Instant, mut fits: impl FnMut(&Request) -> Fit) -> Option<Served<T>> {
        let newest_first = self.newest_first(now);
        for line in self.lines_in_order() {
            let mut candidate = self.lines.first(line, newest_first);
            while let Some(waiter) = candidate {
                let ticket = waiter.ticket;
                let expired = self.expired(waiter, now);
                if let Some(reason) = expired.filter(|_| self.settings.expiry == Expiry::AtOnce) {
                    return Some(Served::Refused(self.remove(ticket, now)?, reason));
                }
                match fits(&waiter.request) {
                    Fit::NotYet => return None,
                    Fit::Pass => candidate = self.lines.next(ticket, newest_first),
                    Fit::Now => {
                        if let Some(reason) = expired {
                            return Some(Served::Refused(self.remove(ticket, now)?, reason));
                        }
                        if let Some(cut) = self.cut(line, now) {
                            return Some(Served::Refused(cut, RefusalReason::QueueStanding));
                        }
                        self.count_passed_over(line);
                        return Some(Served::Admitted(self.remove(ticket, now)?));
                    }
                }
            }
        }
        None
    }

    /// One whose time is up by `now`, if there is any, wherever it stands: call again as long as it answers. Nobody
    /// under [`Expiry::AtTurn`].
    pub fn expire(&mut self, now: Instant) -> Option<(Waiter<T>, RefusalReason)> {
        if self.settings.expiry == Expiry::AtTurn {
            return None;
        }
        let &(_, ticket) = self.by_expiry.first()?;
        let reason = self.expired(self.lines.get(ticket)?, now)?;
        Some((self.remove(ticket, now)?, reason))
    }

    /// When [`WaitingRoom::expire`] will next have something to say, if nothing else happens.
    #[must_use]
    pub fn next_expiry(&self) -> Option<Instant> {
        let first = self.by_expiry.first().map(|&(expires, _)| expires);
        first.filter(|_| self.settings.expiry == Expiry::AtOnce)
    }

    /// When one that waits leaves at the latest.
    pub(crate) fn leaves_by(&self, ticket: Ticket) -> Instant {
        let expires = self.get(ticket).map_or(Instant::ZERO, |waiter| waiter.expires);
        if self.settings.expiry == Expiry::AtOnce { expires } else { Instant::FAR_FUTURE }
    }

    /// Takes out one whose caller went away. `None` if it waits no more.
    pub fn leave(&mut self, ticket: Ticket, now: Instant) -> Option<Waiter<T>> {
        self.remove(ticket, now)
    }

    /// A place of the limit became free. The rate at which this happens is what the estimates rest on.
    pub fn departed(&mut self, weight: u32, now: Instant) {
        self.drain.departed(weight, now);
    }

    /// One that waits.
    #[must_use]
    pub fn get(&self, ticket: Ticket) -> Option<&Waiter<T>> {
        self.lines.get(ticket)
    }

    /// What was put in with one that waits.
    pub fn payload_mut(&mut self, ticket: Ticket) -> Option<&mut T> {
        self.lines.get_mut(ticket).map(|waiter| &mut waiter.payload)
    }

    /// Whether somebody waits who, if all waited alike for room, would not be served after a request that joins now.
    #[must_use]
    pub fn waits_before(&self, request: &Request) -> bool {
        (self.line_of(request)..LINES).any(|line| self.lines.waiting_in(line) > 0)
    }

    /// How many wait.
    #[must_use]
    pub const fn waiting(&self) -> usize {
        self.lines.waiting()
    }

    /// What those who wait weigh together.
    #[must_use]
    pub fn weight(&self) -> u64 {
        (0..LINES).map(|line| self.lines.weight_of(line)).sum()
    }

    /// Whether nobody waits.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.waiting() == 0
    }

    /// How many may wait, as of the limit at the last [`WaitingRoom::join`].
    #[must_use]
    pub const fn bound(&self) -> usize {
        self.bound
    }

    /// How long the oldest has waited.
    #[must_use]
    pub fn oldest_wait(&self, now: Instant) -> Duration {
        self.lines.oldest_joined().map_or(Duration::ZERO, |joined| now.since(joined))
    }

    /// Weight that leaves the limit per second while somebody waits, as far as is known.
    #[must_use]
    pub fn drain_per_second(&self, now: Instant) -> Option<f64> {
        self.drain.per_second(now)
    }

    /// When another attempt at a request is worth it: the queue ahead of it divided by the rate at which it drains.
    /// `None` while that rate is unknown.
    #[must_use]
    pub fn hint(&self, request: &Request, now: Instant) -> Option<Duration> {
        retry_after(self.weight_ahead(request) + u64::from(request.weight), self.drain.per_second(now)?).ok()
    }

    /// The settings.
    #[must_use]
    pub const fn settings(&self) -> &WaitingSettings {
        &self.settings
    }

    fn line_of(&self, request: &Request) -> usize {
        match request {
            Request { continuation: true, .. } => LINES - 1,
            Request { criticality, .. } if self.settings.by_criticality => *criticality as usize,
            _ => 0,
        }
    }

    /// Until when it may wait.
    fn expiry(&self, request: &Request, now: Instant) -> Result<Instant, RefusalReason> {
        let patience = now + self.settings.max_wait;
        let Some(deadline) = request.deadline else { return Ok(patience) };
        let least = u64::try_from(self.settings.least_time_left.as_nanos()).unwrap_or(u64::MAX);
        let latest = Instant::from_nanos(deadline.nanos().saturating_sub(least));
        if latest <= now {
            return Err(RefusalReason::DeadlineExpired);
        }
        Ok(patience.min(latest))
    }

    /// Refuses a request whose turn would come too late. An estimate alone never keeps the room empty.
    fn turn_before(&self, expires: Instant, request: &Request, now: Instant) -> Result<(), RefusalReason> {
        let ahead = self.weight_ahead(request);
        if !self.settings.refuse_hopeless || ahead == 0 || self.drain.departures() < MIN_DEPARTURES {
            return Ok(());
        }
        let Some(per_second) = self.drain.per_second(now) else { return Ok(()) };
        let wait = (ahead + u64::from(request.weight)) as f64 / per_second;
        if wait <= expires.since(now).as_secs_f64() {
            return Ok(());
        }
        let by_deadline = request.deadline.is_some_and(|deadline| deadline < now + self.settings.max_wait);
        Err(if by_deadline { RefusalReason::DeadlineUnreachable } else { RefusalReason::QueueFull })
    }

    /// What is served before a request that joins now.
    fn weight_ahead(&self, request: &Request) -> u64 {
        let line = self.line_of(request);
        let last_in = match self.settings.order {
            Order::FirstIn => false,
            Order::LastIn => true,
            Order::Adaptive => self.standing_since.is_some(),
        };
        let from = if last_in { line + 1 } else { line };
        (from..LINES).map(|line| self.lines.weight_of(line)).sum()
    }

    /// Room for one more of its kind, at the cost of a less critical one if need be.
    fn make_room(&mut self, request: &Request, line: usize) -> Result<Option<Waiter<T>>, RefusalReason> {
        let waiting = self.lines.waiting();
        let allowed = self.settings.shares.of(request, self.bound);
        if waiting < allowed {
            return Ok(None);
        }
        if !self.settings.displace || !self.settings.by_criticality || allowed == 0 {
            return Err(RefusalReason::QueueFull);
        }
        // Whoever would be served last.
        let last_in = self.settings.order == Order::LastIn;
        let victim = (0..line).find_map(|line| self.lines.first(line, !last_in));
        let Some(ticket) = victim.map(|waiter| waiter.ticket) else { return Err(RefusalReason::QueueFull) };
        Ok(self.take(ticket))
    }

    fn newest_first(&self, now: Instant) -> bool {
        match self.settings.order {
            Order::FirstIn => false,
            Order::LastIn => true,
            Order::Adaptive => {
                self.standing_since.is_some_and(|since| now.since(since) >= self.settings.standing_for)
            }
        }
    }

    /// The lines from the one to be served first: the best, unless another was passed over too often.
    fn lines_in_order(&self) -> impl Iterator<Item = usize> + use<T> {
        let at_most = self.settings.passed_over_at_most;
        let overdue = (0..LINES)
            .filter(|&line| at_most > 0 && self.lines.waiting_in(line) > 0)
            .filter(|&line| self.passed_over[line] >= at_most - 1)
            .max_by_key(|&line| self.passed_over[line]);
        overdue.into_iter().chain((0..LINES).rev().filter(move |&line| Some(line) != overdue))
    }

    fn count_passed_over(&mut self, served: usize) {
        self.passed_over[served] = 0;
        for line in 0..served {
            let waits = self.lines.waiting_in(line) > 0;
            self.passed_over[line] = if waits { self.passed_over[line].saturating_add(1) } else { 0 };
        }
    }

    fn expired(&self, waiter: &Waiter<T>, now: Instant) -> Option<RefusalReason> {
        if now < waiter.expires {
            return None;
        }
        let latest = waiter.expires + self.settings.least_time_left;
        let by_deadline = waiter.request.deadline.is_some_and(|deadline| deadline <= latest);
        Some(if by_deadline { RefusalReason::DeadlineExpired } else { RefusalReason::WaitedTooLong })
    }

    /// The oldest of a line, if controlled delay has it go.
    fn cut(&mut self, line: usize, now: Instant) -> Option<Waiter<T>> {
        let settings = self.settings.codel.as_ref()?;
        let oldest = self.lines.first(line, false)?;
        let (ticket, waited) = (oldest.ticket, now.since(oldest.joined));
        let last = self.lines.waiting_in(line) == 1;
        if !self.codel[line].cuts(settings, waited, last, now) {
            return None;
        }
        self.remove(ticket, now)
    }

    fn remove(&mut self, ticket: Ticket, now: Instant) -> Option<Waiter<T>> {
        let waiter = self.take(ticket)?;
        self.length_changed(now);
        Some(waiter)
    }

    fn take(&mut self, ticket: Ticket) -> Option<Waiter<T>> {
        let waiter = self.lines.leave(ticket)?;
        self.by_expiry.remove(&(waiter.expires, ticket));
        Some(waiter)
    }

    fn length_changed(&mut self, now: Instant) {
        self.drain.busy(!self.is_empty(), now);
        let stands = self.waiting() > self.settings.standing_above.of(self.bound);
        self.standing_since = if stands { self.standing_since.or(Some(now)) } else { None };
    }
}
