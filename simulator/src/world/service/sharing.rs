//! Requests that slow each other: processor sharing and the universal scalability law.

use std::{cmp::Reverse, collections::BinaryHeap};

use super::speed::FULL;
use crate::scenario::Usl;

/// Parts of a nanosecond in which attained service is counted.
const PARTS: f64 = 65_536.0;

/// How much each of n requests is slowed.
#[derive(Clone, Debug)]
pub(super) enum Law {
    Cores(u32),
    Usl(Usl),
}

impl Law {
    fn rate(&self, requests: usize) -> f64 {
        let n = requests as f64;
        match self {
            Self::Cores(cores) => (f64::from(*cores) / n).min(1.0),
            Self::Usl(usl) => 1.0 / (1.0 + usl.contention * (n - 1.0) + usl.crosstalk * n * (n - 1.0)),
        }
    }

    /// How many requests the service does best with.
    fn best(&self) -> f64 {
        match self {
            Self::Cores(cores) => f64::from(*cores),
            Self::Usl(usl) if usl.crosstalk > 0.0 => libm::sqrt((1.0 - usl.contention) / usl.crosstalk),
            Self::Usl(_) => f64::INFINITY,
        }
    }
}

/// All requests are worked on at once and have attained the same service since each came. So only one number moves,
/// the service attained by somebody who was always there, and who finishes next is a matter of a heap.
#[derive(Debug)]
pub(super) struct Shared {
    law: Law,
    speed: u64,
    /// Service attained so far, in parts of a nanosecond.
    attained: u128,
    last: u64,
    /// Nanoseconds of service that each request attains in a nanosecond.
    rate: f64,
    /// Who is worked on, by what `attained` will be at completion, and by order of arrival.
    present: BinaryHeap<Reverse<(u128, u64, u32)>>,
    arrived: u64,
    /// When the next request completes.
    next: Option<u64>,
}

impl Shared {
    pub(super) fn new(law: Law, speed: u64) -> Self {
        let present = BinaryHeap::new();
        Self { law, speed, attained: 0, last: 0, rate: 0.0, present, arrived: 0, next: None }
    }

    pub(super) fn set_cores(&mut self, cores: u32, now: u64) {
        self.advance(now);
        self.law = Law::Cores(cores);
        self.plan(now);
    }

    pub(super) fn set_speed(&mut self, speed: u64, now: u64) {
        self.advance(now);
        self.speed = speed;
        self.plan(now);
    }

    pub(super) fn enter(&mut self, slot: u32, work: u64, now: u64) {
        self.advance(now);
        let finish = self.attained + u128::from(work) * PARTS as u128;
        self.present.push(Reverse((finish, self.arrived, slot)));
        self.arrived += 1;
        self.plan(now);
    }

    pub(super) fn next_completion(&self) -> Option<u64> {
        self.next
    }

    pub(super) fn complete(&mut self, now: u64) -> Option<u32> {
        self.advance(now);
        let Reverse((finish, _, slot)) = self.present.pop()?;
        // It is done now, up to the rounding of parts.
        self.attained = self.attained.max(finish);
        if self.present.is_empty() {
            self.attained = 0;
        }
        self.plan(now);
        Some(slot)
    }

    /// Throws everybody out.
    pub(super) fn clear(&mut self) -> Vec<u32> {
        let mut slots = Vec::new();
        while let Some(Reverse((.., slot))) = self.present.pop() {
            slots.push(slot);
        }
        (self.attained, self.next) = (0, None);
        slots
    }

    /// How much of the service is busy: all of it with as many requests as it does best with.
    pub(super) fn busy_share(&self) -> f64 {
        let best = match &self.law {
            Law::Usl(usl) if usl.crosstalk == 0.0 => 1.0 / usl.contention,
            law => law.best(),
        };
        (self.present.len() as f64 / best.max(1.0)).min(1.0)
    }

    pub(super) fn has_room(&self) -> bool {
        ((self.present.len() + 1) as f64) <= self.law.best()
    }

    pub(super) fn in_service(&self) -> usize {
        self.present.len()
    }

    fn advance(&mut self, now: u64) {
        let elapsed = now - self.last;
        self.last = now;
        if elapsed > 0 && !self.present.is_empty() {
            self.attained += libm::round(elapsed as f64 * self.rate * PARTS) as u128;
        }
    }

    fn plan(&mut self, now: u64) {
        self.next = None;
        let Some(Reverse((finish, ..))) = self.present.peek() else { return };
        self.rate = self.law.rate(self.present.len()) * (self.speed as f64 / FULL as f64);
        let missing = finish.saturating_sub(self.attained) as f64;
        if missing == 0.0 {
            self.next = Some(now);
        } else if self.rate > 0.0 {
            self.next = Some(now.saturating_add(libm::ceil(missing / PARTS / self.rate) as u64));
        }
    }
}
