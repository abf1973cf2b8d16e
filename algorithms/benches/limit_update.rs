//! What one `update` of each algorithm costs, for a window of one sample and for one of a hundred.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use goodput_algorithms::{Algorithm, Instant, Latencies, Window};

fn limit_update(criterion: &mut Criterion) {
    for (group, samples) in [("update_one", 1), ("update_hundred", 100)] {
        let mut group = criterion.benchmark_group(group);
        for algorithm in Algorithm::all_defaults() {
            let mut limiter = algorithm.build().expect("defaults hold");
            let mut window = window_of(samples);
            let span_ns = window.duration_ns();
            group.bench_function(algorithm.name(), |bencher| {
                bencher.iter(|| {
                    window.opened = window.closed;
                    window.closed = window.opened.plus_nanos(span_ns);
                    black_box(limiter.update(black_box(&window)))
                });
            });
        }
        group.finish();
    }
}

/// So many samples of about 10 ms at 20 in flight.
fn window_of(samples: u64) -> Window {
    let sum = |sum: Latencies, i: u64| sum.merge(Latencies::one(10_000_000 + i % 7 * 100_000));
    Window {
        opened: Instant::ZERO,
        closed: Instant::from_nanos(samples * 500_000),
        successes: (0..samples).fold(Latencies::NONE, sum),
        limit_hits: samples,
        max_in_flight: 20,
        in_flight_area_ns: 10_000_000 * u128::from(samples),
        longest_silence_ns: 500_000,
        ..Window::EMPTY
    }
}

criterion_group!(benches, limit_update);
criterion_main!(benches);
