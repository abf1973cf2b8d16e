use std::time::Duration;

use goodput_algorithms::{Instant, Latencies, Window};

/// Everything that a gate has observed since it was built: sums that outlast any window, and any uptime.
///
/// A [`Window`] of a limiter sums latencies in 64 bits, which is enough for a window; a thousand requests in flight fill
/// them in 213 days. Here they have 128.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Totals {
    /// When the gate was built.
    pub opened: Instant,
    /// Until when this was observed.
    pub closed: Instant,
    /// Requests answered well.
    pub successes: Ended,
    /// Requests that say that there is too much load.
    pub overloads: Ended,
    /// Requests that failed in a way that says nothing about load.
    pub failures: Ended,
    /// Requests whose caller went away.
    pub cancelled: u64,
    /// Requests refused because the limit was reached, whatever they were told.
    pub refused: u64,
    /// Requests that felt the limit: their admission reached it, or it stood in their way.
    pub limit_hits: u64,
    /// The largest in flight at the admission of a request that has ended, itself counted.
    pub max_in_flight: u64,
    /// Integral of in flight over time, in request-nanoseconds.
    pub in_flight_area_ns: u128,
}

/// Requests of one outcome.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Ended {
    /// How many.
    pub count: u64,
    /// Sum of their latencies, ns.
    pub sum_ns: u128,
    /// Sum of their squared latencies, ns².
    pub sum_squares: u128,
}

impl Totals {
    /// Nothing yet, of a gate that was built then.
    pub(crate) const fn since(opened: Instant) -> Self {
        Self {
            opened,
            closed: opened,
            successes: Ended::NONE,
            overloads: Ended::NONE,
            failures: Ended::NONE,
            cancelled: 0,
            refused: 0,
            limit_hits: 0,
            max_in_flight: 0,
            in_flight_area_ns: 0,
        }
    }

    /// Adds what a window saw, but for its span and area: those are known without the window.
    #[inline]
    pub(crate) fn absorb(&mut self, window: &Window) {
        self.successes.absorb(&window.successes);
        self.overloads.absorb(&window.overloads);
        self.failures.absorb(&window.failures);
        self.cancelled = self.cancelled.saturating_add(window.cancelled);
        self.refused = self.refused.saturating_add(window.refused);
        self.limit_hits = self.limit_hits.saturating_add(window.limit_hits);
        self.max_in_flight = self.max_in_flight.max(window.max_in_flight);
    }

    /// Requests that ended, however they did.
    #[must_use]
    pub const fn ended(&self) -> u64 {
        let samples = self.successes.count.saturating_add(self.overloads.count);
        samples.saturating_add(self.failures.count).saturating_add(self.cancelled)
    }
}

impl Ended {
    /// No request.
    pub const NONE: Self = Self { count: 0, sum_ns: 0, sum_squares: 0 };

    /// Mean latency; zero if there was none.
    #[must_use]
    pub fn mean(&self) -> Duration {
        let mean = self.sum_ns.checked_div(u128::from(self.count)).unwrap_or(0);
        // No more than the greatest of the latencies, which are 64 bits.
        Duration::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX))
    }

    /// Standard deviation of the latencies; zero if there was none.
    #[must_use]
    pub fn deviation(&self) -> Duration {
        if self.count == 0 {
            return Duration::ZERO;
        }
        let count = self.count as f64;
        let mean = self.sum_ns as f64 / count;
        let variance = self.sum_squares as f64 / count - mean * mean;
        Duration::from_nanos(variance.max(0.0).sqrt() as u64)
    }

    pub(super) const fn since(self, earlier: Self) -> Self {
        Self {
            count: self.count.saturating_sub(earlier.count),
            sum_ns: self.sum_ns.saturating_sub(earlier.sum_ns),
            sum_squares: self.sum_squares.saturating_sub(earlier.sum_squares),
        }
    }

    pub(super) const fn merge(self, other: Self) -> Self {
        Self {
            count: self.count.saturating_add(other.count),
            sum_ns: self.sum_ns.saturating_add(other.sum_ns),
            sum_squares: self.sum_squares.saturating_add(other.sum_squares),
        }
    }

    /// Most windows have no request of some outcome, and then there is nothing to add.
    #[inline]
    fn absorb(&mut self, latencies: &Latencies) {
        if latencies.count == 0 {
            return;
        }
        self.count = self.count.saturating_add(latencies.count);
        self.sum_ns = self.sum_ns.saturating_add(u128::from(latencies.sum_ns));
        self.sum_squares = self.sum_squares.saturating_add(latencies.sum_squares);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thousand_in_flight_for_three_years_still_add_up() {
        // A day of a thousand requests in flight that take a second each: 86.4 million of them.
        let day = Latencies::same(1_000_000_000, 1_000 * 86_400);
        let mut totals = Totals::since(Instant::ZERO);
        for _ in 0..3 * 365 {
            totals.absorb(&Window { successes: day, ..Window::EMPTY });
        }
        assert_eq!(totals.successes.count, 94_608_000_000);
        assert_eq!(totals.successes.sum_ns, 94_608_000_000 * 1_000_000_000);
        assert_eq!(totals.successes.mean(), Duration::from_secs(1));
        assert_eq!(totals.successes.deviation(), Duration::ZERO);
    }
}
