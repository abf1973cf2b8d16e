//! One service, recorded by many tools: every recording tells the same of it, or says that it cannot.
//!
//! Four workers behind a queue, about 60 to 65 requests per second, about 58 ms without a queue, a good limit of 4 to 8
//! (`fixtures/README.md`). The machine was busy with other work, so the service was slower in some runs than in others.

mod out_of_reach;

use std::path::{Path, PathBuf};

use goodput_recordings::{Estimate, Inspection, Options, Waiting, Workload};

/// What a recording tells of the service.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Tells {
    /// Capacity and latency without a queue, each within a fifth, and the knee.
    All,
    /// The same, and the service answered more slowly in this run than in others when it had nothing else to do.
    AllSlower,
    /// Capacity and knee; how long a request takes that does not wait only by an interval.
    Roughly,
    /// Capacity: no request met a service that was free.
    Capacity,
    /// Bounds: no overload, or too little of it.
    Bounds,
    /// The same, in a run in which the service answered more slowly.
    BoundsSlower,
    /// Nothing: it holds no requests.
    Refused,
}

use Tells::{All, AllSlower, Bounds, BoundsSlower, Capacity, Refused, Roughly};

/// Every recording that was made of it.
const RECORDINGS: &[(&str, Tells)] = &[
    ("nginx/timed_combined_ramp.log.gz", All),
    ("nginx/json_ramp.log.gz", All),
    // Each request meets a dead server before this one.
    ("nginx/keyed_retry.log.gz", AllSlower),
    ("nginx/malformed_requests.log", Bounds),
    ("nginx/two_members.log.gz", All),
    ("nginx/truncated_stream.log.gz", All),
    // Bursts of a hundred requests, stamped in whole seconds: see `out_of_reach`, also for OTLP and pino.
    ("apache/combined_D_openloop.log.gz", Roughly),
    ("apache/common_T_slash_D.log.gz", Bounds),
    // Bursts that begin with a full service.
    ("envoy/default_text_circuit_breaker.log.gz", Capacity),
    ("envoy/istio_text_tail.log.gz", Capacity),
    ("envoy/adaptive_concurrency.log.gz", AllSlower),
    ("haproxy/httplog_queue_timeout.log.gz", AllSlower),
    ("caddy/json_openclosed.log.gz", All),
    ("h2load/h2load.log", All),
    ("hdrhistogram/lab_ramp.hlog", All),
    ("hdrhistogram/lab_ramp_raw.csv.gz", All),
    ("locust/ramp_stats_history.csv", AllSlower),
    ("locust/ramp_failures.csv", Refused),
    ("wrk/wrk_nginx_ramp.txt", All),
    ("wrk/wrk2_apache_openloop.txt", Bounds),
    ("autocannon/autocannon_c2.json", Bounds),
    ("autocannon/autocannon_c32.json", Bounds),
    ("hey/hey_paced.csv", BoundsSlower),
    ("hey/hey_summary.txt", Bounds),
    ("oha/oha_c16.csv", Bounds),
    ("oha/oha_summary.json", Bounds),
    ("ab/ab_gnuplot.tsv.gz", Bounds),
    ("ab/ab_percent.csv", Refused),
    // The service was three times as slow under its tracer and log, and no steady one: by the spans of its own work.
    ("otlp/otlp_http_export.jsonl.gz", Bounds),
    ("pino/pino_http.log.gz", Bounds),
    ("prometheus/caddy_scrapes.txt.gz", All),
    ("siege/siege_verbose.txt.gz", Bounds),
    // Another service, which does not log how long requests wait for one of its two workers.
    ("gunicorn/gunicorn_D_L.log.gz", Bounds),
    // Without the names of its columns.
    ("generic_csv/locale_de.csv", Refused),
    ("truth/nginx_app_truth_ramp.csv.gz", All),
    ("truth/apache_app_truth.csv.gz", All),
    ("httperf/httperf.txt", Bounds),
];

const CAPACITY_PER_S: (f64, f64) = (60.0 * 0.8, 65.0 * 1.2);
const LATENCY_MS: (f64, f64) = (58.0 * 0.8, 58.0 * 1.2);
const SLOWER_MS: (f64, f64) = (LATENCY_MS.0, 90.0);
const KNEE: (f64, f64) = (4.0, 8.0);

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

fn workload(file: &str) -> Workload {
    Inspection::open(fixtures().join(file), &Options::default())
        .unwrap_or_else(|error| panic!("{error}"))
        .workload
}

fn is_about(estimate: Option<Estimate>, (low, high): (f64, f64)) -> bool {
    estimate.is_some_and(|estimate| (low..=high).contains(&estimate.value))
}

fn may_be(estimate: Estimate, (low, high): (f64, f64)) -> bool {
    estimate.low <= high && estimate.high >= low
}

/// What a recording tells that it should not, and the other way round.
fn problems(tells: Tells, found: &Workload) -> Vec<String> {
    let mut problems = Vec::new();
    let mut must = |holds: bool, what: &str| {
        if !holds {
            problems.push(what.to_owned());
        }
    };
    if matches!(tells, Bounds | BoundsSlower) {
        must(found.capacity_per_s.is_none() && found.knee.is_none(), "a capacity or a knee is claimed");
        must(found.verdict.contains("unknown"), "it is not said that the knee is unknown");
        must(
            found.capacity_at_least_per_s.is_none_or(|least| least <= CAPACITY_PER_S.1),
            "the bound of the capacity is too high",
        );
    } else {
        must(is_about(found.capacity_per_s, CAPACITY_PER_S), "the capacity");
    }
    if matches!(tells, All | AllSlower | Roughly) {
        must(found.knee.is_some_and(|knee| may_be(knee, KNEE)), "the knee");
    }
    let latency = found.no_load_latency_ms;
    match tells {
        All => must(is_about(latency, LATENCY_MS), "the latency without a queue"),
        AllSlower => must(is_about(latency, SLOWER_MS), "the latency without a queue"),
        Roughly => must(latency.is_some_and(|ms| may_be(ms, LATENCY_MS)), "the latency without a queue"),
        BoundsSlower => must(latency.is_none_or(|ms| may_be(ms, SLOWER_MS)), "the bound of the latency"),
        Capacity | Bounds | Refused => {
            must(latency.is_none_or(|ms| may_be(ms, LATENCY_MS)), "the bound of the latency");
        }
    }
    problems
}

#[test]
fn every_recording_of_the_service_tells_the_truth_about_it_or_says_that_it_cannot() {
    let mut all = Vec::new();
    for &(file, tells) in RECORDINGS {
        let read = Inspection::open(fixtures().join(file), &Options::default());
        match (tells, read) {
            (Refused, read) => {
                if let Ok(read) = read {
                    all.push(format!("{file}: read as {}", read.format));
                }
            }
            (_, Err(error)) => all.push(format!("{file}: {error}")),
            (_, Ok(Inspection { workload: found, .. })) => {
                all.extend(problems(tells, &found).iter().map(|what| {
                    format!(
                        "{file}: {what}: capacity {:?}, latency {:?}, knee {:?}: {}",
                        found.capacity_per_s, found.no_load_latency_ms, found.knee, found.verdict
                    )
                }));
            }
        }
    }
    assert!(all.is_empty(), "\n{}", all.join("\n"));
}

#[test]
fn no_recording_of_the_service_is_left_out() {
    let readme = std::fs::read_to_string(fixtures().join("README.md")).unwrap();
    let ours = readme.lines().filter(|line| line.contains("| recorded for this project |"));
    let files: Vec<&str> = ours.filter_map(|line| line.split('`').nth(1)).collect();
    assert!(files.len() > 30);
    for file in files {
        assert!(RECORDINGS.iter().any(|(listed, _)| *listed == file), "{file}");
    }
}

#[test]
fn refusals_are_told_where_they_are_all_that_shows_an_overload() {
    // 226 of 561.
    let found = workload("otlp/otlp_http_export.jsonl.gz");
    assert!(found.shares.are_refused());
    assert!(found.verdict.contains("40 % of the requests were turned away"), "{}", found.verdict);
    let found = workload("hey/hey_paced.csv");
    assert!(!found.shares.are_refused() && !found.verdict.contains("turned away"), "{}", found.verdict);
}

#[test]
fn a_closed_loop_is_told_from_independent_arrivals() {
    for (file, waiting) in [
        ("nginx/json_ramp.log.gz", Waiting::Closed),
        ("truth/nginx_app_truth_ramp.csv.gz", Waiting::Closed),
        ("wrk/wrk_nginx_ramp.txt", Waiting::Closed),
        ("truth/apache_app_truth.csv.gz", Waiting::Open),
        ("haproxy/httplog_queue_timeout.log.gz", Waiting::Open),
    ] {
        assert_eq!(workload(file).arrivals.clients_wait, waiting, "{file}");
    }
}

#[test]
fn the_order_of_the_ends_shows_the_four_workers() {
    use goodput_recordings::ServiceModel;
    for file in ["truth/nginx_app_truth_ramp.csv.gz", "truth/apache_app_truth.csv.gz", "h2load/h2load.log"] {
        assert_eq!(workload(file).service, Some(ServiceModel::Queue { workers: 4.0 }), "{file}");
    }
}
