//! From a log to a recommendation, a page and a config that the library loads.

mod browser;

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::OnceLock,
};

use browser::Browser;
use goodput::GateConfig;
use serde_json::Value;

/// A log of four workers that serve 60 to 65 requests per second, with an overload in it.
const LOG: &str = "recordings/fixtures/nginx/json_ramp.log.gz";

#[test]
fn a_log_with_an_overload_gets_a_limit_that_holds_it() {
    let report = report();
    let ranking = report["ranking"].as_array().unwrap();
    let recommended = report["recommendation"]["limiter"]["algorithm"].as_str().unwrap();
    let in_overload = |entry: &Value| {
        let scenarios = entry["scenarios"].as_array().unwrap();
        let overload = scenarios.iter().find(|scenario| scenario["scenario"] == "overload").unwrap();
        overload["in_time"].as_f64().unwrap()
    };
    let of = |name: &str| {
        ranking.iter().find(|entry| entry["limiter"].as_str().unwrap().starts_with(name)).unwrap()
    };
    let (none, best) = (in_overload(of("none")), in_overload(of(recommended)));
    // Loads of at least 0.4, 2 and 0.4 for equal times: without a limit the queue of the second stage is as long as
    // all of it, and from its beginning on nearly nothing is in time; a perfect limit loses only what exceeds 1.
    assert!(none < 0.5, "{none}");
    assert!(best > none + 0.1, "{recommended}: {best} against {none}");
}

#[test]
fn the_knee_and_the_capacity_are_those_of_the_service_that_was_recorded() {
    let workload = &report()["recording"]["workload"];
    let capacity = workload["capacity_per_s"]["value"].as_f64().unwrap();
    // Recorded: 60 to 65 per second; a good limit is 4 to 8 (recordings/fixtures/README.md).
    assert!((48.0..78.0).contains(&capacity), "{capacity}");
    let knee = workload["knee"]["value"].as_f64().unwrap();
    assert!((3.0..9.0).contains(&knee), "{knee}");
}

#[test]
fn fixed_limits_and_no_limit_are_always_shown() {
    let ranking = report()["ranking"].as_array().unwrap();
    let names: Vec<_> = ranking.iter().map(|entry| entry["limiter"].as_str().unwrap()).collect();
    assert!(names.contains(&"none"));
    assert!(names.iter().filter(|name| name.starts_with("fixed:")).count() >= 3, "{names:?}");
    for name in goodput::algorithms::Algorithm::NAMES {
        assert!(names.iter().any(|entry| entry.split(':').next() == Some(name)), "{name}");
    }
    let scores: Vec<_> = ranking.iter().map(|entry| entry["score"]["value"].as_f64().unwrap()).collect();
    assert!(scores.is_sorted_by(|a, b| a >= b), "{scores:?}");
}

#[test]
fn the_config_is_loaded_by_the_library_as_it_is() {
    let text = fs::read_to_string(folder().join("limiter.toml")).unwrap();
    let config = GateConfig::from_toml(&text).unwrap();
    let limiter = report()["recommendation"]["limiter"]["algorithm"].as_str().unwrap().to_owned();
    assert_eq!(config.limiter.as_ref().map(|limiter| limiter.name().to_owned()), Some(limiter));
    assert!(config.builder().unwrap().build().limit() >= 1);
}

#[test]
fn the_page_needs_nothing_else() {
    report();
    let page = fs::read_to_string(folder().join("index.html")).unwrap();
    for outside in ["http:", "https:", "<script", "<link", "url(", "src=\"/"] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(page.contains("prefers-color-scheme:dark") && page.contains("width=device-width"));
    for picture in ["recorded.svg", "overload.svg", "slowdown.svg"] {
        assert!(fs::read_to_string(folder().join(picture)).unwrap().starts_with("<svg"), "{picture}");
    }
}

#[test]
fn a_browser_shows_all_of_it_on_a_phone_and_on_a_screen_by_day_and_by_night() {
    let ranking = report()["ranking"].as_array().unwrap().len();
    let headline = report()["recommendation"]["headline"].as_str().unwrap();
    let Some(browser) = Browser::find(folder()) else { return };
    let page = folder().join("index.html");
    for (dark, paper) in [(false, "rgb(255, 255, 255)"), (true, "rgb(13, 17, 23)")] {
        let seen = browser.look(&page, dark);
        // Whatever the page had asked of a network, its own policy would have refused, here.
        assert!(seen.console.len() == 1 && seen.console[0].contains("measured"), "{:?}", seen.console);
        assert_eq!(seen.shown.len(), 2);
        for shown in seen.shown {
            assert!(shown.wanted <= shown.width, "it is {} wide on {}", shown.wanted, shown.width);
            assert_eq!((shown.rows, shown.pictures), (ranking, 3));
            assert_eq!(shown.headline, headline);
            assert_eq!(shown.paper, paper);
            // WCAG 2.2, 1.4.3.
            assert!(shown.contrast >= 4.5, "{} has a contrast of {}", shown.palest, shown.contrast);
        }
    }
    let picture = browser.picture(&page);
    assert_eq!(picture[..8], *b"\x89PNG\r\n\x1a\n");
    // A blank page of that size is far smaller.
    assert!(picture.len() > 20_000, "{}", picture.len());
}

#[test]
fn a_log_without_an_overload_is_to_be_watched_first() {
    let out = empty_folder("calm");
    let output =
        with_input(&["choose", "-", "--seeds", "2", "--json", "--out", &out.to_string_lossy()], &calm_log());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["recording"]["workload"]["knee"], Value::Null);
    assert_eq!(report["recommendation"]["verdict"], "observe_first");
    let config = GateConfig::from_toml(&fs::read_to_string(out.join("limiter.toml")).unwrap()).unwrap();
    assert!(config.observe_only);
}

#[test]
fn what_refuses_already_is_never_told_that_it_needs_no_limit() {
    let out = empty_folder("refusing");
    let log = "recordings/fixtures/otlp/otlp_http_export.jsonl.gz";
    let output = goodput(&["choose", log, "--seeds", "2", "--out", &out.to_string_lossy()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("40 % of the recorded requests were refused"), "{text}");
    assert!(!text.contains("you need none"), "{text}");
    // Five worlds are too many for a line; the names of files are as long as they are.
    let long = text.lines().find(|line| line.chars().count() > 80 && !line.contains('/'));
    assert_eq!(long, None, "{text}");
    assert!(text.contains("roomier"), "{text}");
}

#[test]
fn how_far_it_is_is_shown_on_a_terminal_and_nowhere_else() {
    let out = empty_folder("terminal");
    let log = out.join("calm.csv");
    fs::write(&log, calm_log()).unwrap();
    let (log, out) = (log.to_string_lossy(), out.to_string_lossy());
    let output = goodput(&["choose", &log, "--seeds", "2", "--out", &out]);
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );

    // Gives the command a terminal of its own, and writes what it shows there to its standard output.
    let shown = Command::new("script")
        .args(["--quiet", "--return", "--command"])
        .arg(format!("'{}' choose '{log}' --seeds 2 --out '{out}'", env!("CARGO_BIN_EXE_goodput")))
        .arg("/dev/null")
        .env("TERM", "xterm")
        .stdin(Stdio::null())
        .output();
    let Ok(shown) = shown else {
        let _ =
            writeln!(std::io::stderr(), "SKIPPED: no `script` is installed, so no terminal was looked at");
        return;
    };
    let text = String::from_utf8_lossy(&shown.stdout);
    assert!(shown.status.success() && text.contains("comparing limiters"), "{text}");
}

#[test]
fn what_is_no_log_is_refused_with_a_reason_and_exit_code_2() {
    let cases: [(&str, &[u8]); 4] = [
        ("empty", b""),
        ("binary", b"\x00\x01\x02\xff\xfe\x00\x00garbage\x00"),
        ("prose", b"It was a bright cold day in April, and the clocks were striking thirteen.\n"),
        ("one", b"start_ns,latency_ns,outcome,service_ns,status,nested\n1,,success,,200,false\n"),
    ];
    let folder = empty_folder("refused");
    for (name, bytes) in cases {
        let file = folder.join(name);
        fs::write(&file, bytes).unwrap();
        let output =
            goodput(&["choose", &file.to_string_lossy(), "--out", &folder.join("out").to_string_lossy()]);
        assert_eq!(output.status.code(), Some(2), "{name}");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(error.starts_with("error: ") && error.contains(name), "{name}: {error}");
        assert!(output.stdout.is_empty(), "{name}");
    }
    let output = goodput(&["choose", &folder.join("nowhere").to_string_lossy()]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_report_that_has_no_place_is_not_worked_out_and_the_exit_code_is_1() {
    let file = empty_folder("nowhere").join("a_file");
    fs::write(&file, "in the way").unwrap();
    let output = goodput(&["choose", LOG, "--out", &file.join("report").to_string_lossy()]);
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("cannot write") && error.contains("a_file"), "{error}");
}

#[test]
fn clients_are_for_limiters_at_clients() {
    let output = goodput(&["choose", LOG, "--clients", "3"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--where client"));
}

/// What `choose --json` says of the log; it runs once for all tests.
fn report() -> &'static Value {
    static REPORT: OnceLock<Value> = OnceLock::new();
    REPORT.get_or_init(|| {
        let out = empty_folder("report");
        let output = goodput(&["choose", LOG, "--seeds", "2", "--json", "--out", &out.to_string_lossy()]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    })
}

/// One request after the other: nothing tells how many the service could do at once.
fn calm_log() -> String {
    let mut log = String::from("start_ns,latency_ns,outcome,service_ns,status,nested\n");
    for n in 0..400_u64 {
        log.push_str(&format!("{},{},success,,200,false\n", n * 250_000_000, 40_000_000 + n % 7 * 3_000_000));
    }
    log
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("choose").join("report")
}

fn empty_folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("choose").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn goodput(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

fn with_input(arguments: &[&str], input: &str) -> Output {
    let mut child = command(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_goodput"));
    command.args(arguments).current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap());
    command
}
