use std::time::Duration;

use goodput_algorithms::InvalidSettings;
use serde::{Deserialize, Serialize};

/// How long to wait before each retry: exponentially longer, spread at random, and never shorter than the server asks.
///
/// The wait before retry `n` (from 1) is `d = min(max, first · factor^(n−1))`, put through the [`Jitter`]. A server
/// that says when to come back ([`PushBack::After`]) is taken at its word: the wait is what it said plus a first wait
/// with jitter, so that all whom it told the same do not come back at once.
#[derive(Clone, Debug)]
pub struct Backoff {
    settings: BackoffSettings,
}

/// What a server said about retries.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PushBack {
    /// Not before this has passed: `Retry-After`, or `grpc-retry-pushback-ms` of 0 or more.
    After(Duration),
    /// Not at all: it is overloaded, or the error is final.
    Never,
}

impl PushBack {
    /// Reads `Retry-After` in seconds (RFC 9110). A date needs a wall clock, and is not understood.
    #[must_use]
    pub fn from_retry_after(value: &str) -> Option<Self> {
        value.trim().parse().ok().map(|seconds| Self::After(Duration::from_secs(seconds)))
    }

    /// Reads `grpc-retry-pushback-ms` (gRFC A6): what is negative, or no number, means never.
    #[must_use]
    pub fn from_grpc_pushback(value: &str) -> Self {
        value.trim().parse().map_or(Self::Never, |millis| Self::After(Duration::from_millis(millis)))
    }
}

impl Backoff {
    /// # Errors
    ///
    /// [`InvalidSettings`] if the longest wait is below the first, or the factor below 1 or not finite.
    pub fn new(settings: BackoffSettings) -> Result<Self, InvalidSettings> {
        if !(settings.factor.is_finite() && settings.factor >= 1.0) {
            return Err(InvalidSettings::new(
                "factor",
                format!("must be finite and at least 1, not {}", settings.factor),
            ));
        }
        if settings.max < settings.first {
            return Err(InvalidSettings::new("max", "must be at least `first`"));
        }
        Ok(Self { settings })
    }

    /// The wait before retry number `retry` (from 1). `random` lies within 0 and 1; what does not counts as the nearer
    /// of the two. `None` if the server wants no retry.
    #[must_use]
    pub fn wait(&self, retry: u32, push_back: Option<PushBack>, random: f64) -> Option<Duration> {
        match push_back {
            None => Some(self.jittered(self.unjittered(retry), random)),
            Some(PushBack::After(least)) => {
                Some(least.saturating_add(self.jittered(self.settings.first, random)))
            }
            Some(PushBack::Never) => None,
        }
    }

    fn unjittered(&self, retry: u32) -> Duration {
        // Not `f64::powi`, whose last digits are another on another machine.
        let growth = libm::pow(self.settings.factor, f64::from(retry.saturating_sub(1))).min(f64::MAX);
        let seconds = self.settings.first.as_secs_f64() * growth;
        Duration::try_from_secs_f64(seconds).map_or(self.settings.max, |wait| wait.min(self.settings.max))
    }

    fn jittered(&self, wait: Duration, random: f64) -> Duration {
        let random = if random.is_nan() { 0.0 } else { random.clamp(0.0, 1.0) };
        match self.settings.jitter {
            Jitter::None => wait,
            Jitter::Full => part_of(wait, random),
            Jitter::Equal => (wait / 2) + part_of(wait / 2, random),
            Jitter::Half => (wait / 2).saturating_add(part_of(wait, random)),
        }
    }
}

/// A part of a wait, from 0 to 1. Never more than the wait, which in floating point may be rounded up.
fn part_of(wait: Duration, part: f64) -> Duration {
    Duration::try_from_secs_f64(wait.as_secs_f64() * part).map_or(wait, |part| part.min(wait))
}

/// How a wait is spread at random.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Jitter {
    /// Not at all.
    None,
    /// Evenly over `[0, d]`.
    #[default]
    Full,
    /// Evenly over `[d/2, d]`.
    Equal,
    /// Evenly over `[d/2, 3d/2]`: the mean stays `d`.
    Half,
}

/// Settings of [`Backoff`].
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct BackoffSettings {
    /// The wait before the first retry. Default 100 ms.
    #[serde(with = "humantime_serde")]
    pub first: Duration,
    /// By how much each further wait is longer. Default 2.
    pub factor: f64,
    /// The longest wait; with [`Jitter::Half`] before the jitter. Default 20 s.
    #[serde(with = "humantime_serde")]
    pub max: Duration,
    /// How waits are spread. Default full.
    pub jitter: Jitter,
}

impl Default for BackoffSettings {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(100),
            factor: 2.0,
            max: Duration::from_secs(20),
            jitter: Jitter::Full,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn backoff(jitter: Jitter) -> Backoff {
        Backoff::new(BackoffSettings { jitter, ..BackoffSettings::default() }).unwrap()
    }

    #[test]
    fn waits_double_up_to_the_longest() {
        let backoff = backoff(Jitter::None);
        let waits: Vec<_> = (1..=10).map(|retry| backoff.wait(retry, None, 0.5).unwrap()).collect();
        assert_eq!(waits[..4], [MS(100), MS(200), MS(400), MS(800)]);
        assert_eq!(waits[8..], [MS(20_000), MS(20_000)]);
        assert_eq!(backoff.wait(u32::MAX, None, 0.5), Some(MS(20_000)));
        let at_once =
            BackoffSettings { first: Duration::ZERO, jitter: Jitter::None, ..BackoffSettings::default() };
        assert_eq!(Backoff::new(at_once).unwrap().wait(u32::MAX, None, 0.5), Some(Duration::ZERO));
    }

    #[test]
    fn full_jitter_takes_any_part_equal_jitter_the_upper_half_and_half_jitter_half_on_either_side() {
        for (random, full, equal) in [(0.0, 0, 100), (0.5, 100, 150), (1.0, 200, 200), (f64::NAN, 0, 100)] {
            assert_eq!(backoff(Jitter::Full).wait(2, None, random), Some(MS(full)));
            assert_eq!(backoff(Jitter::Equal).wait(2, None, random), Some(MS(equal)));
            assert_eq!(backoff(Jitter::Half).wait(2, None, random), Some(MS(full + 100)));
        }
    }

    #[test]
    fn the_server_is_taken_at_its_word() {
        let backoff = backoff(Jitter::Full);
        assert_eq!(backoff.wait(1, Some(PushBack::After(MS(3_000))), 0.0), Some(MS(3_000)));
        assert_eq!(backoff.wait(1, Some(PushBack::After(MS(3_000))), 1.0), Some(MS(3_100)));
        assert_eq!(backoff.wait(1, Some(PushBack::Never), 0.5), None);
    }

    #[test]
    fn push_back_is_read_as_the_protocols_say_it() {
        assert_eq!(PushBack::from_retry_after("120"), Some(PushBack::After(Duration::from_secs(120))));
        assert_eq!(PushBack::from_retry_after("Fri, 31 Dec 1999 23:59:59 GMT"), None);
        assert_eq!(PushBack::from_retry_after("-1"), None);
        assert_eq!(PushBack::from_grpc_pushback("250"), PushBack::After(MS(250)));
        assert_eq!(PushBack::from_grpc_pushback("0"), PushBack::After(Duration::ZERO));
        assert_eq!(PushBack::from_grpc_pushback("-1"), PushBack::Never);
        assert_eq!(PushBack::from_grpc_pushback("soon"), PushBack::Never);
    }

    #[test]
    fn settings_that_cannot_hold_are_named() {
        for (settings, field) in [
            (BackoffSettings { factor: 0.5, ..BackoffSettings::default() }, "factor"),
            (BackoffSettings { factor: f64::NAN, ..BackoffSettings::default() }, "factor"),
            (BackoffSettings { max: Duration::ZERO, ..BackoffSettings::default() }, "max"),
        ] {
            assert_eq!(Backoff::new(settings).unwrap_err().field, field);
        }
    }

    #[test]
    fn waits_without_end_are_no_overflow() {
        for jitter in [Jitter::None, Jitter::Full, Jitter::Equal, Jitter::Half] {
            let endless =
                BackoffSettings { first: Duration::MAX, max: Duration::MAX, factor: f64::MAX, jitter };
            let wait = Backoff::new(endless).unwrap().wait(u32::MAX, None, 1.0).unwrap();
            assert!(wait >= Duration::MAX / 2);
        }
    }

    proptest! {
        #[test]
        fn no_wait_is_longer_than_the_longest(
            first in 0_u64..10_000, extra in 0_u64..1_000_000, factor in 1.0_f64..100.0, retry: u32, random: f64,
        ) {
            for jitter in [Jitter::None, Jitter::Full, Jitter::Equal] {
                let settings = BackoffSettings { first: MS(first), factor, max: MS(first + extra), jitter };
                let wait = Backoff::new(settings).unwrap().wait(retry, None, random).unwrap();
                prop_assert!(wait <= MS(first + extra));
            }
        }
    }
}
