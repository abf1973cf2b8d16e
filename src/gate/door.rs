//! Limit and in flight in one word, so that admission is one atomic step.

use std::sync::atomic::Ordering;

use crate::{share::Allowance, sync::AtomicU64};

/// Limit, in flight, and whether anybody waits.
pub(super) struct Door {
    word: AtomicU64,
}

/// What the door's word said at one moment: from the low end 32 bits in flight, 1 bit somebody waits, 31 bits limit.
#[derive(Clone, Copy)]
pub(super) struct Occupancy(u64);

impl Door {
    pub(super) fn new(limit: usize) -> Self {
        Self { word: AtomicU64::new(Occupancy::limit_bits(limit)) }
    }

    #[inline]
    pub(super) fn look(&self) -> Occupancy {
        Occupancy(self.word.load(Ordering::Relaxed))
    }

    /// Takes `weight` places if nobody waits and they are free and within `part` of the limit. Tells what the door is
    /// like afterwards, or what stood against it.
    #[inline]
    pub(super) fn enter(&self, weight: u32, part: Part, seen: Occupancy) -> Result<Occupancy, Occupancy> {
        self.step(seen, |seen| seen.admits(weight, part).then(|| seen.with(weight)))
    }

    /// The same, whether or not somebody waits.
    pub(super) fn enter_past_queue(&self, weight: u32, part: Part) -> Result<Occupancy, Occupancy> {
        self.step(self.look(), |seen| seen.has_room(weight, part).then(|| seen.with(weight)))
    }

    /// Gives `weight` places back. Tells what the door is like afterwards.
    #[inline]
    pub(super) fn leave(&self, weight: u32) -> Occupancy {
        let weight = u64::from(weight);
        Occupancy(self.word.fetch_sub(weight, Ordering::AcqRel) - weight)
    }

    /// Tells what the door is like afterwards.
    pub(super) fn set_limit(&self, limit: usize) -> Occupancy {
        let change = |seen: Occupancy| Some(seen.limited_to(limit)).filter(|after| after.0 != seen.0);
        self.step(self.look(), change).unwrap_or_else(|unchanged| unchanged)
    }

    /// Whoever frees a place after this sees it.
    pub(super) fn someone_waits(&self) {
        self.word.fetch_or(Occupancy::SOMEONE_WAITS, Ordering::AcqRel);
    }

    pub(super) fn nobody_waits(&self) {
        self.word.fetch_and(!Occupancy::SOMEONE_WAITS, Ordering::AcqRel);
    }

    /// Orders the caller with everybody who enters or leaves: each of them comes either wholly before or after.
    pub(super) fn line_up(&self) {
        // `AcqRel` would say as much, but of an addition of nothing whose result nobody wants compilers leave only the
        // fence of its ordering, and for `AcqRel` that is no instruction at all on x86: what the caller reads next would
        // overtake what it wrote before.
        self.word.fetch_add(0, Ordering::SeqCst);
    }

    #[inline]
    fn step(
        &self,
        mut seen: Occupancy,
        next: impl Fn(Occupancy) -> Option<Occupancy>,
    ) -> Result<Occupancy, Occupancy> {
        while let Some(after) = next(seen) {
            match self.word.compare_exchange_weak(seen.0, after.0, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return Ok(after),
                Err(actual) => seen = Occupancy(actual),
            }
        }
        Err(seen)
    }
}

impl Occupancy {
    const SOMEONE_WAITS: u64 = 1 << 32;
    const LIMIT_SHIFT: u32 = 33;
    pub(super) const GREATEST_LIMIT: usize = (1 << 31) - 1;

    #[inline]
    pub(super) fn limit(self) -> usize {
        (self.0 >> Self::LIMIT_SHIFT) as usize
    }

    #[inline]
    pub(super) fn in_flight(self) -> u32 {
        self.0 as u32
    }

    #[inline]
    pub(super) fn someone_waits(self) -> bool {
        self.0 & Self::SOMEONE_WAITS != 0
    }

    #[inline]
    pub(super) fn is_full(self) -> bool {
        self.in_flight() as usize >= self.limit()
    }

    #[inline]
    pub(super) fn admits(self, weight: u32, part: Part) -> bool {
        !self.someone_waits() && self.has_room(weight, part)
    }

    /// One that weighs more than it may have of the limit may run alone. Nobody may have anything of nothing.
    #[inline]
    pub(super) fn has_room(self, weight: u32, part: Part) -> bool {
        let allowed = part.of(self.limit());
        let room = allowed.saturating_sub(self.in_flight() as usize);
        weight as usize <= room || (self.in_flight() == 0 && allowed > 0)
    }

    /// Only called where there is room, so in flight stays within 32 bits: it is at most the limit, or `weight` alone.
    #[inline]
    fn with(self, weight: u32) -> Self {
        Self(self.0 + u64::from(weight))
    }

    fn limited_to(self, limit: usize) -> Self {
        Self(self.0 & ((1 << Self::LIMIT_SHIFT) - 1) | Self::limit_bits(limit))
    }

    fn limit_bits(limit: usize) -> u64 {
        (limit.min(Self::GREATEST_LIMIT) as u64) << Self::LIMIT_SHIFT
    }
}

/// An [`Allowance`] of the limit in one word, so that it can change while requests are admitted by it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Part(u64);

impl Part {
    /// The whole limit.
    pub(super) const ALL: Self = Self(Self::ALL_BUT);

    const SHARE: u64 = 0;
    const ALL_BUT: u64 = 1 << 32;
    const AT_MOST: u64 = 2 << 32;

    pub(super) fn new(allowance: Allowance) -> Self {
        // A count beyond the greatest limit means the same as the greatest limit.
        let count = |count: usize| count.min(Occupancy::GREATEST_LIMIT) as u64;
        match allowance {
            Allowance::ALL => Self::ALL,
            Allowance::Share(share) => Self(Self::SHARE | u64::from(share.millionths())),
            Allowance::AllBut(reserve) => Self(Self::ALL_BUT | count(reserve)),
            Allowance::AtMost(most) => Self(Self::AT_MOST | count(most)),
        }
    }

    pub(super) const fn from_word(word: u64) -> Self {
        Self(word)
    }

    pub(super) const fn word(self) -> u64 {
        self.0
    }

    /// As [`Allowance::of`].
    #[inline]
    pub(super) fn of(self, limit: usize) -> usize {
        let (kind, number) = (self.0 & !u64::from(u32::MAX), self.0 & u64::from(u32::MAX));
        match kind {
            Self::ALL_BUT => limit.saturating_sub(number as usize),
            Self::AT_MOST => limit.min(number as usize),
            // Below 2³¹ · 2²⁰.
            _ => (limit as u64 * number).div_ceil(1_000_000) as usize,
        }
    }
}

#[cfg(all(test, not(goodput_loom)))]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::share::Share;

    fn allowance() -> impl Strategy<Value = Allowance> {
        prop_oneof![
            (0.0..=1.0).prop_map(|part| Allowance::Share(Share::new(part).unwrap())),
            any::<usize>().prop_map(Allowance::AllBut),
            (0_usize..100).prop_map(Allowance::AllBut),
            any::<usize>().prop_map(Allowance::AtMost),
            (0_usize..100).prop_map(Allowance::AtMost),
            Just(Allowance::ALL),
        ]
    }

    proptest! {
        #[test]
        fn a_part_of_a_limit_is_what_its_allowance_allows(
            allowance in allowance(), limit in prop_oneof![0_usize..200, 0..=Occupancy::GREATEST_LIMIT],
        ) {
            prop_assert_eq!(Part::new(allowance).of(limit), allowance.of(limit));
        }
    }
}
