//! Short cuts to just below the knee, which measure the baseline.

use crate::{Instant, Reason};

use super::{
    Crest, LEAST_SAMPLES, Mode, Part,
    baseline::{FREE, QUEUED, error_of_ratio},
    look::{Look, Seen},
    run::{ALONE, LIGHT},
};

/// A dip goes down to this share of the knee: queue-free if the knee is at most a quarter too high, and cheap. If the
/// knee is higher still, the dip reads lower than the baseline, the knee comes down with it, and the next dip is lower.
pub(super) const BELOW_KNEE: f64 = 0.8;
/// So far down goes one that follows a change which nothing but a dip can tell: what queues there still cannot be missed.
const DEEP: f64 = 0.5;
/// Rounds between dips,
const REGULAR: f64 = 64.0;
/// and where the baseline is not to be trusted yet: after a start, and after a dip that read lower.
const SOON: f64 = 8.0;
/// They come twice as often while the baseline is this many times what it usually is: a service that became slower may
/// become as fast again, and what queues then takes the place of what was slow, so that nobody sees it but a dip.
const SLOWER: f64 = 1.5;
/// What has been so for about as many dips is usual.
const USUAL_DIPS: f64 = 16.0;
/// A limiter dips if it has felt its limit in one of so many looks: demand comes and goes, and where others queue, all have
/// to dip.
pub(super) const LATELY: u32 = 6;
/// More that is wanted counts at once, less only when it was so in about so many looks.
const LESS_WANTED: f64 = 8.0;
/// Instants of rare dips, and of deep ones, are not to come sooner than a quarter of the interval.
const RARE: f64 = 16.0;
/// Samples of a dip per unit of spread, up to a spread of 4,
const SAMPLES: f64 = 24.0;
const WIDEST: f64 = 4.0;
/// but no more than so many rounds: where few are in flight, many short dips tell as much as few long ones.
const ROUNDS: f64 = 4.0;
/// The least samples of a dip.
const LEAST: f64 = 4.0;
/// A dip reads lower if it is below this share of the baseline and not by chance.
const LOWER: f64 = 0.9;
/// If it may be chance, but is lower by so many standard errors, another dip comes soon, to tell.
const PERHAPS: f64 = 0.5;
/// Two dips in a row that both read higher by so many standard errors are sure.
const AGREED: f64 = 2.0;
/// Elasticity from which what a dip saw is a queue still.
const STILL_QUEUE: f64 = 0.75;

impl Crest {
    pub(super) fn note_what_is_wanted(&mut self, look: &Look) {
        self.wanted = look.wanted.max(self.wanted + (look.wanted - self.wanted) / LESS_WANTED);
    }

    /// Cuts the limit, if it is felt at all.
    pub(super) fn begin_dip(&mut self) -> Option<Reason> {
        self.dip_was_due = true;
        let deep = core::mem::take(&mut self.next_dip_is_deep);
        let lately = if self.without == Some(Part::Lately) { 1 } else { LATELY };
        let felt = self.unfelt_looks < lately && self.without != Some(Part::Dips);
        // It is felt at light load, too, where some come at once. There is no queue to lower, and a dip would only refuse.
        let light = self.wanted < LIGHT * self.limit;
        if !felt || light || self.limit < 2.0 {
            if felt {
                self.take_last_look_for_dip();
            }
            self.schedule_dip(REGULAR);
            return None;
        }
        self.returns_to = self.limit;
        self.mode = Mode::Dip;
        let part = if deep { DEEP } else { BELOW_KNEE };
        self.set_limit(libm::floor(part * self.knee).min(self.limit));
        let wide = (SAMPLES * self.baseline.spread.min(WIDEST)).min(ROUNDS * self.limit);
        let samples = LEAST_SAMPLES.min(2.0 * self.limit).max(LEAST).max(wide);
        self.open_after(1.0, samples);
        Some(Reason::Probing)
    }

    /// Where load is light, or with one request at a time, there is nothing lower to try: what was seen last is all that a
    /// dip could see. Without this, a baseline that is too low would keep the limit at one forever.
    fn take_last_look_for_dip(&mut self) {
        let Seen { latency_ns, samples, .. } = self.last_run;
        if samples > 0.0 {
            let believed_ns = self.believed(latency_ns);
            self.last_dip = self.last_run;
            self.baseline.add(believed_ns, samples, self.memory());
        }
    }

    /// Learns from the dip and goes back up.
    pub(super) fn end_dip(&mut self, look: &Look) -> Reason {
        if look.duration_ns < look.latency_ns {
            return self.undecided(look.samples);
        }
        let memory = self.memory();
        self.baseline.learn_spread(look.spread, look.samples / (look.samples + memory + 64.0));
        let known = self.baseline;
        let chance = known.error(QUEUED, look.samples);
        let fell = libm::log(look.latency_ns / known.latency_ns);
        let reads_lower = look.latency_ns < LOWER * known.latency_ns;
        let lower = reads_lower && fell < -chance;
        let rises = look.latency_ns > known.latency_ns;
        if !(rises && look.overloaded) {
            self.learn_from_dip(look, lower, memory);
        }
        self.last_dip = look.seen();
        let run = self.last_run;
        if lower && run.samples > 0.0 && look.in_flight < run.in_flight {
            let elasticity =
                libm::log(run.latency_ns / look.latency_ns) / libm::log(run.in_flight / look.in_flight);
            if elasticity > STILL_QUEUE {
                // All that was seen down here is a queue still: look further down at once.
                return self.begin_check(look, look.in_flight.min(self.limit) / 2.0);
            }
        }
        self.mode = Mode::Run;
        self.set_limit(self.returns_to);
        self.round_ns = look.latency_ns;
        if reads_lower && fell < -PERHAPS * chance {
            self.schedule_dip(SOON);
        } else {
            self.learn_usual();
            let rarest = if self.is_slower_than_usual() { REGULAR / 2.0 } else { REGULAR };
            self.dip_rounds = (2.0 * self.dip_rounds).min(rarest);
            self.schedule_dip(self.dip_rounds);
        }
        self.open_after(1.0, self.least_samples());
        Reason::Measured
    }

    /// What reads surely lower replaces what was known. So does what two dips in a row agree on, if it is surely higher
    /// and the dips are not those of one of many. All else is weighed by its samples.
    pub(super) fn learn_from_dip(&mut self, look: &Look, lower: bool, memory: f64) {
        let known = self.baseline;
        let believed_ns = self.believed(look.latency_ns);
        let both = look.samples + self.last_dip.samples;
        let noise = error_of_ratio(FREE * known.spread, both, known.samples);
        if self.knee >= ALONE && libm::log(believed_ns / known.latency_ns) > AGREED * noise {
            self.baseline.set(believed_ns, both);
        } else if lower {
            self.baseline.set(believed_ns, look.samples);
        } else {
            self.baseline.add(believed_ns, look.samples, memory);
        }
    }

    /// A dip that reads higher may have read a pause, or the queue of others who did not dip: it is believed as far as
    /// the dip before it said the same. One that reads lower is believed at once.
    fn believed(&self, latency_ns: f64) -> f64 {
        let known = self.baseline.latency_ns;
        if self.without == Some(Part::SecondDip) || latency_ns <= known {
            return latency_ns;
        }
        latency_ns.min(self.last_dip.latency_ns.max(known))
    }

    /// What is usual follows the baseline, down at once and up slowly.
    pub(super) fn learn_usual(&mut self) {
        let known_ns = self.baseline.latency_ns;
        let moved_ns = self.usual_ns * libm::pow(known_ns / self.usual_ns, 1.0 / USUAL_DIPS);
        self.usual_ns = known_ns.min(moved_ns);
    }

    pub(super) fn is_slower_than_usual(&self) -> bool {
        self.baseline.latency_ns > SLOWER * self.usual_ns && self.without != Some(Part::Slower)
    }

    /// Dips often until the baseline is trusted.
    pub(super) fn begin_dips_anew(&mut self) {
        self.dip_rounds = SOON;
        self.schedule_dip(SOON);
    }

    /// The next dip is to come soon, but not before what asks for it is over, and to be deep.
    pub(super) fn plan_deep_dip(&mut self) {
        self.next_dip_is_deep = true;
        self.begin_dips_anew();
    }

    /// Limiters that protect one service see the same latency, so an instant that is a multiple of a power of two
    /// of nanoseconds is one at which all of them dip, unasked, and see the service without each other's queue.
    fn schedule_dip(&mut self, rounds: f64) {
        let now = self.now;
        let interval = |rounds: f64| ((rounds * self.round_ns) as u64).max(1).checked_next_power_of_two();
        let next = |interval: Option<u64>| {
            let at =
                interval.and_then(|interval| (now.nanos() / interval).checked_add(1)?.checked_mul(interval));
            at.map_or(Instant::FAR_FUTURE, Instant::from_nanos)
        };
        let mut at = next(interval(rounds));
        if (rounds > RARE || self.next_dip_is_deep)
            && let Some(interval) = interval(rounds)
            && at.nanos_since(now) < interval / 4
        {
            at = at.plus_nanos(interval);
        }
        self.next_dip = at.min(next(interval(REGULAR)));
    }
}
