//! How fast the world goes round: requests per second of one core through a real gate.

use std::{hint::black_box, time::Duration};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use goodput::algorithms::{AimdSettings, Algorithm};
use goodput_simulator::{Limits, Measure, Scenario, run};

/// A pool of workers of 10 ms at that load, for so many requests.
fn pool(workers: u32, load: f64, requests: f64, door: &str) -> Scenario {
    let per_second = f64::from(workers) * 100.0 * load;
    let seconds = requests / per_second;
    Scenario::parse(&format!(
        "length = \"{}us\"\n[service]\nwork = {{ exponential = \"10ms\" }}\npool = {{ workers = {workers} }}\n\
         [[clients]]\nopen = {{ per_second = {per_second:?} }}\n{door}",
        (seconds * 1e6).ceil()
    ))
    .unwrap_or_else(|error| panic!("{error}"))
}

fn offered(scenario: &Scenario, limits: &Limits) -> u64 {
    run(scenario, limits, 1, &Measure::default()).unwrap().summary.total().counts.offered
}

/// Half again as much as the workers can do, through a gate.
fn overload(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("overload");
    let scenario = pool(16, 1.5, 100_000.0, "[door.service]");
    group.throughput(Throughput::Elements(100_000)).sample_size(20);
    let aimd = Algorithm::Aimd(AimdSettings { min: 1, ..AimdSettings::default() });
    for (name, limits) in [("fixed", Limits::fixed(20)), ("aimd", Limits::Algorithm(aimd))] {
        group.bench_function(name, |bencher| bencher.iter(|| offered(black_box(&scenario), &limits)));
    }
    group.finish();
}

/// What a request costs while so many others are in flight: should grow no faster than their logarithm.
fn in_flight(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("in flight");
    group.measurement_time(Duration::from_secs(10)).sample_size(10);
    for workers in [10, 100, 1_000, 10_000, 100_000] {
        // Long enough for all workers to be busy most of the time.
        let requests = f64::from(workers).mul_add(20.0, 100_000.0);
        let scenario = pool(workers, 0.95, requests, "[door.service]");
        let limits = Limits::fixed(1_000_000);
        group.throughput(Throughput::Elements(requests as u64));
        group.bench_function(BenchmarkId::from_parameter(workers), |bencher| {
            bencher.iter(|| offered(black_box(&scenario), &limits));
        });
    }
    group.finish();
}

criterion_group!(benches, overload, in_flight);
criterion_main!(benches);
