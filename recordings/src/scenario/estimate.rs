//! What the requests of a recording say about the service behind them, by the rate at which they leave it.

use std::time::Duration;

use goodput_simulator::Work;
use serde::Serialize;
use statrs::distribution::{ChiSquared, ContinuousCDF, Normal};

use crate::digest::{Digest, Request, Windows, is_coarse};
use crate::reading::Reading;
use crate::record::Outcome;

/// Times that stand for the distribution of the work.
const TIMES: usize = 128;
/// Requests without company that are enough to know the work by.
const ENOUGH: usize = 30;
/// Ratio of neighbouring levels of requests in the service.
const LEVEL_RATIO: f64 = 1.05;
/// More workers than this are not told apart from any number of them.
const MOST_WORKERS: u32 = 4096;

/// An estimate with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The best guess.
    pub value: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// A service as workers with a queue before them: how many, how fast, and how surely that is known.
///
/// While n requests are in the service, c workers finish min(n, c) / s of them per second, whatever the distribution
/// of the work and the arrivals. So the time spent with n requests and the completions in it give c and s by maximum
/// likelihood, and the likelihood ratio says between which bounds c lies, and whether there is a c at all.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ServiceEstimate {
    /// Requests per second that the service finishes at its best; `None` where the recording holds no overload.
    pub capacity_per_s: Option<Estimate>,
    /// What the service was seen to do, in requests per second: its capacity is at least this.
    pub capacity_at_least_per_s: f64,
    /// Mean latency while nobody waits, in milliseconds.
    pub no_load_latency_ms: Option<Estimate>,
    /// Requests in the service from which on more of them bring no more answers; `None` where no overload was seen.
    pub knee: Option<Estimate>,
    /// The most requests that were in the service for any length of time.
    pub most_in_service: f64,
    /// Times that stand for the distribution of the work, in nanoseconds, in order.
    #[serde(skip)]
    pub times_ns: Vec<u64>,
}

/// How long so many requests were in the service, and how many it finished meanwhile.
#[derive(Clone, Copy, Debug, Default)]
struct Level {
    n: f64,
    seconds: f64,
    completed: f64,
}

impl ServiceEstimate {
    /// The service behind a recording; `None` if nothing in it lasted any time.
    #[must_use]
    pub fn of(digest: &Digest, reading: &Reading) -> Option<Self> {
        let (levels, best) =
            if digest.steps.is_empty() { of_requests(digest, reading) } else { of_steps(digest) };
        let total: f64 = levels.iter().map(|level| level.completed).sum();
        if total < 1.0 {
            return of_latencies_alone(digest);
        }
        let most_in_service = levels.iter().map(|level| level.n).fold(0.0, f64::max);
        let fit = Fit::new(&levels);
        let workers = fit.workers();
        let alone = without_company(digest, workers.map_or(1.0, |workers| (workers.low / 2.0).max(1.0)));
        let mean_s = fit.stay_s(workers.map(|workers| workers.value as u32));
        let times_ns = times(alone, mean_s);
        let no_load = mean_with_interval(&times_ns);
        let error = Normal::standard().inverse_cdf(0.975) * fit.dispersion().sqrt() / total.sqrt();
        let capacity_per_s = workers.map(|workers| {
            let at = |c: f64| c / fit.stay_s(Some(c as u32));
            Estimate {
                value: at(workers.value),
                low: at(workers.low).min(at(workers.value)) * (1.0 - error).max(0.0),
                high: at(workers.high).max(at(workers.value)) * (1.0 + error),
            }
        });
        Some(Self {
            capacity_per_s,
            capacity_at_least_per_s: best,
            no_load_latency_ms: no_load,
            knee: workers,
            most_in_service,
            times_ns,
        })
    }

    /// Twice the 99th percentile of the latency without a queue, rounded up: what users are used to, and some patience.
    #[must_use]
    pub fn usual_deadline(&self) -> Duration {
        let last = self.times_ns.len().saturating_sub(1);
        let p99 = self.times_ns.get((last as f64 * 0.99).round() as usize).copied().unwrap_or(1) as f64;
        // As the next of these times a power of ten.
        let power = 10_f64.powf((2.0 * p99).log10().floor());
        let digits = [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
        let round = digits.into_iter().map(|digit| digit * power).find(|&round| round >= 2.0 * p99 * 0.999);
        Duration::from_nanos(round.unwrap_or(2.0 * p99).clamp(1.0, 1e18) as u64)
    }

    /// The work of a request on its own.
    #[must_use]
    pub fn work(&self) -> Work {
        Work::Empirical(self.times_ns.iter().map(|&ns| Duration::from_nanos(ns).into()).collect())
    }
}

/// A recording without stamps still tells how long requests took, and neither load nor capacity.
fn of_latencies_alone(digest: &Digest) -> Option<ServiceEstimate> {
    let mut stays: Vec<u64> = digest
        .requests
        .iter()
        .filter(|request| request.outcome == Outcome::Success)
        .filter_map(Request::latency)
        .filter(|&ns| ns > 0)
        .collect();
    stays.sort_unstable();
    let times_ns = spread(&stays);
    (!times_ns.is_empty()).then_some(ServiceEstimate {
        capacity_per_s: None,
        capacity_at_least_per_s: 0.0,
        no_load_latency_ms: None,
        knee: None,
        most_in_service: 1.0,
        times_ns,
    })
}

/// Levels, and the greatest rate of completions that lasted.
fn of_requests(digest: &Digest, reading: &Reading) -> (Vec<Level>, f64) {
    let refined;
    let windows = if is_coarse(reading) && digest.requests.is_complete() {
        refined = Windows::of(digest.requests.refined(reading.basis).iter(), false);
        &refined
    } else {
        &digest.windows
    };
    let length_s = windows.length_s();
    let mut levels: Vec<(i32, Level)> = Vec::new();
    let mut inside = 0;
    for window in windows.as_slice() {
        let n = window.area_s(inside, windows.length_ns()).max(0.0) / length_s;
        inside += window.change();
        if n < 0.05 {
            continue;
        }
        let number = (n.ln() / LEVEL_RATIO.ln()).round() as i32;
        let index = levels.iter().position(|(known, _)| *known == number).unwrap_or_else(|| {
            levels.push((number, Level::default()));
            levels.len() - 1
        });
        let level = &mut levels[index].1;
        level.n += n * length_s;
        level.seconds += length_s;
        level.completed += window.completed as f64;
    }
    let levels = levels.into_iter().map(|(_, level)| Level { n: level.n / level.seconds, ..level }).collect();
    (levels, most_that_lasted(windows))
}

/// The greatest rate over a second, or over as long as fifty completions took if that is longer.
fn most_that_lasted(windows: &Windows) -> f64 {
    let (mut best, mut seconds, mut completed) = (0.0_f64, 0.0, 0);
    for window in windows.as_slice() {
        seconds += windows.length_s();
        completed += window.completed;
        if seconds >= 1.0 && completed >= 50 {
            best = best.max(completed as f64 / seconds);
            (seconds, completed) = (0.0, 0);
        }
    }
    if best > 0.0 || seconds <= 0.0 { best } else { completed as f64 / seconds }
}

/// A level for each step of a load test, by Little's law where the number of clients is not told.
fn of_steps(digest: &Digest) -> (Vec<Level>, f64) {
    let levels: Vec<Level> = digest
        .steps
        .iter()
        .filter(|step| step.seconds > 0.0 && step.completed > step.errors)
        .filter_map(|step| {
            let mean_s = step.latency_ms.mean.or(step.latency_ms.p50)? / 1e3;
            let n = step.completed / step.seconds * mean_s;
            Some(Level { n, seconds: step.seconds, completed: step.completed - step.errors })
        })
        .filter(|level| level.n.is_finite() && level.n > 0.0)
        .collect();
    let best = levels.iter().map(|level| level.completed / level.seconds).fold(0.0, f64::max);
    (levels, best)
}

/// The likelihood of each number of workers.
struct Fit<'l> {
    levels: &'l [Level],
    completed: f64,
    most: u32,
}

impl<'l> Fit<'l> {
    fn new(levels: &'l [Level]) -> Self {
        let most = levels.iter().map(|level| level.n).fold(1.0, f64::max).ceil();
        Self {
            levels,
            completed: levels.iter().map(|level| level.completed).sum(),
            most: (most as u32).min(MOST_WORKERS),
        }
    }

    /// Requests worked on at a level.
    fn busy(n: f64, workers: Option<u32>) -> f64 {
        workers.map_or(n, |workers| n.min(f64::from(workers)))
    }

    /// The mean work: the time of all busy workers over all completions.
    fn stay_s(&self, workers: Option<u32>) -> f64 {
        let busy: f64 = self.levels.iter().map(|level| Self::busy(level.n, workers) * level.seconds).sum();
        busy / self.completed
    }

    fn log_likelihood(&self, workers: Option<u32>) -> f64 {
        let rate = self.stay_s(workers).recip();
        let of_levels = self.levels.iter().filter(|level| level.completed > 0.0);
        of_levels.map(|level| level.completed * (rate * Self::busy(level.n, workers)).ln()).sum()
    }

    /// How much more completions scatter than those of a Poisson process, at least 1.
    fn dispersion(&self) -> f64 {
        let best = self.best();
        let rate = self.stay_s(Some(best)).recip();
        let terms: Vec<f64> = self
            .levels
            .iter()
            .map(|level| (rate * Self::busy(level.n, Some(best)) * level.seconds, level.completed))
            .filter(|(expected, _)| *expected >= 5.0)
            .map(|(expected, completed)| (completed - expected).powi(2) / expected)
            .collect();
        if terms.len() < 3 { 1.0 } else { (terms.iter().sum::<f64>() / (terms.len() - 2) as f64).max(1.0) }
    }

    fn best(&self) -> u32 {
        let likelihood = |workers: u32| self.log_likelihood(Some(workers));
        (1..=self.most).max_by(|a, b| likelihood(*a).total_cmp(&likelihood(*b))).unwrap_or(1)
    }

    /// The workers, if the recording tells that they are limited: that there were half as many requests again as
    /// workers for the time of [`ENOUGH`] completions, and that the rate stopped growing is no chance.
    fn workers(&self) -> Option<Estimate> {
        let best = self.best();
        let bound = ChiSquared::new(1.0).ok()?.inverse_cdf(0.95) / 2.0 * self.dispersion();
        let highest = self.log_likelihood(Some(best));
        let as_likely = |workers: &u32| highest - self.log_likelihood(Some(*workers)) <= bound;
        let low = (1..=best).find(as_likely).unwrap_or(best);
        let high = (best..=self.most).rev().find(as_likely).unwrap_or(best);
        let beyond = self.levels.iter().filter(|level| level.n >= 1.5 * f64::from(high));
        let seen: f64 = beyond.map(|level| level.completed).sum();
        let no_chance = highest - self.log_likelihood(None) > 2.0 * bound;
        (no_chance && seen >= ENOUGH as f64).then_some(Estimate {
            value: f64::from(best),
            low: f64::from(low),
            high: f64::from(high),
        })
    }
}

/// Stays of the successes that found at most so many others in the service, sorted; those that found the fewest, if
/// these are too few.
fn without_company(digest: &Digest, most: f64) -> Vec<u64> {
    let mut spans: Vec<(i64, i64, bool)> = digest
        .requests
        .iter()
        .filter_map(|request| {
            let (start, end) = request.stay()?;
            Some((start, end, request.outcome == Outcome::Success))
        })
        .collect();
    spans.sort_unstable();
    let mut ends: Vec<i64> = spans.iter().map(|(_, end, _)| *end).collect();
    ends.sort_unstable();
    // Of a thinned recording only every so many-th is here.
    let thinned = digest.records as f64 / (digest.requests.iter().count() as f64).max(1.0);
    let mut found: Vec<(f64, u64)> = Vec::new();
    let mut ended = 0;
    for (started, (start, end, success)) in spans.iter().enumerate() {
        while ends.get(ended).is_some_and(|end| end <= start) {
            ended += 1;
        }
        if *success && end > start {
            found.push((started.saturating_sub(ended) as f64 * thinned, end.abs_diff(*start)));
        }
    }
    found.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let alone = found.partition_point(|(others, _)| *others < most);
    let fewest = alone.max(ENOUGH.max(found.len() / 20)).min(found.len());
    let mut stays: Vec<u64> = found[..fewest].iter().map(|(_, stay)| *stay).collect();
    stays.sort_unstable();
    stays
}

/// Times that stand for a sorted sample, in proportion such that their mean is that of the fit.
fn times(sorted: Vec<u64>, mean_s: f64) -> Vec<u64> {
    let times = spread(&sorted);
    let mean = times.iter().map(|&ns| ns as f64).sum::<f64>() / times.len() as f64;
    if times.is_empty() || mean <= 0.0 {
        return vec![((mean_s * 1e9) as u64).max(1)];
    }
    // A sample with queueing in it is longer than the work; one without is the better witness.
    let factor = (mean_s * 1e9 / mean).min(1.0);
    times.into_iter().map(|ns| ((ns as f64 * factor) as u64).max(1)).collect()
}

/// The middles of as many equal parts of a sorted sample.
fn spread(sorted: &[u64]) -> Vec<u64> {
    let parts = TIMES.min(sorted.len());
    (0..parts).map(|part| sorted[(2 * part + 1) * sorted.len() / (2 * parts)].max(1)).collect()
}

/// In milliseconds.
fn mean_with_interval(times_ns: &[u64]) -> Option<Estimate> {
    let count = times_ns.len() as f64;
    let mean = times_ns.iter().map(|&ns| ns as f64 / 1e6).sum::<f64>() / count;
    let variance = times_ns.iter().map(|&ns| (ns as f64 / 1e6 - mean).powi(2)).sum::<f64>() / (count - 1.0);
    if times_ns.len() < 2 {
        return times_ns.first().map(|_| Estimate { value: mean, low: mean, high: mean });
    }
    let half = Normal::standard().inverse_cdf(0.975) * (variance / count).sqrt();
    Some(Estimate { value: mean, low: (mean - half).max(0.0), high: mean + half })
}
