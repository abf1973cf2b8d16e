//! Whether a recording contains an overload, and so can tell the capacity: a bend in the curve of throughput is not
//! enough, because slow requests pile up in flight without anybody waiting for anybody, and because a service may stall
//! at any load.

use super::arrivals::Waiting;
use super::cells::{Cell, Course};
use super::fit::{Fit, Fits};
use super::interval::{self, Estimate};
use super::times::Stays;

/// How much better than a straight line a bend must be, about a χ² of one degree of freedom: one chance in a thousand.
const GAIN: f64 = 11.0;
/// The share of resamples that lies beyond each end of an interval by which the evidence is judged.
const PERCENTILE: f64 = 0.025;
/// Stretches of time without which nothing can be said about the uncertainty.
const BLOCKS: usize = 3;
/// Completions that must have happened beyond the bend.
const BEYOND: f64 = 40.0;
/// How far beyond the bend counts as saturated, and how far below as free.
const SATURATED: f64 = 1.25;
const FREE: f64 = 0.75;
/// How much of the growth of the number in the service the stays must show.
const RISE: f64 = 0.35;
/// The share of the highest throughput below which it has fallen again.
const FALLEN: f64 = 0.9;
/// By how much of it the throughput of the moments that began beyond the bend may differ from that of the curve, and by how
/// many standard errors.
const CHANCE: f64 = 0.1;
const CHANCE_ERRORS: f64 = 2.5;
/// How far beyond the bend no spell of slow requests reaches.
const DEEP: f64 = 3.0;
/// The longest moment, as a share of the time that a request takes.
const MOMENT: f64 = 0.5;

/// Why the capacity cannot be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// Throughput grew with the requests in the service up to the most that there ever were.
    NoOverload,
    /// Too few requests or levels of load to see a curve.
    TooLittle,
    /// The number in flight rose because some requests are slow, and the typical one was as fast as ever.
    SlowRequests,
    /// Latency rose, and neither demand nor throughput were higher than at other times.
    Stalls,
    /// The throughput was clearly higher at other times: the service changed.
    Changing,
    /// Many were in the service at times because it had been slow by chance, and not the other way round.
    Chance,
}

/// An overload that was seen.
#[derive(Clone, Debug)]
pub(crate) struct Saturation {
    pub(crate) fit: Fit,
    pub(crate) capacity: Estimate,
    pub(crate) peak: Estimate,
    /// Whether there were cells below the bend, without which its place is only an upper bound.
    pub(crate) seen_below: bool,
    /// Whether the throughput was seen to fall again beyond its peak. Without that, a curve that could fall only says that
    /// the bend is a soft one, and its peak says nothing.
    pub(crate) falls: bool,
    /// Variance of the completions over that of a Poisson model.
    dispersion: f64,
}

/// Looks for an overload.
pub(crate) fn saturation(
    cells: &[Cell],
    waiting: Waiting,
    stays: &Stays,
    coarse: bool,
) -> Result<Saturation, Doubt> {
    let clean: Vec<Cell> = cells.iter().filter(|cell| !cell.haunted).cloned().collect();
    let cells = &clean[..];
    // Nobody waits for anybody with less than one request in the service. Where whole seconds blur who met whom, a curve may
    // seem to bend there all the same; within a long window, one request may be there for a part of it.
    let least = if coarse { 1.0 } else { 0.5 };
    let fits = Fits::of(cells, least).filter(|fits| fits.blocks() >= BLOCKS).ok_or(Doubt::TooLittle)?;
    let fit = fits.bent();
    let (capacity, peak) = places(&fits, &fit, coarse, |_| PERCENTILE).ok_or(Doubt::NoOverload)?;
    if fits.gain(&fit) < GAIN {
        return Err(if cells.len() < 4 { Doubt::TooLittle } else { Doubt::NoOverload });
    }
    let beyond = sum(cells, peak.value * SATURATED, f64::INFINITY);
    if beyond.completed < BEYOND || peak.high > most(cells) || capacity.high > capacity.value * 1.5 {
        return Err(Doubt::NoOverload);
    }
    let free = sum(cells, 0.0, peak.value * FREE);
    let seen_below = free.completed >= BEYOND / 2.0;
    rises(peak.value, stays)?;
    demand(&beyond, &free, fits.dispersion, waiting, seen_below)?;
    if coarse && !(beyond.refused > 0.0 || pushed(&beyond, fits.dispersion) || is_deep(cells, peak.value)) {
        return Err(Doubt::Chance);
    }
    steady(cells, capacity.value, peak.value, fits.dispersion)?;
    let falls = fit.curve.most().is_some_and(|highest| fit.curve.at(most(cells)) < FALLEN * highest);
    // What is told is told with the interval that few cells leave.
    let (capacity, peak) =
        places(&fits, &fit, coarse, interval::tail_of_resamples).ok_or(Doubt::NoOverload)?;
    Ok(Saturation { fit, capacity, peak, seen_below, falls, dispersion: fits.dispersion })
}

/// The capacity and the bend of a fit.
fn places(
    fits: &Fits,
    fit: &Fit,
    coarse: bool,
    tail: impl FnOnce(usize) -> f64,
) -> Option<(Estimate, Estimate)> {
    let (capacity, peak) = fits.uncertainty(fit, tail);
    let (mut capacity, peak) = (capacity?, peak?);
    if coarse && let Some(flat) = fits.saturating.capacity() {
        // How high a curve rises before it falls is blurred by stamps of whole seconds.
        capacity = Estimate::new(capacity.value, capacity.low.min(flat), capacity.high.max(flat));
    }
    Some((capacity, peak))
}

/// Within a stretch of time that happens to be slow requests pile up, and seem to be what makes it slow. How many were in the
/// service when a moment began knows nothing of what happened in that moment: if the throughput of the moments that began
/// beyond the bend is another than that of the curve, the bend is a product of chance.
pub(crate) fn not_by_chance(saturation: &Saturation, course: &Course) -> Result<(), Doubt> {
    let (peak, fit) = (saturation.peak.value, &saturation.fit);
    if course.coarse || course.windows.length_s() > MOMENT * peak / saturation.capacity.value {
        return Ok(());
    }
    let rate = |n| fit.rate * fit.curve.at(n);
    // One request alone waits for nobody, wherever the bend seems to be.
    let (completed, expected) = course.begun_with((peak * SATURATED).ceil().max(2.0), rate);
    let error = CHANCE_ERRORS * (saturation.dispersion * completed).sqrt();
    if (completed - expected).abs() > (CHANCE * expected).max(error) { Err(Doubt::Chance) } else { Ok(()) }
}

/// What cells with a number in the service between two bounds hold together.
#[derive(Default)]
struct Sum {
    seconds: f64,
    completed: f64,
    left: f64,
    arrivals: f64,
    refused: f64,
    in_service: f64,
}

fn sum(cells: &[Cell], from: f64, to: f64) -> Sum {
    let mut sum = Sum::default();
    for cell in cells.iter().filter(|cell| (from..to).contains(&cell.in_service) && cell.in_service > 0.0) {
        sum.seconds += cell.seconds;
        sum.completed += cell.completed;
        sum.left += cell.completed + cell.censored;
        sum.arrivals += cell.arrivals;
        sum.refused += cell.refused;
        sum.in_service += cell.in_service * cell.seconds;
    }
    sum
}

/// The number in the service that was exceeded for 3 % of the time.
fn most(cells: &[Cell]) -> f64 {
    let mut levels: Vec<(f64, f64)> = cells.iter().flat_map(|cell| cell.levels.iter().copied()).collect();
    levels.sort_by(|a, b| b.0.total_cmp(&a.0));
    let total: f64 = levels.iter().map(|(_, seconds)| seconds).sum();
    let mut above = 0.0;
    levels
        .into_iter()
        .find(|(_, seconds)| {
            above += seconds;
            above >= 0.03 * total
        })
        .map_or(0.0, |(n, _)| n)
}

/// Everybody has to wait in an overload, and not only a few slow requests: the typical stay has to grow about as the
/// number in the service does.
fn rises(peak: f64, stays: &Stays) -> Result<(), Doubt> {
    let Some(above) = stays.met(peak * SATURATED, f64::INFINITY) else { return Err(Doubt::TooLittle) };
    let below = stays.met(0.0, peak * FREE).or_else(|| stays.met(0.0, peak * SATURATED));
    let (below, above, growth) = match below {
        Some(below) => (below, above, above.met / peak),
        // Never below the bend: then stays have to grow beyond it.
        None => {
            let halves = stays.met(peak * SATURATED, above.met).zip(stays.met(above.met, f64::INFINITY));
            let (less, more) = halves.ok_or(Doubt::NoOverload)?;
            (less, more, more.met / less.met)
        }
    };
    let grown = above.stay_s.value / below.stay_s.value >= 1.0 + RISE * (growth - 1.0);
    if grown && above.stay_s.low > below.stay_s.high { Ok(()) } else { Err(Doubt::SlowRequests) }
}

/// An overload needs demand: more throughput than at other times, more arrivals than the service finishes, or clients
/// that always have a next request.
fn demand(
    beyond: &Sum,
    free: &Sum,
    dispersion: f64,
    waiting: Waiting,
    seen_below: bool,
) -> Result<(), Doubt> {
    let rate = |sum: &Sum| sum.completed / sum.seconds;
    let error = |sum: &Sum| (dispersion * sum.completed).sqrt() / sum.seconds;
    let higher = seen_below && {
        let difference = rate(beyond) - rate(free);
        difference > 0.08 * rate(beyond) && difference > 3.0 * error(beyond).hypot(error(free))
    };
    if higher || pushed(beyond, dispersion) || waiting == Waiting::Closed {
        Ok(())
    } else {
        Err(Doubt::Stalls)
    }
}

/// Whether so many were in the service at times that it was no matter of chance. A slow spell is over when what was slow is
/// done, and in whole seconds that is all that can be told.
fn is_deep(cells: &[Cell], peak: f64) -> bool {
    most(cells) >= DEEP * peak.max(2.0)
}

/// Whether clearly more arrived than the service finished.
fn pushed(sum: &Sum, dispersion: f64) -> bool {
    let excess = sum.arrivals - sum.left;
    excess > 0.05 * sum.left && excess > 3.0 * (dispersion * sum.left).sqrt()
}

/// A queue that is never empty needs clients that always have a next request, or more arrivals than the service
/// finishes; and no throughput is clearly higher than what it does then.
pub(crate) fn kept_full(cells: &[Cell], capacity: f64, waiting: Waiting) -> Result<(), Doubt> {
    if waiting != Waiting::Closed && !pushed(&sum(cells, 0.0, f64::INFINITY), 1.0) {
        return Err(Doubt::Stalls);
    }
    steady(cells, capacity, f64::INFINITY, 1.0)
}

/// A capacity holds for the whole recording, or it is none: no throughput may be clearly higher while the service is not
/// even full. (When it is full of long requests, short ones may pass for a while at a higher rate.)
fn steady(cells: &[Cell], capacity: f64, peak: f64, dispersion: f64) -> Result<(), Doubt> {
    let above = |cell: &&Cell| {
        let expected = capacity * cell.seconds;
        cell.in_service < peak
            && cell.completed > 1.1 * expected
            && cell.completed - expected > 4.0 * (dispersion * expected).sqrt()
    };
    let seconds: f64 = cells.iter().filter(above).map(|cell| cell.seconds).sum();
    let all: f64 = cells.iter().filter(|cell| cell.completed > 0.0).map(|cell| cell.seconds).sum();
    if seconds > 0.05 * all { Err(Doubt::Changing) } else { Ok(()) }
}
