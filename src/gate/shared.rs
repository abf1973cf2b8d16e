//! What the handles of a gate share, and how its limiter is asked.

use goodput_algorithms::{Instant, Limiter, State};

use super::{
    GateBuilder, OnDecision, Snapshot, TimedDecision,
    desk::Desk,
    door::{Door, Occupancy},
    observer::{Observer, Sources},
    rules::{Flags, Rules},
    stripe::Refused,
    stripes::Stripes,
    tallies::Tallies,
    watch::Watch,
};
#[cfg(feature = "tracing")]
use crate::observe::events;
use crate::{
    Clock, Criticality, GateConfig, Refusal, RefusalReason, Request,
    priority::CriticalityShares,
    refusal::RefusalCounts,
    sync::{Mutex, MutexGuard, Padded, lock, try_lock},
};

/// # How it is put together
///
/// - `door`: limit, in flight and the door's state in one word. Whatever changes it is one read-modify-write, all
///   `AcqRel`, so changes happen in one order that everybody agrees on, and each sees what the earlier ones did before.
/// - `stripes`: what was observed, in a stripe for each thread. Each has two banks; `watch.generation` says which one
///   is written. And the place that its thread keeps, if it keeps one (see [`keep`](super::keep)): a word of its own
///   that is only changed by read-modify-writes.
/// - `watch`: when a window may be due. Written by whoever holds `observer`, read by all.
/// - `observer`: the limiter and the window so far. Only ever *tried* on the request path.
/// - `sweeping`: held to take back what threads keep: tried by whose entry makes that necessary, waited for by who finds
///   no room without it. Not once the door is swept.
/// - `rules`: by which rules to admit. Without any, room is all that matters.
/// - `desk`: the queue, and cohorts, partitions and tenants where they are told apart. Only locked where somebody waits
///   or wants to, or classes are told apart.
/// - `config`: only locked to change the rules, and then around everything else.
///
/// No other lock is taken while one is held, except `sweeping`, and no code of others (clock, waker, listener) runs
/// under one, except the limiter's under `observer`.
///
/// # Why nothing is lost
///
/// **A place.** A kept place stays counted in the door's word, so to keep one and to take it again admits nobody beyond
/// the limit. Whoever finds no room believes it only of a swept door, and else sweeps. A sweep begins when the door is
/// no longer roomy, and changes the word of every stripe, be it from nothing to nothing. A thread that keeps a place looks
/// at the door once more afterwards. If it kept its place before the sweep came by, the sweep finds it. If it came later,
/// it sees through that word what the sweeper saw, a door that is not roomy, and takes the place back to the door; the
/// same holds through `stripes.used` for a stripe that the sweeper did not know of. Only who holds `sweeping` makes the
/// door swept, and gives all that was kept back in the same step; and only a swept door becomes roomy, so he cannot call
/// a later time swept. A thread may take its place until then: it saw the door before that, and comes before it.
///
/// **A waiter.** It joins the queue, raises the flag, which only a swept door has, and only then looks for room once
/// more, all under the lock of `desk`. While the flag is up no place is kept. A release that comes before the flag in the
/// door's order is what that look sees. One that comes later sees the flag, takes the lock, and finds the waiter in the
/// queue. The same holds for a raised limit, and for the release of one who is in a class, which takes the lock anyway.
/// The flag falls under the lock, when the queue is empty.
///
/// **An observation.** A writer makes its stripe's `turns` odd, passes the door or takes or keeps its place, reads the
/// generation, writes that bank, and makes `turns` even with `Release`. A collector changes the generation, passes the
/// door and the word of each stripe's place, and reads `turns` with `Acquire`. Of the word that the writer changed: if
/// the writer came first, the collector sees that it is at work, or that it has left and what it wrote. If the collector
/// came first, the writer sees the new generation, and writes the other bank. So a collector that sees a stripe at rest,
/// or moving on, owns the bank it turned away from: it reads it, empties it, and gives it back with the `Release` of the
/// next generation. If the writer does not leave in time, nobody waits: its bank is left to the next collection, which is
/// put off until then.
///
/// A collector whose own stripe is the only one that moved, as far as it sees, passes nothing and changes nothing: of
/// its own stripe it owns both banks, as nobody else collects meanwhile. What it does not see yet comes with a later
/// collection; that of a token it was handed by another thread it does see, as handing it over put one before the other.
///
/// **What came before a release** happens before what comes after an admission that it made possible: both are steps
/// in the door's order; or the place was kept in between, for the same thread or until a sweep took it to the door.
pub(crate) struct Shared<C> {
    pub(super) door: Padded<Door>,
    pub(super) watch: Padded<Watch>,
    pub(super) rules: Padded<Rules>,
    pub(super) stripes: Stripes,
    pub(super) tallies: Tallies,
    pub(super) clock: C,
    name: String,
    pub(super) observer: Mutex<Observer>,
    pub(super) sweeping: Mutex<()>,
    pub(super) desk: Mutex<Desk>,
    pub(super) config: Mutex<GateConfig>,
    on_decision: Option<OnDecision>,
    #[cfg(feature = "tracing")]
    refusal_sampler: events::RefusalSampler,
}

impl<C: Clock> Shared<C> {
    pub(super) fn new(builder: GateBuilder<C>) -> Self {
        let now = builder.clock.now();
        let door = Door::new(builder.limiter.limit());
        let stripes = Stripes::new(builder.stripes);
        let (watch, tallies, rules) = (Watch::new(now), Tallies::default(), Rules::new());
        let sources = Sources { door: &door, stripes: &stripes, watch: &watch, tallies: &tallies };
        let observer = Observer::new(builder.limiter, now, sources);
        let shared = Self {
            door: Padded(door),
            watch: Padded(watch),
            rules: Padded(rules),
            stripes,
            tallies,
            clock: builder.clock,
            name: builder.config.name.clone(),
            observer: Mutex::new(observer),
            sweeping: Mutex::new(()),
            desk: Mutex::new(Desk::new(builder.room, builder.classes)),
            config: Mutex::new(builder.config),
            on_decision: builder.on_decision,
            #[cfg(feature = "tracing")]
            refusal_sampler: events::RefusalSampler::default(),
        };
        shared.publish_rules(&lock(&shared.config));
        shared
    }
}

impl<C: Clock> Shared<C> {
    /// Lets the limiter act if it is time and nobody else is about it.
    #[inline(never)]
    pub(super) fn look(&self, now: Instant, at_completion: bool) {
        if let Some(observer) = try_lock(&self.observer) {
            self.look_with(observer, now, at_completion);
        }
    }

    pub(super) fn look_at_time(&self) {
        let now = self.clock.now();
        self.look_with(lock(&self.observer), now, false);
        if self.occupancy().someone_waits() {
            self.let_waiters_in(now);
        }
    }

    pub(super) fn replace_limiter(&self, limiter: Box<dyn Limiter>) {
        let now = self.clock.now();
        let mut observer = lock(&self.observer);
        let previous = observer.replace(limiter, now, self.sources());
        #[cfg(feature = "tracing")]
        let limits = (previous.limit(), observer.limit());
        self.follow_limiter(observer, now);
        drop(previous);
        #[cfg(feature = "tracing")]
        events::replaced(&self.name, limits.0, limits.1);
    }

    /// Tells whoever listens of a refusal that is about to be handed out.
    #[inline]
    pub(super) fn tell(&self, request: &Request, refusal: &Refusal) {
        #[cfg(feature = "tracing")]
        self.refusal_sampler.refused(&self.name, request, refusal, &self.clock);
        #[cfg(not(feature = "tracing"))]
        let _ = (request, refusal);
    }

    fn look_with(&self, mut observer: MutexGuard<'_, Observer>, now: Instant, at_completion: bool) {
        let Some(decision) = observer.look(now, at_completion, self.sources()) else { return };
        // Whoever listens is told while no lock is held.
        let told = self.listens_to(decision).then_some(*decision);
        self.follow_limiter(observer, now);
        if let Some(decision) = told {
            self.tell_of(&decision);
        }
    }

    fn listens_to(&self, decision: &TimedDecision) -> bool {
        cfg!(feature = "tracing") && decision.moved() || self.on_decision.is_some()
    }

    fn tell_of(&self, decision: &TimedDecision) {
        #[cfg(feature = "tracing")]
        events::decided(&self.name, decision);
        if let Some(listener) = &self.on_decision {
            listener(decision);
        }
    }

    fn follow_limiter(&self, observer: MutexGuard<'_, Observer>, now: Instant) {
        // Under the lock, so that the door never ends up with an older limit than the limiter's, nor roomy under rules
        // that are not plain.
        let after = self.door.0.set_limit(observer.limit());
        if observer.is_calm() && self.stripes.several() && self.rules.0.flags().are_plain() {
            // Even if every thread kept a place, that alone should not make the door tight.
            self.door.0.make_roomy(self.stripes.writers() as u64);
        }
        drop(observer);
        if after.is_unswept() {
            self.tidy(after);
        }
        if after.someone_waits() {
            self.let_waiters_in(now);
        }
    }

    /// Puts the rules of a config in force, but for the limiter and what the desk remembers.
    pub(super) fn publish_rules(&self, config: &GateConfig) {
        let shares = config.shares.unwrap_or(CriticalityShares::EQUAL);
        self.rules.0.set_shares(&shares);
        let classes = config.cohorts.is_some() || config.partitions.is_some() || config.tenants.is_some();
        let flags = Flags::default()
            .with(Flags::WAITING, config.waiting.lets_wait())
            .with(Flags::SHARES, shares != CriticalityShares::EQUAL)
            .with(Flags::CLASSES, classes)
            .with(Flags::OBSERVE_ONLY, config.observe_only);
        self.rules.0.set_flags(flags);
        if !flags.are_plain() {
            self.keep_no_places();
        }
    }

    fn sources(&self) -> Sources<'_> {
        Sources { door: &self.door.0, stripes: &self.stripes, watch: &self.watch.0, tallies: &self.tallies }
    }
}

impl<C> Shared<C> {
    pub(super) fn occupancy(&self) -> Occupancy {
        self.door.0.look()
    }

    pub(super) fn limiter_state(&self) -> State {
        lock(&self.observer).limiter_state()
    }

    pub(super) fn clock(&self) -> &C {
        &self.clock
    }
}

impl<C: Clock> Shared<C> {
    pub(super) fn waiting(&self) -> usize {
        lock(&self.desk).room.waiting()
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        let now = self.clock.now();
        let desk = lock(&self.desk);
        let (waiting, queue_age) = (desk.room.waiting(), desk.room.oldest_wait(now));
        drop(desk);
        let mut observer = lock(&self.observer);
        let (totals, admitted) = observer.totals(now, self.sources());
        let (decisions, moves) = (observer.decisions(), observer.moves());
        let state = observer.limiter_state();
        drop(observer);
        let occupancy = self.occupancy();
        Snapshot {
            name: self.name.clone(),
            limit: occupancy.limit(),
            in_flight: self.in_flight(occupancy),
            waiting,
            queue_age,
            totals,
            admitted,
            refused: self.refused(),
            bypassed: self.tallies.bypassed(),
            outside: self.tallies.outside() as usize,
            observe_only: self.rules.0.flags().has(Flags::OBSERVE_ONLY),
            would_have_refused: self.tallies.would_have_refused.counts(),
            would_have_waited: self.tallies.would_have_waited(),
            moves,
            decisions,
            state,
        }
    }

    fn refused(&self) -> RefusalCounts {
        let mut counts = self.tallies.refused.counts();
        for (_, stripe) in self.stripes.used() {
            for criticality in Criticality::ALL {
                let at_limit = stripe.refused(Refused::at_limit(criticality));
                let at_share = stripe.refused(Refused::at_share(criticality));
                counts.add(RefusalReason::LimitReached, criticality, at_limit);
                counts.add(RefusalReason::CriticalityShareUsed, criticality, at_share);
            }
        }
        counts
    }
}
