//! What the handles of a gate share, and the way of a request through it.

use std::fmt;

use goodput_algorithms::{Instant, Limiter, State};

use super::{
    GateBuilder, Snapshot,
    door::{Door, Occupancy},
    observer::{Observer, Sources, Watch},
    stripe::Stripe,
    stripes::{Stripes, Writer},
    waiters::Waiters,
};
use crate::{
    Clock, Outcome, Refusal, RefusalReason,
    sync::{Mutex, MutexGuard, Padded, lock, try_lock},
};

/// # How it is put together
///
/// - `door`: limit, in flight and "somebody waits" in one word. Every admission, release, change of the limit and
///   change of the flag is one read-modify-write of it, all `AcqRel`, so they happen in one order that everybody
///   agrees on, and each sees what the earlier ones did before.
/// - `stripes`: what was observed, in a stripe for each thread. Each has two banks; `watch.generation` says which one
///   is written.
/// - `watch`: when a window may be due. Written by whoever holds `observer`, read by all.
/// - `observer`: the limiter and the window so far. Only ever *tried* on the request path.
/// - `waiters`: the queue. Only locked where somebody waits or wants to.
///
/// No lock is taken while another is held, and no code of others (clock, waker) runs under one, except the
/// limiter's under `observer`.
///
/// # Why nothing is lost
///
/// **A waiter.** It raises the flag, under the lock of `waiters`, by the very step that finds no room. A release that
/// comes earlier in the door's order is what that step saw. One that comes later sees the flag, takes the lock, and
/// finds the waiter in the queue. The same holds for a raised limit. The flag falls under the lock, when the queue is
/// empty.
///
/// **An observation.** A writer makes its stripe's `turns` odd, passes the door, reads the generation, writes that
/// bank, and makes `turns` even with `Release`. A collector changes the generation, passes the door, and reads `turns`
/// with `Acquire`. If the writer passed first, the collector sees that it is at work, or that it has left and what it
/// wrote. If the collector passed first, the writer sees the new generation, and writes the other bank. So a
/// collector that sees a stripe at rest, or moving on, owns the bank it turned away from: it reads it, empties it,
/// and gives it back with the `Release` of the next generation. If the writer does not leave in time, nobody waits: its
/// bank is left to the next collection, which is put off until then.
///
/// **What came before a release** happens before what comes after an admission that it made possible: both are steps
/// in the door's order.
pub(crate) struct Shared<C> {
    door: Padded<Door>,
    watch: Padded<Watch>,
    stripes: Stripes,
    clock: C,
    name: String,
    max_waiting: usize,
    observer: Mutex<Observer>,
    waiters: Mutex<Waiters>,
}

/// What a token remembers of its admission.
#[derive(Clone, Copy)]
pub(crate) struct Admitted {
    pub(super) at: Instant,
    /// Weight above, in flight below: two words travel in two registers.
    places: u64,
}

impl Admitted {
    #[inline]
    fn new(at: Instant, weight: u32, in_flight: u32) -> Self {
        Self { at, places: u64::from(weight) << 32 | u64::from(in_flight) }
    }

    #[inline]
    pub(super) fn weight(self) -> u32 {
        (self.places >> 32) as u32
    }

    /// What was in flight then, this one counted.
    #[inline]
    pub(super) fn in_flight(self) -> u32 {
        self.places as u32
    }
}

impl fmt::Debug for Admitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admitted")
            .field("at", &self.at)
            .field("weight", &self.weight())
            .field("in_flight", &self.in_flight())
            .finish()
    }
}

impl<C: Clock> Shared<C> {
    pub(super) fn new(builder: GateBuilder<C>) -> Self {
        let now = builder.clock.now();
        let door = Door::new(builder.limiter.limit());
        let stripes = Stripes::new(builder.stripes);
        let watch = Watch::new(now);
        let sources = Sources { door: &door, stripes: &stripes, watch: &watch };
        let observer = Observer::new(builder.limiter, now, sources);
        Self {
            door: Padded(door),
            watch: Padded(watch),
            stripes,
            clock: builder.clock,
            name: builder.name,
            max_waiting: builder.max_waiting,
            observer: Mutex::new(observer),
            waiters: Mutex::new(Waiters::new()),
        }
    }

    #[inline]
    pub(super) fn try_admit(&self, weight: u32) -> Result<Admitted, Refusal> {
        self.admit(weight).map_err(|seen| self.refuse(seen, RefusalReason::LimitReached))
    }

    /// As [`Shared::try_admit`], without counting a refusal.
    #[inline]
    pub(super) fn admit(&self, weight: u32) -> Result<Admitted, Occupancy> {
        let own = self.stripes.own();
        // Most often the door still is as this thread left it, and need not be looked at before it is passed.
        let mut seen = own.map_or_else(|| self.door.0.look(), Stripe::last_seen);
        if !seen.admits(weight) {
            seen = self.door.0.look();
            if !seen.admits(weight) {
                return Err(seen);
            }
        }
        let now = self.clock.now();
        let writer = self.stripes.writer(own);
        let after = self.door.0.enter(weight, seen).inspect_err(|&seen| writer.stripe().remember(seen))?;
        let admitted = self.note_entry(&writer, weight, now, after);
        drop(writer);
        if self.watch.0.deadline_passed(now) {
            self.look(now, false);
        }
        Ok(admitted)
    }

    #[inline]
    pub(super) fn refuse(&self, seen: Occupancy, reason: RefusalReason) -> Refusal {
        self.stripes.refuse();
        Refusal { reason, limit: seen.limit(), in_flight: seen.in_flight() as usize, retry_after: None }
    }

    #[inline]
    pub(super) fn release(&self, admitted: Admitted, outcome: Outcome) {
        let now = self.clock.now();
        let writer = self.stripes.writer(self.stripes.own());
        let after = self.door.0.leave(admitted.weight());
        writer.stripe().remember(after);
        let silence_ns = self.watch.0.end_silence(now, self.stripes.several());
        let bank = writer.stripe().bank(self.watch.0.generation());
        let samples = bank.leave(admitted, now, outcome, silence_ns);
        drop(writer);
        if after.someone_waits() {
            self.let_waiters_in(now);
        }
        if self.watch.0.is_due(samples, now) {
            self.look(now, true);
        }
    }

    /// Admits a request, or puts it into the queue with `waker` and tells its ticket.
    pub(super) fn admit_or_wait(&self, weight: u32, waker: std::task::Waker) -> Result<Admission, Refusal> {
        let now = self.clock.now();
        let mut waiters = lock(&self.waiters);
        if waiters.is_empty() {
            let writer = self.stripes.writer(self.stripes.own());
            if let Some(after) = self.door.0.enter_or_wait(weight) {
                return Ok(Admission::Admitted(self.note_entry(&writer, weight, now, after)));
            }
        } else if waiters.len() >= self.max_waiting {
            drop(waiters);
            return Err(self.refuse(self.door.0.look(), RefusalReason::QueueFull));
        }
        Ok(Admission::Waits { ticket: waiters.join(weight, waker) })
    }

    /// Admits as many waiters as fit, and wakes them.
    fn let_waiters_in(&self, now: Instant) {
        let mut waiters = lock(&self.waiters);
        let mut wakers = Vec::new();
        while let Some(weight) = waiters.first_weight() {
            let writer = self.stripes.writer(self.stripes.own());
            let Ok(after) = self.door.0.enter_from_queue(weight) else { break };
            let admitted = self.note_entry(&writer, weight, now, after);
            drop(writer);
            wakers.extend(waiters.let_first_in(admitted));
            if waiters.is_empty() {
                self.door.0.nobody_waits();
            }
        }
        drop(waiters);
        for waker in wakers {
            waker.wake();
        }
    }

    /// Takes a waiter out of the queue. If its place was already assigned, that is given back.
    pub(super) fn give_up(&self, ticket: u64) {
        let mut waiters = lock(&self.waiters);
        let assigned = waiters.take_place(ticket);
        let waker = waiters.leave(ticket);
        let last = waker.is_some() && waiters.is_empty();
        if last {
            self.door.0.nobody_waits();
        }
        drop(waiters);
        match assigned {
            Some(admitted) => self.release(admitted, Outcome::Cancelled),
            // Those behind it may be lighter.
            None if !last => self.let_waiters_in(self.clock.now()),
            None => {}
        }
    }

    #[inline]
    fn note_entry(&self, writer: &Writer<'_>, weight: u32, now: Instant, after: Occupancy) -> Admitted {
        writer.stripe().bank(self.watch.0.generation()).enter(weight, now, after);
        Admitted::new(now, weight, after.in_flight())
    }
}

/// What came of a request that may wait.
pub(super) enum Admission {
    Admitted(Admitted),
    Waits { ticket: u64 },
}

impl<C: Clock> Shared<C> {
    /// Lets the limiter act if it is time and nobody else is about it.
    #[inline(never)]
    fn look(&self, now: Instant, at_completion: bool) {
        if let Some(observer) = try_lock(&self.observer) {
            self.look_with(observer, now, at_completion);
        }
    }

    pub(super) fn look_at_time(&self) {
        let now = self.clock.now();
        self.look_with(lock(&self.observer), now, false);
    }

    pub(super) fn replace_limiter(&self, limiter: Box<dyn Limiter>) {
        let now = self.clock.now();
        let mut observer = lock(&self.observer);
        let previous = observer.replace(limiter, now, self.sources());
        self.follow_limiter(observer, now);
        drop(previous);
    }

    fn look_with(&self, mut observer: MutexGuard<'_, Observer>, now: Instant, at_completion: bool) {
        if observer.look(now, at_completion, self.sources()) {
            self.follow_limiter(observer, now);
        }
    }

    fn follow_limiter(&self, observer: MutexGuard<'_, Observer>, now: Instant) {
        // Under the lock, so that the door never ends up with an older limit than the limiter's.
        let after = self.door.0.set_limit(observer.limit());
        drop(observer);
        if after.someone_waits() {
            self.let_waiters_in(now);
        }
    }

    fn sources(&self) -> Sources<'_> {
        Sources { door: &self.door.0, stripes: &self.stripes, watch: &self.watch.0 }
    }
}

impl<C> Shared<C> {
    pub(super) fn occupancy(&self) -> Occupancy {
        self.door.0.look()
    }

    pub(super) fn waiters(&self) -> MutexGuard<'_, Waiters> {
        lock(&self.waiters)
    }

    pub(super) fn max_waiting(&self) -> usize {
        self.max_waiting
    }

    pub(super) fn limiter_state(&self) -> State {
        lock(&self.observer).limiter_state()
    }

    pub(super) fn clock(&self) -> &C {
        &self.clock
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        let waiting = self.waiters().len();
        let observer = lock(&self.observer);
        let occupancy = self.occupancy();
        Snapshot {
            name: self.name.clone(),
            limit: occupancy.limit(),
            in_flight: occupancy.in_flight() as usize,
            waiting,
            decisions: observer.decisions(),
            state: observer.limiter_state(),
        }
    }
}
