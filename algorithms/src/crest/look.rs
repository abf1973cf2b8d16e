//! What a window says, once it is worth listening to.

use crate::Window;

use super::{Crest, Mode, Part};

/// A pause is a silence longer than this many rounds: so long, nobody answered though everybody should have.
const PAUSE_ROUNDS: f64 = 1.2;
/// A shorter one counts if it is longer than this many rounds and stands out from the silences before it,
const SHORT_PAUSE_ROUNDS: f64 = 0.25;
/// by this factor.
const STANDS_OUT: f64 = 4.0;
/// No silence counts that is shorter than this many expected gaps between answers: at random times, e⁻²⁴ is never.
const SILENT_GAPS: f64 = 24.0;
/// A mean latency by Little's law counts requests still running, and one that stands still could outweigh all that
/// was learned: it counts for at most this many times what is usual.
const OUTLIER: f64 = 8.0;
/// Bounds of the squared coefficient of variation. Below, a few equal answers would look like certainty; above, heavy
/// tails would ask for windows that never fill.
const LEAST_SPREAD: f64 = 0.3;
const GREATEST_SPREAD: f64 = 25.0;
/// The share of limit hits from which demand counts as held back by the limit: one of a few requests may meet it by
/// chance.
const SATURATED: f64 = 0.1;
/// The share of overloads from which a window counts as overload, whatever its latency,
const OVERLOADED: f64 = 0.1;
/// and from which there is nothing left to lose by admitting less.
const LOST: f64 = 0.5;
/// The share of the limit from which in flight counts as steady there.
const STEADY: f64 = 0.9;
/// How far, in standard deviations of latency, the mean by Little's law may lie from the plain mean at a steady limit,
const TIE: f64 = 0.5;
/// and which part of the deviation known from dips counts at least: where one answer in ten takes ten times as long, a
/// short look may have met none of those.
const TIE_KNOWN: f64 = 0.5;

/// Nothing that anybody would notice, and no zero to divide by.
const LEAST_IN_FLIGHT: f64 = 1e-6;

/// What one window said.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    /// How many samples it rests on, at least 1.
    pub(super) samples: f64,
    /// How long it took, ns.
    pub(super) duration_ns: f64,
    /// Mean latency, ns, at least 1.
    pub(super) latency_ns: f64,
    /// Requests in flight on average.
    pub(super) in_flight: f64,
    /// How many would be in flight if none had been refused: in flight, and in proportion the refused.
    pub(super) wanted: f64,
    /// The largest in flight.
    pub(super) peak: f64,
    /// Squared coefficient of variation of latency.
    pub(super) spread: f64,
    /// Demand was held back by the limit.
    pub(super) saturated: bool,
    /// Many answers came too late, or the service itself refused.
    pub(super) overloaded: bool,
    /// Most did.
    pub(super) lost: bool,
}

impl Look {
    /// Latency and concurrency, to compare with later.
    pub(super) const fn seen(&self) -> Seen {
        Seen { latency_ns: self.latency_ns, in_flight: self.in_flight, samples: self.samples }
    }

    /// Whether it took at least two rounds: shorter looks are worth little where answers come in clumps.
    pub(super) fn is_long(&self) -> bool {
        self.duration_ns >= 2.0 * self.latency_ns
    }
}

/// A latency at a concurrency.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    pub(super) latency_ns: f64,
    pub(super) in_flight: f64,
    pub(super) samples: f64,
}

impl Crest {
    /// The window as a look, or nothing where it must go on: it has too few samples, or has not lasted whole rounds.
    ///
    /// Answers to requests that were admitted together come together. A window that ends in the middle of such a
    /// clump has counted too many or too few, so it ends after whole rounds.
    pub(super) fn look(&mut self, window: &Window) -> Option<Look> {
        let answers = window.samples();
        let samples = answers.count as f64;
        let wanted = self.rule.samples_once_felt;
        if answers.count < wanted.max(1) {
            self.go_on(wanted as f64);
            return None;
        }
        let plain_ns = answers.mean_ns().max(1.0);
        let duration_ns = window.duration_ns() as f64;
        if duration_ns < plain_ns {
            self.round_ends = window.opened.plus_nanos(plain_ns as u64);
            self.go_on(wanted as f64);
            return None;
        }
        let whole_rounds = libm::floor(duration_ns / plain_ns) + 1.0;
        self.round_ends = window.opened.plus_nanos((whole_rounds * plain_ns) as u64);
        let in_flight = window.mean_in_flight().max(LEAST_IN_FLIGHT);
        let variance = answers.variance();
        let cap_ns = OUTLIER * self.baseline.latency_ns.max(self.round_ns).max(plain_ns);
        let mut latency_ns = window.mean_latency_ns().min(cap_ns).max(1.0);
        if self.mode != Mode::Run && in_flight > STEADY * self.limit {
            // A clump counted or missed shifts the mean by Little's law by up to a round in the window. Where in flight
            // stands still, the plain mean has no survivor bias either, and nearly equal answers tell nearly exactly.
            let known_ns = libm::sqrt(self.baseline.spread) * plain_ns;
            let reach = TIE * libm::sqrt(variance).max(TIE_KNOWN * known_ns);
            latency_ns = latency_ns.max(plain_ns - reach).min(plain_ns + reach).max(1.0);
        }
        Some(Look {
            samples,
            duration_ns,
            latency_ns,
            in_flight,
            wanted: in_flight * (1.0 + window.refused as f64 / samples),
            peak: window.max_in_flight as f64,
            spread: (variance / (plain_ns * plain_ns)).clamp(LEAST_SPREAD, GREATEST_SPREAD),
            saturated: window.limit_hits as f64 > SATURATED * samples,
            overloaded: window.overloads.count as f64 > OVERLOADED * samples,
            lost: window.overloads.count as f64 > LOST * samples,
        })
    }

    /// Whether the service stood still for a while, as for a garbage collection. Such a window says nothing about the
    /// knee. Never two in a row: a service that keeps standing still is slow.
    pub(super) fn paused(&mut self, window: &Window) -> bool {
        if self.without == Some(Part::Pauses) || self.mode == Mode::FirstLook {
            return false;
        }
        // Longer than the longest answer, silence is idleness.
        let silence = window.longest_silence_ns.min(window.samples().max_ns) as f64;
        let round = self.round_ns.max(self.baseline.latency_ns);
        let gap = round / window.mean_in_flight().max(1.0);
        let stands_out = self.usual_silence_ns > 0.0
            && silence > SHORT_PAUSE_ROUNDS * round
            && silence > STANDS_OUT * self.usual_silence_ns;
        let long = silence > PAUSE_ROUNDS * round;
        let stood = !self.skipped && silence > SILENT_GAPS * gap && (long || stands_out);
        if !stood {
            self.usual_silence_ns = silence.max(self.usual_silence_ns / 2.0);
        }
        stood
    }
}
