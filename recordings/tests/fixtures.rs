//! Every recording that ships with the project yields the numbers that an independent parser computed.

mod support;

use std::path::Path;

use goodput_recordings::{FieldMap, Inspection, Options, TimeForm, Unit};
use serde_json::Value;

#[test]
fn every_fixture_yields_the_expected_numbers() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let expected: Value =
        serde_json::from_slice(&std::fs::read(folder.join("expected.json")).unwrap()).unwrap();
    let mut problems = Vec::new();
    for (file, entry) in expected.as_object().unwrap() {
        let mut options = Options::default();
        if file.ends_with("locale_de.csv") {
            options.fields = FieldMap {
                time: Some("Zeitpunkt".to_owned()),
                time_form: Some(TimeForm::Pattern("%d.%m.%Y %H:%M:%S,%f".to_owned())),
                latency: Some("Dauer_s".to_owned()),
                latency_unit: Some(Unit::Seconds),
                decimal_mark: Some(b','),
                ..FieldMap::default()
            };
        }
        let name = file.rsplit('/').next().unwrap();
        let result = Inspection::open(folder.join(file), &options);
        problems.extend(
            support::check(name, entry, result).into_iter().map(|problem| format!("{file}: {problem}")),
        );
    }
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}
