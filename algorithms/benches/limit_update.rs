//! What one `update` of each algorithm costs, for a window of one sample and for one of a hundred.

mod windows;

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use goodput_algorithms::Algorithm;

use crate::windows::Windows;

fn limit_update(criterion: &mut Criterion) {
    for (group, samples) in [("update_one", 1), ("update_hundred", 100)] {
        let mut group = criterion.benchmark_group(group);
        for algorithm in Algorithm::all_defaults() {
            let mut limiter = algorithm.build().expect("defaults hold");
            let mut windows = Windows::of(samples);
            group.bench_function(algorithm.name(), |bencher| {
                // A reference, or a copy would be part of what is measured.
                bencher.iter(|| {
                    black_box(&limiter.update(black_box(windows.next())));
                });
            });
        }
        group.finish();
    }
}

criterion_group!(benches, limit_update);
criterion_main!(benches);
