//! One stripe for each thread, and a few that the other threads share.

use std::sync::atomic::Ordering;

use super::{stripe::Stripe, thread_index::thread_index};
use crate::sync::{AtomicUsize, Padded, spin_loop, yield_now};

/// How many stripes threads without one of their own take turns at.
const SHARED: usize = if cfg!(goodput_loom) { 1 } else { 2 };

/// How often a thread looks for a shared stripe before it lets another thread run.
const PATIENCE: usize = 100;

/// The stripes of a gate: of each at most one thread writes at a time.
pub(super) struct Stripes {
    /// Those of one thread each, then the shared ones.
    all: Box<[Padded<Stripe>]>,
    own: usize,
    /// No stripe from here on was ever written.
    used: AtomicUsize,
    writers: AtomicUsize,
}

impl Stripes {
    /// With a stripe for each of `own` threads.
    pub(super) fn new(own: usize) -> Self {
        Self {
            all: (0..own + SHARED).map(|_| Padded(Stripe::new())).collect(),
            own,
            used: AtomicUsize::new(0),
            writers: AtomicUsize::new(0),
        }
    }

    /// Runs `write` as the only writer of a stripe. It must pass the door before it touches a bank.
    #[inline]
    pub(super) fn write<R>(&self, write: impl FnOnce(&Stripe) -> R) -> R {
        let index = thread_index();
        if index < self.own { self.write_to(index, write) } else { self.write_to_shared(index, write) }
    }

    #[inline]
    fn write_to<R>(&self, index: usize, write: impl FnOnce(&Stripe) -> R) -> R {
        let stripe = &self.all[index].0;
        if stripe.begin() {
            self.writers.fetch_add(1, Ordering::Relaxed);
            self.note_use(index);
        }
        let result = write(stripe);
        stripe.end();
        result
    }

    #[cold]
    fn write_to_shared<R>(&self, index: usize, write: impl FnOnce(&Stripe) -> R) -> R {
        for attempt in index % SHARED.. {
            let candidate = self.own + attempt % SHARED;
            if self.all[candidate].0.claim() {
                let result = self.write_to(candidate, write);
                self.all[candidate].0.give_back();
                return result;
            }
            if attempt % PATIENCE == PATIENCE - 1 { yield_now() } else { spin_loop() }
        }
        unreachable!("the loop has no end")
    }

    /// Counts a refusal.
    #[inline]
    pub(super) fn refuse(&self) {
        let index = thread_index();
        let (index, first) = if index < self.own {
            (index, self.all[index].0.refuse())
        } else {
            let index = self.own + index % SHARED;
            (index, self.all[index].0.refuse_shared())
        };
        if first {
            self.note_use(index);
        }
    }

    /// Whether more than one stripe was ever written.
    pub(super) fn several(&self) -> bool {
        self.writers.load(Ordering::Relaxed) > 1
    }

    pub(super) fn used(&self) -> impl Iterator<Item = &Stripe> {
        self.all[..self.used.load(Ordering::Relaxed)].iter().map(|stripe| &stripe.0)
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    #[cold]
    fn note_use(&self, index: usize) {
        self.used.fetch_max(index + 1, Ordering::Relaxed);
    }
}
