//! How requests arrive: their rate over time, how bursty they are, and whether clients wait for answers.

use serde::{Deserialize, Serialize};

use super::cells::Cell;
use crate::digest::Windows;

/// Points of the rate's course that are kept.
const MOST_POINTS: usize = 120;
/// Arrivals that a count for the dispersion should hold.
const COUNT: f64 = 10.0;
/// The dispersion from which on arrivals come in bursts.
const BURSTS: f64 = 2.0;

/// How requests arrive.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Arrivals {
    /// Arrivals per second over the whole recording, those turned away included.
    pub rate_per_s: f64,
    /// The highest rate of [`course`](Self::course).
    pub peak_per_s: f64,
    /// The rate over time: seconds from the beginning, arrivals per second.
    pub course: Vec<(f64, f64)>,
    /// Variance of counts over their mean, with slow changes taken out: 1 for independent arrivals (Poisson), 0 for a
    /// metronome, more for bursts. `None` without stamps, or with too few arrivals.
    pub dispersion: Option<f64>,
    /// Whether clients wait for answers before they send again.
    pub clients_wait: Waiting,
}

impl Arrivals {
    /// Whether many requests come at once: what comes within a second then says little about how many met each other.
    pub(super) fn come_in_bursts(&self) -> bool {
        self.dispersion.is_some_and(|dispersion| dispersion > BURSTS)
    }
}

/// Whether the load waits for the service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Waiting {
    /// Closed loop: a fixed number of requests is in flight, and a slow service gets less load. Replaying these arrivals
    /// would replay the tool that made them.
    Closed,
    /// Open loop: arrivals do not care how many requests are in flight.
    Open,
    /// It cannot be told.
    #[default]
    Unknown,
}

/// The arrivals of a recording of requests.
pub(crate) fn of_windows(windows: &Windows, cells: &[Cell]) -> Arrivals {
    let all = windows.as_slice();
    let total: u64 = all.iter().map(|window| window.arrivals).sum();
    let seconds = all.len() as f64 * windows.length_s();
    if total == 0 || seconds <= 0.0 {
        return Arrivals::default();
    }
    let per_point = all.len().div_ceil(MOST_POINTS).max((0.5 / windows.length_s()).ceil() as usize).max(1);
    let course: Vec<(f64, f64)> = all
        .chunks(per_point)
        .enumerate()
        .map(|(index, group)| {
            let arrivals: u64 = group.iter().map(|window| window.arrivals).sum();
            let length = group.len() as f64 * windows.length_s();
            ((index * per_point) as f64 * windows.length_s(), arrivals as f64 / length)
        })
        .collect();
    // A last point of a few milliseconds is no rate.
    let full = if course.len() > 1
        && !all.len().is_multiple_of(per_point)
        && all.len() % per_point * 2 < per_point
    {
        &course[..course.len() - 1]
    } else {
        &course[..]
    };
    let peak = full.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
    Arrivals {
        rate_per_s: total as f64 / seconds,
        peak_per_s: peak,
        dispersion: dispersion(windows, total, seconds),
        clients_wait: waiting(cells),
        course: full.to_vec(),
    }
}

/// The arrivals of a file of aggregates.
pub(crate) fn of_cells(cells: &[Cell], clients: bool) -> Arrivals {
    let seconds: f64 = cells.iter().map(|cell| cell.seconds).sum();
    if seconds <= 0.0 {
        return Arrivals::default();
    }
    let rate = |cell: &Cell| cell.arrivals / cell.seconds;
    Arrivals {
        rate_per_s: cells.iter().map(|cell| cell.arrivals).sum::<f64>() / seconds,
        peak_per_s: cells.iter().map(rate).fold(0.0, f64::max),
        course: cells.iter().take(MOST_POINTS).map(|cell| (cell.offset, rate(cell))).collect(),
        dispersion: None,
        clients_wait: if clients { Waiting::Closed } else { Waiting::Unknown },
    }
}

/// Half the mean square of the differences of neighbouring counts, over their mean: the variance without the trend
/// (von Neumann 1941).
fn dispersion(windows: &Windows, total: u64, seconds: f64) -> Option<f64> {
    let length = COUNT * seconds / total as f64;
    let per_count = (length / windows.length_s()).ceil().max(1.0) as usize;
    let counts: Vec<f64> = windows
        .as_slice()
        .chunks_exact(per_count)
        .map(|group| group.iter().map(|window| window.arrivals).sum::<u64>() as f64)
        .collect();
    if counts.len() < 10 {
        return None;
    }
    let mean = counts.iter().sum::<f64>() / counts.len() as f64;
    let squares: f64 = counts.windows(2).map(|pair| (pair[1] - pair[0]) * (pair[1] - pair[0])).sum();
    Some(squares / (2.0 * (counts.len() - 1) as f64) / mean)
}

/// In a closed loop the number in flight hardly varies within a cell; independent arrivals would give it a variance
/// of about its mean.
fn waiting(cells: &[Cell]) -> Waiting {
    let mut ratios: Vec<f64> = cells
        .iter()
        .filter(|cell| cell.in_service > 1.5 && cell.completed > 5.0)
        // Within a cell shorter than the stays the number hardly varies either way.
        .filter(|cell| cell.completed > cell.in_service)
        .map(|cell| {
            let square: f64 =
                cell.levels.iter().map(|(n, s)| s * (n - cell.in_service) * (n - cell.in_service)).sum();
            square / cell.seconds / cell.in_service
        })
        .collect();
    if ratios.len() < 4 {
        return Waiting::Unknown;
    }
    ratios.sort_by(f64::total_cmp);
    match ratios[ratios.len() / 2] {
        ..0.2 => Waiting::Closed,
        0.6.. => Waiting::Open,
        _ => Waiting::Unknown,
    }
}
