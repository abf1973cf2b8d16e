//! Variants of the formats that people configure for themselves, written by hand from the tools' documentation.

mod json;
mod refusals;
mod tables;
mod text;

use goodput_recordings::{Basis, Digest, Inspection, Item, Options, Record, Recording};

/// What `inspect` shows of a text.
fn inspect(text: &str) -> Inspection {
    inspect_with(text, &Options::default())
}

fn inspect_with(text: &str, options: &Options) -> Inspection {
    match Inspection::read(text.as_bytes(), options) {
        Ok(inspection) => inspection,
        Err(error) => panic!("refused: {error}\n{text}"),
    }
}

/// The records of a text.
fn records(text: &str) -> Vec<Record> {
    let recording = Recording::new(text.as_bytes(), &Options::default())
        .unwrap_or_else(|e| panic!("refused: {e}\n{text}"));
    let mut records = Vec::new();
    let reading = recording.each(|item| match item {
        Item::Request(record) => records.push(record),
        Item::Step(step) => panic!("a step: {step:?}"),
    });
    let reading = reading.unwrap_or_else(|e| panic!("refused: {e}\n{text}"));
    assert_eq!(reading.unparseable_lines, 0, "{:?}\n{text}", reading.unparseable);
    records
}

/// Latencies in milliseconds.
fn latencies(text: &str) -> Vec<Option<f64>> {
    records(text).iter().map(|record| record.latency.map(|ns| ns as f64 / 1e6)).collect()
}

fn format_of(text: &str) -> (&'static str, Basis) {
    let inspection = inspect(text);
    (inspection.format.name(), inspection.reading.basis)
}

/// Requests of a service of four workers behind a queue, in the order of their ends: start and latency in
/// microseconds.
fn overload() -> Vec<(i64, i64)> {
    let mut free = [0_i64; 4];
    let mut served: Vec<(i64, i64)> = (0..400_i64)
        .map(|n| {
            let arrival = 1_795_993_393_000_000 + n * 12_345;
            let service = 30_000 + (n * 7_919) % 50_000;
            let worker = (0..4).min_by_key(|&w| free[w]).unwrap_or(0);
            let end = free[worker].max(arrival) + service;
            free[worker] = end;
            (arrival, end - arrival)
        })
        .collect();
    served.sort_by_key(|(start, latency)| start + latency);
    served
}

#[test]
fn the_digest_of_a_compressed_recording_is_that_of_the_plain_one() {
    let log: String =
        overload().iter().map(|(start, latency)| format!("{}\t200\t{latency}\n", start)).collect();
    let zstd = ruzstd_compressed(log.as_bytes());
    for bytes in [log.clone().into_bytes(), zstd] {
        let mut digest = Digest::new();
        let recording = Recording::new(&bytes[..], &Options::default()).unwrap();
        assert_eq!(recording.format().name(), "h2load");
        recording.each(|item| digest.add(item)).unwrap();
        assert_eq!(digest.latency().unwrap().max, inspect(&log).latency_ms.unwrap().max);
    }
}

fn ruzstd_compressed(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}
