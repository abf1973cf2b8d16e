//! A recording cut into cells: stretches of time long enough to hold several stays, over which Little's law relates
//! the requests in the service, their stays and their completions.

use crate::digest::{Digest, Windows, is_coarse};
use crate::reading::Reading;
use crate::record::{Basis, Step};

/// Cells that are aimed at, at most.
const MOST_CELLS: usize = 400;
/// Cells that are aimed at, at least, if the stays are short enough.
const FEWEST_CELLS: f64 = 24.0;
/// Completions that a cell should hold, and stays that it should last.
const COMPLETIONS: f64 = 20.0;
const STAYS: f64 = 4.0;
/// The shortest cell of a log whose stamps are whole seconds.
const COARSE_S: f64 = 2.5;
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
}

impl Cell {
    /// Completions per second.
    pub(crate) fn throughput(&self) -> f64 {
        if self.seconds > 0.0 { self.completed / self.seconds } else { 0.0 }
    }

    /// Seconds times a function of the number in the service.
    pub(crate) fn integral(&self, rate: impl Fn(f64) -> f64) -> f64 {
        self.levels.iter().map(|(n, seconds)| rate(*n) * seconds).sum()
    }
}

/// The cells of a recording of requests, and the windows that they were made of.
pub(crate) fn of_requests(digest: &Digest, reading: &Reading, whole: bool) -> (Vec<Cell>, Windows) {
    let coarse = is_coarse(reading) && matches!(reading.basis, Basis::Start | Basis::End);
    let windows = if digest.requests.is_complete() && (coarse || whole) {
        let requests = if coarse {
            digest.requests.refined(reading.basis)
        } else {
            digest.requests.iter().copied().collect()
        };
        Windows::of(requests.iter(), whole)
    } else {
        digest.windows.clone()
    };
    (cells(&windows, if coarse { COARSE_S } else { 0.0 }), windows)
}

fn cells(windows: &Windows, shortest_s: f64) -> Vec<Cell> {
    let all = windows.as_slice();
    let total_s = all.len() as f64 * windows.length_s();
    let completed: u64 = all.iter().map(|w| w.completed).sum();
    let succeeded: u64 = all.iter().map(|w| w.succeeded).sum();
    if completed == 0 || succeeded == 0 {
        return Vec::new();
    }
    let stay = all.iter().map(|w| w.stay_s).sum::<f64>() / succeeded as f64;
    let busy_s = busy_seconds(windows);
    let for_completions = COMPLETIONS * busy_s / completed as f64;
    let wanted = for_completions.max(STAYS * stay).min(total_s / FEWEST_CELLS);
    let wanted = wanted.max(total_s / MOST_CELLS as f64).max(stay).max(shortest_s);
    let per_cell = (wanted / windows.length_s()).ceil().max(1.0) as usize;
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
    cells
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
            })
        })
        .collect()
}

/// The stay of those that were served, when the rest took no time: Little's law again.
fn return_stay(step: &Step, n: f64) -> Option<f64> {
    let served = step.completed - step.errors;
    (served > 0.0).then(|| n * step.seconds / served)
}
