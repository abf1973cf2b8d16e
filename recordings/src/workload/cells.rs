//! A recording cut into cells: stretches of time long enough to hold several stays, over which Little's law relates
//! the requests in the service, their stays and their completions.

use std::borrow::Cow;

use crate::digest::{Digest, Request, Windows, is_coarse};
use crate::reading::Reading;
use crate::record::{Basis, Outcome, Step};

/// Cells that are aimed at, at most.
const MOST_CELLS: usize = 400;
/// Cells that are aimed at, at least, if the stays are short enough.
const FEWEST_CELLS: f64 = 24.0;
/// Completions that a cell should hold, and short stays that it should last: what is in work at its ends is counted in
/// one cell and done in another.
const COMPLETIONS: f64 = 8.0;
const STAYS: f64 = 8.0;
/// The share of stays that are shorter than a short one.
const SHORT: f64 = 0.05;
/// The shortest cell of a log whose stamps are whole seconds.
pub(crate) const COARSE_S: f64 = 2.5;
/// Ratio of neighbouring levels of requests in the service.
const LEVEL_RATIO: f64 = 1.06;

/// A stretch of time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cell {
    /// Seconds from the beginning of the recording.
    pub(crate) offset: f64,
    /// Length in seconds.
    pub(crate) seconds: f64,
    /// How long so many requests were in the service: number and seconds.
    pub(crate) levels: Vec<(f64, f64)>,
    /// Requests finished by the service.
    pub(crate) completed: f64,
    /// Requests that arrived, those turned away included.
    pub(crate) arrivals: f64,
    pub(crate) refused: f64,
    /// Requests that somebody stopped waiting for.
    pub(crate) censored: f64,
    /// Mean number in the service.
    pub(crate) in_service: f64,
    /// Mean stay of the successes, in seconds.
    pub(crate) stay: Option<f64>,
    /// The service may have been working on what is not seen: on requests that have been given up in or shortly before this
    /// cell, or on those that ended before the recording began.
    pub(crate) haunted: bool,
}

impl Cell {
    /// Seconds times a function of the number in the service.
    pub(crate) fn integral(&self, rate: impl Fn(f64) -> f64) -> f64 {
        self.levels.iter().map(|(n, seconds)| rate(*n) * seconds).sum()
    }
}

/// A recording of requests in the form in which it is understood.
pub(crate) struct Course<'d> {
    pub(crate) cells: Vec<Cell>,
    pub(crate) windows: Cow<'d, Windows>,
    /// The requests that were kept, with refined stamps.
    pub(crate) requests: Cow<'d, [Request]>,
    /// Whether the requests are all that there were.
    pub(crate) complete: bool,
    /// Whether the stamps are whole seconds.
    pub(crate) coarse: bool,
    /// When the first request ended. A log begins in the middle of things: those that were in the service before it and
    /// ended before it are not in it.
    first_end: i64,
    /// Windows that make a cell.
    windows_per_cell: usize,
}

impl<'d> Course<'d> {
    /// With `whole`, all of a request's time counts as its stay in the service, and not only the part that the file tells
    /// apart from a proxy's queue.
    pub(crate) fn of(digest: &'d Digest, reading: &Reading, whole: bool) -> Self {
        let coarse = is_coarse(reading);
        let mut requests = digest.requests.refined(if coarse { reading.order() } else { Basis::None });
        if whole {
            requests.to_mut().iter_mut().for_each(|request| *request = request.as_a_whole());
        }
        let windows = if digest.requests.is_complete() && (coarse || whole) {
            Cow::Owned(Windows::of(requests.iter()))
        } else {
            Cow::Borrowed(&digest.windows)
        };
        let per_cell = windows_per_cell(&windows, short_stay(&requests), if coarse { COARSE_S } else { 0.0 });
        let complete = digest.requests.is_complete();
        let first_end =
            requests.iter().filter_map(Request::stay).map(|(_, end)| end).min().unwrap_or(i64::MIN);
        Self {
            cells: cells(&windows, per_cell),
            first_end,
            windows,
            requests,
            complete,
            coarse,
            windows_per_cell: per_cell,
        }
    }

    /// The cell of an instant.
    pub(crate) fn cell_of(&self, instant: i64) -> Option<&Cell> {
        self.cells.get(self.windows.index_of(instant)? / self.windows_per_cell)
    }

    /// Completions in all windows that began with at least so many in the service, and those that a rate by that number
    /// lets expect.
    pub(crate) fn begun_with(&self, least: f64, rate: impl Fn(f64) -> f64) -> (f64, f64) {
        let (mut in_service, mut completed, mut expected) = (0, 0, 0.0);
        for (index, window) in self.windows.as_slice().iter().enumerate() {
            let haunted = self.cells.get(index / self.windows_per_cell).is_none_or(|cell| cell.haunted);
            if !haunted && in_service as f64 >= least {
                completed += window.completed;
                expected += rate(in_service as f64) * self.windows.length_s();
            }
            in_service += window.change();
        }
        (completed as f64, expected)
    }

    /// Whether the recording shows everything that was in the service at an instant.
    pub(crate) fn is_seen(&self, instant: i64) -> bool {
        instant >= self.first_end && self.cell_of(instant).is_some_and(|cell| !cell.haunted)
    }
}

/// A stay that only few are shorter than, in seconds.
fn short_stay(requests: &[Request]) -> f64 {
    let successes = requests.iter().filter(|request| request.outcome == Outcome::Success);
    let mut stays: Vec<u64> =
        successes.filter_map(Request::stay).map(|(start, end)| end.abs_diff(start)).collect();
    if stays.is_empty() {
        return 0.0;
    }
    let rank = (stays.len() as f64 * SHORT) as usize;
    *stays.select_nth_unstable(rank).1 as f64 / 1e9
}

fn windows_per_cell(windows: &Windows, short_s: f64, shortest_s: f64) -> usize {
    let all = windows.as_slice();
    let total_s = all.len() as f64 * windows.length_s();
    let completed: u64 = all.iter().map(|w| w.completed).sum();
    let for_completions = COMPLETIONS * busy_seconds(windows) / completed.max(1) as f64;
    let wanted = for_completions.max(STAYS * short_s).min(total_s / FEWEST_CELLS);
    let wanted = wanted.max(total_s / MOST_CELLS as f64).max(shortest_s);
    (wanted / windows.length_s()).ceil().max(1.0) as usize
}

fn cells(windows: &Windows, per_cell: usize) -> Vec<Cell> {
    let all = windows.as_slice();
    if all.iter().all(|window| window.completed == 0) {
        return Vec::new();
    }
    let mut in_service = 0;
    let mut cells = Vec::new();
    for (index, group) in all.chunks(per_cell).enumerate() {
        let mut cell = Cell { offset: (index * per_cell) as f64 * windows.length_s(), ..Cell::default() };
        let mut levels: Vec<(i32, f64, f64)> = Vec::new();
        let (mut stay_s, mut succeeded, mut area) = (0.0, 0_u64, 0.0);
        for window in group {
            let here = window.area_s(in_service, windows.length_ns()).max(0.0);
            add_level(&mut levels, here / windows.length_s(), windows.length_s());
            in_service += window.change();
            area += here;
            cell.completed += window.completed as f64;
            cell.arrivals += window.arrivals as f64;
            cell.refused += window.refused as f64;
            cell.censored += window.censored as f64;
            stay_s += window.stay_s;
            succeeded += window.succeeded;
        }
        cell.seconds = group.len() as f64 * windows.length_s();
        cell.in_service = area / cell.seconds;
        cell.stay = (succeeded > 0).then(|| stay_s / succeeded as f64);
        cell.levels =
            levels.into_iter().map(|(_, weighted, seconds)| (weighted / seconds, seconds)).collect();
        cells.push(cell);
    }
    haunt(&mut cells);
    cells
}

/// Marks the cells in which the service may be working on requests that nobody waits for any more: as long as they would
/// take at the highest throughput seen.
fn haunt(cells: &mut [Cell]) {
    let most = cells.iter().map(|cell| cell.completed / cell.seconds).fold(0.0, f64::max);
    let mut unseen = 0.0;
    let mut begun = false;
    for cell in cells {
        begun |= cell.completed + cell.censored > 0.0;
        unseen += cell.censored;
        cell.haunted = !begun || (unseen >= 1.0 && unseen > 0.1 * cell.completed);
        unseen = (unseen - most * cell.seconds).max(0.0);
    }
}

/// Seconds in which anything was in the service.
fn busy_seconds(windows: &Windows) -> f64 {
    let mut in_service = 0;
    let mut busy = 0_u64;
    for window in windows.as_slice() {
        busy += u64::from(in_service > 0 || window.change() != 0 || window.completed > 0);
        in_service += window.change();
    }
    busy as f64 * windows.length_s()
}

/// Adds time at a number in the service to the level that it belongs to.
fn add_level(levels: &mut Vec<(i32, f64, f64)>, n: f64, seconds: f64) {
    let level = if n < 0.5 { -1 } else { (n / 0.5).log(LEVEL_RATIO) as i32 };
    match levels.iter_mut().find(|(known, ..)| *known == level) {
        Some((_, weighted, sum)) => {
            *weighted += n * seconds;
            *sum += seconds;
        }
        None => levels.push((level, n * seconds, seconds)),
    }
}

/// The cells of a file of aggregates: a cell for each step.
pub(crate) fn of_steps(steps: &[Step]) -> Vec<Cell> {
    let first = steps.iter().filter_map(|step| step.start).min();
    steps
        .iter()
        .filter(|step| step.seconds > 0.0 && step.completed > 0.0)
        .filter_map(|step| {
            let mean_s = step.latency_ms.mean.or(step.latency_ms.p50)? / 1e3;
            // Little's law, over all that were answered: those turned away take next to no time.
            let by_law = step.completed / step.seconds * mean_s;
            let n = step.clients.filter(|_| step.errors * 20.0 < step.completed).unwrap_or(by_law);
            Some(Cell {
                offset: step
                    .start
                    .zip(first)
                    .map_or(0.0, |(start, first)| start.saturating_sub(first) as f64 / 1e9),
                seconds: step.seconds,
                levels: vec![(n, step.seconds)],
                completed: (step.completed - step.errors).max(0.0),
                arrivals: step
                    .offered_per_s
                    .map_or(step.completed + step.timeouts, |rate| rate * step.seconds),
                refused: step.refused.unwrap_or(step.errors),
                censored: step.timeouts,
                in_service: n,
                // With refusals among them, the mean is nobody's stay.
                stay: Some(if step.errors * 20.0 < step.completed { mean_s } else { return_stay(step, n)? }),
                haunted: false,
            })
        })
        .collect()
}

/// The stay of those that were served, when the rest took no time: Little's law again.
fn return_stay(step: &Step, n: f64) -> Option<f64> {
    let served = step.completed - step.errors;
    (served > 0.0).then(|| n * step.seconds / served)
}
