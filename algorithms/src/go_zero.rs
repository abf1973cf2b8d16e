use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    CannotResume, Decision, Instant, InvalidSettings, Limiter, Reason, State, Utilization, Window,
    WindowRule,
    parts::{Buckets, bounded, check, in_flight, mean_latency_ns, nanos},
};

/// go-zero's shedder: once the processors are busy, no more than the best throughput seen times the best latency
/// seen.
///
/// ```text
/// over the full buckets of the last `window`, and B buckets in a second:
///     flight ← max(1, most passes in a bucket × B × least mean latency of a bucket)
///     f ← clamp((1 − cpu) / (1 − cpu_threshold), least_factor, 1)
/// hot: cpu ≥ cpu_threshold, or refused something and cpu ≥ cpu_threshold within the last cool_off
/// limit ← ⌊flight × f⌋ + 1 while hot and the average in flight is above flight × f,   else max
/// average in flight ← 0.9 × average + 0.1 × in flight, with every request that ends
/// ```
///
/// The one above is there because go-zero refuses only when more than `flight × f` are in flight already.
/// Latencies are rounded up to whole milliseconds, and means of buckets to the nearest. Source:
/// `core/load/adaptiveshedder.go` of zeromicro/go-zero. Its processor use is smoothed, keeping 0.95 of the old
/// value every 250 ms: feed the [`Utilization`] so with [`Utilization::blend`]. While nobody feeds it, the machine
/// counts as hot and `f` as 1: this is the rule without the gate. Without `cpu_threshold` the gate is off,
/// whatever is fed.
///
/// In flight is taken as the mean over the window, since a limiter is not told what it is at an instant.
///
/// **Choose it** where work is bound by the processor and steady, and a floor of refusals at full use is the
/// point. **Do not choose it** for services that wait for others: their processors are never busy, so it never
/// acts.
///
/// **Known to go wrong:**
/// - The most in a bucket is a biased throughput: completions that bunch look like capacity, the more so the fewer
///   there are in a bucket.
/// - The least latency of five seconds is that of a queue if there was one all the time.
/// - Services faster than a millisecond count as a millisecond, so the rule lets too much through.
/// - Errors other than overload count as passes.
/// - The average opens the gate again and again, and all that waited come in at once.
#[derive(Clone, Debug)]
pub struct GoZero {
    settings: GoZeroSettings,
    utilization: Utilization,
    buckets: Buckets,
    /// The resolution of latencies.
    unit_ns: u64,
    /// Of the full buckets, before the factor.
    flight: f64,
    average_in_flight: f64,
    refused_recently: bool,
    last_hot: Option<Instant>,
    limit: usize,
}

impl GoZero {
    /// A limiter that is never told how busy the machine is.
    ///
    /// # Errors
    ///
    /// As [`GoZero::with_utilization`].
    pub fn new(settings: GoZeroSettings) -> Result<Self, InvalidSettings> {
        Self::with_utilization(settings, Utilization::unknown())
    }

    /// A limiter that is told by `utilization` how busy the processors are.
    ///
    /// # Errors
    ///
    /// [`InvalidSettings`] names the field that contradicts another or cannot hold.
    pub fn with_utilization(
        settings: GoZeroSettings,
        utilization: Utilization,
    ) -> Result<Self, InvalidSettings> {
        settings.check()?;
        let mut limiter = Self {
            utilization,
            buckets: Buckets::new(nanos(settings.window), settings.buckets),
            unit_ns: nanos(settings.resolution),
            flight: 1.0,
            average_in_flight: 0.0,
            refused_recently: false,
            last_hot: None,
            limit: settings.max,
            settings,
        };
        limiter.measure();
        Ok(limiter)
    }

    fn measure(&mut self) {
        let (most, least) = self.buckets.extremes_of_full();
        // The least of the rounded is the rounded least.
        let least_s = least.map_or(UNMEASURED_LATENCY_S, |least| {
            (least.round() * self.settings.resolution.as_secs_f64()).min(UNMEASURED_LATENCY_S)
        });
        self.flight = (most.max(1) as f64 * least_s * self.buckets.per_second()).max(1.0);
    }

    fn count(&mut self, window: &Window) {
        for passed in [&window.successes, &window.failures] {
            if passed.count > 0 {
                self.buckets.add(passed.count, passed.count, mean_latency_ns(passed).div_ceil(self.unit_ns));
            }
        }
        let ended = [window.successes.count, window.overloads.count, window.failures.count];
        let ended = ended.into_iter().fold(0, u64::saturating_add);
        let in_flight = (in_flight(window) - 1.0).max(0.0);
        // After many the average is where they are.
        let (kept, gained) = AFTER[ended.min(MANY as u64) as usize];
        self.average_in_flight = self.average_in_flight * kept + in_flight * gained;
        self.refused_recently |= window.refused > 0;
    }

    fn is_hot(&mut self, cpu: Option<f64>, now: Instant) -> bool {
        let (Some(threshold), Some(cpu)) = (self.settings.cpu_threshold, cpu) else { return true };
        if cpu >= threshold {
            self.last_hot = Some(now);
            return true;
        }
        let Some(last_hot) = self.last_hot.filter(|_| self.refused_recently) else { return false };
        if now.since(last_hot) < self.settings.cool_off {
            return true;
        }
        self.refused_recently = false;
        false
    }

    fn factor(&self, cpu: Option<f64>) -> f64 {
        let (Some(threshold), Some(cpu)) = (self.settings.cpu_threshold, cpu) else { return 1.0 };
        ((1.0 - cpu) / (1.0 - threshold)).clamp(self.settings.least_factor, 1.0)
    }
}

const MANY: usize = 64;

/// What so many steps of `average * 0.9 + value * 0.1` leave of the average, and take of the value.
const AFTER: [(f64, f64); MANY + 1] = {
    let mut after = [(1.0, 0.0); MANY + 1];
    let mut steps = 1;
    while steps <= MANY {
        let (kept, gained) = after[steps - 1];
        after[steps] = (kept * 0.9, gained * 0.9 + 0.1);
        steps += 1;
    }
    after
};

/// What a bucket without requests counts as.
const UNMEASURED_LATENCY_S: f64 = 1.0;

impl Limiter for GoZero {
    fn limit(&self) -> usize {
        self.limit
    }

    fn next_window(&self) -> WindowRule {
        WindowRule::EACH
    }

    fn update(&mut self, window: &Window) -> Decision {
        if self.buckets.advance(window.closed) {
            self.measure();
        }
        self.count(window);
        let cpu = self.utilization.value();
        let hot = self.is_hot(cpu, window.closed);
        let flight = self.flight * self.factor(cpu);
        let shedding = hot && self.average_in_flight > flight;
        let wanted = if shedding { flight.floor() + 1.0 } else { self.settings.max as f64 };
        self.limit = bounded(wanted, self.settings.min, self.settings.max);
        let reason = if shedding { Reason::Overload } else { Reason::Holding };
        Decision::new(self.limit, reason)
            .with("flight", flight)
            .with("average_in_flight", self.average_in_flight)
            .with("utilization", cpu.unwrap_or(1.0))
            .with("hot", f64::from(u8::from(hot)))
    }

    fn state(&self) -> State {
        State::new()
            .with("limit", self.limit as f64)
            .with("flight", self.flight)
            .with("average_in_flight", self.average_in_flight)
    }

    /// Takes the limit until the next request ends: what it rests on is measured within seconds.
    fn resume(&mut self, state: &State) -> Result<(), CannotResume> {
        let limit = state.number_within("limit", self.settings.min as f64, self.settings.max as f64)?;
        self.limit = limit as usize;
        Ok(())
    }
}

/// Settings of [`GoZero`].
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct GoZeroSettings {
    /// The least limit. Default 1.
    pub min: usize,
    /// The limit while nothing is refused. Published: none. Default 1,000,000.
    pub max: usize,
    /// The share of busy processors from which the rule applies, at least 0 and below 1; none for always. Default 0.9.
    pub cpu_threshold: Option<f64>,
    /// The least share of the flight that is let through, however busy the processors, above 0 and at most 1.
    /// Default 0.1.
    pub least_factor: f64,
    /// How long the rule applies after the processors were last busy, if something was refused. Default 1 s.
    #[serde(with = "humantime_serde")]
    pub cool_off: Duration,
    /// How far the buckets reach back. Default 5 s.
    #[serde(with = "humantime_serde")]
    pub window: Duration,
    /// Buckets in the window. Default 50.
    pub buckets: usize,
    /// Latencies are rounded up to whole multiples of it. Default 1 ms.
    #[serde(with = "humantime_serde")]
    pub resolution: Duration,
}

impl GoZeroSettings {
    fn check(&self) -> Result<(), InvalidSettings> {
        InvalidSettings::check_bounds(self.min, self.min, self.max)?;
        let threshold = self.cpu_threshold.unwrap_or(0.0);
        check((0.0..1.0).contains(&threshold), "cpu_threshold", || {
            format!("must be at least 0 and below 1, not {threshold}")
        })?;
        check(self.least_factor > 0.0 && self.least_factor <= 1.0, "least_factor", || {
            format!("must be above 0 and at most 1, not {}", self.least_factor)
        })?;
        check(self.buckets >= 2, "buckets", || format!("must be at least 2, not {}", self.buckets))?;
        check(nanos(self.window) >= self.buckets as u64, "window", || {
            "must give every bucket a nanosecond or more".into()
        })?;
        check(self.resolution > Duration::ZERO, "resolution", || "must be longer than zero".into())
    }
}

impl Default for GoZeroSettings {
    fn default() -> Self {
        Self {
            min: 1,
            max: 1_000_000,
            cpu_threshold: Some(0.9),
            least_factor: 0.1,
            cool_off: Duration::from_secs(1),
            window: Duration::from_secs(5),
            buckets: 50,
            resolution: Duration::from_millis(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Latencies,
        parts::trials::{self, success},
    };

    const MS: u64 = 1_000_000;

    fn limiter(cpu: &Utilization) -> GoZero {
        let window = Duration::from_secs(1);
        let settings = GoZeroSettings { window, buckets: 10, ..Default::default() };
        GoZero::with_utilization(settings, cpu.clone()).unwrap()
    }

    /// Ten buckets of 100 ms as go-zero's own tests fill them: bucket i holds (i + 1) × 100 passes and latencies of
    /// 10 i + 1 to 10 i + 10 ms.
    fn filled(cpu: &Utilization) -> GoZero {
        let mut limiter = limiter(cpu);
        for i in 0..10 {
            let window = Window {
                successes: Latencies {
                    count: 100 * (i + 1),
                    sum_ns: 100 * (i + 1) * (10 * i + 5) * MS + 50 * MS * (i + 1),
                    ..Latencies::NONE
                },
                ..success((1_000 + 100 * i) * MS, 0, 1)
            };
            limiter.update(&window);
        }
        limiter
    }

    #[test]
    fn the_flight_is_the_best_throughput_times_the_least_latency() {
        // go-zero's test: 900 passes (the tenth bucket is not full yet), 6 ms (5.5 rounded), ten buckets a second: 54.
        assert_eq!(filled(&Utilization::unknown()).flight, 54.0);
    }

    #[test]
    fn it_refuses_only_while_hot_and_above_the_flight() {
        let cpu = Utilization::unknown();
        let mut limiter = filled(&cpu);
        let at = |millis: u64, in_flight: u64| {
            let area = u128::from(in_flight) * 1_000;
            Window {
                opened: Instant::from_nanos(millis * MS - 1_000),
                in_flight_area_ns: area,
                ..success(millis * MS, 50 * MS, in_flight)
            }
        };
        cpu.set(0.9).unwrap();
        limiter.average_in_flight = 50.0;
        assert_eq!(limiter.clone().update(&at(1_901, 51)).limit, 1_000_000);
        limiter.average_in_flight = 80.0;
        // f = 1 at the threshold.
        assert_eq!(limiter.update(&at(1_901, 81)).limit, 55);
        // Half way from the threshold to full use, half of the flight.
        cpu.set(0.95).unwrap();
        assert_eq!(limiter.update(&at(1_902, 81)).limit, 28);
        cpu.set(1.0).unwrap();
        assert_eq!(limiter.update(&at(1_903, 81)).limit, 6);
        cpu.set(0.5).unwrap();
        assert_eq!(
            limiter.update(&at(1_904, 81)).limit,
            1_000_000,
            "nothing was refused, so it cools at once"
        );
    }

    #[test]
    fn after_a_refusal_it_stays_hot_for_a_second() {
        let cpu = Utilization::unknown();
        let mut limiter = filled(&cpu);
        limiter.average_in_flight = 1e6;
        cpu.set(0.9).unwrap();
        limiter.update(&Window { refused: 1, ..success(1_901 * MS, MS, 1_000) });
        cpu.set(0.1).unwrap();
        assert!(limiter.is_hot(cpu.value(), Instant::from_nanos(2_900 * MS)));
        assert!(!limiter.is_hot(cpu.value(), Instant::from_nanos(2_901 * MS)));
    }

    #[test]
    fn the_average_follows_in_flight_by_a_tenth() {
        let mut limiter = limiter(&Utilization::unknown());
        limiter.average_in_flight = 100.0;
        limiter.update(&success(1_000 * MS, MS, 11));
        // 0.9 × 100 + 0.1 × 10
        assert!((limiter.average_in_flight - 91.0).abs() < 1e-9);
    }

    #[test]
    fn latencies_are_rounded_up_to_milliseconds() {
        let mut limiter = limiter(&Utilization::unknown());
        limiter.update(&success(1_000 * MS, 100_000, 1));
        limiter.update(&success(1_100 * MS, 100_000, 1));
        // 1 pass × 10 × 1 ms is below the least flight of 1.
        assert_eq!(limiter.flight, 1.0);
    }

    #[test]
    fn no_windows_take_it_out_of_its_bounds() {
        let settings = GoZeroSettings { max: 500, ..Default::default() };
        let build = || Box::new(GoZero::new(settings.clone()).unwrap()) as _;
        trials::survives_anything(&build, 1, 500);
    }

    #[test]
    fn it_leaves_its_floor_and_resumes() {
        let mut limiter = limiter(&Utilization::unknown());
        limiter.limit = 1;
        trials::leaves_its_floor(&mut limiter, 1, 5_000);
        trials::resumes(&limiter, &mut self::limiter(&Utilization::unknown()));
    }

    #[test]
    fn contradictions_are_named() {
        let field = |settings| GoZero::new(settings).unwrap_err().field;
        assert_eq!(field(GoZeroSettings { cpu_threshold: Some(1.0), ..Default::default() }), "cpu_threshold");
        assert_eq!(field(GoZeroSettings { least_factor: 0.0, ..Default::default() }), "least_factor");
        assert_eq!(field(GoZeroSettings { buckets: 1, ..Default::default() }), "buckets");
        assert_eq!(field(GoZeroSettings { window: Duration::ZERO, ..Default::default() }), "window");
    }
}
