use std::time::Duration;

use goodput_algorithms::InvalidSettings;

use crate::share::Share;

/// When another attempt is worth it: the queue ahead divided by the rate at which it drains, in whole seconds,
/// rounded up, at least one.
///
/// ```
/// use std::time::Duration;
///
/// assert_eq!(goodput::refusal::retry_after(201, 100.0), Ok(Duration::from_secs(3)));
/// ```
///
/// # Errors
///
/// [`InvalidSettings`] unless `drain_per_second` is finite and above zero.
pub fn retry_after(queue_ahead: u64, drain_per_second: f64) -> Result<Duration, InvalidSettings> {
    if !(drain_per_second.is_finite() && drain_per_second > 0.0) {
        return Err(InvalidSettings::new(
            "drain_per_second",
            format!("must be finite and above 0, not {drain_per_second}"),
        ));
    }
    let seconds = (queue_ahead as f64 / drain_per_second).ceil().max(1.0);
    Ok(Duration::from_secs(seconds as u64))
}

/// A hint spread over `[hint, (1 + share) · hint]` by `random`, so that those who are refused together do not come back
/// together. Never earlier than the hint.
///
/// `random` lies within 0 and 1; what does not counts as the nearer of the two, and no number as 0.
#[must_use]
pub fn spread(hint: Duration, share: Share, random: f64) -> Duration {
    let random = if random.is_nan() { 0.0 } else { random.clamp(0.0, 1.0) };
    let extra = Duration::try_from_secs_f64(hint.as_secs_f64() * share.as_f64() * random);
    hint.saturating_add(extra.unwrap_or(Duration::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_assertions_hold() {
        for (waiting, drain, seconds) in
            [(250, 100.0, 3), (201, 100.0, 3), (200, 100.0, 2), (0, 100.0, 1), (30, 100.0, 1)]
        {
            assert_eq!(
                retry_after(waiting, drain),
                Ok(Duration::from_secs(seconds)),
                "{waiting} at {drain}/s"
            );
        }
    }

    #[test]
    fn a_queue_that_does_not_drain_has_no_hint() {
        for drain in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(retry_after(10, drain).unwrap_err().field, "drain_per_second");
        }
    }

    #[test]
    fn a_spread_hint_is_never_earlier_and_at_most_the_share_later() {
        let hint = Duration::from_secs(10);
        let half = Share::new(0.5).unwrap();
        assert_eq!(spread(hint, half, 0.0), hint);
        assert_eq!(spread(hint, half, 1.0), Duration::from_secs(15));
        assert_eq!(spread(hint, half, 0.4), Duration::from_secs(12));
        assert_eq!(spread(hint, half, f64::NAN), hint);
        assert_eq!(spread(hint, half, 7.0), Duration::from_secs(15));
        assert_eq!(spread(Duration::MAX, Share::ALL, 1.0), Duration::MAX);
    }
}
