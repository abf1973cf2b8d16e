use std::time::Duration;

use goodput_algorithms::{Instant, InvalidSettings};
use serde::{Deserialize, Serialize};

use crate::share::Share;

/// Fewer requests than this say nothing about a period.
const LEAST: u64 = 100;

/// Tells whether the others are overloaded as well, from how many of the requests are retries (SRE book, "Handling
/// Overload").
///
/// Whoever is refused by one host tries another. While few of the requests that come are retries, the others have room,
/// and another attempt there is worth it. If many are, they refuse as much as this one: another attempt finds no room
/// anywhere, and should not be made. The part of the retries is that of the last one to two periods.
///
/// ```
/// use goodput::{algorithms::Instant, refusal::{RetryWatch, RetryWatchSettings}};
///
/// let mut watch = RetryWatch::new(RetryWatchSettings::default())?;
/// for request in 0..1_000 {
///     watch.note(request % 12 == 0, Instant::ZERO);
/// }
/// // One in twelve: as many as clients send that retry a tenth of their requests, wherever they go.
/// assert!(watch.all_refuse());
/// # Ok::<(), goodput::algorithms::InvalidSettings>(())
/// ```
#[derive(Clone, Debug)]
pub struct RetryWatch {
    settings: RetryWatchSettings,
    started: Instant,
    now: Counts,
    before: Counts,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    requests: u64,
    retries: u64,
}

impl RetryWatch {
    /// # Errors
    ///
    /// [`InvalidSettings`] if the period is zero, or nothing can be above the share.
    pub fn new(settings: RetryWatchSettings) -> Result<Self, InvalidSettings> {
        if settings.period.is_zero() {
            return Err(InvalidSettings::new("period", "must be above 0"));
        }
        if settings.above == Share::ALL {
            return Err(InvalidSettings::new(
                "above",
                "must be below 1: there are no more retries than requests",
            ));
        }
        Ok(Self { settings, started: Instant::ZERO, now: Counts::default(), before: Counts::default() })
    }

    /// A request has come, which is a retry or is not.
    pub fn note(&mut self, is_retry: bool, now: Instant) {
        let elapsed = now.since(self.started);
        if elapsed >= self.settings.period {
            let long_ago = elapsed >= self.settings.period.saturating_mul(2);
            self.before = if long_ago { Counts::default() } else { self.now };
            self.now = Counts::default();
            self.started = now;
        }
        self.now.requests = self.now.requests.saturating_add(1);
        self.now.retries = self.now.retries.saturating_add(u64::from(is_retry));
    }

    /// Whether so many of the requests that came lately are retries that another attempt elsewhere is in vain.
    #[must_use]
    pub fn all_refuse(&self) -> bool {
        let requests = self.now.requests.saturating_add(self.before.requests);
        let retries = self.now.retries.saturating_add(self.before.retries);
        requests >= LEAST && retries as f64 > self.settings.above.as_f64() * requests as f64
    }
}

/// Settings of [`RetryWatch`].
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetryWatchSettings {
    /// The part of the requests that may be retries. Default 0.05: half of what comes when all hosts refuse and clients
    /// retry a tenth of their requests.
    pub above: Share,
    /// Over the last one to two of these. Default 10 s.
    #[serde(with = "humantime_serde")]
    pub period: Duration,
}

impl Default for RetryWatchSettings {
    fn default() -> Self {
        Self { above: Share::of_hundred(5), period: Duration::from_secs(10) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch() -> RetryWatch {
        RetryWatch::new(RetryWatchSettings::default()).unwrap()
    }

    /// A second of a thousand requests, of which one in so many is a retry.
    fn second(watch: &mut RetryWatch, second: u64, one_in: u64) {
        for request in 0..1_000 {
            let now = Instant::from_nanos(second * 1_000_000_000 + request * 1_000_000);
            watch.note(request % one_in == 0, now);
        }
    }

    #[test]
    fn a_few_retries_come_from_one_hot_host_and_many_from_all() {
        // Clients retry a tenth of their requests at the most. Where one host of ten refuses a third, its clients send
        // one retry in thirty requests; where all do, one in eleven.
        let mut one_hot = watch();
        second(&mut one_hot, 0, 30);
        assert!(!one_hot.all_refuse());
        let mut all_hot = watch();
        second(&mut all_hot, 0, 11);
        assert!(all_hot.all_refuse());
    }

    #[test]
    fn what_is_past_is_forgotten() {
        let mut watch = watch();
        (0..10).for_each(|at| second(&mut watch, at, 5));
        assert!(watch.all_refuse());
        (10..30).for_each(|at| second(&mut watch, at, 1_000));
        assert!(!watch.all_refuse());
        (30..40).for_each(|at| second(&mut watch, at, 5));
        second(&mut watch, 1_000_000, 1_000);
        assert!(!watch.all_refuse());
    }

    #[test]
    fn a_handful_of_requests_says_nothing() {
        let mut watch = watch();
        for _ in 0..99 {
            watch.note(true, Instant::ZERO);
        }
        assert!(!watch.all_refuse());
        watch.note(true, Instant::ZERO);
        assert!(watch.all_refuse());
    }

    #[test]
    fn settings_that_cannot_hold_are_named() {
        let never = RetryWatchSettings { above: Share::ALL, ..RetryWatchSettings::default() };
        assert_eq!(RetryWatch::new(never).unwrap_err().field, "above");
        let timeless = RetryWatchSettings { period: Duration::ZERO, ..RetryWatchSettings::default() };
        assert_eq!(RetryWatch::new(timeless).unwrap_err().field, "period");
        let endless = RetryWatchSettings { period: Duration::MAX, ..RetryWatchSettings::default() };
        RetryWatch::new(endless).unwrap().note(true, Instant::FAR_FUTURE);
    }
}
