//! Events for `tracing`.

use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering},
};

use goodput_algorithms::Evidence;
use tracing::{Level, enabled, event, level_filters::LevelFilter};

use crate::{Clock, Criticality, Refusal, Request, TimedDecision};

/// The least time between two events about refusals of one gate.
const SAMPLE_EVERY_NS: u64 = 1_000_000_000;

/// Tells of a decision, if the limit moved.
#[inline]
pub(crate) fn decided(gate: &str, decision: &TimedDecision) {
    if !decision.moved() {
        return;
    }
    event!(
        target: "goodput::limit",
        Level::DEBUG,
        gate,
        limit = decision.decision.limit,
        previous_limit = decision.previous_limit,
        reason = decision.decision.reason.as_str(),
        evidence = %Numbers(&decision.decision.evidence),
        "limit moved"
    );
}

/// Tells that somebody put another limiter in place.
pub(crate) fn replaced(gate: &str, previous_limit: usize, limit: usize) {
    event!(target: "goodput::limit", Level::DEBUG, gate, limit, previous_limit, reason = "set", "limiter replaced");
}

/// Tells of a refusal now and then. Costs nothing to speak of while nobody listens.
#[derive(Debug, Default)]
pub(crate) struct RefusalSampler {
    next_at_ns: AtomicU64,
    since_last: AtomicU64,
}

impl RefusalSampler {
    #[inline]
    pub(crate) fn refused(&self, gate: &str, request: &Request, refusal: &Refusal, clock: &impl Clock) {
        if Level::INFO <= LevelFilter::current() {
            // Copies, so that those of the caller may stay in registers.
            self.sample(gate, request.criticality, *refusal, clock);
        }
    }

    #[cold]
    #[inline(never)]
    fn sample(&self, gate: &str, criticality: Criticality, refusal: Refusal, clock: &impl Clock) {
        if !enabled!(target: "goodput::refusal", Level::INFO) {
            return;
        }
        let now = clock.now();
        self.since_last.fetch_add(1, Ordering::Relaxed);
        let next = self.next_at_ns.load(Ordering::Relaxed);
        let after = now.plus_nanos(SAMPLE_EVERY_NS).nanos();
        if now.nanos() < next
            || self.next_at_ns.compare_exchange(next, after, Ordering::Relaxed, Ordering::Relaxed).is_err()
        {
            return;
        }
        event!(
            target: "goodput::refusal",
            Level::INFO,
            gate,
            reason = refusal.reason.as_str(),
            criticality = criticality.as_str(),
            limit = refusal.limit,
            in_flight = refusal.in_flight,
            refused_since_last = self.since_last.swap(0, Ordering::Relaxed),
            "request refused"
        );
    }
}

/// The numbers behind a reason.
struct Numbers<'a>(&'a Evidence);

impl fmt::Display for Numbers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, value)) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { " " };
            write!(f, "{separator}{name}={value}")?;
        }
        Ok(())
    }
}
