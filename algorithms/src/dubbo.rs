use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    CannotResume, Decision, Instant, InvalidSettings, Limiter, Reason, State, Window, WindowRule,
    parts::{bounded, check, nanos},
};

/// dubbo-go's hill climbing: up by a logarithm while throughput is the best ever, and back below the best limit
/// when it is not.
///
/// ```text
/// a round ends with the first answer after its interval of t ms; with n answers of W ms on average before:
/// capacity = n t / W;   X = trunc(1000 n / t);   first interval radical_period, doubled by every shrink up to
///     stable_period;   lg = max(1, log₂(t / 1 s));   step = 1.5 ln(limit) in the first interval, 0.8 ln(limit) after
/// no best yet, or trunc(1.5 capacity) > limit:  limit ← min(max, trunc(limit + step / lg))
/// X above the best:    remember X, W, capacity and the limit as the best
/// else if capacity is more than 10 % and more than 5 below the best, and W is above the best by more than 3, 2, 5, 10,
///     20 ms or at 80, 30, 20, 10, 5 % of it or more (best below 5, 10, 50, 100 ms, or more):
///     limit ← trunc(best limit − step / lg)
/// ```
///
/// Source: `filter/adaptivesvc/limiter/hill_climbing.go` of apache/dubbo-go. Its unsigned differences wrap around
/// where a latency is below the best; here they are zero. Latencies are not cut to milliseconds: below one, each
/// request would be a round of its own.
///
/// One thing is added. A logarithm is zero at a limit of 1, and below one at small limits and long rounds, where
/// whole limits lose it: `least_step` is what a round that extends adds at least. Zero is the published form.
///
/// **Choose it** for comparison, or where a plain rule with a fixed ceiling will do.
///
/// **Known to go wrong:**
/// - The best throughput never fades: after a loss of capacity every round shrinks towards a past that does not
///   return, and the limit of that past may be too high.
/// - The capacity multiplies where Little's law divides, so it is hardly ever below the limit, and nearly every
///   round extends.
/// - A latency "at 80 % of the best or more" nearly always is, so it is capacity alone that shrinks.
/// - Rounds of 32 s do not keep pace with anything.
#[derive(Clone, Debug)]
pub struct Dubbo {
    settings: DubboSettings,
    limit: usize,
    interval_ns: u64,
    round: Round,
    best: Option<Best>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Round {
    started: Option<Instant>,
    answers: u64,
    latency_ms: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Best {
    throughput: u64,
    latency_ms: f64,
    capacity: f64,
    limit: usize,
}

impl Dubbo {
    /// # Errors
    ///
    /// [`InvalidSettings`] names the field that contradicts another or cannot hold.
    pub fn new(settings: DubboSettings) -> Result<Self, InvalidSettings> {
        InvalidSettings::check_bounds(settings.min, settings.initial, settings.max)?;
        check(settings.radical_period >= Duration::from_millis(1), "radical_period", || {
            format!("must be at least 1 ms, not {:?}", settings.radical_period)
        })?;
        check(settings.stable_period >= settings.radical_period, "stable_period", || {
            format!(
                "must be at least `radical_period` ({:?}), not {:?}",
                settings.radical_period, settings.stable_period
            )
        })?;
        Ok(Self {
            limit: settings.initial,
            interval_ns: nanos(settings.radical_period),
            round: Round::default(),
            best: None,
            settings,
        })
    }

    fn is_radical(&self) -> bool {
        self.interval_ns == nanos(self.settings.radical_period)
    }

    /// What a round that was begun in the radical phase, or not, moves.
    fn step(&self, radical: bool) -> f64 {
        let factor = if radical { 1.5 } else { 0.8 };
        factor * libm::log(self.limit as f64) / libm::log2(self.interval_ns as f64 / 1e9).max(1.0)
    }

    fn end_round(&mut self, answers: u64, latency_ms: f64) -> Decision {
        let interval_ms = self.interval_ns as f64 / 1e6;
        let capacity = answers as f64 * interval_ms / latency_ms.max(1e-6);
        let throughput = (1_000.0 * answers as f64 / interval_ms) as u64;
        let radical = self.is_radical();
        let extends = self.best.is_none() || (capacity * 1.5) as u64 > self.limit as u64;
        let (mut wanted, mut reason) = if extends {
            let step = self.step(radical).max(self.settings.least_step as f64);
            (self.limit as f64 + step, Reason::Growing)
        } else {
            (self.limit as f64, Reason::Holding)
        };
        let best = self.best.filter(|best| throughput <= best.throughput);
        if best.is_none() && throughput > 0 {
            self.best = Some(Best { throughput, latency_ms, capacity, limit: self.limit });
        }
        if let Some(best) = best.filter(|best| falls_short(*best, capacity, latency_ms)) {
            let stable = nanos(self.settings.stable_period);
            self.interval_ns = self.interval_ns.saturating_mul(2).min(stable);
            (wanted, reason) = (best.limit as f64 - self.step(radical), Reason::QueueBuilding);
        }
        self.limit = bounded(wanted, self.settings.min, self.settings.max);
        Decision::new(self.limit, reason)
            .with("throughput", throughput as f64)
            .with("latency_ns", latency_ms * 1e6)
            .with("capacity", capacity)
            .with("best_throughput", self.best.map_or(0.0, |best| best.throughput as f64))
            .with("interval_ns", self.interval_ns as f64)
    }
}

fn falls_short(best: Best, capacity: f64, latency_ms: f64) -> bool {
    let missing = best.capacity - capacity;
    let missing_percent = (100.0 * missing / best.capacity.max(f64::MIN_POSITIVE)) as u64;
    let slower_ms = (latency_ms - best.latency_ms) as u64;
    let percent = (100.0 * latency_ms / best.latency_ms.max(f64::MIN_POSITIVE)) as u64;
    let (most_ms, most_percent) = match best.latency_ms {
        ..5.0 => (3, 80),
        5.0..10.0 => (2, 30),
        10.0..50.0 => (5, 20),
        50.0..100.0 => (10, 10),
        _ => (20, 5),
    };
    missing_percent > 10 && missing > 5.0 && (slower_ms > most_ms || percent >= most_percent)
}

impl Limiter for Dubbo {
    fn limit(&self) -> usize {
        self.limit
    }

    fn next_window(&self) -> WindowRule {
        WindowRule::EACH
    }

    fn update(&mut self, window: &Window) -> Decision {
        let now = window.closed;
        let classes = [window.successes, window.overloads, window.failures];
        let ended = classes.iter().fold(0_u64, |sum, class| sum.saturating_add(class.count));
        let sum_ns = classes.iter().fold(0_u64, |sum, class| sum.saturating_add(class.sum_ns));
        let latency_ms = if ended > 0 { sum_ns as f64 / ended as f64 / 1e6 } else { 0.0 };
        let started = *self.round.started.get_or_insert(now);
        if now < started {
            // The clock stepped back: as much of the round is left as there was.
            self.round.started = Some(now);
        }
        if ended > 0 && now.nanos_since(started) > self.interval_ns && self.round.answers > 0 {
            let Round { answers, latency_ms, .. } = self.round;
            self.round = Round { started: Some(now), ..Round::default() };
            return self.end_round(answers, latency_ms);
        }
        let (old, new) = (self.round.answers as f64, ended as f64);
        if ended > 0 {
            self.round.latency_ms = (self.round.latency_ms * old + latency_ms * new) / (old + new);
            self.round.answers = self.round.answers.saturating_add(ended);
        }
        Decision::new(self.limit, Reason::Undecided).with("answers", self.round.answers as f64)
    }

    fn state(&self) -> State {
        let best =
            self.best.unwrap_or(Best { throughput: 0, latency_ms: 0.0, capacity: 0.0, limit: self.limit });
        State::new()
            .with("limit", self.limit as f64)
            .with("interval_ns", self.interval_ns as f64)
            .with("best_throughput", best.throughput as f64)
            .with("best_latency_ns", best.latency_ms * 1e6)
            .with("best_limit", best.limit as f64)
    }

    /// Takes the limit. The best is found anew: it may be gone.
    fn resume(&mut self, state: &State) -> Result<(), CannotResume> {
        let limit = state.number_within("limit", self.settings.min as f64, self.settings.max as f64)?;
        self.limit = limit as usize;
        Ok(())
    }
}

/// Settings of [`Dubbo`].
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct DubboSettings {
    /// The limit to start from. Default 50.
    pub initial: usize,
    /// The least limit. Default 1.
    pub min: usize,
    /// The greatest limit. Default 500.
    pub max: usize,
    /// The first interval, in which steps are large, at least 1 ms. Default 1 s.
    #[serde(with = "humantime_serde")]
    pub radical_period: Duration,
    /// The longest interval. Default 32 s.
    #[serde(with = "humantime_serde")]
    pub stable_period: Duration,
    /// What a round that extends adds at least. Published: 0. Default 1.
    pub least_step: usize,
}

impl Default for DubboSettings {
    fn default() -> Self {
        Self {
            initial: 50,
            min: 1,
            max: 500,
            radical_period: Duration::from_secs(1),
            stable_period: Duration::from_secs(32),
            least_step: 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::trials::{self, World, success};

    const MS: u64 = 1_000_000;

    /// Ends a round of a hundred answers of that latency.
    fn round(dubbo: &mut Dubbo, answers: u64, latency_ms: u64) -> Decision {
        let start = dubbo.round.started.map_or(MS, Instant::nanos);
        for _ in 0..answers {
            dubbo.update(&success(start + 1, latency_ms * MS, 10));
        }
        dubbo.update(&success(start + dubbo.interval_ns + 2, latency_ms * MS, 10))
    }

    #[test]
    fn the_first_round_extends_by_the_radical_step_and_is_the_best() {
        let mut dubbo = Dubbo::new(DubboSettings::default()).unwrap();
        // 1.5 ln 50 = 5.87
        assert_eq!(round(&mut dubbo, 100, 10).limit, 55);
        let best = Best { throughput: 100, latency_ms: 10.0, capacity: 10_000.0, limit: 50 };
        assert_eq!(dubbo.best, Some(best));
    }

    #[test]
    fn a_round_that_falls_short_goes_back_below_the_best_limit_and_doubles_the_interval() {
        let mut dubbo = Dubbo::new(DubboSettings::default()).unwrap();
        round(&mut dubbo, 100, 10);
        // 80 × 1000 / 20 = 4,000 is 60 % below. 1.5 ln 55 = 6.01, by max(1, log₂ 2): 50 − 6.01.
        let decision = round(&mut dubbo, 80, 20);
        assert_eq!((decision.limit, decision.reason), (43, Reason::QueueBuilding));
        assert_eq!(dubbo.interval_ns, 2_000 * MS);
        // A stable round: 0.8 ln 43 = 3.01 up, by 1. It has 160 answers in two seconds: 80 a second.
        assert_eq!(round(&mut dubbo, 190, 19).limit, 46);
    }

    #[test]
    fn the_interval_grows_to_the_stable_period() {
        let mut dubbo = Dubbo::new(DubboSettings::default()).unwrap();
        round(&mut dubbo, 1_000, 1);
        for _ in 0..10 {
            round(&mut dubbo, 10, 100);
        }
        assert_eq!(dubbo.interval_ns, 32_000 * MS);
    }

    #[test]
    fn as_published_a_limit_of_one_stays_for_ever() {
        let settings = DubboSettings { initial: 1, least_step: 0, ..Default::default() };
        let mut dubbo = Dubbo::new(settings).unwrap();
        World::pool(10 * MS, 1e9).serve(&mut dubbo, 5_000);
        assert_eq!(dubbo.limit(), 1);
    }

    #[test]
    fn no_windows_take_it_out_of_its_bounds() {
        trials::survives_anything(&|| Box::new(Dubbo::new(DubboSettings::default()).unwrap()) as _, 1, 500);
    }

    #[test]
    fn it_leaves_its_floor_and_resumes() {
        let mut dubbo = Dubbo::new(DubboSettings { initial: 1, ..Default::default() }).unwrap();
        trials::leaves_its_floor(&mut dubbo, 1, 5_000);
        trials::resumes(&dubbo, &mut Dubbo::new(DubboSettings::default()).unwrap());
    }

    #[test]
    fn contradictions_are_named() {
        let field = |settings| Dubbo::new(settings).unwrap_err().field;
        let zero = Duration::ZERO;
        assert_eq!(field(DubboSettings { radical_period: zero, ..Default::default() }), "radical_period");
        assert_eq!(field(DubboSettings { stable_period: zero, ..Default::default() }), "stable_period");
    }
}
