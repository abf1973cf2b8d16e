//! What the order of the lines shows. Servers write a line when a request is done, so the completions of a log are
//! in order, up to what several workers and the clock's resolution disturb. A wrong basis or a wrong unit gives
//! itself away by completions that jump back.

use crate::quantity::Unit;
use crate::reading::Evidence;
use crate::record::Basis;

/// Records that are enough to decide.
const ENOUGH: usize = 20;

/// A stamp and a latency, both in nanoseconds.
pub(crate) type Pair = (i64, u64);

/// The share of completions that lie before an earlier one by more than `slack`.
fn disorder(ends: impl Iterator<Item = i64>, slack: i64) -> f64 {
    let (mut latest, mut count, mut back) = (i64::MIN, 0_u32, 0_u32);
    for end in ends {
        count += 1;
        if end < latest.saturating_sub(slack) {
            back += 1;
        }
        latest = latest.max(end);
    }
    if count == 0 { 0.0 } else { f64::from(back) / f64::from(count) }
}

/// The coarsest step of the stamps: a second when all are whole seconds, else a millisecond or nothing.
fn slack(pairs: &[Pair]) -> i64 {
    if pairs.iter().all(|(stamp, _)| stamp % 1_000_000_000 == 0) { 1_000_000_000 } else { 2_000_000 }
}

/// Which end of a request the stamps of a server's log mark. `usual` is the answer unless the order speaks clearly
/// against it.
pub(crate) fn basis(pairs: &[Pair], usual: Basis) -> (Basis, Evidence) {
    if pairs.len() < ENOUGH {
        return (usual, Evidence::Assumed);
    }
    let slack = slack(pairs);
    let if_end = disorder(pairs.iter().map(|(stamp, _)| *stamp), slack);
    let if_start =
        disorder(pairs.iter().map(|(stamp, latency)| stamp.saturating_add_unsigned(*latency)), slack);
    if if_end + 0.02 < if_start && if_end * 4.0 < if_start {
        (Basis::End, Evidence::Data)
    } else if if_start + 0.02 < if_end && if_start * 4.0 < if_end {
        (Basis::Start, Evidence::Data)
    } else {
        (usual, Evidence::Assumed)
    }
}

/// The unit of whole-number latencies of a log whose stamps mark arrivals: the first of `candidates`, unless the
/// order speaks clearly for another.
pub(crate) fn unit(stamps: &[i64], values: &[u64], candidates: &[Unit]) -> (Unit, Evidence) {
    let usual = candidates[0];
    if stamps.len() < ENOUGH {
        return (usual, Evidence::Assumed);
    }
    let slack: i64 = if stamps.iter().all(|s| s % 1_000_000_000 == 0) { 1_000_000_000 } else { 2_000_000 };
    let disorder_in = |unit: Unit| {
        let ends = stamps
            .iter()
            .zip(values)
            .map(|(stamp, value)| stamp.saturating_add_unsigned(value.saturating_mul(unit.nanos())));
        // Values were cut to whole units, as the stamps were to whole seconds.
        disorder(ends, slack.saturating_add_unsigned(unit.nanos()))
    };
    let of_usual = disorder_in(usual);
    let better = candidates[1..]
        .iter()
        .map(|unit| (disorder_in(*unit), *unit))
        .filter(|(disorder, _)| disorder + 0.02 < of_usual && disorder * 4.0 < of_usual)
        .min_by(|a, b| a.0.total_cmp(&b.0));
    match better {
        Some((_, unit)) => (unit, Evidence::Data),
        None => (usual, Evidence::Assumed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Completions in order, one each 10 ms, with latencies between 5 and 300 ms.
    fn completions() -> Vec<Pair> {
        (0..200_i64)
            .map(|n| (1_700_000_000_000_000_000 + n * 10_000_000, (5 + (n as u64 * 7919) % 295) * 1_000_000))
            .collect()
    }

    #[test]
    fn the_order_of_lines_tells_start_from_end() {
        let ends = completions();
        assert_eq!(basis(&ends, Basis::Start), (Basis::End, Evidence::Data));
        let starts: Vec<Pair> = ends.iter().map(|(end, latency)| (end - *latency as i64, *latency)).collect();
        assert_eq!(basis(&starts, Basis::End), (Basis::Start, Evidence::Data));
        assert_eq!(basis(&starts[..10], Basis::End), (Basis::End, Evidence::Assumed));
    }

    #[test]
    fn the_order_of_lines_tells_milliseconds_from_microseconds() {
        let (starts, values): (Vec<i64>, Vec<u64>) =
            completions().iter().map(|(end, latency)| (end - *latency as i64, latency / 1_000_000)).unzip();
        assert_eq!(
            unit(&starts, &values, &[Unit::Microseconds, Unit::Milliseconds]),
            (Unit::Milliseconds, Evidence::Data)
        );
        let micros: Vec<u64> = values.iter().map(|v| v * 1000).collect();
        assert_eq!(
            unit(&starts, &micros, &[Unit::Milliseconds, Unit::Microseconds]),
            (Unit::Microseconds, Evidence::Data)
        );
    }
}
