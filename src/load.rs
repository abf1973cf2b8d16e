//! How loaded the service is, and which optional work to leave undone because of it.
//!
//! Before a request is refused, what it asks for can be made cheaper. [`Load`] turns what a gate looked like
//! ([`LoadSample`]) into one number from 0 to 1 that rises fast and falls slowly. [`Degradation`] turns that number into
//! a list of features that are off, in an order of one's own, with hysteresis.

use std::time::Duration;

use goodput_algorithms::{Instant, InvalidSettings};
use serde::{Deserialize, Serialize};

use crate::share::Share;

/// What a gate looked like over a short time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LoadSample {
    /// Requests in flight as a part of the limit, mean over the time.
    pub limit_use: f64,
    /// Requests refused as a part of those that asked.
    pub refused: f64,
    /// How long the oldest one waiting has waited.
    pub queue_age: Duration,
}

/// A load signal: from 0 (nothing to do) over ½ (the limit is used up) to 1 (much is refused, or waits for long).
///
/// Half of it is the use of the limit; the other half is refusals or the age of the queue, whichever is worse, as a
/// part of what counts as full ([`LoadSettings`]). It rises fast and falls slowly, by a straight line, so that optional
/// work does not come and go with every gust.
#[derive(Clone, Debug)]
pub struct Load {
    settings: LoadSettings,
    value: f64,
    updated: Option<Instant>,
}

impl Load {
    /// # Errors
    ///
    /// [`InvalidSettings`] if a time or the share is zero.
    pub fn new(settings: LoadSettings) -> Result<Self, InvalidSettings> {
        settings.check()?;
        Ok(Self { settings, value: 0.0, updated: None })
    }

    /// Follows a new sample, and answers with the signal. Quantities that are not numbers count as zero.
    pub fn follow(&mut self, sample: LoadSample, now: Instant) -> f64 {
        let updated = *self.updated.get_or_insert(now);
        let elapsed = now.since(updated).as_secs_f64();
        let target = self.target(sample);
        let rise = elapsed / self.settings.rise.as_secs_f64();
        let fall = elapsed / self.settings.fall.as_secs_f64();
        self.value = target.clamp((self.value - fall).max(0.0), (self.value + rise).min(1.0));
        self.updated = Some(updated.max(now));
        self.value
    }

    /// The signal, from 0 to 1.
    #[must_use]
    pub const fn value(&self) -> f64 {
        self.value
    }

    fn target(&self, sample: LoadSample) -> f64 {
        let part = |value: f64| if value.is_nan() { 0.0 } else { value.clamp(0.0, 1.0) };
        let refused = part(sample.refused / self.settings.refused_full.as_f64());
        let age = part(sample.queue_age.as_secs_f64() / self.settings.queue_age_full.as_secs_f64());
        0.5 * part(sample.limit_use) + 0.5 * refused.max(age)
    }
}

/// Settings of [`Load`].
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct LoadSettings {
    /// The part of the requests whose refusal counts as full. Default 0.2.
    pub refused_full: Share,
    /// The age of the queue that counts as full. Default 1 s.
    #[serde(with = "humantime_serde")]
    pub queue_age_full: Duration,
    /// The time from 0 to 1 at the fastest. Default 1 s.
    #[serde(with = "humantime_serde")]
    pub rise: Duration,
    /// The time from 1 to 0 at the fastest. Default 30 s.
    #[serde(with = "humantime_serde")]
    pub fall: Duration,
}

impl LoadSettings {
    fn check(&self) -> Result<(), InvalidSettings> {
        if self.refused_full == Share::NONE {
            return Err(InvalidSettings::new("refused_full", "must be above 0"));
        }
        for (field, time) in
            [("queue_age_full", self.queue_age_full), ("rise", self.rise), ("fall", self.fall)]
        {
            if time.is_zero() {
                return Err(InvalidSettings::new(field, "must be above 0"));
            }
        }
        Ok(())
    }
}

impl Default for LoadSettings {
    fn default() -> Self {
        Self {
            refused_full: Share::of_hundred(20),
            queue_age_full: Duration::from_secs(1),
            rise: Duration::from_secs(1),
            fall: Duration::from_secs(30),
        }
    }
}

/// Optional work, in the order in which it goes as load rises.
///
/// ```
/// use goodput::load::{Degradation, DegradationSettings};
///
/// let mut optional = Degradation::new(DegradationSettings {
///     features: vec!["recommendations".into(), "related".into(), "images".into()],
///     ..DegradationSettings::default()
/// })
/// .unwrap();
/// optional.follow(0.55);
/// assert!(!optional.allows("recommendations"));
/// assert!(optional.allows("images"));
/// ```
#[derive(Clone, Debug)]
pub struct Degradation {
    settings: DegradationSettings,
    /// How many of the features are off, from the first.
    off: usize,
}

impl Degradation {
    /// # Errors
    ///
    /// [`InvalidSettings`] if a feature is named twice, or the thresholds cross.
    pub fn new(settings: DegradationSettings) -> Result<Self, InvalidSettings> {
        settings.check()?;
        Ok(Self { settings, off: 0 })
    }

    /// Follows the load signal. Features go one by one as it rises, and come back in reverse order when it has fallen
    /// by the hysteresis below the threshold at which they went.
    pub fn follow(&mut self, load: f64) {
        while self.off < self.settings.features.len() && load >= self.threshold(self.off) {
            self.off += 1;
        }
        while self.off > 0 && load < self.threshold(self.off - 1) - self.settings.hysteresis.as_f64() {
            self.off -= 1;
        }
    }

    /// Whether to do this work now. What is not listed is always done.
    #[must_use]
    pub fn allows(&self, feature: &str) -> bool {
        !self.off().iter().any(|off| off == feature)
    }

    /// What is not done at present.
    #[must_use]
    pub fn off(&self) -> &[String] {
        &self.settings.features[..self.off]
    }

    /// Evenly spread from `from` to `to`.
    fn threshold(&self, index: usize) -> f64 {
        let (from, to) = (self.settings.from.as_f64(), self.settings.to.as_f64());
        let steps = self.settings.features.len().saturating_sub(1).max(1);
        from + (to - from) * index as f64 / steps as f64
    }
}

/// Settings of [`Degradation`].
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct DegradationSettings {
    /// The features, from the first to go to the last.
    pub features: Vec<String>,
    /// The load at which the first goes. Default 0.55: the limit is used up, and something is refused.
    pub from: Share,
    /// The load at which the last goes. Default 0.95.
    pub to: Share,
    /// How far the load must fall below the threshold before a feature comes back. Default 0.15.
    pub hysteresis: Share,
}

impl DegradationSettings {
    fn check(&self) -> Result<(), InvalidSettings> {
        if self.from > self.to {
            return Err(InvalidSettings::new("from", "must be at most `to`"));
        }
        if self.hysteresis >= self.from {
            return Err(InvalidSettings::new("hysteresis", "must be below `from`: nothing would come back"));
        }
        for (index, feature) in self.features.iter().enumerate() {
            if self.features[..index].contains(feature) {
                return Err(InvalidSettings::new("features", format!("must not name `{feature}` twice")));
            }
        }
        Ok(())
    }
}

impl Default for DegradationSettings {
    fn default() -> Self {
        Self {
            features: Vec::new(),
            from: Share::of_hundred(55),
            to: Share::of_hundred(95),
            hysteresis: Share::of_hundred(15),
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

    fn settled(sample: LoadSample) -> f64 {
        let mut load = Load::new(LoadSettings::default()).unwrap();
        load.follow(sample, at(0));
        load.follow(sample, at(100_000))
    }

    #[test]
    fn half_of_the_signal_is_the_limit_and_half_what_it_cannot_hold() {
        let full = LoadSample { limit_use: 1.0, ..LoadSample::default() };
        assert_eq!(settled(LoadSample::default()), 0.0);
        assert_eq!(settled(LoadSample { limit_use: 0.6, ..full }), 0.3);
        assert_eq!(settled(full), 0.5);
        assert_eq!(settled(LoadSample { refused: 0.1, ..full }), 0.75);
        assert_eq!(settled(LoadSample { queue_age: Duration::from_millis(800), ..full }), 0.9);
        assert_eq!(settled(LoadSample { refused: 0.9, ..full }), 1.0);
    }

    #[test]
    fn it_rises_in_a_second_and_falls_in_thirty() {
        let worst = LoadSample { limit_use: 1.0, refused: 1.0, queue_age: Duration::ZERO };
        let mut load = Load::new(LoadSettings::default()).unwrap();
        load.follow(worst, at(0));
        assert!((load.follow(worst, at(500)) - 0.5).abs() < 1e-9);
        assert_eq!(load.follow(worst, at(1_000)), 1.0);
        assert!((load.follow(LoadSample::default(), at(16_000)) - 0.5).abs() < 1e-9);
        assert_eq!(load.follow(LoadSample::default(), at(31_000)), 0.0);
    }

    fn degradation() -> Degradation {
        let features = ["first", "second", "third"].map(String::from).to_vec();
        Degradation::new(DegradationSettings { features, ..DegradationSettings::default() }).unwrap()
    }

    #[test]
    fn features_go_in_order_and_come_back_in_reverse() {
        let mut optional = degradation();
        for (load, off) in
            [(0.5, 0), (0.55, 1), (0.74, 1), (0.75, 2), (0.95, 3), (0.81, 3), (0.79, 2), (0.59, 1), (0.39, 0)]
        {
            optional.follow(load);
            assert_eq!(optional.off().len(), off, "at {load}");
        }
    }

    #[test]
    fn a_load_that_wavers_at_a_threshold_switches_once() {
        let mut optional = degradation();
        let mut switches = 0;
        for step in 0..100 {
            let before = optional.off().len();
            optional.follow(if step % 2 == 0 { 0.56 } else { 0.50 });
            switches += usize::from(before != optional.off().len());
        }
        assert_eq!(switches, 1);
    }

    #[test]
    fn settings_that_cannot_hold_are_named() {
        for (settings, field) in [
            (LoadSettings { refused_full: Share::NONE, ..LoadSettings::default() }, "refused_full"),
            (LoadSettings { rise: Duration::ZERO, ..LoadSettings::default() }, "rise"),
        ] {
            assert_eq!(Load::new(settings).unwrap_err().field, field);
        }
        let twice = vec![String::from("a"), String::from("a")];
        for (settings, field) in [
            (DegradationSettings { features: twice, ..DegradationSettings::default() }, "features"),
            (DegradationSettings { from: Share::ALL, ..DegradationSettings::default() }, "from"),
            (DegradationSettings { hysteresis: Share::ALL, ..DegradationSettings::default() }, "hysteresis"),
        ] {
            assert_eq!(Degradation::new(settings).unwrap_err().field, field);
        }
    }

    proptest! {
        #[test]
        fn the_signal_stays_within_zero_and_one(
            samples in prop::collection::vec((any::<f64>(), any::<f64>(), any::<u64>(), any::<u64>()), 0..50),
        ) {
            let mut load = Load::new(LoadSettings::default()).unwrap();
            for (limit_use, refused, age, now) in samples {
                let sample = LoadSample { limit_use, refused, queue_age: Duration::from_nanos(age) };
                let value = load.follow(sample, Instant::from_nanos(now));
                prop_assert!((0.0..=1.0).contains(&value));
            }
        }
    }
}
