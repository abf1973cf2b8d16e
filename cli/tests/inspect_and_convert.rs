//! What was read of a log, and the log as a list of requests and as a scenario.

use std::{
    io::{Read, Write},
    path::Path,
    process::{Command, Output, Stdio},
};

use flate2::{Compression, read::MultiGzDecoder, write::GzEncoder};
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
fn inspect_says_at_the_top_which_unit_nobody_told_it_and_how_to_tell() {
    let output = goodput(&["inspect", "recordings/fixtures/apache/combined_D_openloop.log.gz"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let top: String = text.lines().take(6).collect::<Vec<_>>().join(" ");
    for word in ["Assumed:", "without a unit", "read as us", "--latency-unit"] {
        assert!(top.contains(word), "{word} in {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let told = goodput(&[
        "inspect",
        "recordings/fixtures/apache/combined_D_openloop.log.gz",
        "--latency-unit",
        "us",
    ]);
    assert!(!String::from_utf8(told.stdout).unwrap().contains("Assumed:"));
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
fn a_log_is_the_same_on_standard_input_in_several_gzip_members_and_in_zstd() {
    let json = |output: Output| -> Value { serde_json::from_slice(&output.stdout).unwrap() };
    let mut file = json(goodput(&["inspect", LOG, "--json"]));
    let plain = plain();
    let half = plain.len() / 2;
    let members = [gzip(&plain[..half]), gzip(&plain[half..])].concat();
    let zstd = ruzstd::encoding::compress_to_vec(&plain[..], ruzstd::encoding::CompressionLevel::Fastest);
    for (bytes, compression) in [(&plain, "none"), (&members, "gzip"), (&zstd, "zstd")] {
        file["reading"]["compression"] = compression.into();
        assert_eq!(json(inspected(bytes)), file, "{compression}");
    }
}

#[test]
fn a_second_gzip_member_that_is_cut_is_read_up_to_the_cut_and_that_is_said() {
    let plain = plain();
    let half = plain.len() / 2;
    let (first, second) = (gzip(&plain[..half]), gzip(&plain[half..]));
    let output = inspected(&[&first, &second[..second.len() / 2]].concat());
    assert!(output.status.success());
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    let whole_in_first = plain[..half].iter().filter(|byte| **byte == b'\n').count() as u64;
    let records = seen["records"].as_u64().unwrap();
    assert!((whole_in_first..1_223).contains(&records), "{records} after {whole_in_first}");
    assert_eq!(seen["unparseable_lines"], 0);
    assert!(seen["reading"]["truncated"].as_str().unwrap().contains("cut"), "{}", seen["reading"]);
}

#[test]
fn lines_that_are_not_understood_are_counted_and_named_and_the_rest_is_read() {
    let plain = plain();
    let lines: Vec<&[u8]> = plain.split_inclusive(|byte| *byte == b'\n').collect();
    let bytes = [&lines[..2].concat()[..], b"{\"half a\n", &lines[2..].concat()].concat();
    let seen: Value = serde_json::from_slice(&inspected(&bytes).stdout).unwrap();
    assert_eq!((&seen["records"], &seen["unparseable_lines"]), (&1_223.into(), &1.into()));
    assert_eq!(seen["reading"]["unparseable"][0]["line"], 3);
}

#[test]
fn what_cannot_be_read_is_refused_with_a_remedy_and_exit_code_2() {
    let table = |head: &str| format!("{head}\n{}", "2026-11-29T23:01:48.5Z,12,200\n".repeat(30)).into_bytes();
    let utf16 = [b"\xFF\xFE".to_vec(), "a,b\n".bytes().flat_map(|byte| [byte, 0]).collect()].concat();
    for (bytes, remedy) in [
        (Vec::new(), "rotated away"),
        (b"PK\x03\x04and so on".to_vec(), "unpack it first"),
        ([0, 159, 146, 150].repeat(100), "binary data that begins with 00 9f 92 96"),
        (b"It was a bright cold day in April.\n".to_vec(), "--latency-field"),
        (table("time,latency,status"), "--latency-unit"),
        (table("when,what,status"), "--latency-field"),
        (utf16, "UTF-8"),
        (gzip(&plain())[..40].to_vec(), "standard input: the compressed stream is cut"),
    ] {
        let output = inspected(&bytes);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{remedy}: {error}");
        assert!(error.starts_with("error: ") && error.contains(remedy), "{remedy}: {error}");
        assert!(output.stdout.is_empty());
    }
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

/// What `inspect --json` says of bytes on its standard input.
fn inspected(bytes: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_goodput"))
        .args(["inspect", "-", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A refusal may come before everything was written.
    let _ = child.stdin.take().unwrap().write_all(bytes);
    child.wait_with_output().unwrap()
}

/// The log, plain.
fn plain() -> Vec<u8> {
    let mut plain = Vec::new();
    let file = std::fs::File::open(repository().join(LOG)).unwrap();
    MultiGzDecoder::new(file).read_to_end(&mut plain).unwrap();
    plain
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn goodput(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_goodput")).args(arguments).current_dir(repository()).output().unwrap()
}

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}
