//! How fast recordings are read: bytes per second on one core, from plain text to records, and on to the digest.

use std::fmt::Write as _;
use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use goodput_recordings::{Digest, Options, Recording};

/// An nginx log of so many lines, with dates that advance and latencies of all sizes.
fn nginx(lines: u64) -> String {
    let mut log = String::new();
    for n in 0..lines {
        let (second, latency) = (n / 50, (n * 7_919) % 1_500);
        let (hours, minutes, seconds) = (second / 3600 % 24, second / 60 % 60, second % 60);
        let _ = writeln!(
            log,
            "198.51.100.{} - - [29/Nov/2026:{hours:02}:{minutes:02}:{seconds:02} +0000] \"GET /api/items/{n}?page=2 HTTP/1.1\" 200 {} \
             \"https://www.example.com/\" \"Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101\" {}.{:03} 0.{:03}",
            n % 250,
            n % 5_000,
            latency / 1000,
            latency % 1000,
            latency % 900,
        );
    }
    log
}

/// The same in JSON.
fn json(lines: u64) -> String {
    let mut log = String::new();
    for n in 0..lines {
        let _ = writeln!(
            log,
            "{{\"time\":\"2026-11-29T23:01:48+00:00\",\"msec\":{}.{:03},\"remote_addr\":\"127.0.0.1\",\"request_method\":\"GET\",\
             \"uri\":\"/api/items\",\"status\":200,\"body_bytes_sent\":72,\"request_time\":0.{:03},\"upstream_status\":\"200\",\
             \"upstream_response_time\":\"0.097\",\"http_user_agent\":\"curl\"}}",
            1_795_993_308 + n / 50,
            n * 20 % 1000,
            n % 1000,
        );
    }
    log
}

fn reading(c: &mut Criterion) {
    let mut group = c.benchmark_group("reading");
    group.sample_size(10);
    for (name, log) in [("nginx", nginx(100_000)), ("nginx_json", json(100_000))] {
        group.throughput(Throughput::Bytes(log.len() as u64));
        group.bench_function(format!("{name}/records"), |b| {
            b.iter(|| {
                let recording = Recording::new(log.as_bytes(), &Options::default()).expect("a log");
                recording.each(|item| drop(black_box(item))).expect("a log")
            });
        });
        group.bench_function(format!("{name}/digest"), |b| {
            b.iter(|| {
                let mut digest = Digest::new();
                let recording = Recording::new(log.as_bytes(), &Options::default()).expect("a log");
                recording.each(|item| digest.add(item)).expect("a log");
                digest
            });
        });
    }
    group.finish();
}

criterion_group!(benches, reading);
criterion_main!(benches);
