//! Cuts that do not help: is there a queue at all?

use super::{
    Crest, Part,
    baseline::{FREE, error_of_ratio},
    look::{Look, Seen},
    run::{ALONE, QUEUE},
};
use crate::Reason;

/// Cuts that together lowered concurrency by this (in logarithm) must have lowered latency, if it was a queue.
const ENOUGH: f64 = 0.15;
/// Standard errors by which latency surely has not fallen as a queue does.
const SURELY: f64 = 1.5;
/// Standard errors by which latency has risen meanwhile: then the cuts before say nothing.
const ROSE: f64 = 2.0;
/// The dip that is to tell goes down to no less than where the cuts began, times this and [`super::dip::BELOW_KNEE`].
const LOWEST_KNEE: f64 = 0.5;

/// A row of cuts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cuts {
    /// What was seen before the first.
    from: Option<Seen>,
    /// They did not help, and the limit waits for a dip.
    waits: bool,
}

impl Cuts {
    pub(super) const NONE: Self = Self { from: None, waits: false };
}

impl Crest {
    /// If the limit was lowered, and lowered again, and latency did not fall, then there is no queue, or others fill what
    /// this one leaves. To cut on would only lose goodput: the limit stays, and dips, which come soon, tell.
    pub(super) fn wait_for_dip(&mut self, look: &Look) -> Option<Reason> {
        let spread = self.baseline.spread.max(look.spread / 2.0);
        let from = self.cuts.from.filter(|from| {
            let error = error_of_ratio(FREE * spread, look.samples, from.samples);
            look.in_flight < from.in_flight && libm::log(look.latency_ns / from.latency_ns) <= ROSE * error
        });
        let Some(from) = from else {
            self.cuts = Cuts { from: Some(look.seen()), waits: false };
            return None;
        };
        let apart = libm::log(from.in_flight / look.in_flight);
        let fallen = libm::log(from.latency_ns / look.latency_ns);
        let error = error_of_ratio(FREE * spread, look.samples, from.samples);
        let helped = apart < ENOUGH || fallen + SURELY * error > QUEUE * apart;
        if helped || from.in_flight < ALONE || self.without == Some(Part::Cuts) {
            return None;
        }
        self.knee = self.knee.max(LOWEST_KNEE * from.in_flight);
        if !self.cuts.waits {
            self.cuts.waits = true;
            self.begin_dips_anew();
        }
        self.open_after(0.0, self.least_samples());
        Some(Reason::Holding)
    }
}
