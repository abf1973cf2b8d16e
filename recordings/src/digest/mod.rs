//! A recording in constant memory: exact counts and sums, up to a million requests kept as they are, and
//! [`Windows`] of everything.

mod requests;
pub(crate) mod sweep;
mod tube;
mod windows;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::reading::Reading;
use crate::record::{Item, Outcome, Record, Status, Step, StepLatency};

pub(crate) use requests::{Request, Requests};
pub(crate) use windows::Windows;

/// Different statuses that are counted each; the rest is counted as `other`.
const MAX_STATUSES: usize = 500;
/// Load steps that are kept.
const MAX_STEPS: usize = 100_000;

/// Everything that is remembered of a recording.
///
/// Feed it with [`add`](Self::add) as the recording is read.
#[derive(Debug, Default)]
pub struct Digest {
    pub(crate) records: u64,
    pub(crate) without_latency: u64,
    pub(crate) errors: u64,
    pub(crate) nested: u64,
    outcomes: [u64; Outcome::ALL.len()],
    codes: Vec<(i32, u64)>,
    words: BTreeMap<String, u64>,
    pub(crate) first_stamp: Option<i64>,
    pub(crate) last_stamp: Option<i64>,
    last_seen: Option<i64>,
    finer_than_seconds: bool,
    pub(crate) out_of_order: u64,
    latency: Sum,
    /// The first start and the last end, and the time that all requests took together.
    extent: Option<(i64, i64)>,
    area_ns: u128,
    pub(crate) requests: Requests,
    pub(crate) windows: Windows,
    pub(crate) steps: Vec<Step>,
}

#[derive(Debug, Default)]
struct Sum {
    count: u64,
    sum: u128,
    least: Option<u64>,
    most: u64,
}

/// Latency in milliseconds. Percentiles are nearest rank: the smallest value that at least so many are no larger
/// than.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LatencySummary {
    /// Arithmetic mean.
    pub mean: f64,
    /// Smallest.
    pub min: f64,
    /// Half were no slower.
    pub p50: f64,
    /// 90 % were no slower.
    pub p90: f64,
    /// 99 % were no slower.
    pub p99: f64,
    /// Largest.
    pub max: f64,
}

/// Requests in flight, by sweeping over their starts and ends.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ConcurrencySummary {
    /// The most at any instant, from the stamps as written.
    pub max_in_flight: u64,
    /// The mean from the first start to the last end.
    pub mean_in_flight: f64,
    /// The most, after stamps of whole seconds have been spread by the order of the lines; the same as
    /// `max_in_flight` for finer stamps.
    pub max_in_flight_refined: u64,
    /// Whether the maximum is a guess: stamps of whole seconds, or more requests than are kept.
    pub approximate: bool,
}

impl Digest {
    /// An empty digest.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in a request or a step.
    pub fn add(&mut self, item: Item) {
        match item {
            Item::Request(record) => self.request(&record),
            Item::Step(step) => {
                if self.steps.len() < MAX_STEPS {
                    self.steps.push(step);
                }
            }
        }
    }

    /// Load steps, in files of aggregates.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    fn request(&mut self, record: &Record) {
        self.records += 1;
        self.errors += u64::from(record.error);
        self.nested += u64::from(record.nested);
        self.outcomes[record.outcome as usize] += 1;
        self.status(&record.status);
        if let Some(stamp) = record.stamp {
            self.first_stamp = Some(self.first_stamp.map_or(stamp, |first| first.min(stamp)));
            self.last_stamp = Some(self.last_stamp.map_or(stamp, |last| last.max(stamp)));
            self.out_of_order += u64::from(self.last_seen.is_some_and(|before| stamp < before));
            self.last_seen = Some(stamp);
        }
        match record.latency {
            Some(latency) => self.latency.add(latency),
            None => self.without_latency += 1,
        }
        if let (Some(start), Some(end)) = (record.start, record.end)
            && end >= start
        {
            let (first, last) = self.extent.unwrap_or((start, end));
            self.extent = Some((first.min(start), last.max(end)));
            self.area_ns += u128::from(end.abs_diff(start));
        }
        let request = Request::of(record);
        let later = self.within_second(record.stamp);
        self.windows.add(&request.later(later));
        self.requests.add(request);
    }

    /// Where in its second a request is put as long as all stamps are whole seconds: requests that follow each other are
    /// spread evenly over it (by the golden ratio; Knuth, "The Art of Computer Programming", vol. 3, 6.4), because all of
    /// them at its beginning would be a burst that never was. In nanoseconds.
    fn within_second(&mut self, stamp: Option<i64>) -> i64 {
        const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
        if !self.finer_than_seconds && stamp.is_some_and(|stamp| stamp % 1_000_000_000 != 0) {
            self.finer_than_seconds = true;
            // Those before it were whole seconds by chance.
            self.windows = Windows::of(self.requests.iter());
        }
        if self.finer_than_seconds {
            return 0;
        }
        let part = self.records.wrapping_mul(GOLDEN) >> 32;
        ((part * 1_000_000_000) >> 32).cast_signed()
    }

    fn status(&mut self, status: &Status) {
        if let Status::Code(code) = status {
            if let Some((_, count)) = self.codes.iter_mut().find(|(known, _)| known == code) {
                *count += 1;
                return;
            }
            if self.codes.len() < MAX_STATUSES {
                self.codes.push((*code, 1));
                return;
            }
        }
        let word = match status {
            Status::Text(word)
                if self.words.len() < MAX_STATUSES || self.words.contains_key(word.as_ref()) =>
            {
                word
            }
            Status::Absent => "",
            _ => "other",
        };
        match self.words.get_mut(word) {
            Some(count) => *count += 1,
            None => drop(self.words.insert(word.to_owned(), 1)),
        }
    }

    /// How often each outcome occurred.
    pub fn outcomes(&self) -> BTreeMap<Outcome, u64> {
        Outcome::ALL
            .into_iter()
            .map(|outcome| (outcome, self.outcomes[outcome as usize]))
            .filter(|(_, n)| *n > 0)
            .collect()
    }

    /// How often each status occurred, as written.
    pub fn statuses(&self) -> BTreeMap<String, u64> {
        self.codes.iter().map(|(code, n)| (code.to_string(), *n)).chain(self.words.clone()).collect()
    }

    /// The latency of all requests that have one.
    pub fn latency(&self) -> Option<LatencySummary> {
        let ms = |ns: u64| ns as f64 / 1e6;
        let mut sample: Vec<u64> = self.requests.iter().filter_map(Request::latency).collect();
        let mut at = |p: f64| {
            let rank = ((p * sample.len() as f64).ceil() as usize).max(1) - 1;
            (rank < sample.len()).then(|| ms(*sample.select_nth_unstable(rank).1))
        };
        Some(LatencySummary {
            mean: self.latency.sum as f64 / self.latency.count as f64 / 1e6,
            min: ms(self.latency.least?),
            p50: at(0.5)?,
            p90: at(0.9)?,
            p99: at(0.99)?,
            max: ms(self.latency.most),
        })
    }

    /// How many requests were in flight; `None` without stamps or latencies.
    pub fn concurrency(&self, reading: &Reading) -> Option<ConcurrencySummary> {
        let (first, last) = self.extent?;
        let span = last.abs_diff(first);
        let mean = if span > 0 { self.area_ns as f64 / span as f64 } else { 0.0 };
        let coarse = is_coarse(reading);
        if !self.requests.is_complete() {
            let most = self.windows.most_in_flight();
            return Some(ConcurrencySummary {
                max_in_flight: most,
                mean_in_flight: mean,
                max_in_flight_refined: most,
                approximate: true,
            });
        }
        let seconds = |request: &Request| request.span().map(|span| sweep::seconds(span, reading.basis));
        let most = sweep::most_in_flight(self.requests.iter().filter_map(seconds));
        let refined = if coarse {
            let refined = self.requests.refined(reading.order());
            sweep::most_in_flight(refined.iter().filter_map(seconds))
        } else {
            most
        };
        Some(ConcurrencySummary {
            max_in_flight: most,
            mean_in_flight: mean,
            max_in_flight_refined: refined,
            approximate: coarse,
        })
    }

    /// The latency of a file of aggregates: what its format tells over all, or the only step's.
    pub(crate) fn step_latency(&self, reading: &Reading) -> Option<StepLatency> {
        reading.overall_ms.or(match self.steps.as_slice() {
            [only] => Some(only.latency_ms),
            _ => None,
        })
    }
}

/// Whether the stamps are whole seconds.
pub(crate) fn is_coarse(reading: &Reading) -> bool {
    reading.resolution_ns.is_some_and(|step| step >= 1_000_000_000) && reading.records > 1
}

impl Sum {
    fn add(&mut self, value: u64) {
        self.count += 1;
        self.sum += u128::from(value);
        self.least = Some(self.least.map_or(value, |least| least.min(value)));
        self.most = self.most.max(value);
    }
}
