use std::time::Duration;

use goodput_algorithms::{Instant, InvalidSettings};
use serde::{Deserialize, Serialize};

/// Controlled delay (RFC 8289) on the time that requests wait: tells a queue that absorbs a burst from one that stands.
///
/// As in the RFC's section 5, one request at a time. Its condition that less than one packet is queued becomes "nobody
/// else waits".
#[derive(Clone, Debug, Default)]
pub(super) struct CoDel {
    first_above: Option<Instant>,
    dropping: bool,
    drop_next: Instant,
    count: u32,
    last_count: u32,
}

/// Settings of controlled delay, as RFC 8289 names them.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct CoDelSettings {
    /// The wait that may stand. Default 5 ms.
    #[serde(with = "humantime_serde")]
    pub target: Duration,
    /// For how long the wait must have been above the target before the first request is cut. Default 100 ms. Of the
    /// order of the longest usual service time.
    #[serde(with = "humantime_serde")]
    pub interval: Duration,
}

impl CoDelSettings {
    pub(super) fn check(&self) -> Result<(), InvalidSettings> {
        if self.interval.is_zero() {
            return Err(InvalidSettings::new("interval", "must be above 0"));
        }
        if self.target >= self.interval {
            return Err(InvalidSettings::new("target", "must be below `interval`"));
        }
        Ok(())
    }
}

impl Default for CoDelSettings {
    fn default() -> Self {
        Self { target: Duration::from_millis(5), interval: Duration::from_millis(100) }
    }
}

impl CoDel {
    /// Whether to cut the request that has `waited` and is about to be served at `now`. `last`: nobody else waits.
    pub(super) fn cuts(
        &mut self,
        settings: &CoDelSettings,
        waited: Duration,
        last: bool,
        now: Instant,
    ) -> bool {
        let standing = self.stands(settings, waited, last, now);
        if !standing {
            self.dropping = false;
            return false;
        }
        if self.dropping {
            if now < self.drop_next {
                return false;
            }
            self.count = self.count.saturating_add(1);
            self.drop_next = control_law(settings, self.drop_next, self.count);
            return true;
        }
        self.dropping = true;
        // Back soon after the last time: start near the rate that controlled the queue then.
        let cut_then = self.count.saturating_sub(self.last_count);
        let soon = now.since(self.drop_next) < settings.interval.saturating_mul(16);
        self.count = if cut_then > 1 && soon { cut_then } else { 1 };
        self.drop_next = control_law(settings, now, self.count);
        self.last_count = self.count;
        true
    }

    fn stands(&mut self, settings: &CoDelSettings, waited: Duration, last: bool, now: Instant) -> bool {
        if waited < settings.target || last {
            self.first_above = None;
            return false;
        }
        let since = *self.first_above.get_or_insert(now + settings.interval);
        now >= since
    }
}

fn control_law(settings: &CoDelSettings, from: Instant, count: u32) -> Instant {
    let gap = Duration::try_from_secs_f64(settings.interval.as_secs_f64() / f64::from(count).sqrt());
    // As long as a duration can be: rounded, it is a little longer.
    from + gap.unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAITED_LONG: Duration = Duration::from_millis(20);

    fn at(micros: u64) -> Instant {
        Instant::from_nanos(micros * 1_000)
    }

    /// When requests are cut, in ms, of one served each ms until `end`, all of which waited long.
    fn cuts(codel: &mut CoDel, millis: std::ops::Range<u64>) -> Vec<u64> {
        let settings = CoDelSettings::default();
        millis.filter(|&ms| codel.cuts(&settings, WAITED_LONG, false, at(ms * 1_000))).collect()
    }

    #[test]
    fn a_standing_queue_is_cut_after_an_interval_and_then_ever_more_often() {
        // 100 ms after the first long wait, then 100 ms, 100/√2, 100/√3, 100/√4, 100/√5 apart, each at the next whole
        // ms: 200, 270.7, 328.4, 378.4, 423.2.
        assert_eq!(cuts(&mut CoDel::default(), 0..430), [100, 200, 271, 329, 379, 424]);
    }

    #[test]
    fn a_burst_that_is_worked_off_within_an_interval_is_left_alone() {
        let (mut codel, settings) = (CoDel::default(), CoDelSettings::default());
        for burst in 0..20 {
            for ms in 0..99 {
                assert!(!codel.cuts(&settings, WAITED_LONG, false, at((burst * 200 + ms) * 1_000)));
            }
            assert!(!codel.cuts(&settings, Duration::from_millis(4), false, at((burst * 200 + 99) * 1_000)));
        }
    }

    #[test]
    fn the_last_one_waiting_is_never_cut() {
        let (mut codel, settings) = (CoDel::default(), CoDelSettings::default());
        assert!((0..1_000).all(|ms| !codel.cuts(&settings, WAITED_LONG, true, at(ms * 1_000))));
    }

    #[test]
    fn an_interval_without_end_is_no_overflow() {
        let endless = CoDelSettings { interval: Duration::MAX, ..CoDelSettings::default() };
        let mut codel = CoDel::default();
        for now in [Instant::ZERO, Instant::FAR_FUTURE, Instant::FAR_FUTURE] {
            codel.cuts(&endless, WAITED_LONG, false, now);
        }
    }

    #[test]
    fn a_queue_that_soon_stands_again_is_cut_at_nearly_the_old_rate() {
        let mut codel = CoDel::default();
        let first = cuts(&mut codel, 0..1_000).len() as u64;
        codel.cuts(&CoDelSettings::default(), Duration::ZERO, false, at(1_000_000));
        // Its count resumes at what it was above the count at the last start (1): the second cut comes after
        // 100/√(first − 1) ms.
        let again = cuts(&mut codel, 1_001..1_400);
        assert_eq!(again[0], 1_101);
        let gap = (100.0 / ((first - 1) as f64).sqrt()).ceil() as u64;
        assert_eq!(again[1], 1_101 + gap);
    }

    #[test]
    fn settings_that_cannot_hold_are_named() {
        let short = CoDelSettings { interval: Duration::ZERO, ..CoDelSettings::default() };
        assert_eq!(short.check().unwrap_err().field, "interval");
        let lax = CoDelSettings { target: Duration::from_secs(1), ..CoDelSettings::default() };
        assert_eq!(lax.check().unwrap_err().field, "target");
    }
}
