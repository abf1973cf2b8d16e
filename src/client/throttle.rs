use std::time::Duration;

use goodput_algorithms::{Instant, InvalidSettings};
use serde::{Deserialize, Serialize};

use crate::share::Share;

const BUCKETS: usize = 120;

/// Holds requests back at the client while most of what it sends is refused (SRE book, "Handling Overload").
///
/// With `R` attempts of known outcome in the window and `A` of them accepted, an attempt is held back with probability
/// `max(0, (R − K·A) / (R + 1))`, at most [`ThrottleSettings::max_rejection`], and never for longer than
/// [`ThrottleSettings::probe_every`] on end. What is held back counts as an attempt that was not accepted, so a
/// client that does not slow down is held back the more.
///
/// [`Throttle::admits`] draws by a given random number; [`Throttle::admits_by_debt`] adds the probabilities up and
/// holds back whenever they reach one, which needs no randomness and repeats exactly. Use one or the other.
#[derive(Clone, Debug)]
pub struct Throttle {
    settings: ThrottleSettings,
    buckets: Box<[Bucket; BUCKETS]>,
    /// The number of the newest bucket since the clock's origin.
    newest: u64,
    known: u64,
    accepted: u64,
    debt: f64,
    last_admitted: Option<Instant>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    known: u64,
    accepted: u64,
}

impl Throttle {
    /// # Errors
    ///
    /// [`InvalidSettings`] unless `K` is at least 1 and finite, the window at least 120 ns, and the rejection below 1.
    pub fn new(settings: ThrottleSettings) -> Result<Self, InvalidSettings> {
        settings.check()?;
        Ok(Self {
            settings,
            buckets: Box::new([Bucket::default(); BUCKETS]),
            newest: 0,
            known: 0,
            accepted: 0,
            debt: 0.0,
            last_admitted: None,
        })
    }

    /// Whether to send an attempt now. `random` is drawn evenly from `[0, 1)`. If not, the attempt is counted.
    pub fn admits(&mut self, random: f64, now: Instant) -> bool {
        let rejected = random < self.rejection(now);
        self.decide(rejected, now)
    }

    /// Whether to send an attempt now, without randomness. If not, the attempt is counted.
    pub fn admits_by_debt(&mut self, now: Instant) -> bool {
        self.debt += self.rejection(now);
        let rejected = self.debt >= 1.0;
        if rejected {
            self.debt -= 1.0;
        }
        self.decide(rejected, now)
    }

    /// The outcome of an attempt that was sent: accepted, or refused, timed out or failed by overload.
    pub fn record(&mut self, accepted: bool, now: Instant) {
        self.follow_time(now);
        let bucket = &mut self.buckets[(self.newest % BUCKETS as u64) as usize];
        bucket.known += 1;
        bucket.accepted += u64::from(accepted);
        self.known += 1;
        self.accepted += u64::from(accepted);
    }

    /// The probability of being held back now.
    pub fn rejection(&mut self, now: Instant) -> f64 {
        self.follow_time(now);
        let known = self.known as f64;
        let excess = (known - self.settings.k * self.accepted as f64) / (known + 1.0);
        excess.max(0.0).min(self.settings.max_rejection.as_f64())
    }

    fn decide(&mut self, rejected: bool, now: Instant) -> bool {
        let since = *self.last_admitted.get_or_insert(now);
        let probe = self.settings.probe_every.is_some_and(|every| now.since(since) >= every);
        if rejected && !probe {
            self.record(false, now);
            return false;
        }
        self.last_admitted = Some(now);
        true
    }

    fn follow_time(&mut self, now: Instant) {
        let bucket_ns = (self.settings.window.as_nanos() / BUCKETS as u128).max(1);
        let newest = (u128::from(now.nanos()) / bucket_ns) as u64;
        let passed = newest.saturating_sub(self.newest).min(BUCKETS as u64);
        for step in 1..=passed {
            let bucket = &mut self.buckets[((self.newest + step) % BUCKETS as u64) as usize];
            let Bucket { known, accepted } = std::mem::take(bucket);
            self.known -= known;
            self.accepted -= accepted;
        }
        self.newest = self.newest.max(newest);
    }
}

/// Settings of [`Throttle`].
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct ThrottleSettings {
    /// Attempts that may be sent for each one that is accepted. At least 1. Default 2.
    pub k: f64,
    /// For how long outcomes are remembered. Default 2 min.
    #[serde(with = "humantime_serde")]
    pub window: Duration,
    /// The highest probability of being held back. Below 1: something must be sent to see that the server is back.
    /// Default 0.9.
    pub max_rejection: Share,
    /// One attempt is sent at least each such time. In a config file `"never"` for no such promise. Default 1 s.
    #[serde(with = "crate::never")]
    pub probe_every: Option<Duration>,
}

impl ThrottleSettings {
    fn check(&self) -> Result<(), InvalidSettings> {
        if !(self.k.is_finite() && self.k >= 1.0) {
            return Err(InvalidSettings::new("k", format!("must be finite and at least 1, not {}", self.k)));
        }
        if self.window < Duration::from_nanos(BUCKETS as u64) {
            return Err(InvalidSettings::new("window", "must be at least 120 ns"));
        }
        if self.max_rejection == Share::ALL {
            return Err(InvalidSettings::new(
                "max_rejection",
                "must be below 1: nothing would ever be sent again",
            ));
        }
        if self.probe_every.is_some_and(|every| every.is_zero()) {
            return Err(InvalidSettings::new("probe_every", "must be above 0"));
        }
        Ok(())
    }
}

impl Default for ThrottleSettings {
    fn default() -> Self {
        Self {
            k: 2.0,
            window: Duration::from_secs(120),
            max_rejection: Share::of_hundred(90),
            probe_every: Some(Duration::from_secs(1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn while_at_least_half_is_accepted_nothing_is_held_back() {
        let mut throttle = Throttle::new(ThrottleSettings::default()).unwrap();
        for attempt in 0..1_000 {
            assert!(throttle.admits(0.0, at(attempt)));
            throttle.record(attempt % 2 == 0, at(attempt));
        }
    }

    #[test]
    fn the_probability_is_that_of_the_book() {
        let mut throttle = Throttle::new(ThrottleSettings::default()).unwrap();
        for attempt in 0..99 {
            throttle.record(attempt < 20, at(0));
        }
        // (99 − 2 · 20) / 100
        assert!((throttle.rejection(at(0)) - 0.59).abs() < 1e-12);
        assert!(!throttle.clone().admits(0.58, at(0)));
        assert!(throttle.clone().admits(0.60, at(0)));
    }

    #[test]
    fn by_debt_the_held_back_part_is_the_same_and_needs_no_randomness() {
        let settings = ThrottleSettings { probe_every: None, ..ThrottleSettings::default() };
        let mut throttle = Throttle::new(settings).unwrap();
        let sent = (0..100_000)
            .filter(|&attempt| {
                let now = at(attempt / 10);
                let sent = throttle.admits_by_debt(now);
                if sent {
                    throttle.record(attempt % 10 == 0, now);
                }
                sent
            })
            .count();
        // What is held back counts, so the fixed point of p = 1 − K·A/R with A/R = (1 − p)/10 is p ≥ 0.9: the cap.
        assert!((9_900..=10_300).contains(&sent), "{sent}");
    }

    #[test]
    fn something_is_always_sent() {
        let mut throttle = Throttle::new(ThrottleSettings::default()).unwrap();
        for _ in 0..10_000 {
            throttle.record(false, at(0));
        }
        // One attempt each 100 ms, each with the worst luck.
        let sent = (0..600).filter(|&attempt| throttle.admits(0.0, at(attempt * 100))).count();
        assert!((59..=61).contains(&sent), "{sent}");
    }

    #[test]
    fn what_is_older_than_the_window_is_forgotten_even_without_traffic() {
        let mut throttle = Throttle::new(ThrottleSettings::default()).unwrap();
        for _ in 0..10_000 {
            throttle.record(false, at(500));
        }
        assert!(throttle.rejection(at(119_000)) > 0.8);
        assert!(throttle.rejection(at(120_000)) == 0.0);
        assert!(throttle.rejection(at(u64::MAX / 2_000_000)) == 0.0);
    }

    #[test]
    fn settings_that_cannot_hold_are_named() {
        for (settings, field) in [
            (ThrottleSettings { k: 0.5, ..ThrottleSettings::default() }, "k"),
            (ThrottleSettings { k: f64::NAN, ..ThrottleSettings::default() }, "k"),
            (ThrottleSettings { window: Duration::ZERO, ..ThrottleSettings::default() }, "window"),
            (ThrottleSettings { max_rejection: Share::ALL, ..ThrottleSettings::default() }, "max_rejection"),
            (
                ThrottleSettings { probe_every: Some(Duration::ZERO), ..ThrottleSettings::default() },
                "probe_every",
            ),
        ] {
            assert_eq!(Throttle::new(settings).unwrap_err().field, field);
        }
    }

    proptest! {
        #[test]
        fn the_probability_stays_within_zero_and_the_cap(
            steps in prop::collection::vec((any::<bool>(), 0_u64..10_000), 0..300), random in 0.0_f64..1.0,
        ) {
            let mut throttle = Throttle::new(ThrottleSettings::default()).unwrap();
            let mut now = 0;
            for (accepted, gap) in steps {
                now += gap;
                if throttle.admits(random, at(now)) {
                    throttle.record(accepted, at(now));
                }
                let rejection = throttle.rejection(at(now));
                prop_assert!((0.0..=0.9).contains(&rejection));
                prop_assert!(throttle.accepted <= throttle.known);
            }
        }
    }
}
