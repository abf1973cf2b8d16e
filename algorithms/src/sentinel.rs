use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    CannotResume, Decision, InvalidSettings, Limiter, Reason, State, Utilization, Window, WindowRule,
    parts::{Buckets, bounded, check, float, nanos},
};

/// Sentinel's system rule: once the load average is high, no more than the throughput of the last second's better
/// half times its least latency.
///
/// ```text
/// over the two halves of the last second, the one that is being filled included:
///     flight ← most successes in a half × 2 × least latency of any request
/// limit ← max(⌊flight⌋, 1) + 1 while load > load_threshold;   else max
/// ```
///
/// The one above is there because Sentinel refuses only when more than `flight` are in flight already, and more
/// than one. Latencies are cut to whole milliseconds; what takes longer than five seconds counts as five. Source:
/// `sentinel-core/…/slots/system/SystemRuleManager.java` and `…/node/StatisticNode.java` of alibaba/Sentinel. The
/// load is that of the last minute as the operating system tells it, and Sentinel's advice for the threshold is
/// 2.5 times the processors: feed the [`Utilization`] with it. Without a threshold, and while nobody feeds it, the
/// rule applies always.
///
/// **Choose it** as a last line of defence on a machine that does many things. As the only limiter choose another.
///
/// **Known to go wrong:**
/// - The load average of a minute tells of an overload when it is half over, and stays high long after.
/// - The least latency of single requests is far below what the service needs on average, so without the gate it
///   refuses at moderate load (its issue 3212).
/// - A second holds few requests of a slow service: none, and flight is what one request in five seconds would be.
#[derive(Clone, Debug)]
pub struct Sentinel {
    settings: SentinelSettings,
    utilization: Utilization,
    buckets: Buckets,
    /// The resolution of latencies.
    unit_ns: u64,
    /// How many of those the greatest latency takes.
    greatest: u64,
    flight: Flight,
    limit: usize,
}

/// What follows from the buckets, which most requests leave as they were.
#[derive(Clone, Copy, Debug)]
struct Flight {
    /// The most successes in a bucket, and the least latency.
    extremes: (u64, u64),
    requests: f64,
    /// The limit while the rule applies.
    limit: f64,
}

impl Sentinel {
    /// A limiter that is never told how busy the machine is.
    ///
    /// # Errors
    ///
    /// As [`Sentinel::with_utilization`].
    pub fn new(settings: SentinelSettings) -> Result<Self, InvalidSettings> {
        Self::with_utilization(settings, Utilization::unknown())
    }

    /// A limiter that is told by `utilization` what the load average is.
    ///
    /// # Errors
    ///
    /// [`InvalidSettings`] names the field that contradicts another or cannot hold.
    pub fn with_utilization(
        settings: SentinelSettings,
        utilization: Utilization,
    ) -> Result<Self, InvalidSettings> {
        InvalidSettings::check_bounds(settings.min, settings.min, settings.max)?;
        let threshold = settings.load_threshold.unwrap_or(0.0);
        check(threshold.is_finite() && threshold >= 0.0, "load_threshold", || {
            format!("must be finite and at least 0, not {threshold}")
        })?;
        check(settings.buckets >= 1, "buckets", || "must be at least 1, not 0".into())?;
        check(nanos(settings.window) >= settings.buckets as u64, "window", || {
            "must give every bucket a nanosecond or more".into()
        })?;
        check(settings.resolution > Duration::ZERO, "resolution", || "must be longer than zero".into())?;
        check(settings.greatest_latency >= settings.resolution, "greatest_latency", || {
            "must be at least `resolution`".into()
        })?;
        let buckets = Buckets::new(nanos(settings.window), settings.buckets);
        let unit_ns = nanos(settings.resolution);
        let greatest = nanos(settings.greatest_latency) / unit_ns;
        let flight = Flight { extremes: (0, 0), requests: 0.0, limit: 0.0 };
        let limit = settings.max;
        Ok(Self { limit, buckets, unit_ns, greatest, flight, utilization, settings })
    }

    fn flight(&self) -> Flight {
        let (mut most, mut least) = (1, self.greatest);
        for bucket in self.buckets.all() {
            most = most.max(bucket.ended);
            least = if bucket.timed > 0 { least.min(bucket.latency_min) } else { least };
        }
        let extremes = (most, least.max(1));
        if extremes == self.flight.extremes { self.flight } else { self.flight_of(extremes) }
    }

    fn flight_of(&self, extremes: (u64, u64)) -> Flight {
        let (most, least) = extremes;
        let requests = float(most) * self.buckets.per_second() * float(least) * float(self.unit_ns) / 1e9;
        Flight { extremes, requests, limit: requests.floor().max(1.0) + 1.0 }
    }
}

impl Limiter for Sentinel {
    fn limit(&self) -> usize {
        self.limit
    }

    fn next_window(&self) -> WindowRule {
        WindowRule::EACH
    }

    fn update(&mut self, window: &Window) -> Decision {
        self.buckets.advance(window.closed);
        let passed = [&window.successes, &window.overloads, &window.failures];
        let count = passed.iter().fold(0_u64, |sum, passed| sum.saturating_add(passed.count));
        if count > 0 {
            let least = passed.iter().map(|passed| passed.min_ns).min().unwrap_or(0) / self.unit_ns;
            self.buckets.add(count, count, least);
        }
        let load = self.utilization.value();
        let applies = match (self.settings.load_threshold, load) {
            (Some(threshold), Some(load)) => load > threshold,
            _ => true,
        };
        self.flight = self.flight();
        let wanted = if applies { self.flight.limit } else { self.settings.max as f64 };
        self.limit = bounded(wanted, self.settings.min, self.settings.max);
        let reason = if applies { Reason::Overload } else { Reason::Holding };
        Decision::new(self.limit, reason)
            .with("flight", self.flight.requests)
            .with("load", load.unwrap_or(0.0))
    }

    fn state(&self) -> State {
        State::new().with("limit", self.limit as f64).with("flight", self.flight().requests)
    }

    /// Takes the limit until the next request ends: what it rests on is measured within a second.
    fn resume(&mut self, state: &State) -> Result<(), CannotResume> {
        let limit = state.number_within("limit", self.settings.min as f64, self.settings.max as f64)?;
        self.limit = limit as usize;
        Ok(())
    }
}

/// Settings of [`Sentinel`].
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct SentinelSettings {
    /// The least limit. Default 1.
    pub min: usize,
    /// The limit while nothing is refused. Published: none. Default 1,000,000.
    pub max: usize,
    /// The load average above which the rule applies, at least 0; none for always. Published: none, with the advice of
    /// 2.5 times the processors. Default none.
    pub load_threshold: Option<f64>,
    /// How far the buckets reach back. Default 1 s.
    #[serde(with = "humantime_serde")]
    pub window: Duration,
    /// Buckets in the window. Default 2.
    pub buckets: usize,
    /// Latencies are cut to whole multiples of it, and at least one. Default 1 ms.
    #[serde(with = "humantime_serde")]
    pub resolution: Duration,
    /// Longer latencies count as this, and so does a window without any. Default 5 s.
    #[serde(with = "humantime_serde")]
    pub greatest_latency: Duration,
}

impl Default for SentinelSettings {
    fn default() -> Self {
        Self {
            min: 1,
            max: 1_000_000,
            load_threshold: None,
            window: Duration::from_secs(1),
            buckets: 2,
            resolution: Duration::from_millis(1),
            greatest_latency: Duration::from_secs(5),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Instant, Latencies,
        parts::trials::{self, success},
    };

    const MS: u64 = 1_000_000;

    fn limiter(settings: SentinelSettings, cpu: &Utilization) -> Sentinel {
        Sentinel::with_utilization(settings, cpu.clone()).unwrap()
    }

    fn answered(at_ms: u64, count: u64, latency_ms: u64) -> Window {
        let latency_ns = latency_ms * MS;
        Window {
            successes: Latencies {
                count,
                sum_ns: count * latency_ns,
                min_ns: latency_ns,
                ..Latencies::one(latency_ns)
            },
            closed: Instant::from_nanos(at_ms * MS),
            ..Window::EMPTY
        }
    }

    #[test]
    fn the_flight_is_the_better_half_second_times_the_least_latency() {
        let mut sentinel = limiter(SentinelSettings::default(), &Utilization::unknown());
        sentinel.update(&answered(1_100, 100, 30));
        // 100 × 2 × 30 ms = 6; then 250 × 2 × 20 ms = 10.
        assert_eq!(sentinel.limit(), 7);
        assert_eq!(sentinel.update(&answered(1_600, 250, 20)).limit, 11);
        // The first half second has left: 250 × 2 × 20 ms again.
        assert_eq!(sentinel.update(&answered(2_100, 1, 40)).limit, 11);
        // And the second: 1 × 2 × 40 ms, but more than one may always run.
        assert_eq!(sentinel.update(&answered(2_600, 1, 50)).limit, 2);
    }

    #[test]
    fn it_applies_only_above_the_threshold() {
        let load = Utilization::unknown();
        let settings = SentinelSettings { load_threshold: Some(10.0), ..Default::default() };
        let mut sentinel = limiter(settings, &load);
        load.set(10.0).unwrap();
        assert_eq!(sentinel.update(&answered(1_100, 100, 30)).limit, 1_000_000);
        load.set(10.1).unwrap();
        assert_eq!(sentinel.update(&answered(1_101, 0, 0)).limit, 7);
    }

    #[test]
    fn without_measurements_latency_counts_as_five_seconds() {
        let mut sentinel = limiter(SentinelSettings::default(), &Utilization::unknown());
        assert_eq!(sentinel.update(&Window::EMPTY).limit, 11);
    }

    #[test]
    fn no_windows_take_it_out_of_its_bounds() {
        let settings = SentinelSettings { max: 500, ..Default::default() };
        let build = || Box::new(limiter(settings.clone(), &Utilization::unknown())) as _;
        trials::survives_anything(&build, 1, 500);
    }

    #[test]
    fn it_leaves_its_floor_and_resumes() {
        let mut sentinel = limiter(SentinelSettings::default(), &Utilization::unknown());
        sentinel.limit = 1;
        trials::leaves_its_floor(&mut sentinel, 1, 5_000);
        sentinel.update(&success(1, 1, 1));
        trials::resumes(&sentinel, &mut limiter(SentinelSettings::default(), &Utilization::unknown()));
    }

    #[test]
    fn contradictions_are_named() {
        let field = |settings| Sentinel::new(settings).unwrap_err().field;
        let threshold = Some(f64::NAN);
        assert_eq!(
            field(SentinelSettings { load_threshold: threshold, ..Default::default() }),
            "load_threshold"
        );
        let greatest_latency = Duration::ZERO;
        assert_eq!(field(SentinelSettings { greatest_latency, ..Default::default() }), "greatest_latency");
    }
}
