//! `docs/algorithms.md`: everyone is on it, and its numbers are those of the measurements beside it.

use std::{fmt::Write, fs};

use goodput::algorithms::Algorithm;
use goodput_simulator::{score::geometric_mean, suite};

use super::{Measured, check, docs};

/// Kinds of trouble, with the beginnings of the names of their scenarios.
const KINDS: [(&str, &[&str]); 13] = [
    ("steady overload", &["01", "02", "06", "08", "23", "27"]),
    ("uneven work", &["03", "04", "05", "32"]),
    ("past the knee", &["07"]),
    ("capacity changes", &["09", "10", "11"]),
    ("latency shifts", &["12", "13"]),
    ("pauses", &["14", "15"]),
    ("cold caches", &["16"]),
    ("traffic changes", &["17", "18", "19", "21"]),
    ("hardly any traffic", &["20"]),
    ("retry storm", &["22"]),
    ("many limiters", &["24", "25", "33"]),
    ("fast errors", &["26"]),
    ("extreme sizes", &["28", "29", "30", "31"]),
];

#[test]
fn every_algorithm_is_described_and_measured() {
    let page = fs::read_to_string(docs().join("algorithms.md")).unwrap();
    let measured = Measured::read("suite");
    for name in Algorithm::NAMES {
        assert!(page.contains(&format!("\n| `{name}` |")), "{name} is not described");
        let is_measured = measured.names.iter().any(|measured| measured == name);
        assert!(is_measured || *name == "fixed", "{name} is not measured");
    }
}

#[test]
fn every_scenario_of_the_suite_is_of_one_kind_and_measured() {
    let measured = Measured::read("suite");
    let scenarios = suite().unwrap();
    assert_eq!(measured.scenarios.len(), scenarios.len());
    for scenario in scenarios {
        let kinds = KINDS.iter().filter(|(_, numbers)| is_of(&scenario.name, numbers)).count();
        assert_eq!(kinds, 1, "{}", scenario.name);
        assert!(measured.scenarios.contains(&scenario.name), "{}", scenario.name);
    }
}

#[test]
fn the_numbers_are_those_that_were_measured() {
    let suite = Measured::read("suite");
    let (tuned, unseen) = (Measured::read("random-1"), Measured::read("random-2019"));
    let measured = [("suite", &suite), ("random, seed 1", &tuned), ("random, seed 2019", &unseen)];
    let parts = [
        ("kinds of trouble", kinds_of_trouble(&suite)),
        ("scenarios by kind", scenarios_by_kind(&suite)),
        ("totals", totals(&measured)),
        ("every scenario", every_scenario(&suite)),
    ];
    check("algorithms.md", &parts);
}

fn kinds_of_trouble(suite: &Measured) -> String {
    let head: Vec<_> = KINDS.iter().map(|(kind, _)| (*kind).to_owned()).collect();
    suite.table(&head, |name| {
        let scores = KINDS.iter().map(|(_, numbers)| {
            let of_kind = suite.scenarios.iter().filter(|scenario| is_of(scenario, numbers));
            geometric_mean(of_kind.map(|scenario| suite.score(name, scenario)))
        });
        scores.map(|score| format!("{score:.2}")).collect()
    })
}

fn scenarios_by_kind(suite: &Measured) -> String {
    let mut text = String::new();
    for (kind, numbers) in KINDS {
        let names = suite.scenarios.iter().filter(|scenario| is_of(scenario, numbers));
        let links: Vec<_> = names.map(|name| format!("[{name}](../simulator/suite/{name}.toml)")).collect();
        let _ = writeln!(text, "- {kind}: {}", links.join(", "));
    }
    text
}

fn totals(measured: &[(&str, &Measured)]) -> String {
    let head: Vec<_> = measured.iter().map(|(name, _)| (*name).to_owned()).collect();
    measured[0].1.table(&head, |name| {
        let cells = measured.iter().map(|(_, measured)| {
            let (total, worst) = measured.total_and_worst(name);
            format!("{total:.3} ({worst:.3})")
        });
        cells.collect()
    })
}

fn every_scenario(suite: &Measured) -> String {
    let head: Vec<_> = suite.scenarios.iter().map(|name| name.replace('_', " ")).collect();
    suite.table(&head, |name| {
        suite.scenarios.iter().map(|scenario| format!("{:.2}", suite.score(name, scenario))).collect()
    })
}

fn is_of(scenario: &str, numbers: &[&str]) -> bool {
    numbers.iter().any(|number| scenario.starts_with(&format!("{number}_")))
}

impl Measured {
    /// A row for each algorithm.
    fn table(&self, head: &[String], cells: impl Fn(&str) -> Vec<String>) -> String {
        let mut text = format!("| algorithm | {} |\n|---|{}\n", head.join(" | "), "---|".repeat(head.len()));
        for name in &self.names {
            let _ = writeln!(text, "| `{name}` | {} |", cells(name).join(" | "));
        }
        text
    }
}
