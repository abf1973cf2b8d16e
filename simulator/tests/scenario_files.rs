//! Scenario files: what they say, and what is said of wrong ones.

use std::{fs, path::Path};

use goodput_simulator::{Scenario, ScenarioError};

const GOOD: &str = r#"length = "10s"

[service]
work = { exponential = "10ms" }
pool = { workers = 16 }

[[clients]]
open = { per_second = 2400 }

[door.service]
limiter = { algorithm = "fixed", limit = 20 }
"#;

fn error(replace: &str, by: &str) -> ScenarioError {
    assert!(GOOD.contains(replace), "{replace}");
    Scenario::parse(&GOOD.replace(replace, by)).unwrap_err()
}

#[test]
fn a_wrong_file_names_line_and_field_and_says_what_would_be_right() {
    let cases = [
        (
            r#"length = "10s""#,
            "length = 10",
            1,
            "invalid type: integer `10`, expected a duration; a time is a text",
        ),
        (r#""10ms""#, r#""10 parsecs""#, 4, "a time is a text with its unit, as \"20ms\""),
        ("workers = 16", "wokers = 16", 5, "unknown field `wokers`, expected one of `workers`"),
        ("workers = 16", "workers = 0", 5, "`service.pool.workers` must be at least 1, not 0"),
        ("workers = 16", "workers = -1", 5, "invalid value: integer `-1`, expected u32"),
        ("exponential", "exponental", 4, "unknown variant `exponental`"),
        (
            "pool = { workers = 16 }",
            "",
            3,
            "`service` must have exactly one of `pool`, `sharing`, `usl` and `crowd`",
        ),
        ("per_second = 2400", "per_second = -1", 8, "`clients[0].open.per_second` must lie within 0 and 1e9"),
        (
            "per_second = 2400",
            "per_second = nan",
            8,
            "must lie within 0 and 1e9 requests per second, not NaN",
        ),
        ("per_second = 2400", "per_minute = 2400", 8, "unknown field `per_minute`"),
        ("limit = 20", "limit = 0", 11, "`door.service.limiter.limit` must be at least 1, not 0"),
        ("limit = 20", "limits = 20", 11, "unknown field `limits`"),
        ("[door.service]", "[doors.service]", 10, "unknown field `doors`"),
    ];
    for (replace, by, line, problem) in cases {
        let error = error(replace, by);
        assert!(error.to_string().contains(problem), "{by}: {error}");
        assert_eq!(error.line, Some(line), "{by}: {error}");
    }
}

#[test]
fn a_change_that_comes_too_early_is_named_by_its_place_in_the_list() {
    let error = error(
        "pool = { workers = 16 }",
        "pool = { workers = 16 }\nchanges = [\n  { at = \"5s\", speed = 0.5 },\n  { at = \"4s\", speed = 1.0 },\n]",
    );
    assert_eq!(error.to_string(), "line 8: `service.changes[1].at` must not be before the entry above it");
}

#[test]
fn an_unreadable_file_is_named() {
    let error = Scenario::read("no/such/scenario.toml").unwrap_err();
    assert!(error.to_string().starts_with("no/such/scenario.toml: "), "{error}");
}

#[test]
fn every_scenario_of_the_suite_can_be_read_and_survives_being_written() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("suite");
    let mut count = 0;
    for file in fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let scenario = Scenario::read(&path).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(scenario.name, path.file_stem().unwrap().to_str().unwrap());
        let again =
            Scenario::parse(&toml::to_string(&scenario).unwrap()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(again, scenario);
        count += 1;
    }
    assert_eq!(count, 33);
}
