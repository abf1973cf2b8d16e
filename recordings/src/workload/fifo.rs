//! A queue that is served in order gives its workers away even at constant load: a request can only be overtaken by
//! as many later ones as there are other workers.
//!
//! With c workers and one queue served first in first out, a request in work has at most c − 1 older ones beside it.
//! So the number of older requests still present when a request ends is at most c − 1, and often just that, while a
//! service that shares its speed, or does not queue at all, knows no such bound. Once c is known, so is when each
//! request's work began, and with it how long the work took without the queue.

use crate::digest::{Request, sweep};
use crate::record::Outcome;

/// Requests that are looked at, from the middle of the recording.
const MOST: usize = 50_000;
/// Requests that are needed.
const FEWEST: usize = 200;
/// Workers that are looked for, at most.
const MOST_WORKERS: usize = 512;
/// The requests that end while as many older ones are at work as can be: their share, and their number, at least.
const EDGE: f64 = 0.005;
const FEWEST_AT_EDGE: u32 = 12;
/// The share that ends with still more older ones, at most: networks shuffle a little, and some clients leave.
const TAIL: f64 = 0.06;
/// The share of services that may seem to begin before their worker was free.
const NEGATIVE: f64 = 0.05;
/// The strongest negative correlation between service times.
const MADE_UP: f64 = 0.2;

/// What the order of the ends shows.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    /// Workers, if a queue served in order fits.
    pub(crate) workers: usize,
    /// Service times without the queue, in seconds.
    pub(crate) services: Vec<f64>,
}

/// The workers behind a queue that is served in order; `None` if these requests show none.
pub(crate) fn workers(requests: &[Request]) -> Option<Order> {
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
    let present = sweep::met(stays);
    let in_service = present.iter().map(|n| f64::from(*n)).sum::<f64>() / present.len() as f64 + 1.0;
    // Only requests that had many before them can show a bound.
    let many = older
        .iter()
        .zip(&present)
        .filter(|(_, n)| f64::from(**n) >= in_service / 2.0)
        .map(|(older, _)| *older);
    let workers = cliff(many).filter(|workers| in_service >= 2.0 * *workers as f64)?;
    if !waits_for_others(stays, &present) {
        return None;
    }
    let services = services(stays, workers);
    is_independent(&services, workers).then_some(Order { workers, services })
}

/// Whether requests that met more stayed longer, as in a queue; not to be told where all met about the same number.
fn waits_for_others(stays: &[(i64, i64)], present: &[u32]) -> bool {
    let mut pairs: Vec<(u32, u64)> =
        present.iter().zip(stays).map(|(met, (start, end))| (*met + 1, end.abs_diff(*start))).collect();
    pairs.sort_unstable();
    let at = |share: f64| f64::from(pairs[(pairs.len() as f64 * share) as usize].0);
    if at(0.9) < 1.15 * at(0.1) {
        return true;
    }
    let half = pairs.len() / 2;
    let median = |pairs: &mut [(u32, u64)]| {
        let middle = pairs.len() / 2;
        pairs.select_nth_unstable_by_key(middle, |(_, stay)| *stay).1.1 as f64
    };
    let (met_less, met_more) = (at(0.25), at(0.75));
    let (less, more) = pairs.split_at_mut(half);
    median(more) / median(less).max(1.0) >= 1.0 + 0.5 * (met_more / met_less - 1.0)
}

/// The number of workers by the requests that were still older when one ended: that many less one is common, and more
/// than that is as good as never.
fn cliff(older: impl Iterator<Item = u32>) -> Option<usize> {
    let mut counts = vec![0_u32; MOST_WORKERS + 1];
    let mut all = 0_u32;
    for older in older {
        counts[(older as usize).min(MOST_WORKERS)] += 1;
        all += 1;
    }
    let share = |count: u32| f64::from(count) / f64::from(all.max(1));
    (2..MOST_WORKERS).rev().find(|&workers| {
        let edge = share(counts[workers - 1]);
        let beyond = share(counts[workers]);
        let tail = share(counts[workers..].iter().sum());
        edge >= EDGE && counts[workers - 1] >= FEWEST_AT_EDGE && beyond <= edge / 4.0 && tail <= TAIL
    })
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

/// Whether service times look as if each was its own: hardly any is negative, and a long one is not made up for by a
/// short one later, as it would be if the stays and not the services were the cause. A slow spell of the machine, which
/// makes neighbours alike, is no objection.
fn is_independent(services: &[f64], workers: usize) -> bool {
    let count = services.len() as f64;
    let negative = services.iter().filter(|s| **s < 0.0).count() as f64;
    let mean = services.iter().sum::<f64>() / count;
    let variance = services.iter().map(|s| (s - mean) * (s - mean)).sum::<f64>() / count;
    if negative > NEGATIVE * count || mean <= 0.0 || variance <= 0.0 {
        return false;
    }
    let correlation = |lag: usize| {
        let pairs = services.iter().zip(&services[lag..]);
        pairs.map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>() / count / variance
    };
    (1..=3 * workers).all(|lag| correlation(lag) > -MADE_UP)
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
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{Rng, SeedableRng};

    use super::*;
    use crate::record::Record;

    /// A closed loop of so many clients before a service, whose requests `serve` ends in the order of arrival.
    fn closed_loop(clients: usize, count: usize, mut end: impl FnMut(i64, usize) -> i64) -> Vec<Request> {
        let mut ready: std::collections::BinaryHeap<std::cmp::Reverse<i64>> =
            (0..clients as i64).map(std::cmp::Reverse).collect();
        let mut requests = Vec::new();
        for n in 0..count {
            let start = ready.pop().unwrap().0;
            let end = end(start, n);
            requests.push(Request::of(&Record::spanning(start, end)));
            ready.push(std::cmp::Reverse(end));
        }
        requests
    }

    /// Between 30 and 90 ms, without a pattern.
    fn service(n: usize) -> i64 {
        let random = Xoshiro256PlusPlus::seed_from_u64(n as u64).next_u64();
        30_000_000 + (random % 60_000_000).cast_signed()
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
        for spread in [1, 2, 4, 8] {
            let requests = closed_loop(16, 3_000, |start, n| start + 230_000_000 + service(n) / spread);
            assert!(workers(&requests).is_none(), "{spread}");
        }
        assert!(workers(&closed_loop(16, 3_000, |start, _| start + 264_000_000)).is_none());
    }
}
