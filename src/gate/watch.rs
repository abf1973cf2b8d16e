//! What the request path reads to know when a window may be due.

use std::sync::atomic::Ordering;

use goodput_algorithms::Instant;

use super::hint::Hint;
use crate::sync::AtomicU64;

/// By how much several threads may overstate a silence, so as not to write to one place at every completion.
const SHARED_SILENCE_GRAIN_NS: u64 = 10_000;

/// What the request path reads to know when a window may be due. Rarely written.
pub(super) struct Watch {
    generation: AtomicU64,
    samples_per_stripe: AtomicU64,
    /// The same once the limit is felt; never more.
    samples_once_felt: AtomicU64,
    not_before: AtomicU64,
    deadline: AtomicU64,
    last_completion: AtomicU64,
    /// Silences shorter than this are not noted as ended.
    silence_grain_ns: AtomicU64,
    hint: Hint,
}

impl Watch {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            generation: AtomicU64::new(0),
            samples_per_stripe: AtomicU64::new(0),
            samples_once_felt: AtomicU64::new(0),
            not_before: AtomicU64::new(0),
            deadline: AtomicU64::new(u64::MAX),
            last_completion: AtomicU64::new(now.nanos()),
            silence_grain_ns: AtomicU64::new(1),
            hint: Hint::default(),
        }
    }

    /// Which bank is written. Meaningful to whoever has passed the door, or taken or kept a place in his stripe.
    #[inline]
    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Has writers turn to the other bank, and shows them what the caller did in it.
    pub(super) fn turn_to(&self, generation: u64) {
        self.generation.store(generation, Ordering::Release);
    }

    /// When a look is worth it: to whose stripe holds so many samples, or so many once the limit is felt, from an instant on;
    /// and to all from the deadline on.
    #[inline]
    pub(super) fn set(&self, samples: u64, once_felt: u64, not_before: Instant, deadline: Instant) {
        self.samples_once_felt.store(once_felt, Ordering::Relaxed);
        self.samples_per_stripe.store(samples, Ordering::Relaxed);
        self.not_before.store(not_before.nanos(), Ordering::Relaxed);
        self.deadline.store(deadline.nanos(), Ordering::Relaxed);
    }

    /// Several threads complete requests.
    pub(super) fn share_silence(&self) {
        self.silence_grain_ns.store(SHARED_SILENCE_GRAIN_NS, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn deadline_passed(&self, now: Instant) -> bool {
        now.nanos() >= self.deadline.load(Ordering::Relaxed)
    }

    /// Whether a look is worth it, for a thread whose stripe holds `samples`.
    #[inline]
    pub(super) fn is_due(&self, samples: u64, now: Instant) -> bool {
        (samples >= self.samples_per_stripe.load(Ordering::Relaxed)
            && now.nanos() >= self.not_before.load(Ordering::Relaxed))
            || self.deadline_passed(now)
    }

    /// Somebody felt the limit: the window may be due sooner. Written once a window at most.
    #[inline]
    pub(super) fn limit_felt(&self) {
        let enough = self.samples_once_felt.load(Ordering::Relaxed);
        if self.samples_per_stripe.load(Ordering::Relaxed) > enough {
            self.samples_per_stripe.store(enough, Ordering::Relaxed);
        }
    }

    #[inline]
    pub(super) fn hint(&self) -> &Hint {
        &self.hint
    }

    /// Ends the silence before a completion, and tells how long it was.
    #[inline]
    pub(super) fn end_silence(&self, now: Instant) -> u64 {
        let last = Instant::from_nanos(self.last_completion.load(Ordering::Relaxed));
        let silence_ns = now.nanos_since(last);
        if silence_ns >= self.silence_grain_ns.load(Ordering::Relaxed) {
            self.last_completion.store(now.nanos(), Ordering::Relaxed);
        }
        silence_ns
    }
}
