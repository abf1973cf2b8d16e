//! Requests kept for later: all of them up to a million, then every second, every fourth, and so on.

use std::borrow::Cow;

use super::tube;
use crate::record::{Basis, Outcome, Record};

/// Requests that are kept.
const MAX_REQUESTS: usize = 1 << 20;

/// What is kept of a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Request {
    start: i64,
    end: i64,
    latency: u64,
    service: u64,
    pub(crate) outcome: Outcome,
    pub(crate) nested: bool,
}

const NO_INSTANT: i64 = i64::MIN;
const NO_DURATION: u64 = u64::MAX;

impl Request {
    pub(crate) fn of(record: &Record) -> Self {
        let both = record.start.zip(record.end).filter(|(start, end)| start <= end);
        let (start, end) = match (both, record.start, record.end) {
            (Some(both), ..) => both,
            (None, Some(start), None) => (start, NO_INSTANT),
            _ => (NO_INSTANT, NO_INSTANT),
        };
        Self {
            start,
            end,
            latency: record.latency.unwrap_or(NO_DURATION),
            service: record.service.unwrap_or(NO_DURATION),
            outcome: record.outcome,
            nested: record.nested,
        }
    }

    pub(crate) fn start(&self) -> Option<i64> {
        (self.start != NO_INSTANT).then_some(self.start)
    }

    /// Start and end.
    pub(crate) fn span(&self) -> Option<(i64, i64)> {
        (self.end != NO_INSTANT).then_some((self.start, self.end))
    }

    pub(crate) fn latency(&self) -> Option<u64> {
        (self.latency != NO_DURATION).then_some(self.latency)
    }

    /// The same request at another time, so many nanoseconds later.
    pub(crate) fn later(&self, by: i64) -> Self {
        let later = |instant: i64| if instant == NO_INSTANT { instant } else { instant.saturating_add(by) };
        Self { start: later(self.start), end: later(self.end), ..*self }
    }

    /// The same request, nothing of whose time is told apart.
    pub(crate) fn as_a_whole(&self) -> Self {
        Self { service: NO_DURATION, ..*self }
    }

    /// Whether the file tells the service's part of the latency.
    pub(crate) fn has_service(&self) -> bool {
        self.service != NO_DURATION
    }

    /// The stay in the service itself: the part that the file tells apart, which ends with the request, or all of it.
    /// A request that was turned away has none.
    pub(crate) fn stay(&self) -> Option<(i64, i64)> {
        let (start, end) = self.span().filter(|_| self.outcome != Outcome::Refused && !self.nested)?;
        let service = i64::try_from(self.service).ok().filter(|_| self.service != NO_DURATION);
        Some((service.map_or(start, |service| end.saturating_sub(service).max(start)), end))
    }
}

/// The requests that are kept, in the order of the file.
#[derive(Debug)]
pub(crate) struct Requests {
    kept: Vec<Request>,
    seen: u64,
    stride: u64,
}

impl Default for Requests {
    fn default() -> Self {
        Self { kept: Vec::new(), seen: 0, stride: 1 }
    }
}

impl Requests {
    pub(crate) fn add(&mut self, request: Request) {
        if self.seen.is_multiple_of(self.stride) {
            if self.kept.len() == MAX_REQUESTS {
                let mut index = 0;
                self.kept.retain(|_| {
                    index += 1;
                    index % 2 == 1
                });
                self.stride *= 2;
            }
            if self.seen.is_multiple_of(self.stride) {
                self.kept.push(request);
            }
        }
        self.seen += 1;
    }

    /// Whether every request is here.
    pub(crate) fn is_complete(&self) -> bool {
        self.stride == 1
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Request> {
        self.kept.iter()
    }

    /// The requests with stamps of whole seconds made finer by the order of the lines, in which requests ended.
    ///
    /// Stamps of ends: the k-th of n lines of a second goes to (k + ½)/n of it. Stamps of starts: a request ended
    /// between stamp + latency and a second later, no earlier than the lines before it and no later than those after
    /// it; of all courses that this leaves the straightest is taken.
    pub(crate) fn refined(&self, basis: Basis) -> Cow<'_, [Request]> {
        let refine = match basis {
            Basis::End => spread_ends,
            Basis::Start => order_ends,
            Basis::Both | Basis::None => return Cow::Borrowed(&self.kept),
        };
        let mut requests = self.kept.clone();
        refine(&mut requests);
        Cow::Owned(requests)
    }
}

const SECOND: i64 = 1_000_000_000;

fn spread_ends(requests: &mut [Request]) {
    let mut from = 0;
    while from < requests.len() {
        let second = requests[from].end.div_euclid(SECOND);
        let same = requests[from..].iter().take_while(|r| r.end.div_euclid(SECOND) == second).count();
        let group = &mut requests[from..from + same];
        let count = i64::try_from(same).unwrap_or(i64::MAX);
        for (k, request) in (0_i64..).zip(group).filter(|(_, r)| r.end != NO_INSTANT) {
            let shift = (2 * k + 1) * (SECOND / 2) / count - request.end.rem_euclid(SECOND);
            *request = request.later(shift);
        }
        from += same;
    }
}

fn order_ends(requests: &mut [Request]) {
    let stamped: Vec<usize> = (0..requests.len()).filter(|&at| requests[at].end != NO_INSTANT).collect();
    let mut latest = vec![0; stamped.len()];
    let mut bound = i64::MAX;
    for (slot, &at) in latest.iter_mut().zip(&stamped).rev() {
        bound = bound.min(requests[at].end.saturating_add(SECOND));
        *slot = bound;
    }
    let mut earliest = Vec::with_capacity(stamped.len());
    let mut bound = i64::MIN;
    for (&at, latest) in stamped.iter().zip(&mut latest) {
        bound = bound.max(requests[at].end);
        // Lines that are out of order by more than a second leave no room: they stay in the middle of the conflict.
        let low = if bound > *latest { i64::midpoint(bound, *latest) } else { bound };
        *latest = (*latest).max(low);
        earliest.push(low);
    }
    for (&at, end) in stamped.iter().zip(tube::straightest(&earliest, &latest)) {
        let request = &mut requests[at];
        *request = request.later(end.saturating_sub(request.end).clamp(0, SECOND - 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(start: i64, latency: u64) -> Record {
        Record::stamped(Some(start), Basis::Start, Some(latency))
    }

    #[test]
    fn a_long_recording_is_thinned_evenly() {
        let mut requests = Requests::default();
        let count = 3 * MAX_REQUESTS as u64 + 17;
        for n in 0..count {
            requests.add(Request::of(&record(n.cast_signed(), 0)));
        }
        assert!(!requests.is_complete());
        assert!(requests.kept.len() <= MAX_REQUESTS);
        let starts: Vec<i64> = requests.iter().filter_map(Request::start).collect();
        assert!(starts.windows(2).all(|w| w[1] - w[0] == 4));
        assert_eq!(starts[0], 0);
    }

    #[test]
    fn ends_of_one_second_are_spread_over_it() {
        let mut requests = Requests::default();
        for _ in 0..4 {
            requests.add(Request::of(&Record::stamped(Some(7 * SECOND), Basis::End, Some(100))));
        }
        let ends: Vec<i64> =
            requests.refined(Basis::End).iter().filter_map(|r| r.span().map(|(_, end)| end)).collect();
        assert_eq!(ends, [125, 375, 625, 875].map(|ms| 7 * SECOND + ms * 1_000_000));
    }

    /// Starts every 10 ms and latencies of 300 ms, stamped in whole seconds, in the order of their ends: the refined
    /// instants are close to the real ones.
    #[test]
    fn starts_in_whole_seconds_are_recovered_from_the_order_of_the_lines() {
        let real: Vec<i64> = (0..1_000).map(|n| n * 10_000_000).collect();
        let mut requests = Requests::default();
        for start in &real {
            requests.add(Request::of(&record(start / SECOND * SECOND, 300_000_000)));
        }
        let refined = requests.refined(Basis::Start);
        for (request, real) in refined.iter().zip(&real).skip(100).take(800) {
            let error = request.start().unwrap() - real;
            assert!(error.abs() <= SECOND / 2 + 20_000_000, "{error}");
        }
    }
}
