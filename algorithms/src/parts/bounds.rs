use std::time::Duration;

use crate::InvalidSettings;

/// The whole limit nearest below `limit`, kept within the bounds. Anything that is not a number counts as `min`.
pub(crate) fn bounded(limit: f64, min: usize, max: usize) -> usize {
    (limit as usize).clamp(min, max)
}

/// Whole nanoseconds, at most `u64::MAX`.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The integer part of log₁₀, at least 1: the step by which the Vegas family moves.
pub(crate) fn whole_log10(limit: usize) -> usize {
    limit.checked_ilog10().map_or(1, |log| log.max(1) as usize)
}

/// An error that names `field` unless `holds`.
pub(crate) fn check(
    holds: bool,
    field: &'static str,
    problem: impl FnOnce() -> String,
) -> Result<(), InvalidSettings> {
    if holds { Ok(()) } else { Err(InvalidSettings::new(field, problem())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_number_becomes_the_least_limit() {
        assert_eq!(bounded(f64::NAN, 3, 9), 3);
        assert_eq!(bounded(f64::NEG_INFINITY, 3, 9), 3);
        assert_eq!(bounded(f64::INFINITY, 3, 9), 9);
        assert_eq!(bounded(4.999, 3, 9), 4);
    }

    #[test]
    fn the_whole_logarithm_is_at_least_one() {
        let logs = [0, 1, 9, 10, 99, 100, 999, 1_000].map(whole_log10);
        assert_eq!(logs, [1, 1, 1, 1, 1, 2, 2, 3]);
    }
}
