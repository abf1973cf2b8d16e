//! What the server examples share: load from outside, and a watch that stops time inside.

mod load;
mod stopwatch;

pub use self::{
    load::{Answer, Phase, Report, drive, run},
    stopwatch::{Stopwatch, Times},
};

use std::time::Duration;

/// The quantile of sorted times; `None` of none.
#[must_use]
pub fn quantile(sorted: &[Duration], quantile: f64) -> Option<Duration> {
    let rank = (sorted.len() as f64 * quantile).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}
