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
#[derive(Clone, Debug, Default)]
pub(crate) struct Windows {
    windows: Vec<Window>,
    /// The first window covers `[first × length, (first + 1) × length)`.
    first: i64,
    /// How often the windows have been made twice as long.
    doublings: u32,
}

impl Windows {
    /// The windows of some requests.
    pub(crate) fn of<'r>(requests: impl Iterator<Item = &'r Request>) -> Self {
        let mut windows = Self::default();
        requests.for_each(|request| windows.add(request));
        windows
    }

    pub(crate) fn length_s(&self) -> f64 {
        self.length_ns() as f64 / 1e9
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
                    window.area_s(before, self.length_ns()).max(0.0) / self.length_s()
                } else {
                    (before - window.ends.cast_signed()).max(0) as f64
                }
            })
            .collect()
    }

    /// The window that an instant lies in.
    pub(crate) fn index_of(&self, instant: i64) -> Option<usize> {
        usize::try_from(self.index(instant).checked_sub(self.first)?)
            .ok()
            .filter(|at| *at < self.windows.len())
    }

    pub(crate) fn length_ns(&self) -> i64 {
        FIRST_LENGTH << self.doublings
    }

    pub(crate) fn as_slice(&self) -> &[Window] {
        &self.windows
    }

    pub(crate) fn add(&mut self, request: &Request) {
        let Some(start) = request.start().filter(|_| !request.nested) else { return };
        if !self.reach(start) {
            return;
        }
        let (window, _) = self.at(start);
        window.arrivals += 1;
        window.refused += u64::from(request.outcome == Outcome::Refused);
        let Some((start, end)) = request.span() else { return };
        if !self.reach(end) {
            return;
        }
        self.at(start).0.all_starts += 1;
        self.at(end).0.all_ends += 1;
        let Some((start, end)) = request.stay() else { return };
        let (window, offset) = self.at(start);
        window.starts += 1;
        window.start_offsets += offset;
        let (window, offset) = self.at(end);
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

    /// Makes the windows reach an instant; `false` if it lies too far from the others for that.
    fn reach(&mut self, instant: i64) -> bool {
        self.index_of(instant).is_some() || self.extend_to(instant)
    }

    fn extend_to(&mut self, instant: i64) -> bool {
        if self.windows.is_empty() {
            self.first = self.index(instant);
        }
        loop {
            let index = self.index(instant);
            let first = self.first.min(index);
            let end = (self.first + self.windows.len() as i64).max(index + 1);
            if end - first <= MAX_WINDOWS as i64 {
                let before = self.first.abs_diff(first) as usize;
                self.windows.splice(0..0, std::iter::repeat_n(Window::default(), before));
                self.windows.resize(end.abs_diff(first) as usize, Window::default());
                self.first = first;
                return true;
            }
            if !self.widen() {
                return false;
            }
        }
    }

    /// The number of the window of an instant, whether or not the windows reach it.
    fn index(&self, instant: i64) -> i64 {
        (instant >> self.doublings).div_euclid(FIRST_LENGTH)
    }

    /// The window of an instant that the windows reach, and how far into it the instant lies in nanoseconds.
    fn at(&mut self, instant: i64) -> (&mut Window, u128) {
        let index = self.index(instant);
        // A first window may begin before the earliest instant that there is: the difference is right all the same.
        let offset = instant.wrapping_sub(index.wrapping_mul(self.length_ns())).cast_unsigned();
        (&mut self.windows[index.abs_diff(self.first) as usize], u128::from(offset))
    }

    /// Merges neighbours, so that the windows are twice as long; `false` if they cannot be any longer.
    fn widen(&mut self) -> bool {
        let length = self.length_ns();
        if length.checked_mul(2).is_none() {
            return false;
        }
        // Windows that begin at an odd number begin with the second half of a longer one.
        let odd = usize::from(self.first.rem_euclid(2) == 1);
        let pairs = (self.windows.len() + odd).div_ceil(2);
        for at in 0..pairs {
            let mut merged = Window::default();
            for (half, offset) in [(2 * at, 0), (2 * at + 1, length)] {
                if let Some(window) = half.checked_sub(odd).and_then(|half| self.windows.get(half)) {
                    merged.absorb(window, offset);
                }
            }
            self.windows[at] = merged;
        }
        self.windows.truncate(pairs);
        self.first = self.first.div_euclid(2);
        self.doublings += 1;
        true
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
