//! Services and loads drawn by chance, which nobody had in mind when the fit was made.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::services::{Case, Load, Service, Work};

/// Requests of a recording, about.
const REQUESTS: f64 = 15_000.0;

/// A service with a load, which contains an overload or not.
pub(crate) fn case(seed: u64, overload: bool) -> Case {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut uniform = || (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    let mut between = |low: f64, high: f64| low * (high / low).powf(uniform());
    let workers = between(1.0, 130.0).round();
    let mean = between(0.003, 0.7);
    let service = match between(1.0, 32.0).log2() as u32 {
        0 | 1 => Service::Queue { workers: workers as usize },
        2 => Service::Shared { workers },
        3 => Service::Delayed { workers: workers as usize, delay: between(0.5, 8.0) },
        _ => Service::Slowed { workers: workers as usize, slows: workers * between(3.0, 10.0) },
    };
    let work = match between(1.0, 32.0).log2() as u32 {
        0 => Work::Constant,
        1 => Work::Exponential,
        2 => Work::Lognormal(between(0.2, 1.5)),
        3 => Work::Bimodal,
        _ => Work::Pareto,
    };
    // What its queue slows falls past its knee within a moment when clients do not wait.
    let closed = matches!(service, Service::Slowed { .. }) || between(1.0, 4.0) < 2.0;
    let mut case = Case {
        name: "by chance",
        service,
        work,
        mean,
        load: Load::Open(Vec::new()),
        room: usize::MAX,
        events: Vec::new(),
    };
    let (capacity, knee) = case.truth();
    let levels: &[f64] = match (closed, overload) {
        (false, true) => &[0.25, 0.5, 0.75, 0.95, 1.35, 0.4],
        (false, false) => &[0.15, 0.4, 0.25, 0.5],
        (true, true) => &[0.3, 0.6, 1.0, 2.0, 4.0, 8.0],
        (true, false) => &[0.1, 0.2, 0.35, 0.15],
    };
    let phase = REQUESTS / levels.len() as f64;
    case.load = if closed {
        let phases = levels.iter().map(|level| {
            let clients = (level * knee).round().max(1.0);
            (clients as usize, phase / (capacity * (clients / knee).min(1.0)))
        });
        Load::Closed(phases.collect())
    } else {
        Load::Open(levels.iter().map(|load| (*load, phase / capacity)).collect())
    };
    case
}
