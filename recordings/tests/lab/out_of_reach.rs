//! What some recordings of the lab cannot tell within a fifth, whoever reads them: bounds that are computed from the
//! recordings themselves.

use std::io::{BufRead, BufReader};

use goodput_recordings::{Item, Options, Outcome, Recording};
use serde_json::Value;

use super::{LATENCY_MS, fixtures, workload};

/// No number lies within a fifth of two others whose ratio is larger.
const TOO_FAR: f64 = 1.2 / 0.8;
/// Requests that the service works on at once.
const WORKERS: usize = 4;
const SECOND: f64 = 1.0;

/// A success or a refusal: stamp of its start and latency in seconds.
struct Request {
    stamp: f64,
    latency: f64,
    success: bool,
}

fn requests(file: &str) -> Vec<Request> {
    let recording = Recording::open(fixtures().join(file), &Options::default()).unwrap();
    let mut requests = Vec::new();
    recording
        .each(|item| {
            let Item::Request(record) = item else { return };
            requests.push(Request {
                stamp: record.start.unwrap() as f64 / 1e9,
                latency: record.latency.unwrap() as f64 / 1e9,
                success: record.outcome == Outcome::Success,
            });
        })
        .unwrap();
    requests
}

fn median(mut sample: Vec<f64>) -> f64 {
    sample.sort_by(f64::total_cmp);
    sample[sample.len() / 2]
}

/// The median stay, in milliseconds, of those that met a free worker if the requests ended at these instants. Of those that
/// come at the same instant, those are served first that end first.
fn without_a_queue(requests: &[Request], ends: &[f64]) -> f64 {
    let served = requests.iter().zip(ends).filter(|(request, _)| request.success);
    let mut spans: Vec<(f64, f64)> = served.map(|(request, end)| (end - request.latency, *end)).collect();
    spans.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let met = |at: usize| spans[..at].iter().filter(|(_, end)| *end > spans[at].0).count();
    let free = (0..spans.len()).filter(|at| met(*at) < WORKERS);
    median(free.map(|at| (spans[at].1 - spans[at].0) * 1e3).collect())
}

/// Apache writes whole seconds of the start, and its lines in the order of the ends. Both courses below agree with every
/// line, and with each of them it was other requests that met a free worker.
#[test]
fn whole_seconds_leave_open_how_long_those_took_that_met_a_free_worker() {
    let file = "apache/combined_D_openloop.log.gz";
    let requests = requests(file);
    let mut earliest = Vec::new();
    for request in &requests {
        let own: f64 = request.stamp + request.latency;
        earliest.push(earliest.last().map_or(own, |before: &f64| own.max(*before)));
    }
    let mut latest = Vec::new();
    for request in requests.iter().rev() {
        let own: f64 = request.stamp + request.latency + SECOND;
        latest.push(latest.last().map_or(own, |after: &f64| own.min(*after)));
    }
    latest.reverse();
    for ends in [&earliest, &latest] {
        assert!(ends.is_sorted());
        for (request, end) in requests.iter().zip(ends) {
            let start = end - request.latency;
            assert!((-1e-6..=SECOND + 1e-6).contains(&(start - request.stamp)), "{start} {}", request.stamp);
        }
    }
    let (one, other) = (without_a_queue(&requests, &earliest), without_a_queue(&requests, &latest));
    assert!(other / one > TOO_FAR, "{one} {other}");
    // So it may only be told with an interval that is as wide.
    let told = workload(file).no_load_latency_ms.unwrap();
    assert!(told.high / told.low > TOO_FAR, "{told:?}");
}

/// The tracer's own spans around the work show what the service could do at each time: four workers over the mean work.
#[test]
fn under_its_tracer_the_service_had_no_capacity_but_several() {
    let work = work_spans("otlp/otlp_http_export.jsonl.gz");
    // Bounds of the mean work in each fifth of the run, by three standard errors.
    let bounds: Vec<(f64, f64)> = work
        .chunks(work.len().div_ceil(5))
        .map(|some| {
            let count = some.len() as f64;
            let mean = some.iter().sum::<f64>() / count;
            let variance = some.iter().map(|w| (w - mean) * (w - mean)).sum::<f64>() / (count - 1.0);
            let error = (variance / count).sqrt();
            (mean - 3.0 * error, mean + 3.0 * error)
        })
        .collect();
    let slowest = bounds.iter().map(|(low, _)| *low).fold(0.0, f64::max);
    let fastest = bounds.iter().map(|(_, high)| *high).fold(f64::INFINITY, f64::min);
    assert!(slowest / fastest > TOO_FAR, "{bounds:?}");
}

/// How long the inner spans took, in seconds, in the order of their ends.
fn work_spans(file: &str) -> Vec<f64> {
    let lines = flate2::read::GzDecoder::new(std::fs::File::open(fixtures().join(file)).unwrap());
    let mut work = Vec::new();
    for line in BufReader::new(lines).lines() {
        let export: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let within = |value: &Value, name: &str| value[name].as_array().cloned().unwrap_or_default();
        for span in within(&export, "resourceSpans")
            .iter()
            .flat_map(|resource| within(resource, "scopeSpans"))
            .flat_map(|scope| within(&scope, "spans"))
            .filter(|span| span["name"] == "work")
        {
            let instant = |name: &str| span[name].as_str().unwrap().parse::<f64>().unwrap() / 1e9;
            let (start, end) = (instant("startTimeUnixNano"), instant("endTimeUnixNano"));
            work.push((end, end - start));
        }
    }
    work.sort_by(|a, b| a.0.total_cmp(&b.0));
    work.into_iter().map(|(_, seconds)| seconds).collect()
}

/// The excerpt is of three seconds in the middle of an overload.
#[test]
fn fifty_answers_are_too_few_for_a_capacity_and_still_bound_the_latency() {
    let file = "pino/pino_http.log.gz";
    let answers = requests(file).iter().filter(|request| request.success).count();
    // The standard error of a Poisson number is its root.
    assert!(1.96 / (answers as f64).sqrt() > 0.2, "{answers}");
    let told = workload(file).no_load_latency_ms.unwrap();
    assert!(told.low == 0.0 && told.high > LATENCY_MS.1, "{told:?}");
}
