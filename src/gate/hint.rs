//! What the refused are told of the time to wait. Plain atomics even under loom: an estimate is as good a moment later.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use crate::refusal::retry_after;

/// The queue ahead divided by the rate at which requests leave the gate.
#[derive(Debug, Default)]
pub(super) struct Hint {
    /// Per second, the bits of a float. Zero while it is not known.
    rate: AtomicU64,
    /// The hint for one place while nobody waits, in seconds. Zero while it is not known.
    for_one: AtomicU64,
    /// Weight of those who wait.
    queue: AtomicU64,
}

impl Hint {
    pub(super) fn set_rate(&self, per_second: f64) {
        let for_one = retry_after(1, per_second).unwrap_or_default();
        self.rate.store(per_second.to_bits(), Ordering::Relaxed);
        self.for_one.store(for_one.as_secs(), Ordering::Relaxed);
    }

    pub(super) fn set_queue(&self, weight: u64) {
        self.queue.store(weight, Ordering::Relaxed);
    }

    /// For one place, while nobody waits.
    #[inline]
    pub(super) fn for_one(&self) -> Option<Duration> {
        let seconds = self.for_one.load(Ordering::Relaxed);
        (seconds > 0).then(|| Duration::from_secs(seconds))
    }

    /// For `weight` places behind those who wait.
    #[cold]
    pub(super) fn behind_queue(&self, weight: u32) -> Option<Duration> {
        let rate = f64::from_bits(self.rate.load(Ordering::Relaxed));
        let ahead = self.queue.load(Ordering::Relaxed) + u64::from(weight);
        retry_after(ahead, rate).ok()
    }
}
