//! How long requests stay that do not have to wait.

use serde::{Deserialize, Serialize};

use super::cells::{Cell, Course};
use super::interval::{self, Estimate};
use crate::digest::{Request, sweep};
use crate::record::{Outcome, Step};

/// Requests that are needed to say how long one takes.
const FEWEST: usize = 20;
/// Requests that are enough to look no further than at the lowest loads.
const ENOUGH: usize = 60;

/// The share of a load's growth that the stays may show where the lower load makes nobody wait: the higher one may.
const FLAT: f64 = 0.5;
/// How many times another a load has to be where the load that a request met is known by cell only.
const CLEARLY_HIGHER: f64 = 2.0;

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
    /// Of sorted durations with their weights.
    fn of(sorted_ms: &[(f64, f64)]) -> Option<Self> {
        let requests = weight(sorted_ms);
        if requests <= 0.0 {
            return None;
        }
        let mean = sorted_ms.iter().map(|(ms, weight)| ms * weight).sum::<f64>() / requests;
        let squares = sorted_ms.iter().map(|(ms, weight)| (ms - mean) * (ms - mean) * weight).sum::<f64>();
        let steps = (0..20).map(|step| f64::from(step) / 20.0).chain([0.99, 1.0]);
        Some(Self {
            mean,
            cv: if mean > 0.0 { (squares / requests).sqrt() / mean } else { 0.0 },
            quantiles: steps.map(|q| (q, weighted(sorted_ms, q))).collect(),
            requests: requests as u64,
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

impl Free {
    /// Nobody knows how long these had to wait.
    pub(super) fn at_most(self) -> Self {
        let at_most = |estimate: Estimate| Estimate::new(estimate.value, 0.0, estimate.high);
        Self { median_ms: at_most(self.median_ms), mean_ms: at_most(self.mean_ms), ..self }
    }

    /// Up to half of these had to wait: then the median of the others lies above the lower quartile of all.
    pub(super) fn mixed(self) -> Self {
        let quartile = self.times.quantiles.iter().find(|(q, _)| *q >= 0.25).map_or(0.0, |(_, ms)| *ms);
        let share = if self.median_ms.value > 0.0 { quartile / self.median_ms.value } else { 1.0 };
        let reach = |estimate: Estimate| Estimate::new(estimate.value, estimate.low * share, estimate.high);
        Self { median_ms: reach(self.median_ms), mean_ms: reach(self.mean_ms), ..self }
    }
}

/// The stay of a success, and the load that it met.
#[derive(Clone, Copy, Debug)]
struct Stay {
    /// Seconds.
    stay: f64,
    /// Requests in the service when it came, itself included. Requests that come see the service as it is on average
    /// (Wolff 1982), whatever they themselves will need; the number during their stay would be larger for the slow ones.
    met: f64,
    /// Requests that it stands for.
    weight: f64,
}

/// The stays of successes.
pub(super) struct Stays {
    stays: Vec<Stay>,
    of: Of,
}

/// What stays are known of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    /// Of each request, with the number that it met.
    Requests,
    /// Of each request, with the mean number in the service at about its time.
    Cells,
    /// Of load steps: each is typical of a step. A service that turns requests away in all of them is full at times in all.
    Steps { always_full: bool },
}

impl Stays {
    pub(super) fn of(course: &Course) -> Self {
        match (course.complete, course.coarse) {
            (true, _) => Self { stays: met_exactly(course), of: Of::Requests },
            (false, true) => Self::by_cell(course),
            (false, false) => Self { stays: met_in_windows(course), of: Of::Requests },
        }
    }

    /// The stays with the number that they met by cell: less sharp, and right where the course within a cell is not known.
    /// Spread evenly over a second, or counted in a window of their own length, those that seem to have met few would be
    /// those that were short.
    pub(super) fn by_cell(course: &Course) -> Self {
        Self { stays: met_in_cells(course), of: Of::Cells }
    }

    /// The typical stays of steps: their medians if those are worth anything, else their means.
    pub(super) fn of_steps(steps: &[Step], cells: &[Cell], medians: Medians) -> Self {
        let usable = steps.iter().filter(|step| step.seconds > 0.0 && step.completed > 0.0);
        let usable = usable.filter(|step| step.latency_ms.mean.or(step.latency_ms.p50).is_some());
        let always_full = usable.clone().all(|step| !answers_all(step));
        let stays = usable
            .zip(cells)
            .filter_map(|(step, cell)| {
                // Refusals pull a median down: then only Little's law tells a typical stay.
                let median = step.latency_ms.p50.filter(|_| answers_all(step) && medians.hold(cell, cells));
                let median = median.map(|ms| ms / 1e3);
                Some(Stay { stay: median.or(cell.stay)?, met: cell.in_service, weight: step.completed })
            })
            .collect();
        Self { stays, of: Of::Steps { always_full } }
    }

    /// The stays that met a number between two bounds, in milliseconds, sorted, with their weights.
    fn between(&self, from: f64, to: f64) -> Vec<(f64, f64)> {
        let mut stays: Vec<(f64, f64)> =
            self.within(from, to).map(|stay| (stay.stay * 1e3, stay.weight)).collect();
        stays.sort_by(|a, b| a.0.total_cmp(&b.0));
        stays
    }

    fn within(&self, from: f64, to: f64) -> impl Iterator<Item = &Stay> {
        self.stays.iter().filter(move |stay| (from..to).contains(&stay.met))
    }

    /// The requests that met a number in the service between two bounds.
    pub(super) fn met(&self, from: f64, to: f64) -> Option<Typical> {
        if self.within(from, to).map(|stay| stay.weight).sum::<f64>() < FEWEST as f64 {
            return None;
        }
        let stay_s = if matches!(self.of, Of::Steps { .. }) {
            let stay_s = middle(&self.between(from, to)) / 1e3;
            Estimate::new(stay_s, stay_s, stay_s)
        } else {
            let mut stays_s: Vec<f64> = self.within(from, to).map(|stay| stay.stay).collect();
            interval::quantile(&mut stays_s, 0.5)?
        };
        Some(Typical { met: self.load(from, to, 0.5), stay_s })
    }

    /// Of the stays that met a number between two bounds: the number that a share of them met no more than.
    fn load(&self, from: f64, to: f64, share: f64) -> f64 {
        if matches!(self.of, Of::Steps { .. }) {
            let mut loads: Vec<(f64, f64)> =
                self.within(from, to).map(|stay| (stay.met, stay.weight)).collect();
            loads.sort_by(|a, b| a.0.total_cmp(&b.0));
            weighted(&loads, share)
        } else {
            let mut loads: Vec<f64> = self.within(from, to).map(|stay| stay.met).collect();
            interval::quantile(&mut loads, share).map_or(0.0, |load| load.value)
        }
    }

    /// A bound that a share of all stays lies below.
    fn bound(&self, share: f64) -> f64 {
        // Bounds are exclusive.
        self.load(0.0, f64::INFINITY, share) * (1.0 + 1e-9)
    }

    /// Whether the stays at the lowest loads were as long at loads that are clearly higher, or met nobody at all. In a queue,
    /// or under sharing, they grow as the load does.
    fn shows_that_low_loads_do_not_wait(&self) -> bool {
        let (quarter, half) = (self.bound(0.25), self.bound(0.5));
        match self.of {
            Of::Requests if half < 1.5 => return true,
            Of::Steps { always_full: true } => return false,
            _ => {}
        }
        let flat = |lower: Option<Typical>, upper: Option<Typical>| {
            lower.zip(upper).is_some_and(|(lower, upper)| {
                let load = upper.met / lower.met;
                let clear = self.of == Of::Requests || load >= CLEARLY_HIGHER;
                clear && upper.stay_s.high / lower.stay_s.low <= 1.0 + FLAT * (load - 1.0)
            })
        };
        flat(self.met(0.0, half), self.met(half, f64::INFINITY))
            || flat(self.met(0.0, quarter), self.met(quarter, half))
    }

    /// How different stays are from each other in an overload, against how different they are without one: the ratio of
    /// the coefficients of variation, by quartiles.
    pub(super) fn spread(&self, peak: f64) -> Option<f64> {
        if matches!(self.of, Of::Steps { .. }) {
            return None;
        }
        let spread = |stays: Vec<(f64, f64)>| {
            let at = |q: f64| stays[((stays.len() - 1) as f64 * q) as usize].0;
            (stays.len() >= 2 * FEWEST && at(0.5) > 0.0).then(|| (at(0.75) - at(0.25)) / at(0.5))
        };
        // Within a narrow band of load: different loads would make stays different by themselves.
        let deep = self.between(peak * 2.0, peak * 2.6);
        let free = spread(self.between(0.0, peak * 0.75))?;
        (free > 0.05).then_some(spread(deep)? / free)
    }
}

/// Whether as good as no request of a step failed or was turned away.
fn answers_all(step: &Step) -> bool {
    step.errors * 20.0 < step.completed
}

fn weight(stays: &[(f64, f64)]) -> f64 {
    stays.iter().map(|(_, weight)| weight).sum()
}

/// The weighted median of sorted stays.
fn middle(stays: &[(f64, f64)]) -> f64 {
    weighted(stays, 0.5)
}

/// A weighted quantile of sorted stays.
fn weighted(stays: &[(f64, f64)], q: f64) -> f64 {
    let wanted = weight(stays) * q;
    let mut sum = 0.0;
    let found = stays.iter().find(|(_, weight)| {
        sum += weight;
        sum >= wanted
    });
    found.map_or(0.0, |(stay, _)| *stay)
}

/// The stays of requests that met so few that they did not wait: by cell, where what each met is not known exactly, else by
/// request, else those that met at most as many as the knee has room for. Where no cell was quiet, some of these did wait.
pub(super) fn no_load(by_cell: Option<&Stays>, stays: &Stays, knee: f64) -> Option<Free> {
    let quiet = by_cell.and_then(|stays| below(stays, 0.5 * knee));
    quiet.or_else(|| {
        let few = below(stays, 0.7 * knee);
        let found = few.or_else(|| free(stays, &stays.between(0.0, knee.max(1.5)), FEWEST));
        if by_cell.is_some() { found.map(Free::mixed) } else { found }
    })
}

/// The stays of requests that met the fewest that enough requests met, if those are fewer than a bound.
fn below(stays: &Stays, bound: f64) -> Option<Free> {
    let mut most = 1.0;
    while most < bound {
        if let Some(free) = free(stays, &stays.between(0.0, most + 0.5), ENOUGH) {
            return Some(free);
        }
        most = (most * 1.3).ceil();
    }
    None
}

/// The stays at the lowest loads of a recording without an overload. Where nothing shows that these did not have to wait,
/// the latency without a queue is at most theirs, and the interval begins at zero.
pub(super) fn lowest(stays: &Stays) -> Option<Free> {
    let low = stays.between(0.0, stays.bound(0.5));
    let all = stays.between(0.0, f64::INFINITY);
    let found = free(stays, &low, FEWEST).or_else(|| free(stays, &all, FEWEST))?;
    Some(if stays.shows_that_low_loads_do_not_wait() { found } else { found.at_most() })
}

/// The stays of all successes, whatever was in the service then: nobody stays shorter than without a queue.
pub(super) fn at_most(course: &Course) -> Option<Free> {
    let successes = course.requests.iter().filter(|request| request.outcome == Outcome::Success);
    let stay =
        |(start, end): (i64, i64)| Stay { stay: end.abs_diff(start) as f64 / 1e9, met: 1.0, weight: 1.0 };
    let all = Stays { stays: successes.filter_map(Request::stay).map(stay).collect(), of: Of::Requests };
    free(&all, &all.between(0.0, f64::INFINITY), FEWEST).map(Free::at_most)
}

/// Which medians of steps are worth anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Medians {
    All,
    None,
    /// Each is of the last ten seconds: it is that of its step if no load in that time was higher.
    Sliding,
}

impl Medians {
    fn hold(self, cell: &Cell, cells: &[Cell]) -> bool {
        let before = |other: &&Cell| (cell.offset - 10.0..cell.offset).contains(&other.offset);
        match self {
            Self::All => true,
            Self::None => false,
            Self::Sliding => {
                cells.iter().filter(before).all(|other| other.in_service < 1.5 * cell.in_service)
            }
        }
    }
}

/// The stays of a recording all of whose requests are there.
fn met_exactly(course: &Course) -> Vec<Stay> {
    let mut spans: Vec<((i64, i64), Outcome)> =
        course.requests.iter().filter_map(|request| Some((request.stay()?, request.outcome))).collect();
    spans.sort_unstable();
    let met = sweep::met(&spans.iter().map(|(span, _)| *span).collect::<Vec<_>>());
    spans
        .into_iter()
        .zip(met)
        .filter(|((_, outcome), _)| *outcome == Outcome::Success)
        .filter_map(|(((start, end), _), others)| {
            let stay = end.abs_diff(start) as f64 / 1e9;
            course.is_seen(start).then_some(Stay { stay, met: f64::from(others) + 1.0, weight: 1.0 })
        })
        .collect()
}

/// The stays with the mean number in the service around their beginning.
fn met_in_cells(course: &Course) -> Vec<Stay> {
    let successes = course.requests.iter().filter(|request| request.outcome == Outcome::Success);
    let stay = |request: &Request| {
        let (start, end) = request.stay()?;
        let cell = course.cell_of(start)?;
        let met = cell.in_service.max(1.0);
        course.is_seen(start).then_some(Stay { stay: end.abs_diff(start) as f64 / 1e9, met, weight: 1.0 })
    };
    successes.filter_map(stay).collect()
}

/// The stays of a recording that is too long for that: what they met is known by window.
fn met_in_windows(course: &Course) -> Vec<Stay> {
    let mut lengths: Vec<u64> =
        course.requests.iter().filter_map(Request::stay).map(|(start, end)| end.abs_diff(start)).collect();
    let median = lengths.len() / 2;
    let long = !lengths.is_empty()
        && *lengths.select_nth_unstable(median).1 < course.windows.length_ns().unsigned_abs() * 2;
    let in_service = course.windows.in_service(long);
    let successes = course.requests.iter().filter(|request| request.outcome == Outcome::Success);
    let stay = |request: &Request| {
        let (start, end) = request.stay()?;
        let others = in_service.get(course.windows.index_of(start)?)?;
        let met = if long { others.max(1.0) } else { others + 1.0 };
        course.is_seen(start).then_some(Stay { stay: end.abs_diff(start) as f64 / 1e9, met, weight: 1.0 })
    };
    successes.filter_map(stay).collect()
}

/// What requests are like that met about the same number in the service.
#[derive(Clone, Copy, Debug)]
pub(super) struct Typical {
    /// Median number that they met.
    pub(super) met: f64,
    /// Median stay in seconds.
    pub(super) stay_s: Estimate,
}

/// The services of a queue that was never empty.
pub(super) fn of_services(services_s: &[f64]) -> Option<Free> {
    let mut sorted: Vec<f64> = services_s.iter().map(|seconds| (seconds * 1e3).max(0.0)).collect();
    sorted.sort_by(f64::total_cmp);
    let times = ServiceTimes::of(&sorted.iter().map(|ms| (*ms, 1.0)).collect::<Vec<_>>())?;
    let mean_ms = interval::mean(&sorted)?;
    Some(Free { median_ms: interval::quantile(&mut sorted, 0.5)?, mean_ms, times })
}

fn free(stays: &Stays, sorted: &[(f64, f64)], fewest: usize) -> Option<Free> {
    if weight(sorted) < fewest as f64 {
        return None;
    }
    let mut sorted_ms: Vec<f64> = sorted.iter().map(|(ms, _)| *ms).collect();
    let (median_ms, mean_ms) = if matches!(stays.of, Of::Steps { .. }) {
        // A handful of typical stays: the range of most of them is the interval.
        let at = |q: f64| weighted(sorted, q);
        let range = |value: f64| Some(Estimate::new(value, at(0.1), at(0.9)));
        let mean = sorted.iter().map(|(ms, weight)| ms * weight).sum::<f64>() / weight(sorted);
        (range(middle(sorted))?, range(mean)?)
    } else {
        let mean = interval::mean(&sorted_ms)?;
        (interval::quantile(&mut sorted_ms, 0.5)?, mean)
    };
    Some(Free { median_ms, mean_ms, times: ServiceTimes::of(sorted)? })
}
