//! A recording cut into windows of equal length, all of whose sums are additive. When the recording grows longer than
//! the windows reach, neighbours are merged, so that memory stays constant.
//!
//! The time that requests were in flight is kept by two running sums, of starts and of ends, as in the limiter's own
//! windows: within a window the area is (in flight at its beginning) × length + Σ(rest of the window after each start)
//! − Σ(rest after each end).

use super::Request;
use crate::record::Outcome;

/// Windows that are kept.
const MAX_WINDOWS: usize = 1 << 17;
/// Length of the first windows: 1 ms.
const FIRST_LENGTH: i64 = 1_000_000;

/// What happened within a window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Window {
    /// Requests that arrived, those that were turned away included.
    pub(crate) arrivals: u64,
    /// Requests turned away.
    pub(crate) refused: u64,
    /// Requests that the service finished (successes and failures).
    pub(crate) completed: u64,
    /// Of those, successes.
    pub(crate) succeeded: u64,
    /// Requests that somebody stopped waiting for.
    pub(crate) censored: u64,
    /// Sum of the successes' stays in the service, in seconds, counted where they end.
    pub(crate) stay_s: f64,
    /// Sum of the squares.
    pub(crate) stay_s2: f64,
    /// Stays in the service: starts, and the sum of their distances from the window's beginning in nanoseconds.
    starts: u64,
    start_offsets: u128,
    ends: u64,
    end_offsets: u128,
    /// All requests, those turned away included.
    all_starts: u64,
    all_ends: u64,
}

impl Window {
    /// Takes in the window that follows, whose beginning lies `length` after this one's.
    pub(crate) fn absorb(&mut self, next: &Self, length: i64) {
        let length = u128::from(length.unsigned_abs());
        self.arrivals += next.arrivals;
        self.refused += next.refused;
        self.completed += next.completed;
        self.succeeded += next.succeeded;
        self.censored += next.censored;
        self.stay_s += next.stay_s;
        self.stay_s2 += next.stay_s2;
        self.start_offsets += next.start_offsets + u128::from(next.starts) * length;
        self.starts += next.starts;
        self.end_offsets += next.end_offsets + u128::from(next.ends) * length;
        self.ends += next.ends;
        self.all_starts += next.all_starts;
        self.all_ends += next.all_ends;
    }

    /// The change of requests in the service over the window.
    pub(crate) fn change(&self) -> i64 {
        self.starts.cast_signed() - self.ends.cast_signed()
    }

    /// Seconds that requests spent in the service within this window of `length` nanoseconds, at whose beginning so
    /// many were in it.
    pub(crate) fn area_s(&self, in_service: i64, length: i64) -> f64 {
        let length = length as f64;
        let starts = self.starts as f64 * length - self.start_offsets as f64;
        let ends = self.ends as f64 * length - self.end_offsets as f64;
        (in_service as f64 * length + starts - ends) / 1e9
    }
}

/// Windows from the first request to the last.
#[derive(Clone, Debug)]
pub(crate) struct Windows {
    windows: Vec<Window>,
    /// The first window covers `[first × length, (first + 1) × length)`.
    first: i64,
    /// Nanoseconds.
    length: i64,
}

impl Default for Windows {
    fn default() -> Self {
        Self { windows: Vec::new(), first: 0, length: FIRST_LENGTH }
    }
}

impl Windows {
    /// The windows of some requests.
    pub(crate) fn of<'r>(requests: impl Iterator<Item = &'r Request>) -> Self {
        let mut windows = Self::default();
        requests.for_each(|request| windows.add(request));
        windows
    }

    pub(crate) fn length_s(&self) -> f64 {
        self.length as f64 / 1e9
    }

    /// For each window, how many requests a new one meets in the service: those from before the window that outlast it,
    /// or, in windows that are `long` against the stays, those that are there on average.
    pub(crate) fn in_service(&self, long: bool) -> Vec<f64> {
        let mut now = 0_i64;
        self.windows
            .iter()
            .map(|window| {
                let before = now;
                now += window.change();
                if long {
                    window.area_s(before, self.length).max(0.0) / self.length_s()
                } else {
                    (before - window.ends.cast_signed()).max(0) as f64
                }
            })
            .collect()
    }

    /// The window that an instant lies in.
    pub(crate) fn index_of(&self, instant: i64) -> Option<usize> {
        usize::try_from(instant.div_euclid(self.length).checked_sub(self.first)?)
            .ok()
            .filter(|at| *at < self.windows.len())
    }

    pub(crate) fn length_ns(&self) -> i64 {
        self.length
    }

    pub(crate) fn as_slice(&self) -> &[Window] {
        &self.windows
    }

    pub(crate) fn add(&mut self, request: &Request) {
        if request.nested {
            return;
        }
        let refused = request.outcome == Outcome::Refused;
        if let Some(start) = request.start()
            && let Some((window, _)) = self.at(start)
        {
            window.arrivals += 1;
            window.refused += u64::from(refused);
        }
        if let Some((start, end)) = request.span()
            && self.reach(start, end)
        {
            if let Some((window, _)) = self.at(start) {
                window.all_starts += 1;
            }
            if let Some((window, _)) = self.at(end) {
                window.all_ends += 1;
            }
        }
        if let Some((start, end)) = request.stay()
            && self.reach(start, end)
        {
            if let Some((window, offset)) = self.at(start) {
                window.starts += 1;
                window.start_offsets += offset;
            }
            if let Some((window, offset)) = self.at(end) {
                window.ends += 1;
                window.end_offsets += offset;
                match request.outcome {
                    Outcome::Success => {
                        let stay = end.abs_diff(start) as f64 / 1e9;
                        window.completed += 1;
                        window.succeeded += 1;
                        window.stay_s += stay;
                        window.stay_s2 += stay * stay;
                    }
                    Outcome::Failure => window.completed += 1,
                    Outcome::TimedOut | Outcome::Cancelled => window.censored += 1,
                    Outcome::Refused => {}
                }
            }
        }
    }

    /// The most requests in flight at the beginning of a window.
    pub(crate) fn most_in_flight(&self) -> u64 {
        let mut now = 0_i64;
        let mut most = 0;
        for window in &self.windows {
            now += window.all_starts.cast_signed() - window.all_ends.cast_signed();
            most = most.max(now);
        }
        most.unsigned_abs()
    }

    /// Makes the windows reach both instants; `false` if they lie too far apart for that.
    fn reach(&mut self, one: i64, other: i64) -> bool {
        self.at(one).is_some() && self.at(other).is_some()
    }

    /// The window of an instant, and how far into it the instant lies in nanoseconds.
    fn at(&mut self, instant: i64) -> Option<(&mut Window, u128)> {
        loop {
            let index = instant.div_euclid(self.length);
            if self.windows.is_empty() {
                self.first = index;
                self.windows.push(Window::default());
            }
            let last = self.first + self.windows.len() as i64 - 1;
            let (first, last) = (self.first.min(index), self.first.max(last).max(index));
            if last - first < MAX_WINDOWS as i64 {
                if first < self.first {
                    let missing = usize::try_from(self.first - first).ok()?;
                    self.windows.splice(0..0, std::iter::repeat_n(Window::default(), missing));
                    self.first = first;
                }
                let at = usize::try_from(index - self.first).ok()?;
                if at >= self.windows.len() {
                    self.windows.resize(at + 1, Window::default());
                }
                return Some((
                    &mut self.windows[at],
                    u128::from(instant.rem_euclid(self.length).unsigned_abs()),
                ));
            }
            self.widen()?;
        }
    }

    /// Merges neighbours, so that the windows are twice as long.
    fn widen(&mut self) -> Option<()> {
        let longer = self.length.checked_mul(2)?;
        let first = self.first.div_euclid(2);
        let mut merged = vec![Window::default(); self.windows.len() / 2 + 1];
        for (index, window) in (self.first..).zip(&self.windows) {
            let at = usize::try_from(index.div_euclid(2) - first).ok()?;
            let second_half = if index.rem_euclid(2) == 1 { self.length } else { 0 };
            merged[at].absorb(window, second_half);
        }
        self.windows = merged;
        self.first = first;
        self.length = longer;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Basis, Record};

    fn request(start_ms: i64, latency_ms: u64) -> Request {
        Request::of(&Record::stamped(Some(start_ms * 1_000_000), Basis::Start, Some(latency_ms * 1_000_000)))
    }

    fn area(windows: &Windows) -> f64 {
        let mut inside = 0;
        let mut area = 0.0;
        for window in windows.as_slice() {
            area += window.area_s(inside, windows.length_ns());
            inside += window.change();
        }
        area
    }

    #[test]
    fn the_area_of_all_windows_is_the_time_of_all_requests_however_often_they_merge() {
        let mut windows = Windows::default();
        let mut sum = 0.0;
        // Out of order, and longer and longer, so that the windows have to widen and to reach back.
        for n in 0..2_000_i64 {
            let start = (n * 7_919) % 400_000 - 1_000;
            let latency = (n as u64 * 31) % 900;
            windows.add(&request(start, latency));
            sum += latency as f64 / 1e3;
        }
        assert!(windows.length_ns() > FIRST_LENGTH);
        assert!((area(&windows) - sum).abs() < 1e-6 * sum);
        assert_eq!(windows.as_slice().iter().map(|w| w.arrivals).sum::<u64>(), 2_000);
        assert_eq!(windows.as_slice().iter().map(|w| w.succeeded).sum::<u64>(), 2_000);
        assert!(windows.as_slice().len() <= MAX_WINDOWS);
    }

    #[test]
    fn instants_at_the_ends_of_time_do_no_harm() {
        let mut windows = Windows::default();
        windows.add(&request(0, 1));
        windows.add(&Request::of(&Record::spanning(i64::MIN + 1, i64::MAX)));
        windows.add(&Request::of(&Record::spanning(i64::MAX - 5, i64::MAX)));
        assert!(windows.as_slice().len() <= MAX_WINDOWS);
    }
}
