//! One stripe for each thread, and a few that the other threads share.

use std::sync::atomic::Ordering;

use super::{
    stripe::{Refused, Stripe},
    thread_index::thread_index,
};
use crate::sync::{AtomicBool, AtomicUsize, Padded, spin_loop, yield_now};

/// How many stripes threads without one of their own take turns at.
const SHARED: usize = if cfg!(goodput_loom) { 1 } else { 2 };

/// How often a thread looks for a shared stripe before it lets another thread run.
const PATIENCE: usize = 100;

/// The stripes of a gate: of each at most one thread writes at a time.
pub(super) struct Stripes {
    /// First those that are written by whoever claims one, then those of one thread each.
    all: Box<[Padded<Stripe>]>,
    /// None from here on was ever written.
    used: AtomicUsize,
    shared_used: AtomicBool,
    writers: AtomicUsize,
}

impl Stripes {
    /// With a stripe for each of `own` threads.
    pub(super) fn new(own: usize) -> Self {
        Self {
            all: (0..SHARED.saturating_add(own)).map(|_| Padded(Stripe::new())).collect(),
            used: AtomicUsize::new(SHARED),
            shared_used: AtomicBool::new(false),
            writers: AtomicUsize::new(0),
        }
    }

    /// The calling thread's own stripe, if it has one.
    #[inline]
    pub(super) fn own(&self) -> Option<&Stripe> {
        self.all.get(own_place()).map(|Padded(stripe)| stripe)
    }

    /// Makes the caller the only writer of its `own` stripe or of a shared one. It must pass the door before it asks
    /// for a bank.
    #[inline]
    pub(super) fn writer<'gate>(&'gate self, own: Option<&'gate Stripe>) -> Writer<'gate> {
        let stripe = own.unwrap_or_else(|| self.claim());
        let turn = stripe.begin();
        if turn == 1 {
            self.note_writer();
        }
        Writer { stripe, turn, shared: own.is_none() }
    }

    #[cold]
    fn claim(&self) -> &Stripe {
        let mut attempt = thread_index() % SHARED;
        loop {
            let Padded(stripe) = &self.all[attempt % SHARED];
            if stripe.claim() {
                return stripe;
            }
            attempt += 1;
            if attempt.is_multiple_of(PATIENCE) { yield_now() } else { spin_loop() }
        }
    }

    /// Counts a refusal.
    #[inline]
    pub(super) fn refuse(&self, kind: Refused) {
        match self.own() {
            Some(stripe) => {
                if stripe.refuse(kind) {
                    self.note_use();
                }
            }
            None => self.refuse_shared(kind),
        }
    }

    #[cold]
    fn refuse_shared(&self, kind: Refused) {
        self.note_use();
        self.all[thread_index() % SHARED].0.refuse_shared(kind);
    }

    /// Whether more than one stripe was ever written.
    #[inline]
    pub(super) fn several(&self) -> bool {
        self.writers.load(Ordering::Relaxed) > 1
    }

    /// Those that may hold anything, each with its place, which stays the same.
    pub(super) fn used(&self) -> impl Iterator<Item = (usize, &Stripe)> {
        let first = if self.shared_used.load(Ordering::Relaxed) { 0 } else { SHARED };
        let used = &self.all[first..self.used.load(Ordering::Relaxed)];
        used.iter().enumerate().map(move |(index, Padded(stripe))| (first + index, stripe))
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    #[cold]
    fn note_writer(&self) {
        self.writers.fetch_add(1, Ordering::Relaxed);
        self.note_use();
    }

    #[cold]
    fn note_use(&self) {
        let place = own_place();
        if place < self.all.len() {
            self.used.fetch_max(place + 1, Ordering::Relaxed);
        } else if !self.shared_used.load(Ordering::Relaxed) {
            self.shared_used.store(true, Ordering::Relaxed);
        }
    }
}

/// Where the calling thread's own stripe is; nowhere, if there are not as many.
#[inline]
pub(super) fn own_place() -> usize {
    thread_index() + SHARED
}

/// The only writer of a stripe, until it is dropped.
pub(super) struct Writer<'gate> {
    stripe: &'gate Stripe,
    turn: u64,
    shared: bool,
}

impl<'gate> Writer<'gate> {
    #[inline]
    pub(super) fn stripe(&self) -> &'gate Stripe {
        self.stripe
    }
}

impl Drop for Writer<'_> {
    #[inline]
    fn drop(&mut self) {
        self.stripe.end(self.turn);
        if self.shared {
            self.stripe.give_back();
        }
    }
}
