//! Retry budgets in the form of token buckets, as two widely used clients keep them.

use goodput_algorithms::InvalidSettings;
use serde::{Deserialize, Serialize};

/// gRPC's retry throttling (gRFC A6): failures take a token, successes give back a part of one, and retries are allowed
/// while more than half of the tokens are there.
///
/// Kept in thousandths, which is the precision of the published settings.
#[derive(Clone, Debug)]
pub struct RetryThrottling {
    max: u64,
    per_success: u64,
    tokens: u64,
}

const TOKEN: u64 = 1_000;

impl RetryThrottling {
    /// A full bucket.
    ///
    /// # Errors
    ///
    /// [`InvalidSettings`] unless there are 1 to 1000 tokens and the ratio is at least 0.001 and finite, as gRFC A6
    /// has it.
    pub fn new(settings: RetryThrottlingSettings) -> Result<Self, InvalidSettings> {
        if !(1..=1_000).contains(&settings.max_tokens) {
            let problem = format!("must lie within 1 and 1000, not {}", settings.max_tokens);
            return Err(InvalidSettings::new("max_tokens", problem));
        }
        if !(0.001..=1_000.0).contains(&settings.token_ratio) {
            let problem = format!("must lie within 0.001 and 1000, not {}", settings.token_ratio);
            return Err(InvalidSettings::new("token_ratio", problem));
        }
        let max = u64::from(settings.max_tokens) * TOKEN;
        Ok(Self { max, per_success: (settings.token_ratio * TOKEN as f64).round() as u64, tokens: max })
    }

    /// Other settings from now on. The part of the bucket that is full stays full, and no more.
    ///
    /// # Errors
    ///
    /// [`InvalidSettings`], and nothing changes.
    pub fn reconfigure(&mut self, settings: RetryThrottlingSettings) -> Result<(), InvalidSettings> {
        let whole = Fullness { tokens: self.tokens, of: self.max };
        *self = Self::new(settings)?;
        self.tokens = whole.part_of(self.max);
        Ok(())
    }

    /// An attempt succeeded.
    pub fn succeeded(&mut self) {
        self.tokens = (self.tokens + self.per_success).min(self.max);
    }

    /// An attempt failed in a way that might be retried, or the server pushed back.
    pub const fn failed(&mut self) {
        self.tokens = self.tokens.saturating_sub(TOKEN);
    }

    /// Whether retries are allowed now.
    #[must_use]
    pub const fn allows_retry(&self) -> bool {
        self.tokens > self.max / 2
    }

    /// Of what pays for retries: the upper half.
    pub(super) const fn fullness(&self) -> Fullness {
        let half = self.max / 2;
        Fullness { tokens: self.tokens.saturating_sub(half), of: self.max - half }
    }

    pub(super) const fn fill(&mut self, fullness: Fullness) {
        let half = self.max / 2;
        self.tokens = half + fullness.part_of(self.max - half);
    }
}

/// Settings of [`RetryThrottling`].
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetryThrottlingSettings {
    /// The bucket's size. Default 10.
    pub max_tokens: u32,
    /// What a success gives back. Default 0.1.
    pub token_ratio: f64,
}

impl Default for RetryThrottlingSettings {
    fn default() -> Self {
        Self { max_tokens: 10, token_ratio: 0.1 }
    }
}

/// The retry quota of the AWS clients' standard mode: a retry costs tokens, its success gives them back, and so does,
/// a little, every success at the first attempt.
#[derive(Clone, Debug)]
pub struct RetryQuota {
    settings: RetryQuotaSettings,
    tokens: u32,
}

impl RetryQuota {
    /// A full bucket.
    ///
    /// # Errors
    ///
    /// [`InvalidSettings`] if a retry costs nothing, or more than there is.
    pub fn new(settings: RetryQuotaSettings) -> Result<Self, InvalidSettings> {
        for (field, cost) in
            [("retry_cost", settings.retry_cost), ("timeout_retry_cost", settings.timeout_retry_cost)]
        {
            if cost == 0 || cost > settings.capacity {
                let problem = format!("must lie within 1 and `capacity` ({}), not {cost}", settings.capacity);
                return Err(InvalidSettings::new(field, problem));
            }
        }
        let tokens = settings.capacity;
        Ok(Self { settings, tokens })
    }

    /// Other settings from now on. The part of the bucket that is full stays full, and no more.
    ///
    /// # Errors
    ///
    /// [`InvalidSettings`], and nothing changes.
    pub fn reconfigure(&mut self, settings: RetryQuotaSettings) -> Result<(), InvalidSettings> {
        let fullness = self.fullness();
        *self = Self::new(settings)?;
        self.fill(fullness);
        Ok(())
    }

    /// Pays for a retry, after a timeout or after another failure, if there is enough. The answer is what it cost: to
    /// be given back if it succeeds.
    pub const fn withdraw(&mut self, after_timeout: bool) -> Option<u32> {
        let cost = if after_timeout { self.settings.timeout_retry_cost } else { self.settings.retry_cost };
        match self.tokens.checked_sub(cost) {
            Some(tokens) => {
                self.tokens = tokens;
                Some(cost)
            }
            None => None,
        }
    }

    /// A request succeeded: at the first attempt, or at a retry that cost this much.
    pub fn succeeded(&mut self, last_retry_cost: Option<u32>) {
        let earned = last_retry_cost.unwrap_or(self.settings.first_try_gain);
        self.tokens = self.tokens.saturating_add(earned).min(self.settings.capacity);
    }

    /// Tokens that are left.
    #[must_use]
    pub const fn tokens(&self) -> u32 {
        self.tokens
    }

    pub(super) const fn fullness(&self) -> Fullness {
        Fullness { tokens: self.tokens as u64, of: self.settings.capacity as u64 }
    }

    pub(super) const fn fill(&mut self, fullness: Fullness) {
        // At most the capacity, which is as narrow.
        self.tokens = fullness.part_of(self.settings.capacity as u64) as u32;
    }
}

/// Settings of [`RetryQuota`].
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetryQuotaSettings {
    /// The bucket's size. Default 500.
    pub capacity: u32,
    /// What a retry costs. Default 5.
    pub retry_cost: u32,
    /// What a retry after a timeout costs. Default 10.
    pub timeout_retry_cost: u32,
    /// What a success at the first attempt gives back. Default 1.
    pub first_try_gain: u32,
}

impl Default for RetryQuotaSettings {
    fn default() -> Self {
        Self { capacity: 500, retry_cost: 5, timeout_retry_cost: 10, first_try_gain: 1 }
    }
}

/// How full a bucket is: what goes over to another when settings change.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fullness {
    pub(super) tokens: u64,
    pub(super) of: u64,
}

impl Fullness {
    /// Rounded down, and exactly what it was for a bucket of the same size.
    pub(super) const fn part_of(self, size: u64) -> u64 {
        // At most `size`, since there are no more tokens than fit.
        (self.tokens as u128 * size as u128 / self.of as u128) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_stop_at_half_the_tokens_and_come_back_with_successes() {
        let mut throttling = RetryThrottling::new(RetryThrottlingSettings::default()).unwrap();
        for failures in 1..=4 {
            throttling.failed();
            assert!(throttling.allows_retry(), "after {failures} failures");
        }
        throttling.failed();
        assert!(!throttling.allows_retry());
        throttling.succeeded();
        assert!(throttling.allows_retry());
    }

    #[test]
    fn the_bucket_neither_overflows_nor_goes_below_empty() {
        let mut throttling = RetryThrottling::new(RetryThrottlingSettings::default()).unwrap();
        (0..1_000).for_each(|_| throttling.failed());
        // More than 5 tokens at 0.1 each.
        let successes = (1..).find(|_| {
            throttling.succeeded();
            throttling.allows_retry()
        });
        assert_eq!(successes, Some(51));
        (0..1_000).for_each(|_| throttling.succeeded());
        let failures = (1..).find(|_| {
            throttling.failed();
            !throttling.allows_retry()
        });
        assert_eq!(failures, Some(5));
    }

    #[test]
    fn other_settings_do_not_refill_the_bucket() {
        let mut throttling = RetryThrottling::new(RetryThrottlingSettings::default()).unwrap();
        (0..8).for_each(|_| throttling.failed());
        throttling.reconfigure(RetryThrottlingSettings { max_tokens: 100, token_ratio: 0.1 }).unwrap();
        assert!(!throttling.allows_retry());

        let mut quota = RetryQuota::new(RetryQuotaSettings::default()).unwrap();
        (0..40).for_each(|_| _ = quota.withdraw(false));
        quota.reconfigure(RetryQuotaSettings { capacity: 1_000, ..RetryQuotaSettings::default() }).unwrap();
        assert_eq!(quota.tokens(), 600);
    }

    #[test]
    fn a_retry_that_succeeds_costs_nothing_in_the_end() {
        let mut quota = RetryQuota::new(RetryQuotaSettings::default()).unwrap();
        // 1 % of 360,000 requests fail once.
        for request in 0..360_000 {
            let cost = if request % 100 == 0 { Some(quota.withdraw(false).unwrap()) } else { None };
            quota.succeeded(cost);
        }
        assert_eq!(quota.tokens(), 500);
    }

    #[test]
    fn retries_end_when_everything_fails() {
        let mut quota = RetryQuota::new(RetryQuotaSettings::default()).unwrap();
        assert_eq!((0..1_000).filter(|_| quota.withdraw(false).is_some()).count(), 100);
        let mut quota = RetryQuota::new(RetryQuotaSettings::default()).unwrap();
        assert_eq!((0..1_000).filter(|_| quota.withdraw(true).is_some()).count(), 50);
    }

    #[test]
    fn settings_that_cannot_hold_are_named() {
        let none = RetryThrottlingSettings { max_tokens: 0, ..RetryThrottlingSettings::default() };
        assert_eq!(RetryThrottling::new(none).unwrap_err().field, "max_tokens");
        let nothing = RetryThrottlingSettings { token_ratio: f64::NAN, ..RetryThrottlingSettings::default() };
        assert_eq!(RetryThrottling::new(nothing).unwrap_err().field, "token_ratio");
        let free = RetryQuotaSettings { retry_cost: 0, ..RetryQuotaSettings::default() };
        assert_eq!(RetryQuota::new(free).unwrap_err().field, "retry_cost");
        let dear = RetryQuotaSettings { timeout_retry_cost: 501, ..RetryQuotaSettings::default() };
        assert_eq!(RetryQuota::new(dear).unwrap_err().field, "timeout_retry_cost");
    }
}
