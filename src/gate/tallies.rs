//! What is counted off the beaten track. Plain atomics even under loom: nobody acts on them.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Criticality, RefusalReason, refusal::RefusalCounts};

/// Counts since the gate was built.
#[derive(Debug, Default)]
pub(super) struct Tallies {
    /// But for those that the stripes count.
    pub(super) refused: Refused,
    /// In observe-only mode.
    pub(super) would_have_refused: Refused,
    would_have_waited: AtomicU64,
    bypassed: AtomicU64,
    /// Refused, or admitted though they should have been, because the limit was reached; but for those that the
    /// stripes count.
    at_limit: AtomicU64,
    /// In flight without a place: they bypass, or would have been refused.
    outside: AtomicU64,
}

impl Tallies {
    pub(super) fn limit_felt(&self) {
        self.at_limit.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn at_limit(&self) -> u64 {
        self.at_limit.load(Ordering::Relaxed)
    }

    pub(super) fn would_have_waited(&self) -> u64 {
        self.would_have_waited.load(Ordering::Relaxed)
    }

    pub(super) fn count_would_have_waited(&self) {
        self.would_have_waited.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn bypassed(&self) -> u64 {
        self.bypassed.load(Ordering::Relaxed)
    }

    pub(super) fn count_bypassed(&self) {
        self.bypassed.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn enter_outside(&self) {
        self.outside.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn leave_outside(&self) {
        self.outside.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn outside(&self) -> u64 {
        self.outside.load(Ordering::Relaxed)
    }
}

/// By reason and criticality.
#[derive(Debug, Default)]
pub(super) struct Refused([[AtomicU64; Criticality::ALL.len()]; RefusalReason::ALL.len()]);

impl Refused {
    pub(super) fn count(&self, reason: RefusalReason, criticality: Criticality) {
        self.0[reason as usize][criticality as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn counts(&self) -> RefusalCounts {
        let mut counts = RefusalCounts::default();
        for reason in RefusalReason::ALL {
            for criticality in Criticality::ALL {
                let count = self.0[reason as usize][criticality as usize].load(Ordering::Relaxed);
                counts.add(reason, criticality, count);
            }
        }
        counts
    }
}
