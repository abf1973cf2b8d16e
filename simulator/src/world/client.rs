//! What a client sends, and when.

use crate::{
    random::{Purpose, Stream},
    scenario::{Clients, Closed, Jitter, Listed, Process, Retries, Work, nanos},
};

/// One client with its traffic and its chances.
#[derive(Debug)]
pub(super) struct Client {
    traffic: Traffic,
    work: Work,
    arrivals: Stream,
    works: Stream,
    errors: Stream,
    waits: Stream,
    joins: u64,
    leaves: u64,
    pub(super) timeout: Option<u64>,
    pub(super) retries: Option<Retries>,
    /// Its gate, by number.
    pub(super) gate: Option<usize>,
}

#[derive(Debug)]
enum Traffic {
    Open { process: Process, arrivals: Arrivals },
    Closed(Closed),
    Listed { requests: Vec<Listed>, next: usize },
}

impl Client {
    pub(super) fn new(clients: &Clients, work: &Work, seed: u64, index: usize, length_ns: u64) -> Self {
        let joins = nanos(clients.joins);
        let traffic = match (&clients.open, &clients.closed) {
            (Some(open), _) => Traffic::Open {
                process: open.process,
                arrivals: Arrivals::from(joins, open.steps(length_ns)),
            },
            (None, Some(closed)) => Traffic::Closed(closed.clone()),
            (None, None) => Traffic::Listed { requests: clients.requests.clone(), next: 0 },
        };
        Self {
            traffic,
            work: work.clone(),
            arrivals: Stream::new(seed, Purpose::Arrivals, index),
            works: Stream::new(seed, Purpose::Work, index),
            errors: Stream::new(seed, Purpose::Errors, index),
            waits: Stream::new(seed, Purpose::Waits, index),
            joins,
            leaves: clients.leaves.map_or(u64::MAX, nanos),
            timeout: clients.timeout.map(nanos),
            retries: clients.retries.clone(),
            gate: None,
        }
    }

    pub(super) const fn joins(&self) -> u64 {
        self.joins
    }

    /// When its first requests are sent, of each user one.
    pub(super) fn first_arrivals(&mut self) -> Vec<u64> {
        let joins = self.joins;
        match &mut self.traffic {
            Traffic::Open { process: Process::Constant, .. } => vec![joins],
            Traffic::Open { .. } => self.next_open_arrival().into_iter().collect(),
            Traffic::Closed(closed) => {
                let users = u64::from(closed.users);
                (0..users)
                    .map(|user| match closed.first_over {
                        Some(over) => {
                            let share = u128::from(nanos(over)) * u128::from(user) / u128::from(users);
                            joins.saturating_add(share as u64)
                        }
                        None => joins.saturating_add(closed.think.draw(&mut self.arrivals)),
                    })
                    .collect()
            }
            Traffic::Listed { requests, .. } => {
                requests.first().map(|request| nanos(request.at).max(joins)).into_iter().collect()
            }
        }
    }

    pub(super) const fn still_there(&self, now: u64) -> bool {
        now < self.leaves
    }

    /// The work of the request that is sent now, and when the next is, unless an answer decides that.
    #[inline]
    pub(super) fn send(&mut self) -> (u64, Option<u64>) {
        match &mut self.traffic {
            Traffic::Open { .. } => {
                let next = self.next_open_arrival();
                (self.work.draw(&mut self.works), next)
            }
            Traffic::Closed(_) => (self.work.draw(&mut self.works), None),
            Traffic::Listed { requests, next } => {
                let work = requests.get(*next).and_then(|request| request.work).map(nanos);
                *next += 1;
                let following = requests.get(*next).map(|request| nanos(request.at).max(self.joins));
                (work.map_or_else(|| self.work.draw(&mut self.works), |work| work.max(1)), following)
            }
        }
    }

    /// When a user who has an answer, or none to expect, asks again.
    pub(super) fn next_of_user(&mut self, now: u64) -> Option<u64> {
        match &self.traffic {
            Traffic::Closed(closed) => Some(now.saturating_add(closed.think.draw(&mut self.arrivals))),
            _ => None,
        }
    }

    /// The luck of a first attempt, or of a retry.
    pub(super) fn luck(&mut self, retry: bool) -> f64 {
        if retry { self.waits.uniform() } else { self.errors.uniform() }
    }

    /// How long to wait before the retry that follows `tries` attempts, at least one.
    pub(super) fn wait(&mut self, tries: u32) -> u64 {
        let Some(retries) = &self.retries else { return 0 };
        let grown = nanos(retries.wait) as f64 * libm::pow(retries.growth, f64::from(tries - 1));
        let wait = grown.min(retries.longest.map_or(f64::MAX, |longest| nanos(longest) as f64));
        let wait = match retries.jitter {
            Jitter::None => wait,
            Jitter::Full => wait * self.waits.uniform(),
            Jitter::Equal => wait * (0.5 + 0.5 * self.waits.uniform()),
        };
        // Saturates: a wait of centuries is longer than every run.
        libm::round(wait) as u64
    }

    fn next_open_arrival(&mut self) -> Option<u64> {
        let Traffic::Open { process, arrivals } = &mut self.traffic else { return None };
        let amount = match process {
            Process::Poisson => self.arrivals.exponential(),
            Process::Constant => 1.0,
        };
        arrivals.after(amount)
    }
}

/// Arrivals at a rate that changes in steps: a unit process, its time stretched by the rate. So the same chances
/// meet every rate, and even arrivals stay even.
#[derive(Debug)]
struct Arrivals {
    steps: Vec<(u64, f64)>,
    step: usize,
    /// When the current step, or the client, began.
    from: u64,
    /// Requests due since then, with the fraction of the next.
    due: f64,
}

impl Arrivals {
    fn from(joins: u64, steps: Vec<(u64, f64)>) -> Self {
        let step = steps.partition_point(|&(from, _)| from <= joins).max(1) - 1;
        Self { steps, step, from: joins, due: 0.0 }
    }

    /// When `amount` more requests will have been due.
    #[inline]
    fn after(&mut self, amount: f64) -> Option<u64> {
        let mut target = self.due + amount;
        loop {
            let rate = self.steps[self.step].1;
            let until = self.steps.get(self.step + 1).map(|&(until, _)| until);
            let room = until.map_or(f64::INFINITY, |until| (until - self.from) as f64 * rate / 1e9);
            if rate > 0.0 && target <= room {
                self.due = target;
                return Some(self.from.saturating_add(libm::round(target * 1e9 / rate) as u64));
            }
            self.from = until?;
            self.step += 1;
            target -= if rate > 0.0 { room } else { 0.0 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_arrivals_stay_even_to_the_nanosecond_and_follow_the_steps() {
        let mut arrivals = Arrivals::from(0, vec![(0, 100.0), (1_000_000_000, 0.0), (2_000_000_000, 200.0)]);
        let times: Vec<_> = (0..102).map(|_| arrivals.after(1.0).unwrap()).collect();
        assert!((0..100).all(|index| times[index] == 10_000_000 * (index as u64 + 1)));
        assert_eq!(times[100..], [2_005_000_000, 2_010_000_000]);
    }

    #[test]
    fn a_rate_that_falls_to_nothing_ends_the_arrivals() {
        let mut arrivals = Arrivals::from(0, vec![(0, 1.0), (1_000_000_000, 0.0)]);
        assert_eq!(arrivals.after(2.0), None);
    }
}
