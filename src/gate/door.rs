//! Limit and in flight in one word, so that admission is one atomic step.

use std::sync::atomic::Ordering;

use crate::sync::AtomicU64;

/// Limit, in flight, and whether anybody waits.
pub(super) struct Door {
    word: AtomicU64,
}

/// What the door's word said at one moment: from the low end 32 bits in flight, 1 bit somebody waits, 31 bits limit.
#[derive(Clone, Copy)]
pub(super) struct Occupancy(pub(super) u64);

impl Door {
    pub(super) fn new(limit: usize) -> Self {
        Self { word: AtomicU64::new(Occupancy::limit_bits(limit)) }
    }

    #[inline]
    pub(super) fn look(&self) -> Occupancy {
        Occupancy(self.word.load(Ordering::Relaxed))
    }

    /// Takes `weight` places if nobody waits and they are free. Tells what the door is like afterwards, or what stood
    /// against it.
    #[inline]
    pub(super) fn enter(&self, weight: u32, seen: Occupancy) -> Result<Occupancy, Occupancy> {
        self.step(seen, |seen| seen.admits(weight).then(|| seen.with(weight)))
    }

    /// Takes `weight` places for somebody who waits.
    pub(super) fn enter_from_queue(&self, weight: u32) -> Result<Occupancy, Occupancy> {
        self.step(self.look(), |seen| seen.has_room(weight).then(|| seen.with(weight)))
    }

    /// Takes `weight` places, or says in the same step that somebody waits: whoever frees a place after that sees it.
    pub(super) fn enter_or_wait(&self, weight: u32) -> Option<Occupancy> {
        let after = self.step(self.look(), |seen| {
            Some(if seen.has_room(weight) { seen.with(weight) } else { seen.waited_for() })
        });
        after.ok().filter(|after| !after.someone_waits())
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

    pub(super) fn nobody_waits(&self) {
        self.word.fetch_and(!Occupancy::SOMEONE_WAITS, Ordering::AcqRel);
    }

    /// Orders the caller with everybody who enters or leaves: each of them comes either wholly before or after.
    pub(super) fn line_up(&self) {
        self.word.fetch_add(0, Ordering::AcqRel);
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
    pub(super) fn admits(self, weight: u32) -> bool {
        !self.someone_waits() && self.has_room(weight)
    }

    /// One that weighs more than the limit may run alone. Nobody may where the limit is zero.
    #[inline]
    fn has_room(self, weight: u32) -> bool {
        let room = self.limit().saturating_sub(self.in_flight() as usize);
        weight as usize <= room || (self.in_flight() == 0 && self.limit() > 0)
    }

    /// Only called where there is room, so in flight stays within 32 bits: it is at most the limit, or `weight` alone.
    #[inline]
    fn with(self, weight: u32) -> Self {
        Self(self.0 + u64::from(weight))
    }

    fn waited_for(self) -> Self {
        Self(self.0 | Self::SOMEONE_WAITS)
    }

    fn limited_to(self, limit: usize) -> Self {
        Self(self.0 & ((1 << Self::LIMIT_SHIFT) - 1) | Self::limit_bits(limit))
    }

    fn limit_bits(limit: usize) -> u64 {
        (limit.min(Self::GREATEST_LIMIT) as u64) << Self::LIMIT_SHIFT
    }
}
