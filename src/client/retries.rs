use std::time::Duration;

use goodput_algorithms::{Instant, InvalidSettings};
use serde::{Deserialize, Serialize};

use super::{
    Backoff, BackoffSettings, PushBack, RetryBudget, RetryBudgetSettings, RetryQuota, RetryQuotaSettings,
    RetryThrottling, RetryThrottlingSettings, tokens::Fullness,
};

/// Decides, for all requests of a client together, which of them are tried again and when.
///
/// ```
/// use goodput::client::{Failure, Retries, RetrySettings};
/// use goodput::algorithms::Instant;
///
/// let now = Instant::ZERO;
/// let mut retries = Retries::new(RetrySettings::default()).unwrap();
/// let mut call = retries.start(now);
/// // The first attempt fails ...
/// let wait = retries.failed(&mut call, Failure::PLAIN, None, 0.5, now).unwrap();
/// // ... and the second, after the wait, does not.
/// retries.succeeded(&call);
/// ```
#[derive(Clone, Debug)]
pub struct Retries {
    max_attempts: u32,
    backoff: Backoff,
    payment: Payment,
}

#[derive(Clone, Debug)]
enum Payment {
    Free,
    Share(RetryBudget),
    Grpc(RetryThrottling),
    Aws(RetryQuota),
}

/// One request, through all its attempts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Call {
    attempts: u32,
    last_retry_cost: Option<u32>,
}

impl Call {
    /// Attempts made or decided on, the first one included.
    #[must_use]
    pub const fn attempts(&self) -> u32 {
        self.attempts
    }
}

/// How an attempt failed.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Failure {
    /// It timed out.
    pub timeout: bool,
    /// What the server said about retries, if anything.
    pub push_back: Option<PushBack>,
}

impl Failure {
    /// A failure of which nothing more is known.
    pub const PLAIN: Self = Self { timeout: false, push_back: None };

    /// A timeout.
    pub const TIMEOUT: Self = Self { timeout: true, push_back: None };

    /// A refusal with what the server said.
    #[must_use]
    pub const fn pushed_back(push_back: PushBack) -> Self {
        Self { timeout: false, push_back: Some(push_back) }
    }
}

/// There is no further attempt.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("no further attempt: {reason}")]
pub struct GiveUp {
    /// Why.
    pub reason: GiveUpReason,
    /// How long a caller who would start the next request at once should wait first: what the wait before the retry
    /// would have been. An empty budget must not turn a slow loop of retries into a fast one of new requests.
    pub before_next: Duration,
}

/// Why there is no further attempt.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum GiveUpReason {
    /// All attempts were made.
    #[error("all attempts were made")]
    AttemptsUsed,
    /// The budget does not pay for it.
    #[error("the retry budget is empty")]
    BudgetEmpty,
    /// The server wants none.
    #[error("the server wants no retry")]
    Forbidden,
    /// The deadline comes first.
    #[error("the deadline comes first")]
    DeadlineFirst,
}

impl Retries {
    /// # Errors
    ///
    /// [`InvalidSettings`] names the field that cannot hold.
    pub fn new(settings: RetrySettings) -> Result<Self, InvalidSettings> {
        if settings.max_attempts == 0 {
            return Err(InvalidSettings::new("max_attempts", "must be at least 1, not 0"));
        }
        let payment = Payment::new(settings.payment)?;
        Ok(Self { max_attempts: settings.max_attempts, backoff: Backoff::new(settings.backoff)?, payment })
    }

    /// Other settings from now on. What was saved up in a budget stays; one of another kind begins as full as the old
    /// one was, for a change of settings is no present.
    ///
    /// # Errors
    ///
    /// [`InvalidSettings`], and nothing changes.
    pub fn reconfigure(&mut self, settings: RetrySettings, now: Instant) -> Result<(), InvalidSettings> {
        let mut next = Self::new(settings.clone())?;
        match (&self.payment, settings.payment, &mut next.payment) {
            (Payment::Share(old), PaymentSettings::Share(settings), Payment::Share(new)) => {
                *new = old.clone();
                new.reconfigure(settings, now)?;
            }
            (old, _, new) => {
                if let Some(fullness) = old.fullness() {
                    new.fill(fullness);
                }
            }
        }
        *self = next;
        Ok(())
    }

    /// A new request, before its first attempt.
    pub fn start(&mut self, now: Instant) -> Call {
        if let Payment::Share(budget) = &mut self.payment {
            budget.request(now);
        }
        Call { attempts: 1, last_retry_cost: None }
    }

    /// The last attempt succeeded.
    pub fn succeeded(&mut self, call: &Call) {
        match &mut self.payment {
            Payment::Grpc(throttling) => throttling.succeeded(),
            Payment::Aws(quota) => quota.succeeded(call.last_retry_cost),
            Payment::Free | Payment::Share(_) => {}
        }
    }

    /// The last attempt failed: how long to wait before the next one, which is paid for now. `random`, within 0 and 1,
    /// spreads the wait.
    ///
    /// # Errors
    ///
    /// [`GiveUp`] if there is no further attempt.
    pub fn failed(
        &mut self,
        call: &mut Call,
        failure: Failure,
        deadline: Option<Instant>,
        random: f64,
        now: Instant,
    ) -> Result<Duration, GiveUp> {
        if let Payment::Grpc(throttling) = &mut self.payment {
            throttling.failed();
        }
        let plain = self.backoff.wait(call.attempts, None, random).unwrap_or_default();
        let wait = self.backoff.wait(call.attempts, failure.push_back, random);
        let give_up = |reason| Err(GiveUp { reason, before_next: wait.unwrap_or(plain) });
        let Some(wait) = wait else { return give_up(GiveUpReason::Forbidden) };
        if call.attempts >= self.max_attempts {
            return give_up(GiveUpReason::AttemptsUsed);
        }
        if deadline.is_some_and(|deadline| now + wait >= deadline) {
            return give_up(GiveUpReason::DeadlineFirst);
        }
        let paid = match &mut self.payment {
            Payment::Free => true,
            Payment::Share(budget) => budget.withdraw(now),
            Payment::Grpc(throttling) => throttling.allows_retry(),
            Payment::Aws(quota) => {
                call.last_retry_cost = quota.withdraw(failure.timeout);
                call.last_retry_cost.is_some()
            }
        };
        if !paid {
            return give_up(GiveUpReason::BudgetEmpty);
        }
        call.attempts += 1;
        Ok(wait)
    }
}

impl Payment {
    fn new(settings: PaymentSettings) -> Result<Self, InvalidSettings> {
        Ok(match settings {
            PaymentSettings::Free => Self::Free,
            PaymentSettings::Share(settings) => Self::Share(RetryBudget::new(settings)?),
            PaymentSettings::Grpc(settings) => Self::Grpc(RetryThrottling::new(settings)?),
            PaymentSettings::Aws(settings) => Self::Aws(RetryQuota::new(settings)?),
        })
    }

    fn fill(&mut self, fullness: Fullness) {
        match self {
            Self::Free => {}
            Self::Share(budget) => budget.fill(fullness),
            Self::Grpc(throttling) => throttling.fill(fullness),
            Self::Aws(quota) => quota.fill(fullness),
        }
    }

    fn fullness(&self) -> Option<Fullness> {
        match self {
            Self::Free => None,
            Self::Share(budget) => Some(budget.fullness()),
            Self::Grpc(throttling) => Some(throttling.fullness()),
            Self::Aws(quota) => Some(quota.fullness()),
        }
    }
}

/// Settings of [`Retries`].
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetrySettings {
    /// Attempts per request, the first one included. Default 3.
    pub max_attempts: u32,
    /// The waits.
    pub backoff: BackoffSettings,
    /// What retries are paid from. Default a tenth of the requests.
    pub payment: PaymentSettings,
}

impl Default for RetrySettings {
    fn default() -> Self {
        Self {
            max_attempts: 3,
            backoff: BackoffSettings::default(),
            payment: PaymentSettings::Share(RetryBudgetSettings::default()),
        }
    }
}

/// What retries are paid from. In a config file `from = "share"`, with the settings beside it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum PaymentSettings {
    /// Nothing: every request may use all its attempts. For models and tests.
    Free,
    /// A share of the requests: [`RetryBudget`].
    Share(RetryBudgetSettings),
    /// gRPC's token bucket: [`RetryThrottling`].
    Grpc(RetryThrottlingSettings),
    /// The AWS clients' token bucket: [`RetryQuota`].
    Aws(RetryQuotaSettings),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Jitter;

    const NOW: Instant = Instant::ZERO;

    fn retries(payment: PaymentSettings) -> Retries {
        let backoff = BackoffSettings { jitter: Jitter::None, ..BackoffSettings::default() };
        Retries::new(RetrySettings { backoff, payment, ..RetrySettings::default() }).unwrap()
    }

    #[test]
    fn there_are_three_attempts_with_longer_waits() {
        let mut retries = retries(PaymentSettings::Free);
        let mut call = retries.start(NOW);
        let mut fail = || retries.failed(&mut call, Failure::PLAIN, None, 0.0, NOW);
        assert_eq!(fail(), Ok(Duration::from_millis(100)));
        assert_eq!(fail(), Ok(Duration::from_millis(200)));
        assert_eq!(fail().unwrap_err().reason, GiveUpReason::AttemptsUsed);
        assert_eq!(call.attempts(), 3);
    }

    #[test]
    fn an_empty_budget_fails_the_request_and_asks_to_slow_down() {
        let mut retries = retries(PaymentSettings::Share(RetryBudgetSettings {
            initial: 0,
            one_every: None,
            ..RetryBudgetSettings::default()
        }));
        let mut call = retries.start(NOW);
        let give_up = retries.failed(&mut call, Failure::PLAIN, None, 0.0, NOW).unwrap_err();
        assert_eq!(give_up.reason, GiveUpReason::BudgetEmpty);
        assert_eq!(give_up.before_next, Duration::from_millis(100));
    }

    #[test]
    fn an_attempt_that_is_not_made_is_not_paid_for() {
        let mut retries = retries(PaymentSettings::Share(RetryBudgetSettings {
            initial: 1,
            one_every: None,
            ..RetryBudgetSettings::default()
        }));
        let deadline = Some(Instant::from_nanos(50_000_000));
        let mut call = retries.start(NOW);
        let late = retries.failed(&mut call, Failure::PLAIN, deadline, 0.0, NOW).unwrap_err();
        assert_eq!(late.reason, GiveUpReason::DeadlineFirst);
        let never = Failure::pushed_back(PushBack::Never);
        let forbidden = retries.failed(&mut call, never, None, 0.0, NOW).unwrap_err();
        assert_eq!(forbidden.reason, GiveUpReason::Forbidden);
        assert!(retries.failed(&mut call, Failure::PLAIN, None, 0.0, NOW).is_ok());
    }

    #[test]
    fn a_server_that_pushes_back_raises_the_wait_at_once() {
        let mut retries = retries(PaymentSettings::Free);
        let mut call = retries.start(NOW);
        let failure = Failure::pushed_back(PushBack::After(Duration::from_secs(5)));
        let wait = retries.failed(&mut call, failure, None, 0.0, NOW).unwrap();
        assert!(wait >= Duration::from_secs(5));
    }

    #[test]
    fn under_lasting_failure_token_buckets_stop_retries() {
        for payment in [
            PaymentSettings::Grpc(RetryThrottlingSettings::default()),
            PaymentSettings::Aws(RetryQuotaSettings::default()),
        ] {
            let mut retries = retries(payment);
            let mut attempts = 0;
            for _ in 0..1_000 {
                let mut call = retries.start(NOW);
                while retries.failed(&mut call, Failure::TIMEOUT, None, 0.0, NOW).is_ok() {}
                attempts += call.attempts();
            }
            assert!((1_001..=1_050).contains(&attempts), "{attempts}");
        }
    }

    /// Every kind of budget, with nothing that time alone pays for.
    fn payments() -> [PaymentSettings; 3] {
        [
            PaymentSettings::Share(RetryBudgetSettings { one_every: None, ..RetryBudgetSettings::default() }),
            PaymentSettings::Grpc(RetryThrottlingSettings::default()),
            PaymentSettings::Aws(RetryQuotaSettings::default()),
        ]
    }

    #[test]
    fn a_change_of_settings_is_no_present_neither_to_the_same_kind_of_budget_nor_to_another() {
        for before in payments() {
            for after in payments() {
                let mut retries = retries(before.clone());
                let mut failed = || {
                    let mut call = Call { attempts: 1, last_retry_cost: None };
                    let paid = retries.failed(&mut call, Failure::PLAIN, None, 0.0, NOW).is_ok();
                    let payment = if paid { &before } else { &after };
                    retries
                        .reconfigure(
                            RetrySettings { payment: payment.clone(), ..RetrySettings::default() },
                            NOW,
                        )
                        .unwrap();
                    paid
                };
                // To the end of what was saved up, with a change after every retry; and on, in the other form.
                while failed() {}
                assert!((0..20).all(|_| !failed()), "{before:?} to {after:?}");
            }
        }
    }

    #[test]
    fn a_budget_goes_on_across_a_change_of_its_kind_while_a_tenth_fails() {
        let [share, _, aws] = payments();
        let mut retries = retries(share);
        let mut retried = 0;
        for request in 0..10_000 {
            if request == 5_000 {
                retries
                    .reconfigure(RetrySettings { payment: aws.clone(), ..RetrySettings::default() }, NOW)
                    .unwrap();
            }
            let mut call = retries.start(NOW);
            if request % 10 == 0 && retries.failed(&mut call, Failure::PLAIN, None, 0.0, NOW).is_ok() {
                retried += 1;
            }
            retries.succeeded(&call);
        }
        // A tenth pays for itself in the one; in the other a success gives back what its retry cost.
        assert_eq!(retried, 1_000);
    }

    #[test]
    fn settings_round_trip_in_every_form() {
        for payment in [
            PaymentSettings::Free,
            PaymentSettings::Share(RetryBudgetSettings::default()),
            PaymentSettings::Share(RetryBudgetSettings { one_every: None, ..RetryBudgetSettings::default() }),
            PaymentSettings::Grpc(RetryThrottlingSettings::default()),
            PaymentSettings::Aws(RetryQuotaSettings::default()),
        ] {
            let settings = RetrySettings { payment, ..RetrySettings::default() };
            let text = toml::to_string(&settings).unwrap();
            assert_eq!(toml::from_str::<RetrySettings>(&text).unwrap(), settings, "{text}");
        }
        let error = toml::from_str::<RetrySettings>("[payment]\nfrom = \"share\"\none_every = \"often\"")
            .unwrap_err();
        assert!(error.to_string().contains("a duration, or \"never\""), "{error}");
        assert!(toml::from_str::<RetrySettings>("[payment]\nfrom = \"share\"\ncapp = 3").is_err());
    }
}
