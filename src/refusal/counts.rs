use super::RefusalReason;
use crate::Criticality;

/// How many requests were refused, by reason and criticality.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RefusalCounts([[u64; Criticality::ALL.len()]; RefusalReason::ALL.len()]);

impl RefusalCounts {
    /// Of this reason and criticality.
    #[must_use]
    pub const fn of(&self, reason: RefusalReason, criticality: Criticality) -> u64 {
        self.0[reason as usize][criticality as usize]
    }

    /// Of this reason.
    #[must_use]
    pub fn by_reason(&self, reason: RefusalReason) -> u64 {
        self.0[reason as usize].iter().sum()
    }

    /// Of this criticality.
    #[must_use]
    pub fn by_criticality(&self, criticality: Criticality) -> u64 {
        self.0.iter().map(|counts| counts[criticality as usize]).sum()
    }

    /// All.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.iter().map(|(_, _, count)| count).sum()
    }

    /// What is not zero, in the order of [`RefusalReason::ALL`] and [`Criticality::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = (RefusalReason, Criticality, u64)> {
        let all =
            RefusalReason::ALL.into_iter().flat_map(|reason| Criticality::ALL.map(|level| (reason, level)));
        all.map(|(reason, level)| (reason, level, self.of(reason, level))).filter(|&(_, _, count)| count > 0)
    }

    pub(crate) fn merge(mut self, other: &Self) -> Self {
        for (reason, criticality, count) in other.iter() {
            self.add(reason, criticality, count);
        }
        self
    }

    /// What was added since `earlier`; nothing where that has more.
    pub(crate) fn since(mut self, earlier: &Self) -> Self {
        for (now, before) in self.0.iter_mut().flatten().zip(earlier.0.iter().flatten()) {
            *now = now.saturating_sub(*before);
        }
        self
    }

    pub(crate) fn add(&mut self, reason: RefusalReason, criticality: Criticality, count: u64) {
        let place = &mut self.0[reason as usize][criticality as usize];
        *place = place.wrapping_add(count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_add_up_either_way() {
        let mut counts = RefusalCounts::default();
        counts.add(RefusalReason::LimitReached, Criticality::Sheddable, 2);
        counts.add(RefusalReason::LimitReached, Criticality::Critical, 3);
        counts.add(RefusalReason::Overloaded, Criticality::Critical, 5);
        assert_eq!(counts.by_reason(RefusalReason::LimitReached), 5);
        assert_eq!(counts.by_criticality(Criticality::Critical), 8);
        assert_eq!(counts.total(), 10);
        assert_eq!(counts.iter().count(), 3);
    }

    #[test]
    fn reasons_are_listed_in_the_order_in_which_they_are_numbered() {
        for (index, reason) in RefusalReason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, index);
        }
        for (index, criticality) in Criticality::ALL.into_iter().enumerate() {
            assert_eq!(criticality as usize, index);
        }
    }
}
