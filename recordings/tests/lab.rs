//! One service, recorded by many tools: every recording tells the same of it.
//!
//! Four workers behind a queue, about 60 to 65 requests per second, about 58 ms without a queue, a good limit of 4 to 8
//! (`fixtures/README.md`). The machine was busy with other work, so the service was slower in some runs than in others.

use std::path::Path;

use goodput_recordings::{Estimate, Inspection, Options, Workload};

/// Recordings that contain the knee.
const WITH_A_KNEE: &[&str] = &[
    "nginx/timed_combined_ramp.log.gz",
    "nginx/json_ramp.log.gz",
    "nginx/keyed_retry.log.gz",
    "nginx/two_members.log.gz",
    "apache/combined_D_openloop.log.gz",
    "envoy/adaptive_concurrency.log.gz",
    "haproxy/httplog_queue_timeout.log.gz",
    "caddy/json_openclosed.log.gz",
    "h2load/h2load.log",
    "hdrhistogram/lab_ramp.hlog",
    "hdrhistogram/lab_ramp_raw.csv.gz",
    "locust/ramp_stats_history.csv",
    "wrk/wrk_nginx_ramp.txt",
    "prometheus/caddy_scrapes.txt.gz",
    "truth/nginx_app_truth_ramp.csv.gz",
    "truth/apache_app_truth.csv.gz",
];

/// Recordings in which the service answered more slowly than in the others even when it had nothing else to do.
const SLOWER: &[&str] = &["haproxy/httplog_queue_timeout.log.gz", "locust/ramp_stats_history.csv"];

/// Recordings without an overload, or without anything that would tell where it begins.
const WITHOUT_A_KNEE: &[&str] = &[
    "hey/hey_paced.csv",
    "oha/oha_c16.csv",
    "ab/ab_gnuplot.tsv.gz",
    "autocannon/autocannon_c2.json",
    "autocannon/autocannon_c32.json",
    "wrk/wrk2_apache_openloop.txt",
    "siege/siege_verbose.txt.gz",
    "nginx/malformed_requests.log",
];

fn workload(file: &str) -> Workload {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(file);
    Inspection::open(path, &Options::default()).unwrap_or_else(|error| panic!("{error}")).workload
}

fn overlaps(estimate: Estimate, low: f64, high: f64) -> bool {
    estimate.low <= high && estimate.high >= low
}

#[test]
fn every_recording_of_the_service_tells_its_capacity_its_knee_and_its_latency() {
    let mut problems = Vec::new();
    for file in WITH_A_KNEE {
        let found = workload(file);
        match found.capacity_per_s {
            Some(capacity) if (60.0 * 0.8..=65.0 * 1.2).contains(&capacity.value) => {}
            other => problems.push(format!("{file}: capacity {other:?}: {}", found.verdict)),
        }
        if !found.knee.is_some_and(|knee| overlaps(knee, 4.0, 8.0)) {
            problems.push(format!("{file}: knee {:?}", found.knee));
        }
        let longest = if SLOWER.contains(file) { 90.0 } else { 58.0 * 1.2 };
        if !found.no_load_latency_ms.is_some_and(|latency| overlaps(latency, 58.0 * 0.8, longest)) {
            problems.push(format!("{file}: latency without a queue {:?}", found.no_load_latency_ms));
        }
    }
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn a_recording_without_an_overload_says_so() {
    for file in WITHOUT_A_KNEE {
        let found = workload(file);
        assert_eq!((found.capacity_per_s, found.knee), (None, None), "{file}");
        assert!(found.verdict.contains("unknown"), "{file}: {}", found.verdict);
        assert!(
            found.capacity_at_least_per_s.is_none_or(|least| least <= 65.0 * 1.2),
            "{file}: {:?}",
            found.capacity_at_least_per_s
        );
    }
}

#[test]
fn a_closed_loop_is_told_from_independent_arrivals() {
    use goodput_recordings::Waiting;
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
