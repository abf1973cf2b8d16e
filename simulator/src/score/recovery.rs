//! How long it takes to be as good as the oracle again.

use crate::{Scenario, Summary};

/// Below this share of the oracle's good answers a run has not recovered.
const RECOVERED: f64 = 0.95;

/// So many good answers that their number scatters little.
const ANSWERS_IN_WINDOW: f64 = 1_000.0;

/// A window is no shorter, in seconds, unless the segment is short.
const SHORTEST_WINDOW: f64 = 1.0;

/// How many windows it must last.
const LASTING_WINDOWS: usize = 5;

/// Mean over the segments of the seconds from their beginning to their recovery.
pub(super) fn mean_seconds(scenario: &Scenario, oracle: &Summary, run: &Summary) -> f64 {
    let step = run.step.as_secs_f64();
    let (best, good) = (&oracle.good_per_step, &run.good_per_step);
    let segments = scenario.segments();
    let sum: f64 = segments
        .iter()
        .map(|segment| {
            let steps = |seconds: f64| (libm::round(seconds / step) as usize).min(best.len().min(good.len()));
            let (from, until) = (steps(segment.from.as_secs_f64()), steps(segment.until.as_secs_f64()));
            let length = (segment.until - segment.from).as_secs_f64();
            let recovered = steps_to_recovery(&best[from..until], &good[from..until], step);
            recovered.map_or(length, |steps| (steps as f64 * step).min(length))
        })
        .sum();
    sum / segments.len() as f64
}

/// `None` if there is no recovery.
fn steps_to_recovery(best: &[u32], good: &[u32], step: f64) -> Option<usize> {
    let sum = |answers: &[u32]| answers.iter().map(|&answers| f64::from(answers)).sum::<f64>();
    let per_second = sum(best) / (best.len() as f64 * step);
    let seconds = (ANSWERS_IN_WINDOW / per_second).max(SHORTEST_WINDOW);
    let window = ((seconds / step) as usize).clamp(1, (best.len() / LASTING_WINDOWS).max(1));
    let mut since = None;
    let windows = best.windows(window).zip(good.windows(window));
    for (start, (best, good)) in windows.enumerate() {
        since = (sum(good) >= RECOVERED * sum(best)).then(|| since.unwrap_or(start));
        match since {
            Some(since) if start - since >= window * (LASTING_WINDOWS - 1) => return Some(since),
            _ => {}
        }
    }
    since
}
