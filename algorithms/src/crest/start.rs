//! Bracketing the knee: up while latency does not follow concurrency, down while it does.

use crate::Reason;

use super::{
    Crest, Mode, Part,
    baseline::{FREE, error_of_ratio},
    dip,
    look::{Look, Seen},
};

/// A first look at a single answer would tell no more than that one answer.
pub(super) const LEAST_FIRST_SAMPLES: u64 = 2;
/// The first step, before any latency can be compared, leads this part of the way (in logarithm) to what is wanted: a
/// lone limiter comes near the knee of a service of any size, and many that share a small one, each of which wants little
/// more than its share, hardly move. It leads no higher than this, and nowhere from a first limit that somebody knew.
const FIRST_STEP: f64 = 0.75;
const FIRST_STEP_TO: f64 = 32.0;
/// A limit of which nearly all is in flight though nobody is refused: demand waits at the door, and nobody says how much.
const ALWAYS_TAKEN: f64 = 0.875;
/// So much is taken to be wanted then, for each in flight.
const HIDDEN: f64 = 8.0;
/// Elasticity of latency from which it follows concurrency. Beyond the knee of a queue it is 1, below it 0; a little
/// below the middle, because one step too far costs two rounds and is undone at once.
const FOLLOWS: f64 = 0.35;
/// Two concurrencies closer than this (in logarithm) say nothing about elasticity.
const APART: f64 = 0.2;
/// Standard errors by which a step must lie below the threshold to go on,
const GO_ON: f64 = 0.5;
/// and above it to stop. Stopping too early may cost long, so it needs more.
const STOP: f64 = 1.0;
/// One round brings one sample per slot, and by chance a little less.
const FULL_ROUND: f64 = 0.75;
/// An obvious stop need not wait for one sample per slot.
const OBVIOUS: f64 = 3.0;
/// Where latency has surely (by so many standard errors) not risen by more than this (in logarithm), the next step
const SURELY: f64 = 2.0;
const FLAT: f64 = 0.3;
/// is twice as long. Where much more is wanted than is in flight, steps may be longer, up to half of the way (in
/// logarithm): the further the knee may be, the less a step too far costs next to many small ones.
const STEP: f64 = 2.0;
const LONG_STEP: f64 = 4.0;
const LONGEST_STEP: f64 = 8.0;
/// With so many samples per unit of spread, two means differ by chance by less than half of what a queue makes of a
/// doubled concurrency: the question is decided either way.
pub(super) const ENOUGH: f64 = 64.0;
/// A stop on fewer samples than this is looked at twice.
const TRUSTED: f64 = 300.0;
/// A limit is reached when in flight has come to this share of it; until then latency still moves.
const FILLED: f64 = 0.8;
/// How long to wait for it, in looks.
const PATIENCE: u32 = 2;
/// The most samples that the start may leave behind the baseline, so that a dip can correct it.
pub(super) const START_MEMORY: f64 = 64.0;
/// On the way down, latency that falls by more than half as fast as concurrency (in logarithm) was a queue.
const HALF: f64 = 0.5;
/// The first service times are guessed from few samples: their spread is taken to be at least this.
const FIRST_SPREAD: f64 = 0.5;

/// Where a climb has come to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bracket {
    /// The concurrency that was accepted last; zero before the first.
    pub(super) accepted: f64,
    /// Steps accepted.
    pub(super) steps: u32,
    /// A stop was seen once.
    doubted: bool,
    /// Looks at a limit that is not yet reached.
    unfilled: u32,
    /// What was seen one step higher, on the way down; its samples are zero after the first step.
    above: Seen,
}

impl Bracket {
    pub(super) const NEW: Self = Self {
        accepted: 0.0,
        steps: 0,
        doubted: false,
        unfilled: 0,
        above: Seen { latency_ns: 0.0, in_flight: 0.0, samples: 0.0 },
    };

    /// A climb that goes on from a known concurrency.
    pub(super) const fn from(accepted: f64) -> Self {
        Self { accepted, steps: 2, ..Self::NEW }
    }
}

impl Crest {
    /// The first answers are the short ones: they only tell how long a round is, and how much is wanted.
    pub(super) fn first_look(&mut self, look: &Look) -> Reason {
        self.round_ns = look.latency_ns;
        self.baseline.set(look.latency_ns, 1.0);
        self.knee = look.in_flight;
        self.mode = Mode::Climb;
        if look.saturated && self.without != Some(Part::FirstStep) {
            self.take_first_step(look);
        }
        self.open_after(1.0, self.least_samples());
        Reason::Starting
    }

    fn take_first_step(&mut self, look: &Look) {
        let waits = look.wanted <= look.in_flight && look.in_flight > ALWAYS_TAKEN * self.limit;
        let wanted_for_each = if waits { HIDDEN } else { look.wanted / look.in_flight };
        let higher = self.limit * libm::pow(wanted_for_each, FIRST_STEP);
        self.set_limit(higher.min(FIRST_STEP_TO).max(self.limit));
    }

    /// Has latency followed concurrency up to here?
    pub(super) fn climb(&mut self, look: &Look) -> Reason {
        let accepted = self.bracket.accepted;
        let apart = libm::log(look.in_flight / accepted.max(0.1));
        let risen = libm::log(look.latency_ns / self.baseline.latency_ns);
        let spread = self.baseline.spread.max(look.spread / 2.0);
        let error = error_of_ratio(FREE * spread, look.samples, self.baseline.samples);
        let slots = look.in_flight.max(self.least_samples());
        let obvious = apart > APART && risen - OBVIOUS * error > FOLLOWS * apart;
        if look.samples < FULL_ROUND * slots {
            return if obvious && self.bracket.steps >= 2 && self.without != Some(Part::EarlyStop) {
                self.stop_climb(look)
            } else {
                self.undecided((1.4 * look.samples).min(slots))
            };
        }
        self.round_ns = look.latency_ns;
        if look.saturated
            && accepted > 0.0
            && look.in_flight < FILLED * self.limit
            && self.bracket.unfilled < PATIENCE
        {
            self.bracket.unfilled += 1;
            self.open_after(0.0, self.least_samples());
            return Reason::Starting;
        }
        if !look.saturated {
            return if accepted > 0.0 && obvious {
                // Nobody feels the limit, but there is a queue all the same, and it grows.
                self.stop_climb(look)
            } else {
                self.climb_without_demand(look)
            };
        }
        if accepted == 0.0 {
            if look.overloaded {
                return self.begin_descent(look);
            }
            self.baseline.spread = look.spread.max(FIRST_SPREAD);
            self.baseline.set(look.latency_ns, look.samples);
            return self.accept(look.in_flight, self.step_from(look, false));
        }
        if look.overloaded {
            return self.stop_climb(look);
        }
        if apart < APART {
            return if look.samples < 4.0 * self.full_window(look.in_flight) {
                self.undecided(1.5 * look.samples)
            } else {
                self.open_after(0.0, self.least_samples());
                Reason::Starting
            };
        }
        let threshold = FOLLOWS * apart;
        let enough = look.samples >= ENOUGH * self.baseline.spread && look.is_long();
        if risen + GO_ON * error < threshold || (enough && risen < threshold) {
            let known = self.baseline.samples.min(START_MEMORY);
            let all = known + look.samples;
            let pooled = (self.baseline.latency_ns * known + look.latency_ns * look.samples) / all;
            self.baseline.set(pooled, all);
            let flat = risen + SURELY * error < FLAT;
            self.accept(look.in_flight, self.step_from(look, flat))
        } else if risen - STOP * error > threshold || enough {
            if !self.bracket.doubted && look.samples < TRUSTED {
                self.bracket.doubted = true;
                self.open_after(0.0, self.least_samples());
                Reason::Starting
            } else {
                self.stop_climb(look)
            }
        } else {
            self.undecided(1.4 * look.samples)
        }
    }

    /// The next step, which leads at most half of the way to what is wanted unless latency is surely flat.
    fn step_from(&self, look: &Look, flat: bool) -> f64 {
        let leads_half_way =
            |step: f64| step * step * look.in_flight <= look.wanted && self.without != Some(Part::LongSteps);
        if leads_half_way(LONGEST_STEP) {
            LONGEST_STEP
        } else if flat || leads_half_way(LONG_STEP) {
            LONG_STEP
        } else {
            STEP
        }
    }

    /// Nothing is to be found above a limit that nobody reaches: light load measures the baseline for free, and the
    /// limit waits where it is.
    fn climb_without_demand(&mut self, look: &Look) -> Reason {
        if self.bracket.accepted > 0.0 {
            self.knee = self.bracket.accepted;
            self.run_from_here(false);
            self.look_on();
            return Reason::AppLimited;
        }
        self.baseline.learn_spread(look.spread, 0.5);
        if look.latency_ns < self.baseline.latency_ns || self.baseline.samples <= 1.0 {
            self.baseline.set(look.latency_ns, look.samples);
        } else {
            self.baseline.add(look.latency_ns, look.samples, self.full_window(look.in_flight));
        }
        self.look_on();
        Reason::AppLimited
    }

    /// One step up.
    pub(super) fn accept(&mut self, in_flight: f64, step: f64) -> Reason {
        self.mode = Mode::Climb;
        self.bracket.accepted = in_flight;
        self.bracket.steps = self.bracket.steps.saturating_add(1);
        self.bracket.doubted = false;
        self.bracket.unfilled = 0;
        self.knee = in_flight;
        if self.limit >= self.max {
            return self.finish(in_flight);
        }
        let filled = self.limit.min(libm::ceil(in_flight) + 1.0).max(self.limit / 2.0);
        self.set_limit(filled * step);
        self.open_after(1.0, self.least_samples());
        Reason::Starting
    }

    fn stop_climb(&mut self, look: &Look) -> Reason {
        if self.bracket.steps <= 1 && self.limit > 2.0 {
            // Perhaps the first limit was beyond the knee already.
            return self.begin_descent(look);
        }
        self.round_ns = look.latency_ns;
        let least = 0.9 * self.bracket.accepted;
        let knee = look.in_flight * self.baseline.latency_ns / look.latency_ns;
        self.finish(knee.max(least).min(look.in_flight.max(least)))
    }

    fn begin_descent(&mut self, look: &Look) -> Reason {
        self.mode = Mode::Descend;
        self.bracket.above = look.seen();
        self.round_ns = look.latency_ns;
        self.set_limit(self.limit / 2.0);
        self.open_after(1.0, self.least_samples());
        Reason::Starting
    }

    /// Has latency fallen with concurrency?
    pub(super) fn descend(&mut self, look: &Look) -> Reason {
        self.round_ns = look.latency_ns;
        if !look.saturated {
            self.open_after(0.0, self.least_samples());
            return Reason::Starting;
        }
        let above = self.bracket.above;
        let apart = libm::log(look.in_flight / above.in_flight);
        let change = libm::log(look.latency_ns / above.latency_ns);
        if apart > -APART && look.samples < self.full_window(look.in_flight) {
            return self.undecided(1.4 * look.samples);
        }
        let queueing = change < HALF * apart || look.overloaded;
        let known = self.baseline;
        self.bracket.above = Seen { samples: 0.0, ..look.seen() };
        if !queueing && above.samples > 0.0 && above.in_flight > look.in_flight {
            // It was no queue that stopped the climb: all that was seen is baseline, and the climb goes on.
            let all = above.samples + look.samples + known.samples;
            let sum = above.latency_ns * above.samples
                + look.latency_ns * look.samples
                + known.latency_ns * known.samples;
            self.baseline.set(sum / all, all);
            self.set_limit(libm::ceil(above.in_flight));
            self.bracket = Bracket::from(above.in_flight);
            return self.accept(above.in_flight, STEP);
        }
        if queueing {
            self.baseline.set(look.latency_ns, look.samples);
        } else {
            self.baseline.latency_ns = known.latency_ns.min(look.latency_ns);
        }
        if queueing && self.limit >= 2.0 {
            self.set_limit(self.limit / 2.0);
            self.open_after(1.0, self.least_samples());
            Reason::Starting
        } else {
            self.finish(look.in_flight)
        }
    }

    /// The knee is bracketed.
    pub(super) fn finish(&mut self, knee: f64) -> Reason {
        self.knee = knee;
        self.set_limit(knee + self.role.headroom(knee));
        self.run_from_here(true);
        self.open_after(1.0, self.least_samples());
        Reason::Starting
    }

    fn run_from_here(&mut self, felt: bool) {
        self.mode = Mode::Run;
        self.unfelt_looks = if felt { 0 } else { dip::LATELY };
        if self.usual_ns == 0.0 {
            self.usual_ns = self.baseline.latency_ns;
        }
        self.grown = 0;
        self.baseline.samples = self.baseline.samples.min(START_MEMORY);
        self.begin_dips_anew();
    }
}
