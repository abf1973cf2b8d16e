//! The request path: a token taken and released, alone and in twos, and a refusal.

use std::{
    hint::black_box,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use criterion::{Bencher, BenchmarkGroup, Criterion, criterion_group, criterion_main, measurement::WallTime};
use goodput::{
    Clock, Gate, GateBuilder, Outcome, SystemClock, TscClock,
    algorithms::{Algorithm, Limiter},
};

/// Whoever is asked for a token: the algorithm by name, or the default.
const ALGORITHMS: [&str; 3] = ["crest", "fixed", "aimd"];

fn alone(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("acquire and release");
    for algorithm in ALGORITHMS {
        visits(
            &mut group,
            &format!("{algorithm}, system clock"),
            builder(algorithm).clock(SystemClock::new()),
        );
        visits(
            &mut group,
            &format!("{algorithm}, time stamp counter"),
            builder(algorithm).clock(TscClock::new()),
        );
    }
    group.finish();
}

/// While another thread does the same at the same gate.
fn in_twos(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("acquire and release, two threads");
    for algorithm in ALGORITHMS {
        let gate = builder(algorithm).clock(TscClock::new()).build();
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    visit(&gate);
                }
            });
            group.bench_function(algorithm, |bencher| bencher.iter(|| visit(&gate)));
            stop.store(true, Ordering::Relaxed);
        });
    }
    group.finish();
}

fn refused(criterion: &mut Criterion) {
    let gate = builder("fixed").build();
    let _all = gate.try_acquire_many(u32::try_from(gate.limit()).expect("limits fit")).expect("it is empty");
    criterion.bench_function("refusal at the limit", |bencher: &mut Bencher<'_>| {
        bencher.iter(|| black_box(gate.try_acquire().is_err()));
    });
}

fn visits<C: Clock>(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, builder: GateBuilder<C>) {
    let gate = builder.build();
    group.bench_function(name, |bencher| bencher.iter(|| visit(&gate)));
}

fn visit<C: Clock>(gate: &Gate<C>) {
    if let Ok(token) = gate.try_acquire() {
        black_box(token).release(Outcome::Success);
    }
}

fn builder(algorithm: &str) -> GateBuilder {
    let algorithm = Algorithm::from_name(algorithm).expect("a known name");
    let limiter: Box<dyn Limiter> = algorithm.build().expect("defaults hold");
    Gate::builder(limiter)
}

criterion_group!(benches, alone, in_twos, refused);
criterion_main!(benches);
