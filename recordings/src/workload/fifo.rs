//! A queue that is served in order gives its workers away even at constant load: a request can only be overtaken by
//! as many later ones as there are other workers.
//!
//! With c workers and one queue served first in first out, a request in work has at most c − 1 older ones beside it.
//! So the number of older requests still present when a request ends is at most c − 1, and often just that, while a
//! service that shares its speed, or does not queue at all, knows no such bound. Once c is known, so is when each
//! request's work began, and with it how long the work took without the queue.

use crate::digest::Requests;
use crate::record::Outcome;

/// Requests that are looked at, from the middle of the recording.
const MOST: usize = 50_000;
/// Requests that are needed.
const FEWEST: usize = 200;
/// The share of requests that may be overtaken more often than the workers allow: networks shuffle a little.
const SHUFFLED: f64 = 0.02;
/// The largest correlation of a service time with the one so many services before it. Service times that are
/// correlated belong to another kind of service.
const CORRELATION: f64 = 0.2;
const LAGS: usize = 12;

/// What the order of the ends shows.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    /// Workers, if a queue served in order fits.
    pub(crate) workers: usize,
    /// Service times without the queue, in seconds.
    pub(crate) services: Vec<f64>,
    /// Mean requests in the service.
    pub(crate) in_service: f64,
}

/// The workers behind a queue that is served in order; `None` if these requests show none.
pub(crate) fn workers(requests: &Requests) -> Option<Order> {
    if !requests.is_complete() {
        return None;
    }
    let mut stays: Vec<(i64, i64)> = requests
        .iter()
        .filter(|r| matches!(r.outcome, Outcome::Success | Outcome::Failure))
        .filter_map(|r| r.stay())
        .collect();
    stays.sort_unstable();
    let skip = stays.len().saturating_sub(MOST) / 2;
    let stays = &stays[skip..(skip + MOST).min(stays.len())];
    if stays.len() < FEWEST {
        return None;
    }
    let older = older_at_end(stays);
    let present = present_at_start(stays);
    let in_service = present.iter().map(|n| f64::from(*n)).sum::<f64>() / present.len() as f64;
    // Only requests that had many before them can show a bound.
    let mut bounded: Vec<u32> = older
        .iter()
        .zip(&present)
        .filter(|(_, n)| f64::from(**n) >= in_service / 2.0)
        .map(|(o, _)| *o)
        .collect();
    bounded.sort_unstable();
    let at = ((bounded.len() as f64 * (1.0 - SHUFFLED)) as usize).min(bounded.len().checked_sub(1)?);
    let workers = bounded[at] as usize + 1;
    let reached = bounded.iter().filter(|o| **o as usize + 1 >= workers).count();
    let clear = workers >= 2 && in_service >= 2.0 * workers as f64 && reached * 50 >= bounded.len();
    let services = services(stays, workers);
    (clear && is_white(&services)).then_some(Order { workers, services, in_service })
}

/// For each request, how many that arrived earlier were still there when it ended.
fn older_at_end(stays: &[(i64, i64)]) -> Vec<u32> {
    let mut ends: Vec<i64> = stays.iter().map(|(_, end)| *end).collect();
    ends.sort_unstable();
    ends.dedup();
    let mut seen = Counter(vec![0; ends.len() + 1]);
    stays
        .iter()
        .enumerate()
        .map(|(before, (_, end))| {
            let rank = ends.partition_point(|e| e <= end);
            let ended = seen.up_to(rank);
            seen.add(rank);
            before as u32 - ended
        })
        .collect()
}

/// For each request, how many others were there when it arrived.
fn present_at_start(stays: &[(i64, i64)]) -> Vec<u32> {
    let mut ends: Vec<i64> = stays.iter().map(|(_, end)| *end).collect();
    ends.sort_unstable();
    stays
        .iter()
        .enumerate()
        .map(|(before, (start, _))| (before - ends.partition_point(|end| end <= start).min(before)) as u32)
        .collect()
}

/// The time from when a worker took each request to its end, in seconds, in the order of the arrivals.
fn services(stays: &[(i64, i64)], workers: usize) -> Vec<f64> {
    // The latest ends of older requests, as many as there are workers: the earliest of them frees the worker.
    let mut latest: std::collections::BinaryHeap<std::cmp::Reverse<i64>> =
        std::collections::BinaryHeap::new();
    let mut services = Vec::with_capacity(stays.len());
    for (start, end) in stays {
        let free =
            if latest.len() == workers { latest.peek().map_or(i64::MIN, |free| free.0) } else { i64::MIN };
        services.push(end.saturating_sub(free.max(*start)) as f64 / 1e9);
        latest.push(std::cmp::Reverse(*end));
        if latest.len() > workers {
            latest.pop();
        }
    }
    services
}

/// Whether service times look independent of each other, and hardly any is negative.
fn is_white(services: &[f64]) -> bool {
    let count = services.len() as f64;
    let negative = services.iter().filter(|s| **s < 0.0).count() as f64;
    let mean = services.iter().sum::<f64>() / count;
    let variance = services.iter().map(|s| (s - mean) * (s - mean)).sum::<f64>() / count;
    if negative > 2.0 * SHUFFLED * count || mean <= 0.0 || variance <= 0.0 {
        return false;
    }
    let bound = CORRELATION.max(4.0 / count.sqrt());
    (1..=LAGS).all(|lag| {
        let pairs = services.iter().zip(&services[lag..]);
        let covariance = pairs.map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>() / count;
        (covariance / variance).abs() < bound
    })
}

/// Counts by rank, with sums of everything up to a rank (Fenwick 1994).
struct Counter(Vec<u32>);

impl Counter {
    fn add(&mut self, rank: usize) {
        let mut at = rank.max(1);
        while at < self.0.len() {
            self.0[at] += 1;
            at += at & at.wrapping_neg();
        }
    }

    fn up_to(&self, rank: usize) -> u32 {
        let (mut at, mut sum) = (rank, 0);
        while at > 0 {
            sum += self.0[at];
            at -= at & at.wrapping_neg();
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Request;
    use crate::record::Record;

    /// A closed loop of so many clients before a service, whose requests `serve` ends in the order of arrival.
    fn closed_loop(clients: usize, count: usize, mut end: impl FnMut(i64, usize) -> i64) -> Requests {
        let mut ready: std::collections::BinaryHeap<std::cmp::Reverse<i64>> =
            (0..clients as i64).map(std::cmp::Reverse).collect();
        let mut requests = Requests::default();
        for n in 0..count {
            let start = ready.pop().unwrap().0;
            let end = end(start, n);
            requests.add(Request::of(&Record::spanning(start, end)));
            ready.push(std::cmp::Reverse(end));
        }
        requests
    }

    fn service(n: usize) -> i64 {
        30_000_000 + (n as i64 * 7_919_873) % 60_000_000
    }

    #[test]
    fn four_workers_are_seen_at_constant_load() {
        let mut free = [0_i64; 4];
        let requests = closed_loop(16, 3_000, |start, n| {
            let worker = (0..4).min_by_key(|&w| free[w]).unwrap();
            free[worker] = free[worker].max(start) + service(n);
            free[worker]
        });
        let order = workers(&requests).unwrap();
        assert_eq!(order.workers, 4);
        let mean = order.services.iter().sum::<f64>() / order.services.len() as f64;
        assert!((mean - 0.06).abs() < 0.002, "{mean}");
    }

    #[test]
    fn a_service_that_does_not_queue_shows_no_workers() {
        // Independent stays of very different lengths, and of nearly the same length.
        assert!(workers(&closed_loop(16, 3_000, |start, n| start + service(n) * 4)).is_none());
        assert!(workers(&closed_loop(16, 3_000, |start, n| start + 264_000_000 + service(n) / 4)).is_none());
        assert!(workers(&closed_loop(16, 3_000, |start, _| start + 264_000_000)).is_none());
    }
}
