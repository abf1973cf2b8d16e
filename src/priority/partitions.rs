use std::{collections::BTreeMap, time::Duration};

use goodput_algorithms::{Instant, InvalidSettings};
use serde::{Deserialize, Serialize};

use crate::{Key, share::Share};

/// Divides a limit into partitions with guaranteed shares, and lends what lies idle.
///
/// A partition is guaranteed its share of the limit, rounded down, but at least one place. Within its guarantee it is
/// admitted whenever the limit has room. Beyond it, it borrows: it is admitted if room remains when the places that
/// other partitions have lately needed, up to their guarantees, are set aside. So an idle share is used by others, and
/// comes back as their work ends, from the first refusal of its owner on: every refusal within the guarantee sets one
/// more place aside. All partitions together never exceed the limit.
///
/// Requests that name no partition, or one that is unknown, belong to a common one that is guaranteed what the others
/// leave.
#[derive(Clone, Debug)]
pub struct Partitions {
    settings: PartitionsSettings,
    /// By key; the last one is the common one.
    partitions: Vec<Partition>,
    in_use: usize,
    period_started: Instant,
}

#[derive(Clone, Debug)]
struct Partition {
    key: Option<Key>,
    share: Share,
    borrows: bool,
    in_use: usize,
    /// Places that were refused within the guarantee and not made good since.
    unmet: usize,
    /// The most that was in use or unmet at once, in this period and in the last.
    needed: usize,
    needed_before: usize,
}

impl Partition {
    fn guarantee(&self, limit: usize) -> usize {
        match self.key {
            Some(_) => self.share.floor_of(limit).max(1).min(limit),
            None => self.share.floor_of(limit),
        }
    }

    /// Places to keep free for it.
    fn set_aside(&self, limit: usize) -> usize {
        self.needed.max(self.needed_before).min(self.guarantee(limit)).saturating_sub(self.in_use)
    }

    fn note_need(&mut self) {
        self.needed = self.needed.max(self.in_use + self.unmet);
    }
}

impl Partitions {
    /// # Errors
    ///
    /// [`InvalidSettings`] if the shares add up to more than 1, or the memory is zero.
    pub fn new(settings: PartitionsSettings) -> Result<Self, InvalidSettings> {
        let rest = settings.check()?;
        let partition = |key, share, borrows| Partition {
            key,
            share,
            borrows,
            in_use: 0,
            unmet: 0,
            needed: 0,
            needed_before: 0,
        };
        let mut partitions: Vec<_> = settings
            .shares
            .iter()
            .map(|(name, settings)| partition(Some(Key::of(name)), settings.share, settings.borrows))
            .collect();
        partitions.push(partition(None, rest, true));
        Ok(Self { settings, partitions, in_use: 0, period_started: Instant::ZERO })
    }

    /// Whether [`Partitions::enter`] would let it in.
    #[must_use]
    pub fn fits(&self, partition: Option<Key>, weight: u32, limit: usize) -> bool {
        self.may_enter(self.index(partition), weight as usize, limit) || (self.in_use == 0 && limit > 0)
    }

    /// Takes `weight` places of `limit` for a partition, if it may have them. One that weighs more than the limit may
    /// run alone.
    pub fn enter(&mut self, partition: Option<Key>, weight: u32, limit: usize, now: Instant) -> bool {
        self.follow_time(now);
        let admitted = self.fits(partition, weight, limit);
        let (index, weight) = (self.index(partition), weight as usize);
        let guarantee = self.partitions[index].guarantee(limit);
        let partition = &mut self.partitions[index];
        if admitted {
            partition.in_use += weight;
            partition.unmet = partition.unmet.saturating_sub(weight);
            self.in_use += weight;
        } else {
            let within = guarantee.saturating_sub(partition.in_use + partition.unmet);
            partition.unmet += weight.min(within);
        }
        partition.note_need();
        admitted
    }

    /// Gives back `weight` places of a partition.
    pub fn leave(&mut self, partition: Option<Key>, weight: u32) {
        let index = self.index(partition);
        let partition = &mut self.partitions[index];
        let weight = (weight as usize).min(partition.in_use);
        partition.in_use -= weight;
        self.in_use -= weight;
    }

    /// Places in use by a partition.
    #[must_use]
    pub fn in_use_by(&self, partition: Option<Key>) -> usize {
        self.partitions[self.index(partition)].in_use
    }

    /// Places in use by all.
    #[must_use]
    pub const fn in_use(&self) -> usize {
        self.in_use
    }

    /// Places that a partition may always have when its work needs them.
    #[must_use]
    pub fn guarantee(&self, partition: Option<Key>, limit: usize) -> usize {
        self.partitions[self.index(partition)].guarantee(limit)
    }

    fn may_enter(&self, index: usize, weight: usize, limit: usize) -> bool {
        let room = limit.saturating_sub(self.in_use);
        if weight > room {
            return false;
        }
        let partition = &self.partitions[index];
        if partition.in_use + weight <= partition.guarantee(limit) {
            return true;
        }
        let others = self.partitions.iter().enumerate().filter(|&(other, _)| other != index);
        let set_aside: usize = others.map(|(_, other)| other.set_aside(limit)).sum();
        partition.borrows && weight <= room.saturating_sub(set_aside)
    }

    fn index(&self, key: Option<Key>) -> usize {
        let common = self.partitions.len() - 1;
        let Some(key) = key else { return common };
        self.partitions.iter().position(|partition| partition.key == Some(key)).unwrap_or(common)
    }

    fn follow_time(&mut self, now: Instant) {
        let elapsed = now.since(self.period_started);
        if elapsed < self.settings.memory {
            return;
        }
        let long_ago = elapsed >= self.settings.memory.saturating_mul(2);
        for partition in &mut self.partitions {
            partition.needed_before = if long_ago { 0 } else { partition.needed };
            partition.unmet = 0;
            partition.needed = partition.in_use;
        }
        self.period_started = now;
    }
}

/// Settings of [`Partitions`].
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct PartitionsSettings {
    /// The partitions by name.
    pub shares: BTreeMap<String, PartitionSettings>,
    /// For how long a partition's need is remembered: an idle share is lent in full after once to twice this time.
    /// Default 1 s.
    #[serde(with = "humantime_serde")]
    pub memory: Duration,
}

impl PartitionsSettings {
    /// The same with one more partition, which borrows.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, share: Share) -> Self {
        self.shares.insert(name.into(), PartitionSettings { share, borrows: true });
        self
    }

    /// The share that nobody has been given.
    fn check(&self) -> Result<Share, InvalidSettings> {
        if self.memory.is_zero() {
            return Err(InvalidSettings::new("memory", "must be above 0"));
        }
        let sum: u64 = self.shares.values().map(|partition| u64::from(partition.share.millionths())).sum();
        let sum = sum as f64 / f64::from(Share::ALL.millionths());
        if sum > 1.0 {
            return Err(InvalidSettings::new(
                "shares",
                format!("must not add up to more than 1, but do to {sum}"),
            ));
        }
        Share::new(1.0 - sum)
    }
}

impl Default for PartitionsSettings {
    fn default() -> Self {
        Self { shares: BTreeMap::new(), memory: Duration::from_secs(1) }
    }
}

/// One of [`PartitionsSettings::shares`].
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PartitionSettings {
    /// The guaranteed part of the limit.
    pub share: Share,
    /// Whether it may use more than that while others leave it idle. Default yes.
    #[serde(default = "yes")]
    pub borrows: bool,
}

const fn yes() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const A: Option<Key> = Some(Key::of("a"));
    const B: Option<Key> = Some(Key::of("b"));

    fn halves() -> PartitionsSettings {
        let half = Share::new(0.5).unwrap();
        PartitionsSettings::default().with("a", half).with("b", half)
    }

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn a_partition_does_not_starve_on_an_idle_system_with_a_limit_of_one() {
        let mut partitions = Partitions::new(halves()).unwrap();
        for second in 0..100 {
            assert!(partitions.enter(B, 1, 1, at(second * 1_000)));
            partitions.leave(B, 1);
        }
    }

    #[test]
    fn an_idle_share_is_used_by_others_and_comes_back_as_their_work_ends() {
        let mut partitions = Partitions::new(halves()).unwrap();
        for _ in 0..450 {
            assert!(partitions.enter(B, 1, 600, at(0)));
        }
        // A returns and wants 300: 150 are free at once, the rest is set aside as it asks.
        let admitted = (0..300).filter(|_| partitions.enter(A, 1, 600, at(10))).count();
        assert_eq!(admitted, 150);
        // B's requests end one by one; B wants each place again, and so does A. A asks last.
        for _ in 0..150 {
            partitions.leave(B, 1);
            assert!(!partitions.enter(B, 1, 600, at(20)));
            assert!(partitions.enter(A, 1, 600, at(20)));
        }
        assert_eq!((partitions.in_use_by(A), partitions.in_use_by(B)), (300, 300));
        assert!(!partitions.enter(A, 1, 600, at(20)));
    }

    #[test]
    fn a_partition_that_may_not_borrow_keeps_to_its_share() {
        let mut settings = halves();
        settings.shares.get_mut("b").unwrap().borrows = false;
        let mut partitions = Partitions::new(settings).unwrap();
        let admitted = (0..450).filter(|_| partitions.enter(B, 1, 600, at(0))).count();
        assert_eq!(admitted, 300);
    }

    #[test]
    fn a_need_long_past_is_forgotten() {
        let mut partitions = Partitions::new(halves()).unwrap();
        for _ in 0..5 {
            assert!(partitions.enter(A, 1, 10, at(0)));
        }
        for _ in 0..5 {
            partitions.leave(A, 1);
        }
        let borrowed = |partitions: &mut Partitions, now| {
            let admitted = (0..10).filter(|_| partitions.enter(B, 1, 10, now)).count();
            (0..admitted).for_each(|_| partitions.leave(B, 1));
            admitted
        };
        assert_eq!(borrowed(&mut partitions, at(500)), 5);
        assert_eq!(borrowed(&mut partitions, at(2_500)), 10);
    }

    #[test]
    fn those_without_a_partition_are_guaranteed_what_the_others_leave() {
        let settings = PartitionsSettings::default().with("a", Share::new(0.7).unwrap());
        let partitions = Partitions::new(settings).unwrap();
        assert_eq!(partitions.guarantee(A, 10), 7);
        assert_eq!(partitions.guarantee(None, 10), 3);
        assert_eq!(partitions.guarantee(Some(Key::of("unknown")), 10), 3);
    }

    #[test]
    fn shares_that_add_up_to_more_than_one_are_refused() {
        let most = Share::new(0.6).unwrap();
        let settings = PartitionsSettings::default().with("a", most).with("b", most);
        assert_eq!(Partitions::new(settings).unwrap_err().field, "shares");
        let settings = PartitionsSettings { memory: Duration::ZERO, ..halves() };
        assert_eq!(Partitions::new(settings).unwrap_err().field, "memory");
    }

    #[test]
    fn a_memory_without_end_is_no_overflow() {
        let mut partitions =
            Partitions::new(PartitionsSettings { memory: Duration::MAX, ..halves() }).unwrap();
        assert!(partitions.enter(A, 1, 10, Instant::FAR_FUTURE));
    }

    #[test]
    fn thirds_add_up_to_no_more_than_one() {
        let third = Share::new(1.0 / 3.0).unwrap();
        let settings = PartitionsSettings::default().with("a", third).with("b", third).with("c", third);
        assert!(Partitions::new(settings).is_ok());
    }

    #[test]
    fn a_config_file_names_partitions_and_their_shares() {
        let settings: PartitionsSettings = toml::from_str(
            "memory = \"2s\"\n[shares]\ninteractive = { share = 0.7 }\nbatch = { share = 0.3, borrows = false }",
        )
        .unwrap();
        assert!(settings.shares["interactive"].borrows && !settings.shares["batch"].borrows);
        assert_eq!(
            toml::from_str::<PartitionsSettings>(&toml::to_string(&settings).unwrap()).unwrap(),
            settings
        );
    }

    proptest! {
        #[test]
        fn all_together_never_exceed_the_limit_and_what_is_admitted_is_given_back(
            steps in prop::collection::vec((0_usize..4, 1_u32..4, 1_usize..20, any::<bool>(), 0_u64..700), 0..300),
        ) {
            let settings = PartitionsSettings::default()
                .with("a", Share::new(0.5).unwrap())
                .with("b", Share::new(0.2).unwrap());
            let keys = [A, B, None, Some(Key::of("c"))];
            let mut partitions = Partitions::new(settings).unwrap();
            let mut running = Vec::new();
            let mut now = 0;
            for (who, weight, limit, leave, millis) in steps {
                now += millis;
                if leave {
                    if let Some((key, weight)) = running.pop() {
                        partitions.leave(key, weight);
                    }
                } else if partitions.enter(keys[who], weight, limit, at(now)) {
                    prop_assert!(partitions.in_use() <= limit || running.is_empty());
                    running.push((keys[who], weight));
                }
                let sum: u32 = running.iter().map(|&(_, weight)| weight).sum();
                prop_assert_eq!(partitions.in_use(), sum as usize);
            }
        }

        #[test]
        fn within_its_guarantee_a_partition_is_admitted_whenever_the_limit_has_room(
            b_first in 0_usize..100, limit in 2_usize..100,
        ) {
            let mut partitions = Partitions::new(halves()).unwrap();
            let borrowed = (0..b_first).filter(|_| partitions.enter(B, 1, limit, at(0))).count();
            let admitted = (0..limit / 2).filter(|_| partitions.enter(A, 1, limit, at(1))).count();
            prop_assert_eq!(admitted, (limit - borrowed).min(limit / 2));
        }
    }
}
