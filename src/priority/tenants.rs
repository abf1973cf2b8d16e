use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use goodput_algorithms::{Instant, InvalidSettings};
use serde::{Deserialize, Serialize};

use crate::{
    Key, Refusal, RefusalReason,
    share::{Allowance, Share},
};

/// Keeps any one of many tenants from taking what the others need.
///
/// *Quotas* hold always: so many places at once, so many requests in a time. *Fairness* holds when it is needed: a
/// tenant that uses more than a fair share may not touch the last part of the limit ([`TenantSettings::headroom`]),
/// which so stays free for those who use less. Its use is the time that its requests spent in flight, by weight, over
/// the last one to two periods; a fair share is the mean over all tenants of that time. While one tenant is alone
/// nothing is withheld, and among equals those who happen to be behind may use everything, so fairness costs no
/// throughput.
///
/// The number of tenants that are told apart is bounded; what comes beyond it is taken together as one tenant.
#[derive(Clone, Debug)]
pub struct Tenants {
    settings: TenantSettings,
    quotas: HashMap<Key, Quota>,
    known: HashMap<Key, Tenant>,
    /// Those beyond the bound, together.
    others: Tenant,
    all: Use,
    /// How many have used anything in this period or the last.
    active: usize,
    period_started: Instant,
}

#[derive(Clone, Debug, Default)]
struct Tenant {
    used: Use,
    requests: u64,
    /// When the rate quota will be untouched again (the generic cell rate algorithm, ITU-T I.371).
    quota_clear: Instant,
}

impl Tenant {
    const fn is_idle(&self) -> bool {
        self.used.in_flight == 0 && self.used.now == 0 && self.used.before == 0 && self.requests == 0
    }
}

/// Time in flight by weight, in nanoseconds, in this period and the last.
#[derive(Clone, Debug, Default)]
struct Use {
    in_flight: usize,
    changed: Instant,
    now: u128,
    before: u128,
}

impl Use {
    fn follow_time(&mut self, now: Instant) {
        self.now += u128::from(now.nanos_since(self.changed)) * self.in_flight as u128;
        self.changed = self.changed.max(now);
    }

    fn enter(&mut self, weight: u32, now: Instant) {
        self.follow_time(now);
        self.in_flight += weight as usize;
    }

    fn leave(&mut self, weight: u32, now: Instant) {
        self.follow_time(now);
        self.in_flight = self.in_flight.saturating_sub(weight as usize);
    }

    fn next_period(&mut self, now: Instant) {
        self.follow_time(now);
        self.before = std::mem::take(&mut self.now);
    }

    const fn lately(&self) -> u128 {
        self.now + self.before
    }
}

impl Tenants {
    /// # Errors
    ///
    /// [`InvalidSettings`] if a time or a count is zero.
    pub fn new(settings: TenantSettings) -> Result<Self, InvalidSettings> {
        settings.check()?;
        let quotas = settings.quotas.iter().map(|(name, quota)| (Key::of(name), quota.clone())).collect();
        Ok(Self {
            settings,
            quotas,
            known: HashMap::new(),
            others: Tenant::default(),
            all: Use::default(),
            active: 0,
            period_started: Instant::ZERO,
        })
    }

    /// Takes `weight` places for a tenant while `in_flight` of `limit` is taken by all, if it may have them. Whether
    /// the limit itself has room is for the caller to see to, and to [`Tenants::take_back`] if it has none.
    ///
    /// # Errors
    ///
    /// [`Refusal`] for [`RefusalReason::QuotaExceeded`], with the time until a rate quota allows the request, or for
    /// [`RefusalReason::TenantOverShare`].
    pub fn enter(
        &mut self,
        tenant: Key,
        weight: u32,
        in_flight: usize,
        limit: usize,
        now: Instant,
    ) -> Result<(), Refusal> {
        self.follow_time(now);
        let refusal = |reason, retry_after| Refusal { reason, limit, in_flight, retry_after };
        let quota = self.quotas.get(&tenant).unwrap_or(&self.settings.quota).clone();
        let open_to_all = limit - self.settings.headroom.ceil_of(limit).min(limit.saturating_sub(1));
        let (all_lately, active) = (self.all.lately(), self.active as u128);
        let entry = self.tenant(tenant);
        entry.used.follow_time(now);
        let in_use = entry.used.in_flight + weight as usize;
        if quota.in_flight.is_some_and(|allowed| in_use > allowed.of(limit).max(1)) {
            return Err(refusal(RefusalReason::QuotaExceeded, None));
        }
        let over_share = entry.used.lately() * active > all_lately;
        if over_share && in_flight > 0 && in_flight + weight as usize > open_to_all {
            return Err(refusal(RefusalReason::TenantOverShare, None));
        }
        if let Some(rate) = &quota.rate {
            entry.quota_clear = rate
                .spend(entry.quota_clear, weight, now)
                .map_err(|wait| refusal(RefusalReason::QuotaExceeded, Some(wait)))?;
        }
        let newly_active = usize::from(entry.is_idle());
        entry.used.enter(weight, now);
        entry.requests += 1;
        self.active += newly_active;
        self.all.enter(weight, now);
        Ok(())
    }

    /// Gives back `weight` places of a tenant.
    pub fn leave(&mut self, tenant: Key, weight: u32, now: Instant) {
        self.all.leave(weight, now);
        self.tenant(tenant).used.leave(weight, now);
    }

    /// Undoes an [`Tenants::enter`] that led to nothing, with what it cost of the quota.
    pub fn take_back(&mut self, tenant: Key, weight: u32, now: Instant) {
        self.leave(tenant, weight, now);
        let Some(rate) = self.quotas.get(&tenant).unwrap_or(&self.settings.quota).rate.clone() else {
            return;
        };
        let entry = self.tenant(tenant);
        entry.quota_clear = Instant::from_nanos(entry.quota_clear.nanos().saturating_sub(rate.cost(weight)));
    }

    /// Places in use by a tenant.
    #[must_use]
    pub fn in_use_by(&self, tenant: Key) -> usize {
        self.known.get(&tenant).unwrap_or(&self.others).used.in_flight
    }

    /// How many tenants are told apart at present.
    #[must_use]
    pub fn told_apart(&self) -> usize {
        self.known.len()
    }

    /// The entry of a tenant, made on demand while there is room for one. Nobody gets one of his own while the others
    /// have work in flight, for it may be his.
    fn tenant(&mut self, key: Key) -> &mut Tenant {
        let full = self.known.len() >= self.settings.max_tenants || self.others.used.in_flight > 0;
        if full && !self.known.contains_key(&key) {
            return &mut self.others;
        }
        self.known.entry(key).or_default()
    }

    fn follow_time(&mut self, now: Instant) {
        self.all.follow_time(now);
        if now.since(self.period_started) < self.settings.period {
            return;
        }
        self.all.next_period(now);
        self.active = 0;
        for tenant in self.known.values_mut().chain([&mut self.others]) {
            tenant.used.next_period(now);
            tenant.requests = 0;
            self.active += usize::from(!tenant.is_idle());
        }
        self.known.retain(|_, tenant| !tenant.is_idle() || tenant.quota_clear > now);
        self.period_started = now;
    }
}

/// Settings of [`Tenants`].
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct TenantSettings {
    /// The part of the limit, rounded up, that is closed to tenants over their fair share. Default 0.1.
    pub headroom: Share,
    /// Use is looked at over the last one to two of these. Default 10 s.
    #[serde(with = "humantime_serde")]
    pub period: Duration,
    /// How many tenants are told apart. Default 1000. Once a period all of them are gone through.
    pub max_tenants: usize,
    /// What a tenant may use at most, whether there is room or not. Default anything.
    pub quota: Quota,
    /// Quotas of single tenants by name, in place of `quota`.
    pub quotas: BTreeMap<String, Quota>,
}

impl TenantSettings {
    fn check(&self) -> Result<(), InvalidSettings> {
        if self.period.is_zero() {
            return Err(InvalidSettings::new("period", "must be above 0"));
        }
        if self.max_tenants == 0 {
            return Err(InvalidSettings::new("max_tenants", "must be at least 1, not 0"));
        }
        self.quota.check().map_err(|error| error.within("quota"))?;
        for (name, quota) in &self.quotas {
            quota.check().map_err(|error| error.within(name).within("quotas"))?;
        }
        Ok(())
    }
}

impl Default for TenantSettings {
    fn default() -> Self {
        Self {
            headroom: Share::of_hundred(10),
            period: Duration::from_secs(10),
            max_tenants: 1_000,
            quota: Quota::default(),
            quotas: BTreeMap::new(),
        }
    }
}

/// What a tenant may use at most.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Quota {
    /// Places of the limit at once, at least one. Default all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<Allowance>,
    /// Requests in a time. Default any number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<RateQuota>,
}

impl Quota {
    fn check(&self) -> Result<(), InvalidSettings> {
        self.rate.as_ref().map_or(Ok(()), RateQuota::check).map_err(|error| error.within("rate"))
    }
}

/// So many requests in a time, by weight: at most `burst` at once, and `requests + burst` in any stretch of `per`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RateQuota {
    /// How many.
    pub requests: u32,
    /// In which time.
    #[serde(with = "humantime_serde")]
    pub per: Duration,
    /// How many of them may come at once. Default all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<u32>,
}

impl RateQuota {
    fn check(&self) -> Result<(), InvalidSettings> {
        if self.requests == 0 {
            return Err(InvalidSettings::new("requests", "must be at least 1, not 0"));
        }
        if self.burst == Some(0) {
            return Err(InvalidSettings::new("burst", "must be at least 1, not 0"));
        }
        if self.per.as_nanos() < u128::from(self.requests) || self.per > Duration::from_secs(366 * 86_400) {
            return Err(InvalidSettings::new(
                "per",
                "must be at least 1 ns for each request and at most a year",
            ));
        }
        Ok(())
    }

    fn cost(&self, weight: u32) -> u64 {
        let cost = self.per.as_nanos() * u128::from(weight) / u128::from(self.requests);
        u64::try_from(cost).unwrap_or(u64::MAX)
    }

    /// When the quota will be clear again after a request of `weight`, or how long to wait until there is enough.
    fn spend(&self, clear: Instant, weight: u32, now: Instant) -> Result<Instant, Duration> {
        let tolerance = self.cost(self.burst.unwrap_or(self.requests));
        let cost = self.cost(weight);
        // What weighs more than a burst needs an untouched quota.
        let missing = clear.nanos_since(now).saturating_add(cost.min(tolerance)).saturating_sub(tolerance);
        if missing > 0 {
            return Err(Duration::from_nanos(missing));
        }
        Ok(clear.max(now).plus_nanos(cost))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    fn seconds(seconds: u64) -> Instant {
        at(seconds * 1_000)
    }

    fn rate(requests: u32, per: Duration, burst: Option<u32>) -> TenantSettings {
        let quota = Quota { in_flight: None, rate: Some(RateQuota { requests, per, burst }) };
        TenantSettings { quota, ..TenantSettings::default() }
    }

    #[test]
    fn a_tenant_who_is_alone_may_use_everything() {
        let mut tenants = Tenants::new(TenantSettings::default()).unwrap();
        let tenant = Key::of("only");
        for second in 0..100 {
            for in_flight in 0..10 {
                assert_eq!(tenants.enter(tenant, 1, in_flight, 10, seconds(second)), Ok(()));
            }
            for _ in 0..10 {
                tenants.leave(tenant, 1, at(second * 1_000 + 900));
            }
        }
    }

    #[test]
    fn one_who_uses_little_finds_the_headroom_free_of_those_who_use_much() {
        let mut tenants = Tenants::new(TenantSettings::default()).unwrap();
        let heavy: Vec<_> = (0..3).map(|index| Key::of(&format!("heavy-{index}"))).collect();
        let light = Key::of("light");
        // For 30 s three tenants hold 3 places of 10 each, and one comes by for a tenth of a second each second.
        for (second, &key) in (0..30).flat_map(|second| heavy.iter().map(move |key| (second, key))) {
            for _ in 0..3 {
                tenants.enter(key, 1, 0, 10, seconds(second)).unwrap();
            }
            if key == heavy[2] {
                tenants.enter(light, 1, 0, 10, seconds(second)).unwrap();
                tenants.leave(light, 1, at(second * 1_000 + 100));
            }
            for _ in 0..3 {
                tenants.leave(key, 1, seconds(second + 1));
            }
        }
        let refusal = tenants.enter(heavy[0], 1, 9, 10, seconds(30)).unwrap_err();
        assert_eq!(refusal.reason, RefusalReason::TenantOverShare);
        assert_eq!(tenants.enter(light, 1, 9, 10, seconds(30)), Ok(()));
        // With room for all nobody is refused.
        assert_eq!(tenants.enter(heavy[0], 1, 8, 10, seconds(30)), Ok(()));
    }

    #[test]
    fn the_headroom_leaves_at_least_one_place_to_everybody() {
        let settings = TenantSettings { headroom: Share::ALL, ..TenantSettings::default() };
        let mut tenants = Tenants::new(settings).unwrap();
        for (name, end) in [("a", 9), ("b", 1)] {
            tenants.enter(Key::of(name), 1, 0, 1, seconds(0)).unwrap();
            tenants.leave(Key::of(name), 1, seconds(end));
        }
        assert_eq!(tenants.enter(Key::of("a"), 1, 0, 1, seconds(9)), Ok(()));
    }

    #[test]
    fn a_quota_of_places_holds_even_when_there_is_room() {
        let quota = Quota { in_flight: Some(Allowance::AtMost(2)), rate: None };
        let quotas = BTreeMap::from([(String::from("small"), quota)]);
        let mut tenants = Tenants::new(TenantSettings { quotas, ..TenantSettings::default() }).unwrap();
        let small = Key::of("small");
        assert_eq!(tenants.enter(small, 1, 0, 100, at(0)), Ok(()));
        assert_eq!(tenants.enter(small, 1, 1, 100, at(0)), Ok(()));
        assert_eq!(tenants.enter(small, 1, 2, 100, at(0)).unwrap_err().reason, RefusalReason::QuotaExceeded);
        tenants.leave(small, 1, at(1));
        assert_eq!(tenants.enter(small, 1, 1, 100, at(1)), Ok(()));
        assert_eq!(tenants.enter(Key::of("other"), 50, 2, 100, at(1)), Ok(()));
    }

    #[test]
    fn thirty_a_second_without_bursts_pass_no_more_than_thirty_one_in_any_second() {
        let mut tenants = Tenants::new(rate(30, Duration::from_secs(1), Some(1))).unwrap();
        let tenant = Key::of("eager");
        let passed: Vec<_> =
            (0..10_000).filter(|&millis| tenants.enter(tenant, 1, 0, 1_000, at(millis)).is_ok()).collect();
        let most = (0..9_000)
            .map(|from| passed.iter().filter(|&&t| (from..from + 1_000).contains(&t)).count())
            .max();
        assert!(most.unwrap() <= 31, "{most:?}");
        assert!(passed.len() >= 290, "{}", passed.len());
    }

    #[test]
    fn a_used_up_rate_quota_says_how_long_to_wait() {
        let mut tenants = Tenants::new(rate(60, Duration::from_secs(60), None)).unwrap();
        let tenant = Key::of("batch");
        for _ in 0..60 {
            assert_eq!(tenants.enter(tenant, 1, 0, 100, at(0)), Ok(()));
        }
        let refusal = tenants.enter(tenant, 1, 0, 100, at(400)).unwrap_err();
        assert_eq!(refusal.retry_after, Some(Duration::from_millis(600)));
        assert_eq!(tenants.enter(tenant, 1, 0, 100, at(1_000)), Ok(()));
    }

    #[test]
    fn what_was_taken_back_costs_no_quota() {
        let mut tenants = Tenants::new(rate(1, Duration::from_secs(60), None)).unwrap();
        let tenant = Key::of("batch");
        for _ in 0..10 {
            assert_eq!(tenants.enter(tenant, 1, 0, 100, at(5)), Ok(()));
            tenants.take_back(tenant, 1, at(5));
        }
        assert_eq!(tenants.in_use_by(tenant), 0);
    }

    #[test]
    fn tenants_beyond_the_bound_are_taken_together_and_forgotten_ones_make_room() {
        let settings = TenantSettings { max_tenants: 2, ..TenantSettings::default() };
        let mut tenants = Tenants::new(settings).unwrap();
        let keys: Vec<_> = (0..4).map(Key::of_number).collect();
        for &key in &keys {
            tenants.enter(key, 1, 0, 100, at(0)).unwrap();
        }
        assert_eq!((tenants.told_apart(), tenants.in_use_by(keys[2]), tenants.in_use_by(keys[3])), (2, 2, 2));
        for &key in &keys {
            tenants.leave(key, 1, at(1));
        }
        for second in [11, 22, 33] {
            tenants.enter(keys[3], 1, 0, 100, seconds(second)).unwrap();
            tenants.leave(keys[3], 1, seconds(second));
        }
        assert_eq!((tenants.told_apart(), tenants.others.used.in_flight), (1, 0));
    }

    #[test]
    fn settings_that_cannot_hold_are_named() {
        let minute = Duration::from_secs(60);
        for (settings, field) in [
            (TenantSettings { period: Duration::ZERO, ..TenantSettings::default() }, "period"),
            (TenantSettings { max_tenants: 0, ..TenantSettings::default() }, "max_tenants"),
            (rate(0, minute, None), "quota.rate.requests"),
            (rate(1, Duration::ZERO, None), "quota.rate.per"),
            (rate(1, minute, Some(0)), "quota.rate.burst"),
        ] {
            assert_eq!(Tenants::new(settings).unwrap_err().field, field);
        }
    }

    #[test]
    fn a_config_file_gives_quotas_by_name() {
        let settings: TenantSettings = toml::from_str(
            "headroom = 0.2\n[quota]\nin_flight = 0.5\n[quotas.batch]\nrate = { requests = 60, per = \"1m\" }",
        )
        .unwrap();
        assert_eq!(settings.quotas["batch"].rate.as_ref().unwrap().per, Duration::from_secs(60));
        assert_eq!(toml::from_str::<TenantSettings>(&toml::to_string(&settings).unwrap()).unwrap(), settings);
    }

    proptest! {
        #[test]
        fn everything_that_entered_can_leave(
            steps in prop::collection::vec((0_u64..6, 1_u32..3, any::<bool>(), 0_u64..4_000), 0..200),
        ) {
            let settings = TenantSettings { max_tenants: 3, ..TenantSettings::default() };
            let mut tenants = Tenants::new(settings).unwrap();
            let (mut running, mut now) = (Vec::<(Key, u32)>::new(), 0);
            for (who, weight, leave, millis) in steps {
                now += millis;
                if leave && !running.is_empty() {
                    let (key, weight) = running.remove(0);
                    tenants.leave(key, weight, at(now));
                } else {
                    let in_flight = running.iter().map(|&(_, weight)| weight as usize).sum();
                    if tenants.enter(Key::of_number(who), weight, in_flight, 10, at(now)).is_ok() {
                        running.push((Key::of_number(who), weight));
                    }
                }
                prop_assert!(tenants.told_apart() <= 3);
            }
            for (key, weight) in running {
                tenants.leave(key, weight, at(now));
            }
            prop_assert_eq!(tenants.all.in_flight, 0);
            prop_assert_eq!(tenants.others.used.in_flight, 0);
            prop_assert!(tenants.known.values().all(|tenant| tenant.used.in_flight == 0));
        }
    }
}
