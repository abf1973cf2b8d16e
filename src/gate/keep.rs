//! Places that threads keep, so that two threads at one gate need not fight over its door.
//!
//! A thread that frees a place where there is plenty of room keeps it in its stripe, and its next request takes it from
//! there. In the door's word the place stays counted, so nobody is let in beyond the limit; and whoever finds no room
//! there has all that is kept taken back before he believes it. Why no place is lost: [`Shared`].

use super::{door::Occupancy, shared::Shared, stripes::Writer};
use crate::sync::{MutexGuard, lock, try_lock};

impl<C> Shared<C> {
    /// What the door that was just `seen` is like, for one who is let in if it `admits` him. If it does not, no thread
    /// keeps a place either.
    #[inline(always)]
    pub(super) fn look_whether(
        &self,
        seen: Occupancy,
        admits: impl Fn(Occupancy) -> bool,
    ) -> Result<Occupancy, Occupancy> {
        if admits(seen) { Ok(seen) } else { self.look_closer(seen, admits) }
    }

    /// Takes `weight` places, of a door that was just `seen` to admit them, as long as it `admits` them. Tells what the
    /// door is like afterwards, or what stood against it.
    #[inline(always)]
    pub(super) fn enter(
        &self,
        weight: u32,
        mut seen: Occupancy,
        admits: impl Fn(Occupancy) -> bool + Copy,
    ) -> Result<Occupancy, Occupancy> {
        loop {
            match self.door.0.enter(weight, seen, admits) {
                Ok(after) if after.is_unswept() => return Ok(self.tidy(after)),
                Ok(after) => return Ok(after),
                Err(stands) => seen = self.look_closer(stands, admits)?,
            }
        }
    }

    /// Gives `weight` places back, or keeps the one if it `may_be_kept`. Tells what the door is like afterwards.
    #[inline(always)]
    pub(super) fn leave(&self, writer: &Writer<'_>, weight: u32, may_be_kept: bool) -> Occupancy {
        let seen = self.door.0.look();
        if seen.is_roomy() && weight == 1 && may_be_kept && writer.keep() {
            // Whoever made the door tight meanwhile may have been here before the place was.
            let keeps = self.door.0.look().is_roomy() || !writer.take_kept();
            if keeps {
                return seen;
            }
        }
        self.door.0.leave(weight)
    }

    /// Whoever frees a place after this sees that somebody waits.
    pub(super) fn raise_flag(&self) {
        while !self.door.0.someone_waits() {
            self.sweep();
        }
    }

    /// Takes back what threads keep, for one who found no room. Tells what the door was like once nobody kept a place.
    ///
    /// It waits for another who is at it: the places that he has in hand may be just what is wanted.
    #[cold]
    #[inline(never)]
    pub(super) fn sweep(&self) -> Occupancy {
        self.sweep_with(lock(&self.sweeping))
    }

    /// The same, for one who needs none of it: nothing happens if another is at it.
    #[cold]
    #[inline(never)]
    pub(super) fn tidy(&self, after: Occupancy) -> Occupancy {
        try_lock(&self.sweeping).map_or(after, |sweeping| self.sweep_with(sweeping))
    }

    /// Has nobody keep a place until the rules are plain again.
    pub(super) fn keep_no_places(&self) {
        // Whoever makes the door roomy does so under this lock, and looks at the rules under it.
        drop(lock(&self.observer));
        self.sweep();
    }

    /// Requests in flight at a door that was just `seen`, without the places that threads keep. Exact while nobody comes
    /// or goes.
    pub(super) fn in_flight(&self, seen: Occupancy) -> usize {
        if seen.is_swept() {
            return seen.in_flight() as usize;
        }
        let kept = self.stripes.kept();
        // The more of two looks, lest a place that is kept or taken meanwhile hide that of another.
        seen.in_flight().max(self.door.0.look().in_flight()).saturating_sub(kept) as usize
    }

    fn sweep_with(&self, _sweeping: MutexGuard<'_, ()>) -> Occupancy {
        let seen = self.door.0.begin_sweep();
        if seen.is_swept() { seen } else { self.door.0.end_sweep(self.stripes.take_back()) }
    }

    #[inline(always)]
    fn look_closer(
        &self,
        seen: Occupancy,
        admits: impl Fn(Occupancy) -> bool,
    ) -> Result<Occupancy, Occupancy> {
        if seen.is_swept() {
            return Err(seen);
        }
        let swept = self.sweep();
        if admits(swept) { Ok(swept) } else { Err(swept) }
    }
}
