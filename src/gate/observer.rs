//! Collects windows from the stripes as the limiter asks for them, and tells it when one closes.

use goodput_algorithms::{Instant, Limiter, State, Window, WindowRule};

use super::{
    MoveCounts, TimedDecision,
    decisions::Decisions,
    door::Door,
    stripe::{Bank, Stripe},
    stripes::Stripes,
    tallies::Tallies,
    thread_index::thread_index,
    watch::Watch,
};
use crate::{observe::Totals, sync::spin_loop};

/// How often a collector looks whether a writer has left before it goes on without him.
const PATIENCE: usize = if cfg!(goodput_loom) { 1 } else { 200 };

/// For how many samples at most half of the limit must have been in use before threads may keep places: taking these back
/// costs about as much as some of the visits that they make cheaper.
const CALM: u64 = if cfg!(goodput_loom) { 0 } else { 64 };

/// What is collected from, and in step with.
#[derive(Clone, Copy)]
pub(super) struct Sources<'gate> {
    pub(super) door: &'gate Door,
    pub(super) stripes: &'gate Stripes,
    pub(super) watch: &'gate Watch,
    pub(super) tallies: &'gate Tallies,
}

pub(super) struct Observer {
    limiter: Box<dyn Limiter>,
    rule: WindowRule,
    /// What was collected of the window so far.
    window: Window,
    /// How many samples more it takes to call the gate calm.
    restless: u64,
    /// Everything from before that window.
    earlier: Totals,
    admitted: u64,
    departures: Departures,
    /// What was last seen of those that the stripes do not count.
    at_limit: u64,
    /// Not before the first completion at or after the rule's opening.
    open: bool,
    integral: Integral,
    area_at_opening: i128,
    generation: u64,
    seen: Box<[Seen]>,
    any_late: bool,
    /// Stripes with samples in the last collection, at least 1.
    busy_stripes: u64,
    decisions: Decisions,
    moves: MoveCounts,
}

impl Observer {
    pub(super) fn new(limiter: Box<dyn Limiter>, now: Instant, sources: Sources<'_>) -> Self {
        let mut observer = Self {
            rule: limiter.next_window(),
            limiter,
            window: Window::EMPTY,
            restless: CALM,
            earlier: Totals::since(now),
            admitted: 0,
            departures: Departures { since: now, left: 0 },
            at_limit: 0,
            open: false,
            integral: Integral::default(),
            area_at_opening: 0,
            generation: 0,
            seen: vec![Seen::default(); sources.stripes.len()].into(),
            any_late: false,
            busy_stripes: 1,
            decisions: Decisions::new(),
            moves: MoveCounts::default(),
        };
        observer.start_window(now, 0);
        observer.publish(sources);
        observer
    }

    pub(super) fn limit(&self) -> usize {
        self.limiter.limit()
    }

    /// Whether at most half of the limit has been in use for a while.
    pub(super) fn is_calm(&self) -> bool {
        self.restless == 0
    }

    pub(super) fn limiter_state(&self) -> State {
        self.limiter.state()
    }

    pub(super) fn decisions(&self) -> Vec<TimedDecision> {
        self.decisions.all()
    }

    pub(super) fn moves(&self) -> MoveCounts {
        self.moves
    }

    /// Everything since the gate was built, and how many requests were admitted.
    pub(super) fn totals(&mut self, now: Instant, sources: Sources<'_>) -> (Totals, u64) {
        self.collect(sources);
        let area = u128::try_from(self.integral.at(now)).unwrap_or(0);
        let mut totals = self.earlier;
        totals.absorb(&self.window);
        (Totals { closed: now, in_flight_area_ns: area, ..totals }, self.admitted)
    }

    /// Gives back the limiter that was, to be dropped where no lock is held.
    pub(super) fn replace(
        &mut self,
        limiter: Box<dyn Limiter>,
        now: Instant,
        sources: Sources<'_>,
    ) -> Box<dyn Limiter> {
        self.collect(sources);
        let previous = std::mem::replace(&mut self.limiter, limiter);
        self.rule = self.limiter.next_window();
        self.start_window(now, self.integral.at(now));
        self.publish(sources);
        previous
    }

    /// Opens or closes the window if it is time. Tells what the limiter decided, if it was asked.
    ///
    /// Nothing happens while a writer holds on to what the last collection left him: the next look comes soon.
    pub(super) fn look(
        &mut self,
        now: Instant,
        at_completion: bool,
        sources: Sources<'_>,
    ) -> Option<&TimedDecision> {
        if !self.collect(sources) {
            return None;
        }
        if !self.open && at_completion && now >= self.rule.opens_at {
            self.open_window(now);
        }
        let is_due = self.is_due(now);
        if is_due {
            self.close_window(now);
        }
        if let Some(rate) = self.departures.per_second(now) {
            sources.watch.hint().set_rate(rate);
        }
        self.publish(sources);
        if is_due { self.decisions.last() } else { None }
    }

    fn is_due(&self, now: Instant) -> bool {
        let enough = self.open
            && self.window.sample_count() >= self.rule.samples_wanted(&self.window)
            && now >= self.rule.not_before;
        enough || now >= self.rule.deadline
    }

    fn close_window(&mut self, now: Instant) {
        if !self.open {
            self.discard_samples();
        }
        self.window.closed = now;
        let area = self.integral.at(now);
        // Below zero only on a clock that stepped back.
        self.window.in_flight_area_ns = u128::try_from(area - self.area_at_opening).unwrap_or(0);
        let previous_limit = self.limiter.limit();
        let over_half = self.window.max_in_flight.saturating_mul(2) > previous_limit as u64;
        self.restless =
            if over_half { CALM } else { self.restless.saturating_sub(self.window.sample_count()) };
        let decision = self.limiter.update(&self.window);
        self.rule = self.limiter.next_window();
        if !self.rule.extend {
            self.start_window(now, area);
        }
        self.remember(TimedDecision { at: now, previous_limit, decision });
    }

    fn remember(&mut self, decision: TimedDecision) {
        if decision.moved() {
            self.moves.add(decision.decision.reason, 1);
        }
        self.decisions.add(decision);
    }

    /// With the integral up to now.
    fn start_window(&mut self, now: Instant, area: i128) {
        self.earlier.absorb(&self.window);
        self.window = Window::EMPTY;
        (self.window.opened, self.window.closed) = (now, now);
        self.area_at_opening = area;
        self.open = self.rule.opens_at <= now;
    }

    /// Opens the window that was started, later. Refusals and hits in the meantime are kept: they are load on the
    /// limit, not latency.
    fn open_window(&mut self, now: Instant) {
        self.window.opened = now;
        self.discard_samples();
        self.area_at_opening = self.integral.at(now);
        self.open = true;
    }

    /// Samples from before the window opened do not count.
    fn discard_samples(&mut self) {
        let Window { opened, refused, limit_hits, .. } = self.window;
        self.earlier.absorb(&Window { refused: 0, limit_hits: 0, ..self.window });
        self.window = Window { opened, refused, limit_hits, ..Window::EMPTY };
    }

    /// Tells the request path when to look again.
    fn publish(&self, sources: Sources<'_>) {
        let per_stripe = |samples: u64| {
            let missing = samples.saturating_sub(self.window.sample_count());
            if self.busy_stripes == 1 {
                return missing;
            }
            // An eighth more than a fair part, as whoever is first to have that is ahead of the others: a look is dear to
            // all, and one that comes too soon is followed by another.
            let fair = missing.div_ceil(self.busy_stripes);
            (fair + fair / 8 + 1).min(missing)
        };
        let (samples, once_felt, not_before) = if self.open {
            let rule = &self.rule;
            let wanted = rule.samples_wanted(&self.window);
            (per_stripe(wanted), per_stripe(wanted.min(rule.samples_once_felt)), rule.not_before)
        } else {
            (0, 0, self.rule.opens_at)
        };
        // Whoever is refused at a full door tells nobody.
        let is_full = sources.door.look().in_flight() as usize >= self.limiter.limit();
        let samples = if is_full { once_felt } else { samples };
        sources.watch.set(samples, once_felt, not_before, self.rule.deadline);
        if sources.stripes.several() {
            sources.watch.share_silence();
        }
    }

    /// Adds up what the stripes hold: everything of everybody who came or went before, except of the rare writer
    /// who takes too long; his is added next time. False, and nothing done, while such a one is still at it.
    fn collect(&mut self, sources: Sources<'_>) -> bool {
        if self.any_late && !self.collect_late(sources.stripes) {
            return false;
        }
        let at_limit = sources.tallies.at_limit();
        self.add_refused(at_limit.wrapping_sub(self.at_limit));
        self.at_limit = at_limit;
        // Where several were busy they will have been again. To see whether they were would keep them waiting once more.
        let (index, mut others_moved) = (thread_index(), self.busy_stripes > 1);
        sources.stripes.used().for_each(|(place, stripe)| {
            let (seen, refused) = (&mut self.seen[place], stripe.refused_at_limit());
            let refused_since = refused.wrapping_sub(seen.refused);
            seen.refused = refused;
            others_moved = others_moved || (place != index && !seen.is_all_of(stripe.turns()));
            self.add_refused(refused_since);
        });
        match sources.stripes.own() {
            Some(stripe) if !others_moved => self.collect_own(index, stripe),
            _ => self.collect_all(sources),
        }
        true
    }

    /// Of its own stripe a thread may take what it wrote since the generation last changed, and need not change it:
    /// nobody else writes there, and nobody else collects meanwhile. That is all there is, if nobody else was seen to
    /// write since the last collection.
    fn collect_own(&mut self, place: usize, stripe: &Stripe) {
        let seen = &mut self.seen[place];
        (seen.turns, seen.both_taken) = (stripe.turns(), true);
        self.busy_stripes = 1;
        self.add(stripe.bank(self.generation));
    }

    fn collect_all(&mut self, sources: Sources<'_>) {
        let bank = self.generation;
        self.generation = bank.wrapping_add(1);
        sources.watch.turn_to(self.generation);
        sources.door.line_up();
        let mut busy_stripes = 0;
        for (place, stripe) in sources.stripes.used() {
            stripe.line_up();
            let (seen, turns) = (&mut self.seen[place], stripe.turns());
            if seen.is_all_of(turns) {
                continue;
            }
            // A visit that came after the generation changed left what it saw in the other bank.
            seen.both_taken = turns == seen.turns;
            seen.turns = turns;
            if is_at_work(turns) && !has_left(stripe, turns) {
                seen.late = true;
                self.any_late = true;
                continue;
            }
            busy_stripes += u64::from(self.add(stripe.bank(bank)));
        }
        self.busy_stripes = busy_stripes.max(1);
    }

    fn collect_late(&mut self, stripes: &Stripes) -> bool {
        let bank = self.generation.wrapping_sub(1);
        for (place, stripe) in stripes.used() {
            let Seen { turns, late, .. } = self.seen[place];
            if !late {
                continue;
            }
            if stripe.turns() == turns {
                return false;
            }
            self.seen[place].late = false;
            self.add(stripe.bank(bank));
        }
        self.any_late = false;
        true
    }

    fn add_refused(&mut self, refused: u64) {
        if refused > 0 {
            self.window.refused += refused;
            self.window.limit_hits += refused;
        }
    }

    /// Tells whether there were samples.
    fn add(&mut self, bank: &Bank) -> bool {
        let flow = bank.drain_into(&mut self.window);
        self.integral.entered += flow.entered;
        self.integral.moment = self.integral.moment.wrapping_add(flow.moment);
        self.admitted += flow.admitted;
        self.departures.left += flow.ended;
        flow.samples > 0
    }
}

/// What a collector last saw of a stripe.
#[derive(Clone, Copy, Default)]
struct Seen {
    turns: u64,
    refused: u64,
    /// At `turns`, both banks were collected.
    both_taken: bool,
    /// The writer was still at work in the bank that was collected, at turn `turns`.
    late: bool,
}

impl Seen {
    /// Whether there is nothing in the stripe that was not collected, if its writer has come and gone so often.
    fn is_all_of(&self, turns: u64) -> bool {
        turns == self.turns && self.both_taken
    }
}

/// The integral of in flight over time since the gate was built.
#[derive(Default)]
struct Integral {
    entered: i64,
    moment: i128,
}

impl Integral {
    fn at(&self, now: Instant) -> i128 {
        self.moment.wrapping_add(i128::from(self.entered) * i128::from(now.nanos()))
    }
}

/// How many requests left since when.
struct Departures {
    since: Instant,
    left: u64,
}

impl Departures {
    /// Over less than this a rate is luck.
    const LEAST_NS: u64 = 1_000_000_000;

    /// The rate, and a new start, once there is enough to say one.
    fn per_second(&mut self, now: Instant) -> Option<f64> {
        let elapsed = now.nanos_since(self.since);
        if elapsed < Self::LEAST_NS || self.left == 0 {
            return None;
        }
        let rate = self.left as f64 * 1e9 / elapsed as f64;
        *self = Self { since: now, left: 0 };
        Some(rate)
    }
}

fn is_at_work(turns: u64) -> bool {
    turns % 2 == 1
}

fn has_left(stripe: &Stripe, turns: u64) -> bool {
    (0..PATIENCE).any(|_| {
        spin_loop();
        stripe.turns() != turns
    })
}
