//! What the request path reads to know by which rules to admit.
//!
//! Hardly ever written. Plain atomics even under loom: whether a request sees the rules of before or after a change
//! matters to nobody, and a model has enough to explore.

use std::sync::atomic::{AtomicU64, Ordering};

use super::door::Part;
use crate::{Criticality, Request, priority::CriticalityShares};

/// The rules in force.
#[derive(Debug)]
pub(super) struct Rules {
    flags: AtomicU64,
    /// Words of [`Part`]s, by criticality.
    parts: [AtomicU64; Criticality::ALL.len()],
}

/// Which rules are in force.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Flags(u64);

impl Flags {
    /// Whoever finds no room may wait.
    pub(super) const WAITING: Self = Self(1);
    /// Some criticalities may not use the whole limit.
    pub(super) const SHARES: Self = Self(2);
    /// Cohorts, partitions or tenants are told apart, at the desk.
    pub(super) const CLASSES: Self = Self(4);
    /// Everybody is admitted, whatever the other rules say.
    pub(super) const OBSERVE_ONLY: Self = Self(8);
    /// Nobody is admitted for the time being.
    pub(super) const PAUSED: Self = Self(16);

    pub(super) const fn with(self, flag: Self, is_set: bool) -> Self {
        if is_set { Self(self.0 | flag.0) } else { Self(self.0 & !flag.0) }
    }

    #[inline]
    pub(super) const fn has(self, flag: Self) -> bool {
        self.0 & flag.0 != 0
    }

    /// Whether room is all that matters.
    #[inline]
    pub(super) const fn are_plain(self) -> bool {
        self.0 & !Self::WAITING.0 == 0
    }
}

impl Rules {
    pub(super) fn new() -> Self {
        Self { flags: AtomicU64::new(0), parts: std::array::from_fn(|_| AtomicU64::new(Part::ALL.word())) }
    }

    #[inline]
    pub(super) fn flags(&self) -> Flags {
        Flags(self.flags.load(Ordering::Relaxed))
    }

    /// Sets all flags but whether the gate is paused, which nobody else may change meanwhile.
    pub(super) fn set_flags(&self, flags: Flags) {
        let paused = self.flags().has(Flags::PAUSED);
        self.flags.store(flags.with(Flags::PAUSED, paused).0, Ordering::Relaxed);
    }

    pub(super) fn set_paused(&self, paused: bool) {
        self.flags.store(self.flags().with(Flags::PAUSED, paused).0, Ordering::Relaxed);
    }

    pub(super) fn set_shares(&self, shares: &CriticalityShares) {
        for criticality in Criticality::ALL {
            let part = Part::new(shares.allowance(criticality));
            self.parts[criticality as usize].store(part.word(), Ordering::Relaxed);
        }
    }

    /// The part of the limit that a request may use.
    #[inline]
    pub(super) fn part_of(&self, request: &Request) -> Part {
        let criticality = if request.continuation { Criticality::CriticalPlus } else { request.criticality };
        Part::from_word(self.parts[criticality as usize].load(Ordering::Relaxed))
    }
}
