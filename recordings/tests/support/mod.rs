//! Compares what was read with what an independent parser computed.

use goodput_recordings::{Inspection, ReadError};
use serde_json::{Value, json};

/// Files that hold no requests and no load steps; what their refusal has to say.
const REFUSED: &[(&str, &str)] = &[
    ("ab_percent.csv", "percentiles"),
    ("adaptive_concurrency_gauges.csv", "gauges"),
    ("ramp_failures.csv", "failures"),
    ("no_timing_combined.log", "without any duration"),
    ("powershell_utf16.bin", "vegeta attack -output FILE"),
];

/// Files whose folder is not named for their format.
const OTHER_FORMAT: &[(&str, &str)] = &[("lab_ramp_raw.csv", "generic_csv")];

/// Everything that differs.
pub(crate) fn check(file: &str, entry: &Value, result: Result<Inspection, ReadError>) -> Vec<String> {
    let file = file.strip_suffix(".gz").unwrap_or(file);
    if let Some((_, reason)) = REFUSED.iter().find(|(name, _)| *name == file) {
        return match result {
            Ok(read) => vec![format!("was read as {} and should have been refused", read.format)],
            Err(error) if error.to_string().contains(reason) => Vec::new(),
            Err(error) => vec![format!("refused without naming the reason `{reason}`: {error}")],
        };
    }
    let read = match result {
        Ok(read) => read,
        Err(error) => return vec![format!("refused: {error}")],
    };
    let mut problems = Vec::new();
    let format = OTHER_FORMAT.iter().find(|(name, _)| *name == file).map(|(_, format)| json!(format));
    let format = format.unwrap_or_else(|| entry["format"].clone());
    if json!(read.format) != format {
        problems.push(format!("format {} instead of {format}", read.format));
    }
    let expected = &entry["expected"];
    let actual = serde_json::to_value(&read).unwrap();
    if expected.get("records").is_some() {
        for name in [
            "records",
            "unparseable_lines",
            "skipped_non_record_lines",
            "records_without_latency",
            "errors",
            "timestamps_out_of_order",
        ] {
            compare(&mut problems, name, &expected[name], &actual[name], 0.0);
        }
        for name in ["first_ts", "last_ts"] {
            compare(&mut problems, name, &expected[name], &actual[name], 1.1e-6);
        }
        for name in ["mean", "min", "p50", "p90", "p99", "max"] {
            compare(&mut problems, name, &expected["latency_ms"][name], &actual["latency_ms"][name], 2.5e-4);
        }
        compare(
            &mut problems,
            "max_in_flight",
            &expected["concurrency"]["max_in_flight"],
            &actual["concurrency"]["max_in_flight"],
            0.0,
        );
        compare(
            &mut problems,
            "mean_in_flight",
            &expected["concurrency"]["mean_in_flight"],
            &actual["concurrency"]["mean_in_flight"],
            6e-4,
        );
        if let Some(counts) = expected["status_counts"].as_object() {
            for (status, count) in counts {
                let name = if status == "None" { "" } else { status };
                compare(
                    &mut problems,
                    &format!("status {status}"),
                    count,
                    &actual["status_counts"][name],
                    0.0,
                );
            }
        }
        if expected["truncated_gzip"] == json!(true) || expected["truncated_tail"] == json!(true) {
            if read.reading.truncated.is_none() {
                problems.push("the cut was not reported".to_owned());
            }
        } else if let Some(cut) = &read.reading.truncated {
            problems.push(format!("reported as cut: {cut}"));
        }
    }
    aggregates(&mut problems, expected, &actual);
    problems
}

/// What only files of aggregates have.
fn aggregates(problems: &mut Vec<String>, expected: &Value, actual: &Value) {
    let steps = actual["steps"].as_array().cloned().unwrap_or_default();
    let sum = |name: &str| json!(steps.iter().filter_map(|step| step[name].as_f64()).sum::<f64>());
    let step = steps.first().unwrap_or(&Value::Null);
    let latency = &actual["step_latency_ms"];
    let rate = |step: &Value| {
        json!(step["completed"].as_f64().unwrap_or(0.0) / step["seconds"].as_f64().unwrap_or(1.0))
    };
    let start = |step: Option<&Value>| json!(step.and_then(|s| s["start"].as_f64()).map(|ns| ns / 1e9));
    let end = json!(steps.last().and_then(|s| Some(s["start"].as_f64()? / 1e9 + s["seconds"].as_f64()?)));
    let mut must = |name: &str, actual: &Value, tolerance: f64| {
        compare(problems, name, &expected[name], actual, tolerance);
    };
    // autocannon
    must("connections", &step["clients"], 0.0);
    must("latency_count", &step["completed"], 0.0);
    must("latency_avg_ms", &latency["mean"], 0.0);
    must("latency_p50_ms", &latency["p50"], 0.0);
    must("latency_p99_ms", &latency["p99"], 0.0);
    // fortio
    must("count", &step["completed"], 0.0);
    must("actual_qps", &rate(step), 0.25);
    must("avg_s", &json!(latency["mean"].as_f64().map(|ms| ms / 1e3)), 1e-9);
    must("min_s", &json!(latency["min"].as_f64().map(|ms| ms / 1e3)), 1e-9);
    must("max_s", &json!(latency["max"].as_f64().map(|ms| ms / 1e3)), 1e-9);
    // HdrHistogram
    must("intervals", &json!(steps.len()), 0.0);
    must("values", &sum("completed"), 0.0);
    if expected.get("intervals").is_some() {
        must("first_ts", &start(steps.first()), 1e-3);
        for name in ["p50", "p99", "max"] {
            must(name, &latency[name], 1e-6);
        }
    }
    // Prometheus
    must("count_increase", &sum("completed"), 0.0);
    if expected.get("scrapes").is_some() {
        must("first_ts", &start(steps.first()), 1e-6);
        must("last_ts", &end, 1e-6);
        let total: f64 = steps
            .iter()
            .filter_map(|s| Some(s["completed"].as_f64()? * s["latency_ms"]["mean"].as_f64()?))
            .sum();
        must("sum_increase_s", &json!(total / 1e3), 1e-6);
    }
    // locust: the history begins with a row that has no requests yet.
    must("final_total_requests", &sum("completed"), 0.0);
    must("final_total_failures", &sum("errors"), 0.0);
    if expected.get("lines").is_some() && expected.get("failures").is_some() {
        must("requests", &sum("completed"), 0.0);
        must("failures", &sum("errors"), 0.0);
    }
    // oha
    must("requestsPerSec", &rate(step), 0.6);
    must("p50_s", &json!(latency["p50"].as_f64().map(|ms| ms / 1e3)), 1e-9);
    must("p99_s", &json!(latency["p99"].as_f64().map(|ms| ms / 1e3)), 1e-9);
    // vegeta
    if expected.get("latencies").is_some() {
        let offered =
            json!(step["completed"].as_f64().unwrap_or(0.0) + step["timeouts"].as_f64().unwrap_or(0.0));
        must("requests", &offered, 0.0);
        must("rate", &step["offered_per_s"], 1e-9);
    }
    // Published traces without a latency, or without a common notion of an error.
    must("rows", &actual["records"], 0.0);
    if expected.get("rows").is_some() && expected.get("limit_min").is_none() {
        must("first_ts", &actual["first_ts"], 1.1e-6);
        must("last_ts", &actual["last_ts"], 1.1e-6);
        must("mean_exec_s", &json!(actual["latency_ms"]["mean"].as_f64().map(|ms| ms / 1e3)), 6e-5);
    }
    // httperf and wrk
    if expected.get("connections").is_some() && expected.get("start").is_none() {
        problems.retain(|p| !p.starts_with("connections"));
        compare(problems, "connections", &expected["connections"], &step["completed"], 0.0);
    }
    for (expected, step) in expected["per_block"].as_array().into_iter().flatten().zip(&steps) {
        compare(problems, "requests", &expected["requests"], &step["completed"], 0.0);
        compare(problems, "requests_per_s", &expected["requests_per_s"], &rate(step), 1e-9);
        compare(problems, "non2xx", &expected["non2xx"], &step["errors"], 0.0);
        for name in ["p50", "p99"] {
            let ms = expected[name].as_str().unwrap().trim_end_matches("ms").parse::<f64>().unwrap();
            compare(problems, name, &json!(ms), &step["latency_ms"][name], 1e-9);
        }
    }
    if let Some(blocks) = expected["blocks"].as_u64()
        && blocks != steps.len() as u64
    {
        problems.push(format!("{} blocks instead of {blocks}", steps.len()));
    }
}

fn compare(problems: &mut Vec<String>, name: &str, expected: &Value, actual: &Value, tolerance: f64) {
    let Some(expected) = expected.as_f64() else { return };
    match actual.as_f64() {
        Some(actual) if (actual - expected).abs() <= tolerance => {}
        _ => problems.push(format!("{name} is {actual}, expected {expected}")),
    }
}
