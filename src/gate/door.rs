//! Limit, in flight and the state of the door in one word, so that admission is one atomic step.

use std::sync::atomic::Ordering;

use crate::{share::Allowance, sync::AtomicU64};

/// Limit, in flight, whether anybody waits, and whether threads keep places.
///
/// A kept place is one that a thread freed and holds ready for its next request ([`super::keep`]): here it counts as in
/// flight. The door is in one of four states:
///
/// - *swept*: no thread keeps a place. So it starts, and so it stays where one thread is at the gate.
/// - *awaited*: the same, and somebody waits.
/// - *roomy*: threads may keep places. At most half of the limit is in flight: whatever changes that changes the state
///   in the same step.
/// - *unswept*: threads may no longer keep places, and some still do.
///
/// The way round is swept, roomy, unswept, swept; and between swept and awaited to and fro.
pub(super) struct Door {
    word: AtomicU64,
}

/// What the door's word said at one moment: from the low end 32 bits in flight, 3 bits state, of which at most one is
/// set, and 29 bits limit.
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

    /// Takes `weight` places, of a door that was just `seen` to admit them, as long as it `admits` them. Tells what the
    /// door is like afterwards, or what stood against it.
    #[inline]
    pub(super) fn enter(
        &self,
        weight: u32,
        mut seen: Occupancy,
        admits: impl Fn(Occupancy) -> bool,
    ) -> Result<Occupancy, Occupancy> {
        loop {
            let after = seen.with(weight);
            match self.replace(seen, after) {
                Ok(()) => return Ok(after),
                Err(actual) if admits(actual) => seen = actual,
                Err(actual) => return Err(actual),
            }
        }
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

    /// Whoever frees a place after this sees it. False, and nothing done, while the door is not swept.
    pub(super) fn someone_waits(&self) -> bool {
        let wait = |seen: Occupancy| seen.is_swept().then(|| seen.in_state(Occupancy::AWAITED));
        self.step(self.look(), wait).is_ok()
    }

    pub(super) fn nobody_waits(&self) {
        // It is as well if nobody did.
        let _ = self.step(self.look(), |seen| seen.someone_waits().then(|| seen.in_state(Occupancy::SWEPT)));
    }

    /// Lets threads keep places, if nobody waits and neither in flight nor `most` places are more than half of the
    /// limit.
    pub(super) fn make_roomy(&self, most: u64) {
        // It is as well if the door stays as it is.
        let _ = self.step(self.look(), |seen| {
            let fits = !seen.is_over_half() && !seen.is_over_half_of_limit(most);
            (seen.0 & Occupancy::STATE == Occupancy::SWEPT && fits).then(|| seen.in_state(Occupancy::ROOMY))
        });
    }

    /// No thread may keep a place any longer. Tells what the door is like afterwards: unswept or swept.
    pub(super) fn begin_sweep(&self) -> Occupancy {
        // A step even where nothing changes: the caller comes after whoever made the door unswept.
        self.change(Occupancy::unswept)
    }

    /// Gives back the places that were kept, all that there were. Tells what the door is like afterwards.
    pub(super) fn end_sweep(&self, kept: u32) -> Occupancy {
        self.change(|seen| seen.without(kept).in_state(Occupancy::SWEPT))
    }

    /// Orders the caller with everybody who enters or leaves: each of them comes either wholly before or after.
    pub(super) fn line_up(&self) {
        // `AcqRel` would say as much, but of an addition of nothing whose result nobody wants compilers leave only the
        // fence of its ordering, and for `AcqRel` that is no instruction at all on x86: what the caller reads next would
        // overtake what it wrote before.
        self.word.fetch_add(0, Ordering::SeqCst);
    }

    fn change(&self, next: impl Fn(Occupancy) -> Occupancy) -> Occupancy {
        self.step(self.look(), |seen| Some(next(seen))).unwrap_or_else(|seen| seen)
    }

    fn step(
        &self,
        mut seen: Occupancy,
        next: impl Fn(Occupancy) -> Option<Occupancy>,
    ) -> Result<Occupancy, Occupancy> {
        while let Some(after) = next(seen) {
            match self.replace(seen, after) {
                Ok(()) => return Ok(after),
                Err(actual) => seen = actual,
            }
        }
        Err(seen)
    }

    /// Or tells what the door is like, which may be just as it was seen.
    #[inline]
    fn replace(&self, seen: Occupancy, after: Occupancy) -> Result<(), Occupancy> {
        match self.word.compare_exchange_weak(seen.0, after.0, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => Ok(()),
            Err(actual) => Err(Occupancy(actual)),
        }
    }
}

impl Occupancy {
    const SWEPT: u64 = 0;
    const AWAITED: u64 = 1 << 32;
    const ROOMY: u64 = 1 << 33;
    const UNSWEPT: u64 = 1 << 34;
    const STATE: u64 = Self::AWAITED | Self::ROOMY | Self::UNSWEPT;
    const LIMIT_SHIFT: u32 = 35;
    pub(super) const GREATEST_LIMIT: usize = (1 << 29) - 1;

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
        self.0 & Self::AWAITED != 0
    }

    /// Whether threads may keep places.
    #[inline]
    pub(super) fn is_roomy(self) -> bool {
        self.0 & Self::ROOMY != 0
    }

    /// Whether threads may no longer keep places, and some still do.
    #[inline]
    pub(super) fn is_unswept(self) -> bool {
        self.0 & Self::UNSWEPT != 0
    }

    /// Whether all that is in flight here is so indeed: no thread keeps a place.
    #[inline]
    pub(super) fn is_swept(self) -> bool {
        self.0 & (Self::ROOMY | Self::UNSWEPT) == 0
    }

    #[inline]
    pub(super) fn is_full(self) -> bool {
        self.in_flight() as usize >= self.limit()
    }

    /// Whether no thread keeps a place and nobody waits.
    #[inline]
    pub(super) fn is_settled(self) -> bool {
        self.0 & Self::STATE == Self::SWEPT
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
        Self(self.0 + u64::from(weight)).unswept_if_over_half()
    }

    /// Of what is in flight.
    fn without(self, weight: u32) -> Self {
        Self(self.0 - u64::from(weight))
    }

    fn limited_to(self, limit: usize) -> Self {
        let limited = Self(self.0 & ((1 << Self::LIMIT_SHIFT) - 1) | Self::limit_bits(limit));
        limited.unswept_if_over_half()
    }

    #[inline]
    fn unswept_if_over_half(self) -> Self {
        if self.is_roomy() && self.is_over_half() { self.unswept() } else { self }
    }

    /// The same, unless it is swept.
    fn unswept(self) -> Self {
        if self.is_swept() { self } else { self.in_state(Self::UNSWEPT) }
    }

    #[inline]
    fn is_over_half(self) -> bool {
        self.is_over_half_of_limit(u64::from(self.in_flight()))
    }

    #[inline]
    fn is_over_half_of_limit(self, places: u64) -> bool {
        places.saturating_mul(2) > self.limit() as u64
    }

    fn in_state(self, state: u64) -> Self {
        Self(self.0 & !Self::STATE | state)
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
            // Below 2²⁹ · 2²⁰.
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

    /// What may happen at a door.
    #[derive(Clone, Copy, Debug)]
    enum Event {
        Enter(u32),
        Leave,
        SetLimit(usize),
        SomeoneWaits,
        NobodyWaits,
        MakeRoomy(u64),
        Sweep,
    }

    fn event() -> impl Strategy<Value = Event> {
        prop_oneof![
            (1_u32..4).prop_map(Event::Enter),
            Just(Event::Leave),
            (0_usize..20).prop_map(Event::SetLimit),
            Just(Event::SomeoneWaits),
            Just(Event::NobodyWaits),
            (0_u64..12).prop_map(Event::MakeRoomy),
            Just(Event::Sweep),
        ]
    }

    proptest! {
        #[test]
        fn a_door_is_roomy_only_up_to_half_of_the_limit_and_awaited_only_when_it_was_swept(
            events in prop::collection::vec(event(), 1..100),
        ) {
            let (door, mut inside) = (Door::new(10), Vec::new());
            for event in events {
                let before = door.look();
                match event {
                    Event::Enter(weight) => {
                        if before.has_room(weight, Part::ALL) {
                            prop_assert!(door.enter(weight, before, |_| true).is_ok());
                            inside.push(weight);
                        }
                    }
                    Event::Leave => {
                        if let Some(weight) = inside.pop() {
                            door.leave(weight);
                        }
                    }
                    Event::SetLimit(limit) => prop_assert_eq!(door.set_limit(limit).limit(), limit),
                    Event::SomeoneWaits => prop_assert_eq!(door.someone_waits(), before.is_swept()),
                    Event::NobodyWaits => door.nobody_waits(),
                    Event::MakeRoomy(most) => {
                        door.make_roomy(most);
                        let is_new = door.look().is_roomy() && !before.is_roomy();
                        prop_assert!(!is_new || before.is_swept() && 2 * most <= before.limit() as u64);
                    }
                    Event::Sweep => {
                        prop_assert!(!door.begin_sweep().is_roomy());
                        let kept = if before.is_swept() { None } else { inside.pop() };
                        if !before.is_swept() {
                            prop_assert!(door.end_sweep(kept.unwrap_or(0)).is_swept());
                        }
                        prop_assert_eq!(door.look().someone_waits(), before.someone_waits());
                    }
                }
                let after = door.look();
                prop_assert_eq!(after.in_flight(), inside.iter().sum::<u32>());
                prop_assert!(!after.is_roomy() || 2 * (after.in_flight() as usize) <= after.limit());
                prop_assert!(!after.someone_waits() || after.is_swept());
            }
        }

        #[test]
        fn a_part_of_a_limit_is_what_its_allowance_allows(
            allowance in allowance(), limit in prop_oneof![0_usize..200, 0..=Occupancy::GREATEST_LIMIT],
        ) {
            prop_assert_eq!(Part::new(allowance).of(limit), allowance.of(limit));
        }
    }
}
