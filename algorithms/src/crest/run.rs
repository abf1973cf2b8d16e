//! Holding the queue.

use crate::{Limiter, Reason};

use super::{
    Crest, LEAST_SAMPLES, Mode, Part, Role,
    baseline::{CONTRADICTION, FREE, QUEUED, error_of_ratio},
    cuts::Cuts,
    dip::BELOW_KNEE,
    look::Look,
    start::{Bracket, ENOUGH},
};

/// A full window holds so many samples per unit of spread and slot: the error of the queue is then about half of the
/// headroom,
const FULL: f64 = 4.0;
/// but lasts no longer than this many rounds.
const FULL_ROUNDS: f64 = 16.0;
/// Standard errors from which the sign of the queue's excess is clear before the window is full.
const SURE: f64 = 2.5;
/// The least share of the limit that one window may leave.
const LEAST_LEFT: f64 = 0.5;
/// The limit grows while the queue is below this share of the headroom; between there and the headroom it holds.
const GROW_BELOW: f64 = 0.5;
/// It grows by this share of the headroom, and by half as much again each time in a row,
const GROWTH: [f64; 3] = [0.5, 0.75, 1.125];
/// but by no more than half of itself. After so many times in a row the knee is clearly elsewhere: climb anew.
const MOST_GROWTH: f64 = 0.5;
/// The share of the limit up to which load is light: nothing has to be decided soon.
pub(super) const LIGHT: f64 = 0.5;
/// After a small change of the limit, wait this part of a round.
const SETTLE: f64 = 0.3;
/// A climb in the middle of a run begins with a smaller step than the first climb: most of the way is known.
const AGAIN: f64 = 1.5;
/// A queue that surely exceeds its headroom by this share of all in flight was not made by a small error of the limit:
/// something has changed.
const SURPRISE: f64 = 0.15;
/// Throughput that rises by so many standard errors more than what is in flight,
const FASTER: f64 = 4.0;
/// and by at least this (in logarithm), was not raised by chance.
const LEAST_RISE: f64 = 0.1;
/// A limiter by which fewer requests than this are being worked on is probably one of many: an experiment of its own, and
/// a dip that reads higher, would show what the others do.
pub(super) const ALONE: f64 = 3.0;
/// With fewer requests than this being worked on,
const FEW: f64 = 2.0;
/// and a limit below this, there may be many limiters of which each finds that growing pays, while all together lose by it.
const LOW: f64 = 4.0;
/// When most answers are lost, this part of what is in flight is still admitted.
const OVERLOAD_LEAVES: f64 = 0.5;
/// Elasticity of latency, when concurrency was lowered, above which there was a queue,
pub(super) const QUEUE: f64 = 0.5;
/// below which there was none (between them it was the queue of several limiters),
const NO_QUEUE: f64 = 0.25;
/// and above which there is one still.
const STILL_QUEUE: f64 = 0.75;

impl Crest {
    /// Samples of a full window at that concurrency.
    pub(super) fn full_window(&self, in_flight: f64) -> f64 {
        (FULL * self.baseline.spread * in_flight).min(FULL_ROUNDS * in_flight).max(LEAST_SAMPLES)
    }

    /// Samples that the baseline remembers at the knee.
    pub(super) fn memory(&self) -> f64 {
        FULL * self.baseline.spread * self.knee
    }

    /// By Little's law, throughput × baseline requests are being worked on; the rest queue.
    pub(super) fn hold_queue(&mut self, look: &Look) -> Reason {
        if look.lost && self.without != Some(Part::Overloads) {
            return self.give_way(look);
        }
        let in_flight = look.in_flight;
        let working_share = (self.baseline.optimistic_ns() / look.latency_ns).min(1.0);
        let working = in_flight * working_share;
        let queue = in_flight - working;
        let room = self.role.headroom(working);
        let doubt = SURE * in_flight * self.baseline.error(QUEUED, look.samples) * working_share;
        let full = self.full_window(in_flight);
        let surely_above = queue - doubt > room;
        let surely_below = look.saturated && look.samples >= in_flight && queue + doubt < room;
        if look.samples < full && !surely_above && !surely_below {
            return self.undecided(1.4 * look.samples);
        }
        self.round_ns = look.latency_ns;
        if self.answers_came_faster(look) {
            self.plan_deep_dip();
        }
        self.last_run = look.seen();
        if !look.overloaded {
            self.learn_in_passing(look, full);
        }
        let changed = look.saturated && self.limit >= 2.0 && queue - doubt > room + SURPRISE * in_flight;
        // By a baseline that is too low now, fewer seem to be worked on.
        let alone = self.knee.max(working) >= ALONE;
        if changed && alone && self.without != Some(Part::Checks) {
            return self.look_again(look, queue - room);
        }
        if changed && !self.alarmed {
            // The next dip tells, in which the others take part.
            self.begin_dips_anew();
        }
        self.alarmed = changed;
        self.count_unfelt(look);
        if look.saturated {
            self.knee = working;
        }
        let too_much = queue > room && in_flight > 1.0;
        if !too_much || !look.saturated || look.overloaded {
            self.cuts = Cuts::NONE;
        } else if let Some(reason) = self.wait_for_dip(look) {
            return reason;
        }
        let may_grow = self.may_grow(look, working);
        let before = self.limit();
        let reason = if too_much {
            self.grown = 0;
            let less = look.peak.min(self.limit) - (queue - room);
            let less = less.max(LEAST_LEFT * self.limit).max(1.0);
            self.set_limit(less.min(self.limit));
            Reason::QueueBuilding
        } else if queue < GROW_BELOW * room && may_grow {
            if self.grown >= GROWTH.len() - 1 && in_flight > 2.0 && self.without != Some(Part::Climbs) {
                return self.climb_anew(look);
            }
            let growth = GROWTH[self.grown.min(GROWTH.len() - 1)] * room;
            self.set_limit(self.limit + growth.min(MOST_GROWTH * self.limit).max(1.0));
            self.grown += 1;
            Reason::Growing
        } else {
            self.grown = 0;
            if !look.saturated && look.peak <= LIGHT * self.limit {
                self.look_on();
                return Reason::AppLimited;
            }
            if look.saturated { Reason::Holding } else { Reason::AppLimited }
        };
        self.open_after(if self.limit() == before { 0.0 } else { SETTLE }, self.least_samples());
        reason
    }

    /// Most answers come too late: their latency says how long a caller waits, not how long the service takes. There is
    /// no goodput to lose, so half goes, or as much more as the last baseline says.
    fn give_way(&mut self, look: &Look) -> Reason {
        self.round_ns = look.latency_ns;
        self.grown = 0;
        self.alarmed = false;
        self.count_unfelt(look);
        let working = look.in_flight * (self.baseline.latency_ns / look.latency_ns).min(1.0);
        let half = OVERLOAD_LEAVES * look.peak.min(self.limit);
        self.set_limit(half.min(working + self.role.headroom(working)));
        self.open_after(1.0, self.least_samples());
        Reason::Overload
    }

    fn count_unfelt(&mut self, look: &Look) {
        self.unfelt_looks = if look.saturated { 0 } else { self.unfelt_looks.saturating_add(1) };
    }

    /// Latency surely below the baseline, and latency at light load, are measurements of the baseline for free. The
    /// former is a service that has become faster: the knee is elsewhere, and what was seen may be a queue still, so
    /// that the next dip must not wait.
    fn learn_in_passing(&mut self, look: &Look, full: f64) {
        let surely = CONTRADICTION * self.baseline.error(QUEUED, look.samples);
        if libm::log(look.latency_ns / self.baseline.latency_ns) < -surely {
            self.baseline.set(look.latency_ns, look.samples);
            self.begin_dips_anew();
        }
        if !look.saturated && look.in_flight <= (BELOW_KNEE * self.knee.max(1.0)).max(1.0) {
            self.baseline.learn_spread(look.spread, look.samples / (look.samples + 4.0 * full));
            self.baseline.add(look.latency_ns, look.samples, full);
        }
    }

    /// Whether more answers came than before, by more than chance, though no more were asked for. Where a delay ends that
    /// held no worker, those that it held back come along with those that it no longer does, once. From then on the same
    /// number queues for the workers instead, and takes as long: only a dip can tell.
    fn answers_came_faster(&self, look: &Look) -> bool {
        let before = self.last_run;
        if before.samples == 0.0 || !look.saturated || self.without == Some(Part::Faster) {
            return false;
        }
        let more_in_flight = libm::log(look.in_flight / before.in_flight);
        let throughput_rise = more_in_flight - libm::log(look.latency_ns / before.latency_ns);
        let rise = throughput_rise - more_in_flight.max(0.0);
        let error = error_of_ratio(FREE * self.baseline.spread, look.samples, before.samples);
        rise > (FASTER * error).max(LEAST_RISE)
    }

    /// Growing asks for demand. Where there may be many limiters, they grow together, right after a dip, so that each sees
    /// what all of them did.
    fn may_grow(&mut self, look: &Look, working: f64) -> bool {
        let after_dip = core::mem::take(&mut self.dip_was_due);
        let perhaps_many = working < FEW && self.limit < LOW && self.role != Role::Alone;
        let waits = perhaps_many && !after_dip && self.without != Some(Part::Together);
        look.saturated && !look.overloaded && !waits
    }

    fn climb_anew(&mut self, look: &Look) -> Reason {
        self.grown = 0;
        self.bracket = Bracket::from(look.in_flight);
        self.baseline.samples = self.baseline.samples.max(look.samples);
        self.accept(look.in_flight, AGAIN)
    }

    /// What was seen while latency was still moving must not be compared: look once more, then check.
    fn look_again(&mut self, look: &Look, excess: f64) -> Reason {
        self.alarmed = !self.alarmed;
        if self.alarmed {
            self.open_after(0.0, self.least_samples());
            return Reason::Holding;
        }
        let lower = (look.peak.min(self.limit) - excess).min(BELOW_KNEE * self.limit);
        self.begin_check(look, lower.max(LEAST_LEFT * self.limit))
    }

    /// An experiment: if what is seen here is a queue, latency falls with concurrency.
    pub(super) fn begin_check(&mut self, look: &Look, lower: f64) -> Reason {
        self.round_ns = look.latency_ns;
        if self.limit < 2.0 {
            self.baseline.set(look.latency_ns, look.samples);
            return self.finish(look.in_flight);
        }
        self.above = look.seen();
        self.above_limit = self.limit;
        self.mode = Mode::Check;
        self.set_limit(lower.max(1.0));
        self.open_after(1.0, self.least_samples());
        Reason::Probing
    }

    /// Has latency fallen with concurrency? Then it was a queue. If not at all, the service itself has become slower,
    /// and the lower limit helps nobody. If a little, it is a queue that others fill, too.
    pub(super) fn check(&mut self, look: &Look) -> Reason {
        self.round_ns = look.latency_ns;
        let above = self.above;
        let apart = libm::log(above.in_flight / look.in_flight);
        if apart <= 0.0 || (!look.saturated && look.in_flight > 0.8 * above.in_flight) {
            self.open_after(0.0, self.least_samples());
            return Reason::Probing;
        }
        let elasticity = libm::log(above.latency_ns / look.latency_ns) / apart;
        let spread = self.baseline.spread.max(look.spread / 2.0);
        let error = error_of_ratio(FREE * spread, look.samples, above.samples) / apart;
        let enough = look.samples >= ENOUGH * spread && look.is_long();
        let few = look.samples < look.in_flight.max(self.least_samples());
        if few || (!enough && (elasticity - QUEUE).abs() < error) {
            return self.undecided(1.4 * look.samples);
        }
        self.baseline.learn_spread(look.spread, look.samples / (look.samples + ENOUGH));
        if elasticity > STILL_QUEUE && self.limit >= 2.0 {
            self.baseline.set(look.latency_ns, look.samples);
            self.begin_check(look, look.in_flight.min(self.limit) / 2.0)
        } else if elasticity > QUEUE || look.overloaded {
            self.baseline.set(look.latency_ns, look.samples);
            let knee = above.in_flight * look.latency_ns / above.latency_ns;
            self.finish(knee.max(look.in_flight).min(above.in_flight));
            Reason::Measured
        } else if elasticity > NO_QUEUE {
            // Others fill what this one leaves. The lower limit stays, and dips, which all of them take, tell the rest.
            self.knee = look.in_flight * (self.baseline.latency_ns / look.latency_ns).min(1.0);
            self.mode = Mode::Run;
            self.unfelt_looks = 0;
            self.grown = 0;
            self.begin_dips_anew();
            self.open_after(0.0, self.least_samples());
            Reason::QueueBuilding
        } else {
            let all = above.samples + look.samples;
            let pooled = (above.latency_ns * above.samples + look.latency_ns * look.samples) / all;
            self.baseline.set(pooled, all);
            self.set_limit(self.above_limit);
            self.bracket = Bracket::from(above.in_flight);
            self.accept(above.in_flight, 2.0);
            Reason::ServiceShift
        }
    }
}
