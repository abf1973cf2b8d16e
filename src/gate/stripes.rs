//! One stripe for each thread, and a few that the other threads share.

use std::sync::atomic::Ordering;

use super::{
    stripe::{Refused, Stripe, Turn},
    thread_index::{own_of, thread_index},
};
use crate::sync::{AtomicBool, AtomicUsize, Padded, spin_loop, yield_now};

/// How many stripes threads without one of their own take turns at.
const SHARED: usize = if cfg!(goodput_loom) { 1 } else { 2 };

/// How often a thread looks for a shared stripe before it lets another thread run.
const PATIENCE: usize = 100;

/// The stripes of a gate: of each at most one thread writes at a time.
pub(super) struct Stripes {
    /// Of one thread each. In a box of its own each, as processors pass on what is counted over and over at no cost only
    /// where the address is a pointer and a fixed distance.
    own: Box<[Box<Padded<Stripe>>]>,
    /// Written by whoever claims one.
    shared: [Padded<Stripe>; SHARED],
    /// None of the own stripes from here on was ever written.
    used: AtomicUsize,
    shared_used: AtomicBool,
    writers: AtomicUsize,
}

impl Stripes {
    /// With a stripe for each of `own` threads.
    pub(super) fn new(own: usize) -> Self {
        Self {
            own: (0..own).map(|_| Box::new(Padded(Stripe::own()))).collect(),
            shared: std::array::from_fn(|_| Padded(Stripe::shared())),
            used: AtomicUsize::new(0),
            shared_used: AtomicBool::new(false),
            writers: AtomicUsize::new(0),
        }
    }

    /// The calling thread's own stripe, if it has one.
    #[inline]
    pub(super) fn own(&self) -> Option<&Stripe> {
        own_of(&self.own).map(|stripe| &stripe.0)
    }

    /// Makes the caller the only writer of its `own` stripe or of a shared one. It must pass the door, or take or keep a
    /// place there, before it asks for a bank.
    #[inline]
    pub(super) fn writer<'gate>(&'gate self, own: Option<&'gate Stripe>) -> Writer<'gate> {
        let stripe = own.unwrap_or_else(|| self.claim());
        let turn = stripe.begin();
        if turn.is_first() {
            self.note_writer();
        }
        Writer { stripe, turn }
    }

    #[cold]
    fn claim(&self) -> &Stripe {
        let mut attempt = thread_index() % SHARED;
        loop {
            let Padded(stripe) = &self.shared[attempt % SHARED];
            if stripe.claim() {
                return stripe;
            }
            attempt += 1;
            if attempt.is_multiple_of(PATIENCE) { yield_now() } else { spin_loop() }
        }
    }

    /// Counts a refusal of a thread whose own stripe counted one of the kind before. False, and nothing done, of any
    /// other.
    #[inline]
    pub(super) fn refuse_again(&self, kind: Refused) -> bool {
        self.own().is_some_and(|stripe| stripe.refuse_again(kind))
    }

    /// Counts a refusal.
    pub(super) fn refuse(&self, kind: Refused) {
        if self.refuse_again(kind) {
            return;
        }
        self.note_use();
        self.own().unwrap_or_else(|| &self.shared[thread_index() % SHARED].0).refuse(kind);
    }

    /// How many stripes were ever written.
    #[inline]
    pub(super) fn writers(&self) -> usize {
        self.writers.load(Ordering::Relaxed)
    }

    /// Whether more than one stripe was ever written.
    #[inline]
    pub(super) fn several(&self) -> bool {
        self.writers() > 1
    }

    /// Takes away all the places that threads keep. Tells how many.
    pub(super) fn take_back(&self) -> u32 {
        // A thread that keeps one in a stripe which is not known here yet sees what the caller did before.
        let used = self.used.fetch_add(0, Ordering::AcqRel);
        self.own[..used].iter().map(|stripe| u32::from(stripe.0.take_back())).sum()
    }

    /// How many places threads keep.
    pub(super) fn kept(&self) -> u32 {
        self.used().map(|(_, stripe)| u32::from(stripe.keeps())).sum()
    }

    /// Those that may hold anything, each with its place, which stays the same: for an own stripe the index of its
    /// thread.
    pub(super) fn used(&self) -> impl Iterator<Item = (usize, &Stripe)> {
        let own = &self.own[..self.used.load(Ordering::Relaxed)];
        let shared = &self.shared[..if self.shared_used.load(Ordering::Relaxed) { SHARED } else { 0 }];
        let places = own.iter().map(|stripe| &**stripe).enumerate();
        let shared_places = shared.iter().enumerate().map(|(index, stripe)| (self.own.len() + index, stripe));
        places.chain(shared_places).map(|(place, Padded(stripe))| (place, stripe))
    }

    pub(super) fn len(&self) -> usize {
        self.own.len() + SHARED
    }

    #[cold]
    fn note_writer(&self) {
        self.writers.fetch_add(1, Ordering::Relaxed);
        self.note_use();
    }

    #[cold]
    fn note_use(&self) {
        let index = thread_index();
        if index < self.own.len() {
            self.used.fetch_max(index + 1, Ordering::AcqRel);
        } else if !self.shared_used.load(Ordering::Relaxed) {
            self.shared_used.store(true, Ordering::Relaxed);
        }
    }
}

/// The only writer of a stripe, until it is dropped.
pub(super) struct Writer<'gate> {
    stripe: &'gate Stripe,
    turn: Turn,
}

impl<'gate> Writer<'gate> {
    #[inline]
    pub(super) fn stripe(&self) -> &'gate Stripe {
        self.stripe
    }

    /// Keeps a place for the thread's next request. False if it keeps one already, or has no stripe of its own.
    #[inline]
    pub(super) fn keep(&self) -> bool {
        !self.turn.is_shared() && self.stripe.keep()
    }

    /// Takes the place that the thread keeps. False if there is none.
    #[inline]
    pub(super) fn take_kept(&self) -> bool {
        self.stripe.take_kept()
    }
}

impl Drop for Writer<'_> {
    #[inline]
    fn drop(&mut self) {
        self.stripe.end(self.turn);
    }
}
