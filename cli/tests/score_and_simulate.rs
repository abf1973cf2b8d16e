//! `goodput score` and `goodput simulate`, as a user calls them.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::Value;

const OVERLOAD: &str = r#"
length = "5s"
deadline = "100ms"
[service]
work = { constant = "10ms" }
pool = { workers = 10 }
[[clients]]
open = { process = "constant", per_second = 2000 }
[door.service]
"#;

/// An empty folder of its own for a test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("score_and_simulate").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// A suite of two scenarios: one at twice its capacity, one at half.
fn suite(name: &str) -> PathBuf {
    let suite = folder(name).join("suite");
    fs::create_dir_all(&suite).unwrap();
    fs::write(suite.join("overload.toml"), OVERLOAD).unwrap();
    fs::write(suite.join("quiet.toml"), OVERLOAD.replace("2000", "500")).unwrap();
    suite
}

fn goodput(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_goodput")).current_dir(folder).args(arguments).output().unwrap()
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_str(&stdout(output)).unwrap()
}

/// The exit code, and what was said.
fn refusal(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = goodput(folder, arguments);
    assert!(output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn json_has_the_documented_layout_and_the_best_comes_first() {
    let suite = suite("layout");
    let suite = suite.to_str().unwrap();
    let here = folder("layout_cache");
    let report = json(&goodput(
        &here,
        &["score", "--suite", suite, "--seeds", "2", "--algorithm", "fixed:5,fixed:10,aimd", "--json"],
    ));
    let algorithms = report["algorithms"].as_array().unwrap();
    assert_eq!(report.as_object().unwrap().len(), 1);
    assert_eq!(algorithms.len(), 3);
    assert_eq!(algorithms[0]["name"], "fixed:10");
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    for algorithm in algorithms {
        assert_eq!(keys(algorithm), ["name", "total", "mean", "worst", "scenarios"]);
        let scenarios = algorithm["scenarios"].as_array().unwrap();
        assert_eq!(scenarios.iter().map(|one| &one["name"]).collect::<Vec<_>>(), ["overload", "quiet"]);
        for scenario in scenarios {
            assert_eq!(
                keys(scenario),
                [
                    "name",
                    "score",
                    "goodput_ratio",
                    "p50_ratio",
                    "p99_ratio",
                    "jain",
                    "recovery_s",
                    "false_refusals",
                    "mean_limit"
                ]
            );
        }
    }
    // Ten workers, all busy, nobody waits: as good as the oracle. Five of them: half, and enough when it is quiet.
    let figure = |place: usize, scenario: usize, name: &str| {
        algorithms[place]["scenarios"][scenario][name].as_f64().unwrap()
    };
    assert!((figure(0, 0, "score") - 1.0).abs() < 0.001);
    let five = algorithms.iter().position(|algorithm| algorithm["name"] == "fixed:5").unwrap();
    assert!((figure(five, 0, "score") - 0.5).abs() < 0.005);
    assert!(figure(five, 1, "score") > 0.99);
    assert_eq!(figure(five, 0, "mean_limit"), 5.0);
    let total = algorithms[five]["total"].as_f64().unwrap();
    assert!((total - (figure(five, 0, "score") * figure(five, 1, "score")).sqrt()).abs() < 1e-9);
}

#[test]
fn a_comparison_goes_on_where_it_stopped_even_after_half_a_line() {
    let suite = suite("resume");
    let here = folder("resume_cache");
    let arguments = [
        "score",
        "--suite",
        suite.to_str().unwrap(),
        "--seeds",
        "1",
        "--algorithm",
        "fixed:5,fixed:9",
        "--csv",
    ];
    let first = stdout(&goodput(&here, &arguments));
    let scores = here.join(".goodput/scores.jsonl");
    let written = fs::read_to_string(&scores).unwrap();
    let lines: Vec<&str> = written.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(lines.len(), 1 + 4);
    // As if the program had been killed while it wrote the third score.
    let cut = format!("{}\n{}\n{}\n{}", lines[0], lines[1], lines[2], &lines[3][..40]);
    fs::write(&scores, cut).unwrap();
    assert_eq!(stdout(&goodput(&here, &arguments)), first);
    // The two that were there were believed: a lie among them is told again.
    let lie = fs::read_to_string(&scores).unwrap().replacen("\"mean_limit\":5.0", "\"mean_limit\":5.5", 1);
    fs::write(&scores, lie).unwrap();
    assert_ne!(stdout(&goodput(&here, &arguments)), first);
}

#[test]
fn a_remembered_oracle_that_the_world_does_not_confirm_is_searched_for_again() {
    let suite = suite("oracle");
    let here = folder("oracle_cache");
    let score = |algorithm: &str| {
        let arguments =
            ["score", "--suite", suite.to_str().unwrap(), "--seeds", "1", "--algorithm", algorithm, "--json"];
        let report = json(&goodput(&here, &arguments));
        report["algorithms"][0]["scenarios"][0]["score"].as_f64().unwrap()
    };
    assert!((score("fixed:7") - 0.7).abs() < 0.005);
    let oracles = here.join(".goodput/oracles.jsonl");
    let written = fs::read_to_string(&oracles).unwrap();
    assert!(written.contains("[[0,10]]"), "{written}");
    // Nine instead of ten, with the figures of ten. Against nine, eight would score 0.89.
    fs::write(&oracles, written.replace("[[0,10]]", "[[0,9]]")).unwrap();
    assert!((score("fixed:8") - 0.8).abs() < 0.005);
}

#[test]
fn scenarios_drawn_at_random_can_be_saved_and_read_again() {
    let here = folder("random");
    let common = ["--seeds", "1", "--algorithm", "fixed:10", "--json"];
    let drawn = json(&goodput(
        &here,
        &[&["score", "--random", "2", "--seed", "9", "--save", "drawn"], &common[..]].concat(),
    ));
    let read = json(&goodput(&here, &[&["score", "--suite", "drawn"], &common[..]].concat()));
    assert_eq!(drawn, read);
    let names: Vec<_> = drawn["algorithms"][0]["scenarios"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].clone())
        .collect();
    assert_eq!(names, ["random_9_000", "random_9_001"]);
}

#[test]
fn results_go_to_files_where_asked_and_the_table_is_printed_then() {
    let suite = suite("files");
    let here = folder("files_cache");
    let printed = stdout(&goodput(
        &here,
        &[
            "score",
            "--suite",
            suite.to_str().unwrap(),
            "--scenario",
            "over",
            "--seeds",
            "1",
            "--algorithm",
            "fixed:10",
            "--json=score.json",
            "--csv=score.csv",
        ],
    ));
    assert!(printed.contains("| fixed:10  | 1.000 |"), "{printed}");
    let report: Value = serde_json::from_str(&fs::read_to_string(here.join("score.json")).unwrap()).unwrap();
    let score = report["algorithms"][0]["scenarios"][0]["score"].as_f64().unwrap();
    let mut csv = csv::Reader::from_path(here.join("score.csv")).unwrap();
    let rows: Vec<csv::StringRecord> = csv.records().collect::<Result<_, _>>().unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!((&rows[0][0], &rows[0][1]), ("fixed:10", "overload"));
    assert_eq!(rows[0][2].parse::<f64>().unwrap(), score);
}

#[test]
fn the_quick_comparison_ranks_constant_limits_by_their_distance_to_the_knee() {
    // Sixteen workers, half again too much.
    let here = folder("quick");
    let printed = stdout(&goodput(
        &here,
        &["score", "--quick", "--scenario", "01_", "--algorithm", "fixed:200,fixed:50,fixed:20"],
    ));
    let ranks: Vec<_> =
        ["| fixed:20 ", "| fixed:50 ", "| fixed:200"].map(|name| printed.find(name).unwrap()).into();
    assert!(ranks.is_sorted(), "{printed}");
    assert!(printed.contains("| 01_fifo_exp |"), "{printed}");
}

#[test]
fn simulate_prints_every_figure_by_name() {
    let here = folder("simulate");
    fs::write(here.join("overload.toml"), OVERLOAD).unwrap();
    let figures = json(&goodput(&here, &["simulate", "overload.toml", "--algorithm", "fixed:5", "--json"]));
    let figure = |name: &str| figures[name].as_f64().unwrap_or_else(|| panic!("{name}: {figures}"));
    assert_eq!(figures["scenario"], "overload");
    assert_eq!(figures["algorithm"], "fixed:5");
    assert_eq!(figure("offered"), 10_000.0);
    assert_eq!(figure("offered"), figure("admitted") + figure("refused"));
    assert_eq!(figure("refused"), figure("refused_limit_reached"));
    // Five at a time of 10 ms each.
    assert!((figure("goodput_per_s") - 500.0).abs() < 2.0);
    assert!((figure("p99_ms") - 10.0).abs() < 0.02);
    assert!((figure("score") - 0.5).abs() < 0.005);
    assert_eq!(figure("convergence_s"), 5.0);
    assert_eq!(figures["false_refusals"], Value::Null);
    assert_eq!(figures["success_by_start"].as_array().unwrap().len(), 10);

    let csv = stdout(&goodput(&here, &["simulate", "overload.toml", "--algorithm", "fixed:5", "--csv"]));
    let mut csv = csv::Reader::from_reader(csv.as_bytes());
    let header = csv.headers().unwrap().clone();
    let row = csv.records().next().unwrap().unwrap();
    let names: Vec<_> = figures.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(header.iter().collect::<Vec<_>>(), names);
    let of = |name: &str| &row[header.iter().position(|column| column == name).unwrap()];
    assert_eq!(of("goodput_per_s").parse::<f64>().unwrap(), figure("goodput_per_s"));

    let table = stdout(&goodput(&here, &["simulate", "overload.toml", "--algorithm", "oracle"]));
    let score = table.lines().find(|line| line.starts_with("| score ")).unwrap();
    assert!(score.contains(" 1.0000 | against the best limits"), "{score}");
    let without =
        json(&goodput(&here, &["simulate", "overload.toml", "--algorithm", "none", "--json", "--no-oracle"]));
    assert_eq!(without["refused"], 0);
    assert_eq!(without.get("score"), None);
}

#[test]
fn simulate_tells_classes_apart() {
    let here = folder("classes");
    let classes = "per_second = 2000 }\nclasses = [\n{ name = 'a', turns = 1 },\n{ name = 'b', turns = 3, criticality = 'sheddable' }]";
    let shares = "[door.service]\nshares = { sheddable = 0.5 }";
    let text = OVERLOAD.replace("per_second = 2000 }", classes).replace("[door.service]", shares);
    fs::write(here.join("classes.toml"), text).unwrap();
    let of = ["simulate", "classes.toml", "--algorithm", "fixed:10", "--no-oracle"];
    let figures = json(&goodput(&here, &[&of[..], &["--json"]].concat()));
    let share = |name: &str, class: &str| figures[name][class].as_f64().unwrap();
    // One in four may use all ten workers, and the others five of them: a quarter and three quarters of twice too much.
    assert!((share("success_by_class", "a") - 1.0).abs() < 0.01, "{figures}");
    for class in ["a", "b"] {
        assert!((share("success_by_class", class) + share("refused_by_class", class) - 1.0).abs() < 0.01);
    }
    let table = stdout(&goodput(&here, &of));
    let line = table.lines().find(|line| line.starts_with("| success_by_class ")).unwrap();
    assert!(line.contains("a 1.00, b 0."), "{line}");
}

#[test]
fn what_makes_no_sense_is_refused_with_code_2_and_says_why() {
    let here = folder("refusals");
    fs::write(here.join("good.toml"), OVERLOAD).unwrap();
    fs::write(here.join("bad.toml"), OVERLOAD.replace("workers = 10", "workers = 0")).unwrap();
    fs::write(here.join("decided.toml"), OVERLOAD.replace("[door.service]", "")).unwrap();
    let cases: [(&[&str], &str); 12] = [
        (&["simulate", "missing.toml", "--algorithm", "aimd"], "missing.toml"),
        (
            &["simulate", "bad.toml", "--algorithm", "aimd"],
            "bad.toml:6: `service.pool.workers` must be at least 1",
        ),
        (&["simulate", "good.toml"], "good.toml: a door has no limiter; say which one to try"),
        (&["simulate", "good.toml", "--algorithm", "amid"], "unknown variant `amid`"),
        (&["simulate", "decided.toml", "--algorithm", "oracle"], "nothing for an oracle to decide"),
        (&["score", "--suite", "nowhere"], "nowhere"),
        (&["score", "--suite", ".", "--algorithm", "aimd"], "bad.toml:6"),
        (&["score", "--scenario", "nonesuch"], "no scenario is called `nonesuch`; there are 01_fifo_exp"),
        (&["score", "--algorithm", "aimd:max=0"], "`max` must be at least `min`"),
        (&["score", "--seeds", "0"], "--seeds"),
        (&["score", "--seed", "3"], "--random"),
        (&["score", "--quick", "--random", "3"], "--random"),
    ];
    for (arguments, problem) in cases {
        let (code, said) = refusal(&here, arguments);
        assert_eq!(code, Some(2), "{arguments:?}: {said}");
        assert!(said.contains(problem), "{arguments:?}: {said}");
    }
}
