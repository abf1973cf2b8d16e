//! The table of `docs/crest.md` says what was measured.
//!
//! `GOODPUT_WRITE_DOCS=1` writes it, and leaves of the files what it shows. `docs/crest.md` names the commands that
//! measure.

use std::{fmt::Write, fs, path::PathBuf};

use goodput::algorithms::Part;
use serde_json::{Value, json};

const BEGIN: &str = "<!-- ablations: begin -->\n";
const END: &str = "<!-- ablations: end -->";

const FILES: [&str; 2] = ["ablations-suite.json", "ablations-random-1.json"];

/// All parts, and what they do.
const PARTS: [(Part, &str); 8] = [
    (Part::Dips, "dips that measure the baseline"),
    (Part::SecondDip, "believing a higher dip only when a second one agrees"),
    (Part::Checks, "checking a sudden rise by an experiment"),
    (Part::Climbs, "climbing anew after growing three times"),
    (Part::EarlyStop, "stopping an obvious overshoot early"),
    (Part::Overloads, "halving when most answers are late"),
    (Part::LightLoad, "the knee from the latency at light load"),
    (Part::Pauses, "recognising pauses"),
];

#[test]
fn the_table_of_ablations_shows_what_was_measured() {
    let write = std::env::var_os("GOODPUT_WRITE_DOCS").is_some();
    let measured = FILES.map(|name| {
        let path = docs().join("scores").join(name);
        let read: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let shown = shown(&read);
        if write {
            fs::write(&path, format!("{:#}\n", shown)).unwrap();
        }
        shown
    });
    let path = docs().join("crest.md");
    let page = fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (table, after) = rest.split_once(END).unwrap();
    let expected = render(&measured);
    if write {
        fs::write(&path, format!("{before}{BEGIN}{expected}{END}{after}")).unwrap();
    } else {
        assert_eq!(table, expected, "GOODPUT_WRITE_DOCS=1 writes the table");
    }
}

fn docs() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs")
}

/// Of what `goodput score --json` writes, what the table shows.
fn shown(score: &Value) -> Value {
    let algorithms = score["algorithms"].as_array().unwrap();
    let figures = |one: &Value| json!({ "name": one["name"], "total": one["total"], "mean": one["mean"], "worst": one["worst"] });
    json!({ "algorithms": algorithms.iter().map(figures).collect::<Vec<_>>() })
}

/// The whole first, then without each part, in the order of [`PARTS`].
fn render(measured: &[Value; 2]) -> String {
    let mut table =
        String::from("\n| Crest | suite | worst | random | worst |\n| --- | --: | --: | --: | --: |\n");
    row(&mut table, measured, "crest", "**whole**");
    for (part, what) in PARTS {
        let name = serde_json::to_value(part).unwrap();
        row(
            &mut table,
            measured,
            &format!("crest:without={}", name.as_str().unwrap()),
            &format!("without {what}"),
        );
    }
    table.push('\n');
    table
}

fn row(table: &mut String, measured: &[Value; 2], name: &str, label: &str) {
    write!(table, "| {label} |").unwrap();
    for set in measured {
        let algorithms = set["algorithms"].as_array().unwrap();
        let one = algorithms.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("no {name}"));
        let figure = |field: &str| one[field].as_f64().unwrap();
        write!(table, " {:.3} | {:.3} |", figure("total"), figure("worst")).unwrap();
    }
    table.push('\n');
}
