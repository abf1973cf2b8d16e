use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    CannotResume, Decision, Instant, InvalidSettings, Limiter, Reason, State, Utilization, Window,
    WindowRule,
    parts::{Buckets, bounded, check, float, mean_latency_ns, nanos},
};

/// Kratos' limiter: once the processors are busy, no more than the best throughput seen times the best latency
/// seen.
///
/// ```text
/// over the full buckets of the last `window`, and B buckets in a second:
///     flight ← ⌊most requests in a bucket × B × ⌈least mean latency of a bucket⌉⌋
/// limit ← max(flight, 1) + 1 while cpu ≥ cpu_threshold, and for a cool_off after the first refusal;   else max
/// ```
///
/// The one above is there because Kratos refuses only when more than `flight` are in flight already, and more than
/// one. Latencies are cut to whole milliseconds; those below one are not counted, and without any the least is
/// one. Source: `ratelimit/bbr/bbr.go` of go-kratos/aegis. Its processor use is smoothed, keeping 0.95 of the old
/// value every 500 ms: feed the [`Utilization`] so with [`Utilization::blend`]. While nobody feeds it, the rule
/// applies always, which is its form without the gate. Without `cpu_threshold` the gate is off, whatever is fed.
///
/// **Choose it** as [`GoZero`](crate::GoZero), which grew from the same idea (Sentinel's) and adds a factor that
/// falls with the processors' use; this one looks back twice as far and acts on less use.
///
/// **Known to go wrong:**
/// - That of [`GoZero`](crate::GoZero): bunched completions look like capacity, and a queue that lasts ten seconds
///   becomes the baseline.
/// - Services faster than a millisecond are taken to need one.
/// - Every answer counts, errors too.
/// - The second after a refusal counts from the first refusal of an overload, not from the last.
#[derive(Clone, Debug)]
pub struct Kratos {
    settings: KratosSettings,
    utilization: Utilization,
    buckets: Buckets,
    /// The resolution of latencies.
    unit_ns: u64,
    /// Of the full buckets.
    flight: f64,
    first_refusal: Option<Instant>,
    limit: usize,
}

impl Kratos {
    /// A limiter that is never told how busy the machine is.
    ///
    /// # Errors
    ///
    /// As [`Kratos::with_utilization`].
    pub fn new(settings: KratosSettings) -> Result<Self, InvalidSettings> {
        Self::with_utilization(settings, Utilization::unknown())
    }

    /// A limiter that is told by `utilization` how busy the processors are.
    ///
    /// # Errors
    ///
    /// [`InvalidSettings`] names the field that contradicts another or cannot hold.
    pub fn with_utilization(
        settings: KratosSettings,
        utilization: Utilization,
    ) -> Result<Self, InvalidSettings> {
        settings.check()?;
        let mut limiter = Self {
            utilization,
            buckets: Buckets::new(nanos(settings.window), settings.buckets),
            unit_ns: nanos(settings.resolution),
            flight: 0.0,
            first_refusal: None,
            limit: settings.max,
            settings,
        };
        limiter.measure();
        Ok(limiter)
    }

    fn measure(&mut self) {
        let (most, least) = self.buckets.extremes_of_full();
        let most = most.max(1);
        let least = least.map_or(1.0, |least| least.ceil().max(1.0));
        let latency_s = least * self.settings.resolution.as_secs_f64();
        // Whole milliseconds and whole buckets make a whole product: undo the rounding of their quotients.
        self.flight = (most as f64 * latency_s * self.buckets.per_second() + 1e-9).floor();
    }

    fn count(&mut self, window: &Window) {
        for ended in [&window.successes, &window.overloads, &window.failures] {
            if ended.count > 0 {
                let latency = mean_latency_ns(ended) / self.unit_ns;
                self.buckets.add(ended.count, if latency > 0 { ended.count } else { 0 }, latency);
            }
        }
    }

    fn applies(&mut self, cpu: Option<f64>, refused: bool, now: Instant) -> bool {
        let (Some(threshold), Some(cpu)) = (self.settings.cpu_threshold, cpu) else { return true };
        if cpu >= threshold {
            if refused && self.first_refusal.is_none() {
                self.first_refusal = Some(now);
            }
            return true;
        }
        let Some(first_refusal) = self.first_refusal else { return false };
        if now.since(first_refusal) <= self.settings.cool_off {
            return true;
        }
        self.first_refusal = None;
        false
    }
}

impl Limiter for Kratos {
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
        let applies = self.applies(cpu, window.refused > 0, window.closed);
        let wanted = if applies { self.flight.max(1.0) + 1.0 } else { self.settings.max as f64 };
        self.limit = bounded(wanted, self.settings.min, self.settings.max);
        let reason = if applies { Reason::Overload } else { Reason::Holding };
        Decision::new(self.limit, reason)
            .with("flight", self.flight)
            .with("utilization", cpu.unwrap_or(1.0))
            .with("refused", float(window.refused))
    }

    fn state(&self) -> State {
        State::new().with("limit", self.limit as f64).with("flight", self.flight)
    }

    /// Takes the limit until the next request ends: what it rests on is measured within seconds.
    fn resume(&mut self, state: &State) -> Result<(), CannotResume> {
        let limit = state.number_within("limit", self.settings.min as f64, self.settings.max as f64)?;
        self.limit = limit as usize;
        Ok(())
    }
}

/// Settings of [`Kratos`].
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct KratosSettings {
    /// The least limit. Default 1.
    pub min: usize,
    /// The limit while nothing is refused. Published: none. Default 1,000,000.
    pub max: usize,
    /// The share of busy processors from which the rule applies, at least 0; none for always. Default 0.8.
    pub cpu_threshold: Option<f64>,
    /// How long the rule applies after the first refusal of an overload. Default 1 s.
    #[serde(with = "humantime_serde")]
    pub cool_off: Duration,
    /// How far the buckets reach back. Default 10 s.
    #[serde(with = "humantime_serde")]
    pub window: Duration,
    /// Buckets in the window. Default 100.
    pub buckets: usize,
    /// Latencies are cut to whole multiples of it. Default 1 ms.
    #[serde(with = "humantime_serde")]
    pub resolution: Duration,
}

impl KratosSettings {
    fn check(&self) -> Result<(), InvalidSettings> {
        InvalidSettings::check_bounds(self.min, self.min, self.max)?;
        let threshold = self.cpu_threshold.unwrap_or(0.0);
        check(threshold.is_finite() && threshold >= 0.0, "cpu_threshold", || {
            format!("must be finite and at least 0, not {threshold}")
        })?;
        check(self.buckets >= 2, "buckets", || format!("must be at least 2, not {}", self.buckets))?;
        check(nanos(self.window) >= self.buckets as u64, "window", || {
            "must give every bucket a nanosecond or more".into()
        })?;
        check(self.resolution > Duration::ZERO, "resolution", || "must be longer than zero".into())
    }
}

impl Default for KratosSettings {
    fn default() -> Self {
        Self {
            min: 1,
            max: 1_000_000,
            cpu_threshold: Some(0.8),
            cool_off: Duration::from_secs(1),
            window: Duration::from_secs(10),
            buckets: 100,
            resolution: Duration::from_millis(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Latencies,
        parts::trials::{self, World, success},
    };

    const MS: u64 = 1_000_000;

    fn limiter(cpu: &Utilization) -> Kratos {
        let window = Duration::from_secs(1);
        Kratos::with_utilization(KratosSettings { window, buckets: 10, ..Default::default() }, cpu.clone())
            .unwrap()
    }

    /// Ten buckets of 100 ms as Kratos' own test fills them: bucket i holds (i + 2) × 100 requests, and its latencies
    /// are 10 i + 1 to 10 i + 10 ms, 5.5 ms on average in the first.
    fn filled(cpu: &Utilization) -> Kratos {
        let mut limiter = limiter(cpu);
        for i in 0..10 {
            limiter.buckets.advance(Instant::from_nanos((1_000 + 100 * i) * MS));
            limiter.buckets.add((i + 2) * 100, 0, 0);
            for latency in 10 * i + 1..=10 * i + 10 {
                limiter.buckets.add(0, 1, latency);
            }
        }
        limiter.measure();
        limiter
    }

    #[test]
    fn the_flight_is_the_best_throughput_times_the_least_latency() {
        // Kratos' test: 1000 requests (the tenth bucket is not full yet), 6 ms (5.5 rounded up), ten a second: 60.
        assert_eq!(filled(&Utilization::unknown()).flight, 60.0);
    }

    #[test]
    fn it_applies_above_the_threshold_and_for_a_second_after_the_first_refusal() {
        let cpu = Utilization::unknown();
        let mut limiter = filled(&cpu);
        cpu.set(0.7).unwrap();
        assert_eq!(limiter.update(&success(1_901 * MS, 5 * MS, 80)).limit, 1_000_000);
        cpu.set(0.8).unwrap();
        let refused = |at| Window { refused: 1, ..success(at * MS, 5 * MS, 61) };
        assert_eq!(limiter.update(&refused(1_902)).limit, 61);
        cpu.set(0.7).unwrap();
        assert!(limiter.update(&refused(2_902)).limit < 1_000_000);
        assert_eq!(limiter.update(&refused(2_903)).limit, 1_000_000);
    }

    #[test]
    fn a_service_faster_than_a_millisecond_is_taken_to_need_one() {
        let mut limiter = limiter(&Utilization::unknown());
        let fast = Latencies { count: 5_000, sum_ns: 5_000 * 25_000, ..Latencies::NONE };
        limiter.update(&Window { successes: fast, ..success(1_000 * MS, 0, 1) });
        // 5,000 in a tenth of a second and 1 ms: 50, where 25 µs make 1.25.
        assert_eq!(limiter.update(&success(1_100 * MS, 25_000, 1)).limit, 51);
    }

    #[test]
    fn nothing_measured_leaves_two_in_flight() {
        assert_eq!(limiter(&Utilization::unknown()).update(&Window::EMPTY).limit, 2);
    }

    #[test]
    fn without_a_gate_it_runs_away_behind_a_pool_whose_queue_lasts() {
        // The least mean latency of ten seconds is that of the queue: 100 in flight look like capacity for 100.
        let settings = KratosSettings { cpu_threshold: None, ..Default::default() };
        let mut limiter = Kratos::new(settings).unwrap();
        limiter.limit = 100;
        World::pool(20 * MS, 50.0).serve(&mut limiter, 100_000);
        assert!(limiter.limit() >= 50, "{}", limiter.limit());
    }

    #[test]
    fn no_windows_take_it_out_of_its_bounds() {
        let settings = KratosSettings { max: 500, ..Default::default() };
        let build = || Box::new(Kratos::new(settings.clone()).unwrap()) as _;
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
        let field = |settings| Kratos::new(settings).unwrap_err().field;
        assert_eq!(
            field(KratosSettings { cpu_threshold: Some(-1.0), ..Default::default() }),
            "cpu_threshold"
        );
        assert_eq!(field(KratosSettings { max: 0, ..Default::default() }), "max");
        assert_eq!(field(KratosSettings { resolution: Duration::ZERO, ..Default::default() }), "resolution");
    }
}
