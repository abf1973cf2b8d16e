//! Every sample of the format collection yields the numbers that an independent parser computed.
//!
//! The collection lies beside the repository (`../shared/samples/visible`, or `$GOODPUT_SHARED`), because the licences
//! of some samples forbid to ship them; without it this test only says so.

mod support;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use goodput_recordings::{FieldMap, Inspection, Options, ReadError, TimeForm, Unit};
use serde_json::Value;
use support::check;

fn collection() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a workspace above").join("../shared");
    let shared = std::env::var_os("GOODPUT_SHARED").map_or(root, PathBuf::from);
    let samples = shared.join("samples/visible");
    samples.is_dir().then_some(samples)
}

/// Samples for which a user has to say what the columns mean.
fn options(file: &str) -> Options {
    match file {
        "locale_de.csv" => Options {
            fields: FieldMap {
                time: Some("Zeitpunkt".to_owned()),
                time_form: Some(TimeForm::Pattern("%d.%m.%Y %H:%M:%S,%f".to_owned())),
                latency: Some("Dauer_s".to_owned()),
                latency_unit: Some(Unit::Seconds),
                decimal_mark: Some(b','),
                status: Some("Status".to_owned()),
                ..FieldMap::default()
            },
            ..Options::default()
        },
        _ => Options::default(),
    }
}

#[test]
fn every_sample_yields_the_expected_numbers() {
    let Some(samples) = collection() else {
        // Not by `eprintln!`, which is only shown when a test fails.
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: no samples beside the repository; set GOODPUT_SHARED to the folder that has them"
        );
        return;
    };
    let mut problems = Vec::new();
    let mut checked = 0;
    let mut folders: Vec<PathBuf> = std::fs::read_dir(&samples).unwrap().map(|e| e.unwrap().path()).collect();
    folders.sort();
    for folder in folders.iter().filter(|f| f.is_dir()) {
        let expected = std::fs::read(folder.join("expected.json")).unwrap();
        let expected: Value = serde_json::from_slice(&expected).unwrap();
        for (file, entry) in expected.as_object().unwrap() {
            checked += 1;
            let result = Inspection::open(folder.join(file), &options(file));
            if std::env::var_os("SHOW").is_some_and(|show| show.to_string_lossy() == *file) {
                eprintln!("{}", serde_json::to_string_pretty(&result.as_ref().unwrap()).unwrap());
            }
            for problem in check(file, entry, result) {
                problems.push(format!("{file}: {problem}"));
            }
        }
    }
    assert!(
        problems.is_empty(),
        "{} problems in {checked} samples:\n{}",
        problems.len(),
        problems.join("\n")
    );
}

#[test]
fn a_table_with_decimal_commas_is_not_guessed_at() {
    let Some(samples) = collection() else { return };
    let error = Inspection::open(samples.join("generic_csv/locale_de.csv"), &Options::default()).unwrap_err();
    let ReadError::InFile { source, .. } = error else { panic!("{error}") };
    assert!(matches!(*source, ReadError::NeedsFields { .. }), "{source}");

    let mut options = options("locale_de.csv");
    options.fields.decimal_mark = None;
    let error = Inspection::open(samples.join("generic_csv/locale_de.csv"), &options).unwrap_err();
    assert!(error.to_string().contains("--decimal-mark"), "{error}");
}
