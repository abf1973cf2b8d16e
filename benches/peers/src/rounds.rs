//! Who is measured when, and what comes of it.

use std::time::{Duration, Instant};

use crate::{
    contender::{Contender, Kind},
    updates::Updates,
};

/// How long all rounds may take together.
const BUDGET: Duration = Duration::from_secs(120);
const MOST_ROUNDS: usize = 201;

const SLICE: Duration = Duration::from_millis(4);
const SHORT_SLICE: Duration = Duration::from_millis(1);

/// Everything that was measured.
pub(crate) struct Measurements {
    pub(crate) cores: usize,
    pub(crate) rounds: usize,
    pub(crate) visits: Vec<Visit>,
    pub(crate) refusals: Vec<Refused>,
    pub(crate) updates: Vec<Updated>,
}

/// What a request costs that is admitted and released.
pub(crate) struct Visit {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) allocations: f64,
    /// With so many threads at it.
    pub(crate) by_threads: Vec<(usize, Times)>,
}

/// What a request costs that is refused.
pub(crate) struct Refused {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) times: Times,
}

/// What an algorithm's step costs.
pub(crate) struct Updated {
    pub(crate) name: &'static str,
    pub(crate) steps_with_each: bool,
    pub(crate) of_one: Times,
    pub(crate) of_hundred: Times,
}

/// Nanoseconds for one operation, one number for each round.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times(Vec<f64>);

impl Measurements {
    /// Measures all, by turns.
    pub(crate) fn take(
        visits: &[Contender],
        refusals: &[Contender],
        updates: &[Updates],
        cores: usize,
    ) -> Self {
        let mut measured = Self {
            cores,
            rounds: 0,
            visits: visits.iter().map(|contender| Visit::new(contender, cores)).collect(),
            refusals: refusals.iter().map(Refused::new).collect(),
            updates: updates.iter().map(Updated::new).collect(),
        };
        let start = Instant::now();
        while measured.rounds < MOST_ROUNDS && start.elapsed() < BUDGET {
            measured.add_round(visits, refusals, updates);
        }
        measured
    }

    fn add_round(&mut self, visits: &[Contender], refusals: &[Contender], updates: &[Updates]) {
        for threads in 1..=self.cores {
            for (contender, visit) in visits.iter().zip(&mut self.visits) {
                if let Some((_, times)) = visit.by_threads.iter_mut().find(|(count, _)| *count == threads) {
                    times.0.push(contender.time(threads, SLICE));
                }
            }
        }
        for (contender, refused) in refusals.iter().zip(&mut self.refusals) {
            refused.times.0.push(contender.time(1, SLICE));
        }
        for (update, updated) in updates.iter().zip(&mut self.updates) {
            updated.of_one.0.push(update.of_one.time(1, SHORT_SLICE));
            updated.of_hundred.0.push(update.of_hundred.time(1, SHORT_SLICE));
        }
        self.rounds += 1;
    }

    /// The floor on the clock of a contender, with so many threads. Peers measure by the system's clock.
    pub(crate) fn floor(&self, kind: Kind, threads: usize) -> Option<&Times> {
        let wanted = Kind::Floor(kind.clock());
        self.visits.iter().find(|visit| visit.kind == wanted).and_then(|visit| visit.with(threads))
    }
}

impl Visit {
    fn new(contender: &Contender, cores: usize) -> Self {
        // Floor and gate at every number of threads, all others alone, in twos and with all cores busy.
        let counts: Vec<usize> = match contender.kind {
            Kind::Floor(_) | Kind::Ours(_) => (1..=cores).collect(),
            Kind::Adaptive | Kind::Fixed => (1..=cores).filter(|&n| n <= 2 || n == cores).collect(),
        };
        Self {
            name: contender.name.clone(),
            kind: contender.kind,
            allocations: contender.allocations(),
            by_threads: counts.into_iter().map(|threads| (threads, Times::default())).collect(),
        }
    }

    pub(crate) fn with(&self, threads: usize) -> Option<&Times> {
        self.by_threads.iter().find(|(count, _)| *count == threads).map(|(_, times)| times)
    }
}

impl Refused {
    fn new(contender: &Contender) -> Self {
        Self { name: contender.name.clone(), kind: contender.kind, times: Times::default() }
    }
}

impl Updated {
    fn new(updates: &Updates) -> Self {
        Self {
            name: updates.name,
            steps_with_each: updates.steps_with_each,
            of_one: Times::default(),
            of_hundred: Times::default(),
        }
    }
}

impl Times {
    pub(crate) fn median(&self) -> f64 {
        median(self.0.clone())
    }

    pub(crate) fn least(&self) -> f64 {
        self.0.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// The median over the rounds of how many times the other it is.
    pub(crate) fn ratio_to(&self, other: &Self) -> f64 {
        median(self.0.iter().zip(&other.0).map(|(own, other)| own / other).collect())
    }
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_unstable_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(f64::NAN)
}
