//! How long requests stay that do not have to wait.

use serde::{Deserialize, Serialize};

use super::cells::Cell;
use super::interval::{self, Estimate};
use crate::digest::{Digest, Windows};
use crate::record::{Outcome, Step};

/// Requests that are needed to say how long one takes.
const FEWEST: usize = 20;

/// Durations of requests that do not have to wait, in milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServiceTimes {
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation over the mean.
    pub cv: f64,
    /// The quantiles 0, 0.05, 0.1, … 0.95, 0.99, 1: the distribution, for a simulation.
    pub quantiles: Vec<(f64, f64)>,
    /// Requests that this was measured on.
    pub requests: u64,
}

impl ServiceTimes {
    pub(super) fn of(sorted_ms: &[f64]) -> Option<Self> {
        if sorted_ms.is_empty() {
            return None;
        }
        let count = sorted_ms.len() as f64;
        let mean = sorted_ms.iter().sum::<f64>() / count;
        let variance = sorted_ms.iter().map(|ms| (ms - mean) * (ms - mean)).sum::<f64>() / count;
        let steps = (0..20).map(|step| f64::from(step) / 20.0).chain([0.99, 1.0]);
        let quantiles = steps
            .map(|q| (q, sorted_ms[((q * (count - 1.0)).round() as usize).min(sorted_ms.len() - 1)]))
            .collect();
        Some(Self {
            mean,
            cv: if mean > 0.0 { variance.sqrt() / mean } else { 0.0 },
            quantiles,
            requests: sorted_ms.len() as u64,
        })
    }
}

/// A request without a queue.
#[derive(Clone, Debug)]
pub(super) struct Free {
    pub(super) median_ms: Estimate,
    pub(super) mean_ms: Estimate,
    pub(super) times: ServiceTimes,
}

/// The stays of successes, each with the number in the service in its cell.
pub(super) struct Stays {
    /// Number in the service, stay in seconds; for a step, its quantiles with their weights.
    points: Vec<(f64, f64)>,
    /// Whether each point is a median of a step, and not a request.
    steps: bool,
}

impl Stays {
    pub(super) fn of(digest: &Digest, cells: &[Cell], windows: &Windows, whole: bool) -> Self {
        let length = cells.first().map_or(1.0, |cell| cell.seconds);
        let points = digest
            .requests
            .iter()
            .filter(|request| request.outcome == Outcome::Success)
            .filter_map(|request| {
                let request = if whole { request.as_a_whole() } else { *request };
                let (start, end) = request.stay()?;
                // A request belongs to the cell in the middle of its stay.
                let offset = windows.offset_s(i64::midpoint(start, end));
                let cell = cells.get((offset / length).max(0.0) as usize)?;
                Some((cell.in_service, end.abs_diff(start) as f64 / 1e9))
            })
            .collect();
        Self { points, steps: false }
    }

    pub(super) fn of_steps(steps: &[Step], cells: &[Cell]) -> Self {
        let usable = steps.iter().filter(|step| step.seconds > 0.0 && step.completed > 0.0);
        let usable = usable.filter(|step| step.latency_ms.mean.or(step.latency_ms.p50).is_some());
        // Refusals pull a median down: such a step says nothing about a typical stay.
        let points = usable
            .zip(cells)
            .filter(|(step, _)| step.errors * 20.0 < step.completed)
            .filter_map(|(step, cell)| {
                Some((cell.in_service, step.latency_ms.p50.or(step.latency_ms.mean)? / 1e3))
            })
            .collect();
        Self { points, steps: true }
    }

    /// The stays with a number in the service between two bounds, in milliseconds, sorted.
    fn between(&self, from: f64, to: f64) -> Vec<f64> {
        let mut stays: Vec<f64> =
            self.points.iter().filter(|(n, _)| (from..to).contains(n)).map(|(_, stay)| stay * 1e3).collect();
        stays.sort_by(f64::total_cmp);
        stays
    }

    /// The median stay in seconds with a number in the service between two bounds.
    pub(super) fn median(&self, from: f64, to: f64) -> Option<f64> {
        let stays = self.between(from, to);
        let enough = if self.steps { !stays.is_empty() } else { stays.len() >= FEWEST };
        enough.then(|| stays[stays.len() / 2] / 1e3)
    }

    /// How different stays are from each other in an overload, against how different they are without one: the ratio of
    /// the coefficients of variation, by quartiles.
    pub(super) fn spread(&self, peak: f64) -> Option<f64> {
        if self.steps {
            return None;
        }
        let spread = |stays: Vec<f64>| {
            let at = |q: f64| stays[((stays.len() - 1) as f64 * q) as usize];
            (stays.len() >= 2 * FEWEST && at(0.5) > 0.0).then(|| (at(0.75) - at(0.25)) / at(0.5))
        };
        // Within a narrow band of load: different loads would make stays different by themselves.
        let deep = self.between(peak * 2.0, peak * 2.6);
        let free = spread(self.between(0.0, peak * 0.75))?;
        (free > 0.05).then_some(spread(deep)? / free)
    }
}

/// The stays well below the knee.
pub(super) fn no_load(stays: &Stays, knee: f64) -> Option<Free> {
    [0.6, 0.8, 1.0].iter().find_map(|share| free(stays, stays.between(0.0, (knee * share).max(1.0))))
}

/// The stays at the lowest loads of a recording without an overload. At a constant load nothing says that nobody waited:
/// then the interval begins at the shortest stays.
pub(super) fn lowest(stays: &Stays, cells: &[Cell]) -> Option<Free> {
    let mut loads: Vec<f64> =
        cells.iter().filter(|c| c.completed > 0.0).map(|cell| cell.in_service).collect();
    loads.sort_by(f64::total_cmp);
    let (half, top) = (loads.get(loads.len() / 2).copied()?, loads.last().copied()?);
    let all = stays.between(0.0, f64::INFINITY);
    let low = stays.between(0.0, half.max(1.0) * (1.0 + 1e-9));
    let mut free = free(stays, low).or_else(|| free(stays, all.clone()))?;
    if half > 1.3 && top < 2.0 * half {
        let shortest = all[all.len() / 100];
        free.median_ms = Estimate::new(free.median_ms.value, shortest, free.median_ms.high);
    }
    Some(free)
}

fn free(stays: &Stays, sorted_ms: Vec<f64>) -> Option<Free> {
    if !stays.steps && sorted_ms.len() < FEWEST {
        return None;
    }
    let (median_ms, mean_ms) = if stays.steps {
        // A handful of medians: their own range is the interval.
        let range = |value: f64| Some(Estimate::new(value, *sorted_ms.first()?, *sorted_ms.last()?));
        let middle = *sorted_ms.get(sorted_ms.len() / 2)?;
        (range(middle)?, range(middle)?)
    } else {
        (interval::quantile(&sorted_ms, 0.5)?, interval::mean(&sorted_ms)?)
    };
    Some(Free { median_ms, mean_ms, times: ServiceTimes::of(&sorted_ms)? })
}
