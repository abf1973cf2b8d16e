//! What was read of a log, and the log as a list of requests and as a scenario.

use std::{
    path::Path,
    process::{Command, Output},
};

use goodput_simulator::{Limits, Measure, Scenario, run};
use serde_json::Value;

const LOG: &str = "recordings/fixtures/nginx/json_ramp.log.gz";

#[test]
fn inspect_prints_the_figures_that_an_independent_parser_found() {
    let expected = std::fs::read_to_string(repository().join("recordings/fixtures/expected.json")).unwrap();
    let expected: Value = serde_json::from_str(&expected).unwrap();
    let expected = &expected["nginx/json_ramp.log.gz"]["expected"];
    let output = goodput(&["inspect", LOG, "--json"]);
    assert!(output.status.success());
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(seen["format"], "nginx");
    for count in
        ["records", "unparseable_lines", "skipped_non_record_lines", "records_without_latency", "errors"]
    {
        assert!(expected[count].is_number(), "{count}");
        assert_eq!(seen[count], expected[count], "{count}");
    }
    let near = |what: &str, pointer: &str| {
        let (seen, expected) = (seen.pointer(pointer), expected.pointer(pointer));
        let (seen, expected) =
            (seen.and_then(Value::as_f64).unwrap(), expected.and_then(Value::as_f64).unwrap());
        assert!((seen - expected).abs() <= 1e-3 * expected.abs(), "{what}: {seen} for {expected}");
    };
    for figure in ["mean", "min", "p50", "p90", "p99", "max"] {
        near(figure, &format!("/latency_ms/{figure}"));
    }
    for figure in ["/first_ts", "/last_ts", "/concurrency/max_in_flight", "/concurrency/mean_in_flight"] {
        near(figure, figure);
    }
    for estimate in ["capacity_per_s", "no_load_latency_ms", "knee"] {
        let estimate = &seen["workload"][estimate];
        let end = |name: &str| estimate[name].as_f64().unwrap();
        assert!(end("low") <= end("value") && end("value") <= end("high"), "{estimate}");
    }
}

#[test]
fn inspect_says_in_words_what_was_assumed() {
    let output = goodput(&["inspect", LOG]);
    let text = String::from_utf8(output.stdout).unwrap();
    for word in ["nginx", "1,223 requests", "end of a request", "Capacity:", "Knee:"] {
        assert!(text.contains(word), "{word} in {text}");
    }
}

#[test]
fn a_converted_log_is_the_same_log() {
    let output = goodput(&["convert", LOG]);
    assert!(output.status.success());
    let list = Path::new(env!("CARGO_TARGET_TMPDIR")).join("converted.csv");
    std::fs::write(&list, &output.stdout).unwrap();
    let figures = |file: &str| -> Value {
        serde_json::from_slice(&goodput(&["inspect", file, "--json"]).stdout).unwrap()
    };
    let (before, after) = (figures(LOG), figures(&list.to_string_lossy()));
    assert_eq!(after["format"], "goodput");
    for figure in ["records", "errors", "latency_ms"] {
        assert_eq!(before[figure], after[figure], "{figure}");
    }
}

#[test]
fn a_log_as_a_scenario_is_played_with_every_request_of_it() {
    let output = goodput(&["convert", LOG, "--scenario", "--deadline", "300ms"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let scenario = Scenario::parse(&String::from_utf8(output.stdout).unwrap()).unwrap();
    assert_eq!(scenario.deadline, Some(std::time::Duration::from_millis(300)));
    let summary = run(&scenario, &Limits::None, 1, &Measure::default()).unwrap().summary;
    assert_eq!(summary.total().counts.offered, 1_223);
}

#[test]
fn a_file_of_aggregates_has_no_requests_to_list() {
    let output = goodput(&["convert", "recordings/fixtures/wrk/wrk_nginx_ramp.txt"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--scenario"));
    let output = goodput(&["convert", "recordings/fixtures/wrk/wrk_nginx_ramp.txt", "--scenario"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Scenario::parse(&String::from_utf8(output.stdout).unwrap()).unwrap();
}

fn goodput(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_goodput")).args(arguments).current_dir(repository()).output().unwrap()
}

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}
