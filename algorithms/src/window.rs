use crate::{Instant, parts::float};

/// Everything additive that a gate observed between two instants.
///
/// The three quantities of Little's law are here: [`Window::throughput`], [`Window::mean_in_flight`] and
/// [`Window::mean_latency_ns`]. They come from the integral of in flight over time, so requests that are still
/// running count for the time they have run: a mean over finished requests alone would miss the slow ones.
///
/// ```
/// use goodput_algorithms::{Instant, Latencies, Window};
///
/// // One second in which two requests were always in flight and 100 were answered.
/// let window = Window {
///     opened: Instant::from_nanos(0),
///     closed: Instant::from_nanos(1_000_000_000),
///     successes: Latencies { count: 100, ..Latencies::NONE },
///     in_flight_area_ns: 2_000_000_000,
///     ..Window::EMPTY
/// };
/// assert_eq!(window.throughput(), 100.0);
/// assert_eq!(window.mean_in_flight(), 2.0);
/// assert_eq!(window.mean_latency_ns(), 20_000_000.0);
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Window {
    /// When the window opened.
    pub opened: Instant,
    /// When it closed.
    pub closed: Instant,
    /// Requests answered well.
    pub successes: Latencies,
    /// Requests that timed out, missed their deadline, or were refused by the service behind.
    pub overloads: Latencies,
    /// Requests that failed in a way that says nothing about load.
    pub failures: Latencies,
    /// Requests whose caller went away. They teach nothing.
    pub cancelled: u64,
    /// Requests that the gate refused because the limit was reached.
    pub refused: u64,
    /// Admissions that reached the limit, and refusals: how often the limit was felt.
    pub limit_hits: u64,
    /// The largest in flight at the admission of a request that ended in this window, itself counted.
    pub max_in_flight: u64,
    /// Integral of in flight over time, in request-nanoseconds.
    pub in_flight_area_ns: u128,
    /// The longest silence, in nanoseconds, in which no request ended.
    pub longest_silence_ns: u64,
}

impl Window {
    /// A window in which nothing happened, and which spans no time: it "opens" after every instant, so that a merge
    /// takes the span of the other.
    pub const EMPTY: Self = Self {
        opened: Instant::FAR_FUTURE,
        closed: Instant::ZERO,
        successes: Latencies::NONE,
        overloads: Latencies::NONE,
        failures: Latencies::NONE,
        cancelled: 0,
        refused: 0,
        limit_hits: 0,
        max_in_flight: 0,
        in_flight_area_ns: 0,
        longest_silence_ns: 0,
    };

    /// Joins what another observer saw, or what the same one saw in another span of time.
    ///
    /// Counts, sums and areas add up; the span becomes the hull of both. Associative and commutative, with
    /// [`Window::EMPTY`] as neutral element.
    #[must_use]
    pub fn merge(mut self, other: Self) -> Self {
        self.absorb(&other);
        self
    }

    /// [`Window::merge`] in place.
    #[inline]
    pub fn absorb(&mut self, other: &Self) {
        self.opened = self.opened.min(other.opened);
        self.closed = self.closed.max(other.closed);
        self.successes.absorb(&other.successes);
        self.overloads.absorb(&other.overloads);
        self.failures.absorb(&other.failures);
        self.cancelled = self.cancelled.saturating_add(other.cancelled);
        self.refused = self.refused.saturating_add(other.refused);
        self.limit_hits = self.limit_hits.saturating_add(other.limit_hits);
        self.max_in_flight = self.max_in_flight.max(other.max_in_flight);
        self.in_flight_area_ns = self.in_flight_area_ns.saturating_add(other.in_flight_area_ns);
        self.longest_silence_ns = self.longest_silence_ns.max(other.longest_silence_ns);
    }

    /// From opening to closing, in nanoseconds.
    #[must_use]
    pub const fn duration_ns(&self) -> u64 {
        self.closed.nanos_since(self.opened)
    }

    /// Successes and overloads together: the requests whose latency says something about load.
    #[inline]
    #[must_use]
    pub fn samples(&self) -> Latencies {
        self.successes.merge(self.overloads)
    }

    /// How many samples.
    #[inline]
    #[must_use]
    pub const fn sample_count(&self) -> u64 {
        self.successes.count.saturating_add(self.overloads.count)
    }

    /// Requests that ended, however they did.
    #[must_use]
    pub const fn ended(&self) -> u64 {
        self.sample_count().saturating_add(self.failures.count).saturating_add(self.cancelled)
    }

    /// X: samples per second. Zero for a window without duration.
    #[must_use]
    pub fn throughput(&self) -> f64 {
        ratio(float(self.sample_count()) * 1e9, float(self.duration_ns()))
    }

    /// N: requests in flight on average. The time that failures took is not counted. Zero for a window without
    /// duration.
    #[must_use]
    pub fn mean_in_flight(&self) -> f64 {
        ratio(self.load_area_ns(), float(self.duration_ns()))
    }

    /// W = N / X: mean latency in nanoseconds by Little's law, free of survivor bias. Zero for a window without
    /// samples.
    #[must_use]
    pub fn mean_latency_ns(&self) -> f64 {
        ratio(self.load_area_ns(), float(self.sample_count()))
    }

    /// The area without the time of failures, which say nothing about load.
    fn load_area_ns(&self) -> f64 {
        let area = self.in_flight_area_ns.saturating_sub(u128::from(self.failures.sum_ns));
        // As a rule there is no need of 128 bits, which take a call.
        u64::try_from(area).map_or_else(|_| area as f64, float)
    }
}

impl Default for Window {
    fn default() -> Self {
        Self::EMPTY
    }
}

/// Sums over the latencies of requests of one outcome, in nanoseconds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Latencies {
    /// How many requests.
    pub count: u64,
    /// Sum of latencies, ns.
    pub sum_ns: u64,
    /// Sum of squared latencies, ns².
    pub sum_squares: u128,
    /// The least latency, ns; [`u64::MAX`] when there is none.
    pub min_ns: u64,
    /// The greatest latency, ns; zero when there is none.
    pub max_ns: u64,
}

impl Latencies {
    /// No request.
    pub const NONE: Self = Self { count: 0, sum_ns: 0, sum_squares: 0, min_ns: u64::MAX, max_ns: 0 };

    /// One request.
    #[must_use]
    pub const fn one(latency_ns: u64) -> Self {
        Self {
            count: 1,
            sum_ns: latency_ns,
            sum_squares: (latency_ns as u128) * (latency_ns as u128),
            min_ns: latency_ns,
            max_ns: latency_ns,
        }
    }

    /// So many requests that all took the same time.
    #[must_use]
    pub const fn same(latency_ns: u64, count: u64) -> Self {
        if count == 0 {
            return Self::NONE;
        }
        let one = Self::one(latency_ns);
        Self {
            count,
            sum_ns: one.sum_ns.saturating_mul(count),
            sum_squares: one.sum_squares.saturating_mul(count as u128),
            ..one
        }
    }

    /// Both together. Associative and commutative; sums saturate.
    #[inline]
    #[must_use]
    pub fn merge(self, other: Self) -> Self {
        Self {
            count: self.count.saturating_add(other.count),
            sum_ns: self.sum_ns.saturating_add(other.sum_ns),
            sum_squares: self.sum_squares.saturating_add(other.sum_squares),
            min_ns: self.min_ns.min(other.min_ns),
            max_ns: self.max_ns.max(other.max_ns),
        }
    }

    /// [`Latencies::merge`] in place. Most windows have no request of some outcome, and then there is nothing to add.
    #[inline]
    fn absorb(&mut self, other: &Self) {
        if other.count > 0 {
            *self = self.merge(*other);
        }
    }

    /// Mean in nanoseconds; zero when there is none.
    #[must_use]
    pub fn mean_ns(&self) -> f64 {
        // Most windows of the limiters that step with every request hold one, and a division costs them the most.
        if self.count == 1 { float(self.sum_ns) } else { ratio(float(self.sum_ns), float(self.count)) }
    }

    /// Variance in ns², never negative; zero when there is none.
    #[must_use]
    pub fn variance(&self) -> f64 {
        let mean = self.mean_ns();
        (ratio(self.sum_squares as f64, self.count as f64) - mean * mean).max(0.0)
    }
}

impl Default for Latencies {
    fn default() -> Self {
        Self::NONE
    }
}

fn ratio(numerator: f64, denominator: f64) -> f64 {
    if denominator > 0.0 { numerator / denominator } else { 0.0 }
}
