use std::time::Duration;

use goodput_algorithms::{Instant, InvalidSettings};
use serde::{Deserialize, Serialize};

use crate::{Criticality, Request, share::Share};

const COHORTS: usize = 128;
const RANKS: usize = COHORTS * Criticality::ALL.len();

/// Coprime to the number of cohorts, so that everybody passes through every cohort.
const COHORTS_PER_ROTATION: u64 = 37;

/// Fewer offers than this say nothing about a period; it goes on until it has as many, or twice its length has passed.
const MIN_OFFERS: u32 = 20;

/// How far the shed part goes towards the wanted one at a time.
const CONFIDENCE: f64 = 0.5;

/// How strongly the tolerated refusals are held to, and by how much the served part is cut at a time beyond what was
/// refused anyway.
const GAIN: f64 = 3.0;
const LARGEST_CUT: f64 = 0.9;

/// Sheds the least critical part of the demand, as much of it as is too much, and no whole level at once.
///
/// Each request has a rank: its criticality, and within it one of 128 cohorts, drawn from a stable hash of the user
/// ([`Request::cohort`], else the tenant, else all cohorts in turn). Below a threshold requests are refused. So under
/// overload some users are served in full and others not at all, rather than all of them badly; and cohorts rotate, so
/// that it is not always the same ones.
///
/// After every period the threshold follows the demand. With `O` requests offered and `A` of them admitted by the gate
/// behind the threshold, which refuses the part `ρ` of what passes it, with mean use `u` of the limit as arrivals saw
/// it, tolerated refusals `r` and low use `w`, the part of the demand that can be served is
/// `a = min(1, A/O · max(g, w/u))` with `g = max(0.9, 1 + 3(r − ρ))`; the shed part goes half the way to `1 − a`, and
/// the threshold is the rank below which that part of the recent demand lies. At the fixed point `ρ` is close to `r`:
/// nearly all refusals are by rank and not by luck, and an idle gate sheds nothing.
///
/// Ranks and cohorts as in Quarkus' load shedding; threshold by quantile of recent demand as in failsafe-go.
#[derive(Clone, Debug)]
pub struct Cohorts {
    settings: CohortSettings,
    threshold: usize,
    shed_part: f64,
    demand: Box<[u32; RANKS]>,
    period_started: Option<Instant>,
    offered: u32,
    passed: u32,
    admitted: u32,
    use_seen: f64,
    turn: u64,
}

impl Cohorts {
    /// # Errors
    ///
    /// [`InvalidSettings`] if a duration is zero, or the tolerated refusals are none or all.
    pub fn new(settings: CohortSettings) -> Result<Self, InvalidSettings> {
        settings.check()?;
        Ok(Self {
            settings,
            threshold: 0,
            shed_part: 0.0,
            demand: Box::new([0; RANKS]),
            period_started: None,
            offered: 0,
            passed: 0,
            admitted: 0,
            use_seen: 0.0,
            turn: 0,
        })
    }

    /// Counts a request that asks to be admitted while `in_flight` of `limit` is taken, and says whether it may go on
    /// to the gate.
    pub fn offer(&mut self, request: &Request, in_flight: usize, limit: usize, now: Instant) -> bool {
        let period_started = *self.period_started.get_or_insert(now);
        self.close_period_if_due(now, period_started);
        let rank = self.rank(request, now);
        self.demand[rank] = self.demand[rank].saturating_add(1);
        self.offered = self.offered.saturating_add(1);
        self.use_seen += (in_flight as f64 / limit.max(1) as f64).min(1.0);
        let passes = rank >= self.threshold;
        self.passed = self.passed.saturating_add(u32::from(passes));
        passes
    }

    /// Counts a request that passed the threshold and was admitted by the gate.
    pub const fn admitted(&mut self) {
        self.admitted = self.admitted.saturating_add(1);
    }

    /// The part of the demand that is being shed, from 0 to 1.
    #[must_use]
    pub const fn shed_part(&self) -> f64 {
        self.shed_part
    }

    /// The criticality that is being shed in part, and the part of it that is shed; below it everything is. `None`
    /// while nothing is shed.
    #[must_use]
    pub fn shedding(&self) -> Option<(Criticality, f64)> {
        let last = self.threshold.checked_sub(1)?;
        Some((Criticality::ALL[last / COHORTS], (last % COHORTS + 1) as f64 / COHORTS as f64))
    }

    fn rank(&mut self, request: &Request, now: Instant) -> usize {
        let criticality = if request.continuation { Criticality::CriticalPlus } else { request.criticality };
        let spoke = match request.cohort.or(request.tenant) {
            Some(key) => key.as_u64(),
            None => {
                self.turn = self.turn.wrapping_add(COHORTS_PER_ROTATION);
                self.turn
            }
        };
        let rotations = u128::from(now.nanos()) / self.settings.rotation.as_nanos();
        let cohort =
            spoke.wrapping_add((rotations as u64).wrapping_mul(COHORTS_PER_ROTATION)) % COHORTS as u64;
        criticality as usize * COHORTS + cohort as usize
    }

    fn close_period_if_due(&mut self, now: Instant, started: Instant) {
        let elapsed = now.since(started);
        let sparse = elapsed >= self.settings.period.saturating_mul(2);
        if elapsed < self.settings.period || (self.offered < MIN_OFFERS && !sparse) {
            return;
        }
        let wanted = if self.offered < MIN_OFFERS { 0.0 } else { 1.0 - self.servable_part() };
        self.shed_part += CONFIDENCE * (wanted - self.shed_part);
        self.threshold = self.rank_of_part(self.shed_part);
        for count in self.demand.iter_mut() {
            *count /= 2;
        }
        self.period_started = Some(now);
        (self.offered, self.passed, self.admitted, self.use_seen) = (0, 0, 0, 0.0);
    }

    fn servable_part(&self) -> f64 {
        let offered = f64::from(self.offered);
        let mean_use = self.use_seen / offered;
        if mean_use <= 0.0 {
            return 1.0;
        }
        let refused_behind = 1.0 - f64::from(self.admitted) / f64::from(self.passed.max(1));
        let steady = 1.0 + GAIN * (self.settings.refused_behind.as_f64() - refused_behind);
        let growth = steady.max(LARGEST_CUT).max(self.settings.low_use.as_f64() / mean_use);
        (f64::from(self.admitted) / offered * growth).min(1.0)
    }

    /// The highest threshold that sheds no more than `part` of the recent demand.
    fn rank_of_part(&self, part: f64) -> usize {
        let demand: u64 = self.demand.iter().map(|&count| u64::from(count)).sum();
        let allowed = part * demand as f64;
        if allowed < 1.0 {
            return 0;
        }
        let mut below = 0_u64;
        for (rank, &count) in self.demand.iter().enumerate() {
            below += u64::from(count);
            if below as f64 > allowed {
                return rank;
            }
        }
        0
    }
}

/// Settings of [`Cohorts`].
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct CohortSettings {
    /// How often the threshold is set anew. Default 1 s.
    #[serde(with = "humantime_serde")]
    pub period: Duration,
    /// How long a user stays in a cohort. Default 1 h.
    #[serde(with = "humantime_serde")]
    pub rotation: Duration,
    /// The part of what passes the threshold that the gate behind may refuse in the long run. The smaller, the more is
    /// kept free for the most critical; above 0, for without refusals nobody knows that there is no room. Default 0.02.
    pub refused_behind: Share,
    /// Below this use of the limit less is shed at once; above it, little by little. Default 0.7.
    pub low_use: Share,
}

impl CohortSettings {
    fn check(&self) -> Result<(), InvalidSettings> {
        for (field, duration) in [("period", self.period), ("rotation", self.rotation)] {
            if duration.is_zero() {
                return Err(InvalidSettings::new(field, "must be above 0"));
            }
        }
        if self.refused_behind == Share::NONE || self.refused_behind == Share::ALL {
            return Err(InvalidSettings::new("refused_behind", "must lie between 0 and 1, and be neither"));
        }
        Ok(())
    }
}

impl Default for CohortSettings {
    fn default() -> Self {
        Self {
            period: Duration::from_secs(1),
            rotation: Duration::from_secs(3_600),
            refused_behind: Share::of_hundred(2),
            low_use: Share::of_hundred(70),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet, VecDeque};

    use rand_xoshiro::{
        Xoshiro256PlusPlus,
        rand_core::{Rng, SeedableRng},
    };

    use super::*;
    use crate::Key;

    /// A loss system: `slots` places of 100 ms each, Poisson-like arrivals of `rate` per second, of which one in five
    /// is critical and the rest sheddable, from a thousand users.
    struct World {
        cohorts: Cohorts,
        slots: usize,
        now: Instant,
        running: VecDeque<Instant>,
        random: Xoshiro256PlusPlus,
    }

    #[derive(Debug, Default)]
    struct Counts {
        offered: u32,
        shed: u32,
        blocked: u32,
        by_user: BTreeMap<u64, (u32, u32)>,
    }

    impl World {
        fn new(slots: usize) -> Self {
            Self {
                cohorts: Cohorts::new(CohortSettings::default()).unwrap(),
                slots,
                now: Instant::ZERO,
                running: VecDeque::new(),
                random: Xoshiro256PlusPlus::seed_from_u64(7),
            }
        }

        fn uniform(&mut self) -> f64 {
            (self.random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
        }

        fn run(&mut self, rate: f64, seconds: u64) -> BTreeMap<Criticality, Counts> {
            let end = self.now + Duration::from_secs(seconds);
            let mut counts = BTreeMap::<_, Counts>::new();
            loop {
                let gap = -(1.0 - self.uniform()).ln() / rate;
                self.now = self.now + Duration::from_secs_f64(gap);
                if self.now >= end {
                    return counts;
                }
                let user = self.random.next_u64() % 1_000;
                let criticality =
                    if self.uniform() < 0.2 { Criticality::Critical } else { Criticality::Sheddable };
                let request = Request::DEFAULT.of(criticality).in_cohort_of(Key::of_number(user));
                while self.running.front().is_some_and(|&done| done <= self.now) {
                    self.running.pop_front();
                }
                let count = counts.entry(criticality).or_default();
                count.offered += 1;
                let by_user = count.by_user.entry(user).or_default();
                by_user.0 += 1;
                if !self.cohorts.offer(&request, self.running.len(), self.slots, self.now) {
                    count.shed += 1;
                    by_user.1 += 1;
                } else if self.running.len() >= self.slots {
                    count.blocked += 1;
                } else {
                    self.running.push_back(self.now + Duration::from_millis(100));
                    self.cohorts.admitted();
                }
            }
        }
    }

    #[test]
    fn below_capacity_nothing_is_shed() {
        let mut world = World::new(50);
        let counts = world.run(300.0, 60);
        assert!(counts.values().all(|count| count.shed == 0));
        assert_eq!(world.cohorts.shedding(), None);
    }

    #[test]
    fn an_overload_by_half_sheds_only_the_sheddable_and_not_all_of_them() {
        let mut world = World::new(50);
        world.run(750.0, 10);
        let counts = world.run(750.0, 60);
        let (critical, sheddable) = (&counts[&Criticality::Critical], &counts[&Criticality::Sheddable]);
        assert_eq!(critical.shed, 0);
        // Behind the threshold the gate is an Erlang loss system with 50 places of 0.1 s: it refuses 2 % of 403/s. So
        // 347 of the 600 sheddable a second must go.
        let shed = f64::from(sheddable.shed) / f64::from(sheddable.offered);
        assert!((0.50..0.65).contains(&shed), "{shed}");
        let blocked = f64::from(critical.blocked) / f64::from(critical.offered);
        assert!(blocked < 0.04, "{blocked}");
    }

    #[test]
    fn inside_a_level_users_are_served_or_shed_as_a_whole() {
        let mut world = World::new(50);
        world.run(750.0, 10);
        let counts = world.run(750.0, 60);
        // Only cohorts next to the threshold are now in, now out as it moves.
        let by_user = &counts[&Criticality::Sheddable].by_user;
        let consistent = by_user.values().filter(|&&(offered, shed)| shed == 0 || shed == offered).count();
        assert!(consistent * 10 >= by_user.len() * 6, "{consistent} of {}", by_user.len());
    }

    #[test]
    fn a_constant_overload_is_shed_at_a_constant_rate() {
        let mut world = World::new(50);
        world.run(1_000.0, 20);
        let shed: Vec<_> = (0..30)
            .map(|_| {
                world.run(1_000.0, 1);
                world.cohorts.shed_part()
            })
            .collect();
        let (low, high) =
            (shed.iter().copied().fold(1.0, f64::min), shed.iter().copied().fold(0.0, f64::max));
        // 597 of 1000 is too much; ten per cent to either side.
        assert!(low > 0.537 && high < 0.657, "{low} to {high}");
    }

    #[test]
    fn shedding_ends_within_seconds_of_the_overload() {
        let mut world = World::new(50);
        world.run(1_500.0, 30);
        world.run(200.0, 8);
        let counts = world.run(200.0, 10);
        assert!(counts.values().all(|count| count.shed == 0));
    }

    #[test]
    fn a_long_silence_is_no_reason_to_shed() {
        let mut world = World::new(50);
        world.run(1_500.0, 30);
        world.now = world.now + Duration::from_secs(600);
        let counts = world.run(2.0, 60);
        let shed: u32 = counts.values().map(|count| count.shed).sum();
        let offered: u32 = counts.values().map(|count| count.offered).sum();
        assert!(shed * 10 < offered, "{shed} of {offered}");
    }

    #[test]
    fn a_period_and_a_rotation_without_end_are_no_overflow() {
        let endless =
            CohortSettings { period: Duration::MAX, rotation: Duration::MAX, ..CohortSettings::default() };
        let mut cohorts = Cohorts::new(endless).unwrap();
        for now in [Instant::ZERO, Instant::FAR_FUTURE] {
            assert!(cohorts.offer(&Request::DEFAULT, 1, 1, now));
        }
    }

    #[test]
    fn every_user_passes_through_every_cohort() {
        let mut cohorts = Cohorts::new(CohortSettings::default()).unwrap();
        let request = Request::DEFAULT.in_cohort_of(Key::of("somebody"));
        let seen: BTreeSet<_> = (0..COHORTS as u64)
            .map(|hour| cohorts.rank(&request, Instant::ZERO + Duration::from_secs(3_600 * hour)))
            .collect();
        assert_eq!(seen.len(), COHORTS);
    }

    #[test]
    fn requests_without_a_key_are_shed_in_turn() {
        let mut cohorts = Cohorts::new(CohortSettings::default()).unwrap();
        let seen: BTreeSet<_> =
            (0..COHORTS).map(|_| cohorts.rank(&Request::DEFAULT, Instant::ZERO)).collect();
        assert_eq!(seen.len(), COHORTS);
    }

    #[test]
    fn settings_that_cannot_hold_are_named() {
        for (settings, field) in [
            (CohortSettings { period: Duration::ZERO, ..CohortSettings::default() }, "period"),
            (CohortSettings { rotation: Duration::ZERO, ..CohortSettings::default() }, "rotation"),
            (CohortSettings { refused_behind: Share::NONE, ..CohortSettings::default() }, "refused_behind"),
        ] {
            assert_eq!(Cohorts::new(settings).unwrap_err().field, field);
        }
    }
}
