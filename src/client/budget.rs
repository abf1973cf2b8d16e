use std::time::Duration;

use goodput_algorithms::{Instant, InvalidSettings};
use serde::{Deserialize, Serialize};

use super::tokens::Fullness;
use crate::share::Share;

/// One retry, in the unit of the balance.
const RETRY: u64 = 1_000_000;

/// Pays for retries out of a share of the requests, so that they can never be more than that share of the load.
///
/// Each new request earns its share of a retry; a retry costs one, withdrawn when it is decided; retries earn nothing.
/// A floor, earned by time, lets a client with few requests retry at all. The balance never exceeds the cap, however
/// long nothing happens, and is kept in whole millionths of a retry, so that ten requests at a tenth pay for exactly
/// one.
#[derive(Clone, Debug)]
pub struct RetryBudget {
    settings: RetryBudgetSettings,
    balance: u64,
    /// Up to when the floor has been credited.
    credited: Option<Instant>,
}

impl RetryBudget {
    /// # Errors
    ///
    /// [`InvalidSettings`] if the cap is zero or below the initial balance, or the floor's time is zero.
    pub fn new(settings: RetryBudgetSettings) -> Result<Self, InvalidSettings> {
        settings.check()?;
        let balance = u64::from(settings.initial) * RETRY;
        Ok(Self { settings, balance, credited: None })
    }

    /// Other settings from now on. The balance stays, up to the new cap: a change of settings is no present.
    ///
    /// # Errors
    ///
    /// [`InvalidSettings`], and nothing changes.
    pub fn reconfigure(
        &mut self,
        settings: RetryBudgetSettings,
        now: Instant,
    ) -> Result<(), InvalidSettings> {
        settings.check()?;
        self.credit_time(now);
        self.settings = settings;
        self.credit(0);
        Ok(())
    }

    /// A new request, not a retry: it earns its share.
    pub fn request(&mut self, now: Instant) {
        self.credit_time(now);
        self.credit(u64::from(self.settings.share.millionths()));
    }

    /// Pays for a retry, if the balance allows it.
    pub fn withdraw(&mut self, now: Instant) -> bool {
        self.credit_time(now);
        let Some(balance) = self.balance.checked_sub(RETRY) else { return false };
        self.balance = balance;
        true
    }

    /// How many retries the balance pays for at `now`.
    pub fn available(&mut self, now: Instant) -> u64 {
        self.credit_time(now);
        self.balance / RETRY
    }

    pub(super) fn fullness(&self) -> Fullness {
        Fullness { tokens: self.balance, of: u64::from(self.settings.cap) * RETRY }
    }

    pub(super) fn fill(&mut self, fullness: Fullness) {
        self.balance = fullness.part_of(u64::from(self.settings.cap) * RETRY);
    }

    fn credit_time(&mut self, now: Instant) {
        let Some(every) = self.settings.one_every else { return };
        let credited = *self.credited.get_or_insert(now);
        let every = every.as_nanos();
        let earned = u128::from(now.nanos_since(credited)) * u128::from(RETRY) / every;
        let earned_ns = (earned * every).div_ceil(u128::from(RETRY));
        self.credited = Some(credited.plus_nanos(u64::try_from(earned_ns).unwrap_or(u64::MAX)));
        self.credit(u64::try_from(earned).unwrap_or(u64::MAX));
    }

    fn credit(&mut self, earned: u64) {
        self.balance = self.balance.saturating_add(earned).min(u64::from(self.settings.cap) * RETRY);
    }
}

/// Settings of [`RetryBudget`].
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetryBudgetSettings {
    /// Retries per request in the long run. Default 0.1.
    pub share: Share,
    /// The floor: one retry each such time, whatever the number of requests. In a config file
    /// `"never"` for none. Default 1 s.
    #[serde(with = "crate::never")]
    pub one_every: Option<Duration>,
    /// The most retries that can be saved up. Default 10.
    pub cap: u32,
    /// The balance at the start, in retries. Default 10.
    pub initial: u32,
}

impl RetryBudgetSettings {
    fn check(&self) -> Result<(), InvalidSettings> {
        if self.cap == 0 {
            return Err(InvalidSettings::new("cap", "must be at least 1, not 0"));
        }
        if self.initial > self.cap {
            let problem = format!("must be at most `cap` ({}), not {}", self.cap, self.initial);
            return Err(InvalidSettings::new("initial", problem));
        }
        if self.one_every.is_some_and(|every| every.is_zero()) {
            return Err(InvalidSettings::new("one_every", "must be above 0"));
        }
        Ok(())
    }
}

impl Default for RetryBudgetSettings {
    fn default() -> Self {
        Self { share: Share::of_hundred(10), one_every: Some(Duration::from_secs(1)), cap: 10, initial: 10 }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    fn share_only(share: f64, initial: u32) -> RetryBudgetSettings {
        RetryBudgetSettings { share: Share::new(share).unwrap(), one_every: None, cap: 10, initial }
    }

    #[test]
    fn ten_requests_at_a_tenth_pay_for_exactly_one_retry() {
        let mut budget = RetryBudget::new(share_only(0.1, 0)).unwrap();
        for _ in 0..50 {
            for _ in 0..9 {
                budget.request(at(0));
                assert!(!budget.withdraw(at(0)));
            }
            budget.request(at(0));
            assert!(budget.withdraw(at(0)));
            assert!(!budget.withdraw(at(0)));
        }
    }

    #[test]
    fn six_tenths_of_a_thousand_failing_requests_are_retried_six_hundred_times() {
        let mut budget = RetryBudget::new(share_only(0.6, 0)).unwrap();
        let retries = (0..1_000)
            .filter(|_| {
                budget.request(at(0));
                budget.withdraw(at(0))
            })
            .count();
        assert_eq!(retries, 600);
    }

    #[test]
    fn idling_never_saves_up_more_than_the_cap() {
        let mut budget = RetryBudget::new(RetryBudgetSettings::default()).unwrap();
        while budget.withdraw(at(0)) {}
        assert_eq!(budget.available(at(1_000_000_000)), 10);
    }

    #[test]
    fn the_floor_pays_without_requests_and_loses_no_fraction() {
        let settings =
            RetryBudgetSettings { one_every: Some(Duration::from_millis(7)), ..share_only(0.1, 0) };
        let mut budget = RetryBudget::new(settings).unwrap();
        // Looked at each millisecond for 7 s: the first look starts the clock, so 1000 retries' worth.
        let retries = (0..=7_000).filter(|&ms| budget.withdraw(at(ms))).count();
        assert!((999..=1_000).contains(&retries), "{retries}");
    }

    #[test]
    fn after_a_silence_retries_flow_at_once() {
        let mut budget = RetryBudget::new(share_only(0.1, 0)).unwrap();
        for second in (0..60).chain(120..180) {
            for _ in 0..200 {
                budget.request(at(second * 1_000));
            }
            let retries = (0..10).filter(|_| budget.withdraw(at(second * 1_000))).count();
            assert_eq!(retries, 10, "in second {second}");
        }
    }

    #[test]
    fn other_settings_keep_the_balance_up_to_the_new_cap() {
        let mut budget = RetryBudget::new(share_only(0.1, 5)).unwrap();
        budget.reconfigure(share_only(0.2, 10), at(0)).unwrap();
        assert_eq!(budget.available(at(0)), 5);
        let smaller = RetryBudgetSettings { cap: 3, initial: 0, ..share_only(0.2, 0) };
        budget.reconfigure(smaller, at(0)).unwrap();
        assert_eq!(budget.available(at(0)), 3);
    }

    #[test]
    fn settings_that_cannot_hold_are_named() {
        for (settings, field) in [
            (RetryBudgetSettings { cap: 0, ..RetryBudgetSettings::default() }, "cap"),
            (RetryBudgetSettings { cap: 5, ..RetryBudgetSettings::default() }, "initial"),
            (
                RetryBudgetSettings { one_every: Some(Duration::ZERO), ..RetryBudgetSettings::default() },
                "one_every",
            ),
        ] {
            assert_eq!(RetryBudget::new(settings).unwrap_err().field, field);
        }
    }

    proptest! {
        #[test]
        fn retries_never_exceed_share_plus_floor_plus_what_was_saved(
            share in 0.0_f64..=1.0, every in 1_u64..1_000, cap in 1_u32..20,
            steps in prop::collection::vec((any::<bool>(), 0_u64..50), 0..500),
        ) {
            let one_every = Some(Duration::from_millis(every));
            let settings = RetryBudgetSettings { share: Share::new(share).unwrap(), one_every, cap, initial: cap };
            let allowed_each = settings.share.as_f64();
            let mut budget = RetryBudget::new(settings).unwrap();
            let (mut requests, mut retries, mut now) = (0, 0, 0);
            for (new, gap) in steps {
                now += gap;
                if new {
                    budget.request(at(now));
                    requests += 1;
                } else {
                    retries += u32::from(budget.withdraw(at(now)));
                }
                let allowed = f64::from(cap) + f64::from(requests) * allowed_each + now as f64 / every as f64;
                prop_assert!(f64::from(retries) <= allowed + 1e-6, "{retries} of {allowed}");
            }
        }
    }
}
