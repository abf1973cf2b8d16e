//! The reference page names every field that scenario files have, and no other.

use std::collections::{BTreeMap, BTreeSet};

use goodput_simulator::{Comparison, Scenario};

const PAGE: &str = include_str!("../../docs/scenarios.md");

/// A field that there is not.
const UNKNOWN: &str = "no_such_field = 1";

/// The names in backticks that a message expects.
fn expected(message: &str) -> BTreeSet<String> {
    let (_, expected) = message.split_once("expected").unwrap_or_else(|| panic!("{message}"));
    expected.split('`').skip(1).step_by(2).map(String::from).collect()
}

fn fields_of_scenario(text: &str) -> BTreeSet<String> {
    let error = Scenario::parse(text).unwrap_err().to_string();
    assert!(error.contains("no_such_field"), "{error}");
    expected(&error)
}

/// The first column of each section's table.
fn sections() -> BTreeMap<&'static str, BTreeSet<String>> {
    let mut sections = BTreeMap::new();
    let mut current = "";
    for line in PAGE.lines() {
        if let Some(heading) = line.strip_prefix("## ").or_else(|| line.strip_prefix("### ")) {
            current = heading.trim_matches('`');
        } else if let Some(name) = line.strip_prefix("| `").and_then(|row| row.split('`').next()) {
            let new = sections.entry(current).or_insert_with(BTreeSet::new).insert(name.to_owned());
            assert!(new, "{current}: {name} is there twice");
        }
    }
    sections
}

#[test]
fn every_field_is_on_the_page_and_nothing_else() {
    let in_table = |table: &str| format!("[{table}]\n{UNKNOWN}");
    let in_list = |list: &str| format!("[[{list}]]\n{UNKNOWN}");
    let mut known: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (section, text) in [
        ("The scenario", UNKNOWN.to_owned()),
        ("service", in_table("service")),
        ("service.pool", in_table("service.pool")),
        ("service.sharing", in_table("service.sharing")),
        ("service.usl", in_table("service.usl")),
        ("service.crowd", in_table("service.crowd")),
        ("service.crowd.knee", in_table("service.crowd.knee")),
        ("service.changes", in_list("service.changes")),
        ("service.pauses", in_table("service.pauses")),
        ("service.errors", in_list("service.errors")),
        ("service.outages", in_list("service.outages")),
        ("work", in_table("service.work")),
        ("clients", in_list("clients")),
        ("clients.open", in_table("clients.open").replace("[clients.open]", "[[clients]]\n[clients.open]")),
        ("clients.open.changes", format!("[[clients]]\n[[clients.open.changes]]\n{UNKNOWN}")),
        ("clients.open.sine", format!("[[clients]]\n[clients.open.sine]\n{UNKNOWN}")),
        ("clients.open.bursts", format!("[[clients]]\n[clients.open.bursts]\n{UNKNOWN}")),
        ("clients.closed", format!("[[clients]]\n[clients.closed]\n{UNKNOWN}")),
        ("clients.paced", format!("[[clients]]\n[clients.paced]\n{UNKNOWN}")),
        ("clients.requests", format!("[[clients]]\n[[clients.requests]]\n{UNKNOWN}")),
        ("clients.classes", format!("[[clients]]\n[[clients.classes]]\n{UNKNOWN}")),
        ("clients.retries", format!("[[clients]]\n[clients.retries]\n{UNKNOWN}")),
        (
            "clients.retries.payment",
            format!("[[clients]]\n[clients.retries.payment]\nfrom = \"share\"\n{UNKNOWN}"),
        ),
        ("clients.throttle", format!("[[clients]]\n[clients.throttle]\n{UNKNOWN}")),
        ("door", in_table("door")),
        ("door.service", in_table("door.service")),
        ("door.service.shares", in_table("door.service.shares")),
        ("door.service.cohorts", in_table("door.service.cohorts")),
        ("door.service.partitions", in_table("door.service.partitions")),
        ("door.service.partitions.shares", in_table("door.service.partitions.shares.a")),
        ("door.service.waiting", in_table("door.service.waiting")),
        ("door.service.waiting.codel", in_table("door.service.waiting.codel")),
    ] {
        known.insert(section, fields_of_scenario(&text));
    }
    for (section, text) in [
        ("Comparisons", UNKNOWN.to_owned()),
        ("tables", in_list("tables")),
        ("tables.rows", format!("[[tables]]\n[[tables.rows]]\n{UNKNOWN}")),
    ] {
        let error = Comparison::parse(text.as_str()).unwrap_err().to_string();
        assert!(error.contains("no_such_field"), "{error}");
        known.insert(section, expected(&error));
    }
    let sections = sections();
    for (section, fields) in &known {
        assert_eq!(sections.get(section), Some(fields), "section {section}");
    }
    assert_eq!(sections.keys().collect::<Vec<_>>(), known.keys().collect::<Vec<_>>());
}

#[test]
fn every_choice_is_on_the_page() {
    let retries = "[[clients]]\n[clients.retries]\nwait = \"1s\"\n";
    for text in [
        "ties = \"x\"".to_owned(),
        "[service]\npool = { workers = 1, starts = \"x\" }".to_owned(),
        "[[service.outages]]\nfrom = \"1s\"\nuntil = \"2s\"\nrequests = \"x\"".to_owned(),
        "[service]\ncrowd = { beyond = \"x\" }".to_owned(),
        "[[clients]]\nopen = { process = \"x\" }".to_owned(),
        "[[clients]]\nclasses = [{ name = \"a\", criticality = \"x\" }]".to_owned(),
        format!("{retries}jitter = \"x\""),
        format!("{retries}on = [\"x\"]"),
        format!("{retries}payment = {{ from = \"x\" }}"),
        "[door.service]\nabandoned = \"x\"".to_owned(),
        "[door.service]\nwaiting = { order = \"x\" }".to_owned(),
        "[door.service]\nwaiting = { expiry = \"x\" }".to_owned(),
    ] {
        let error = Scenario::parse(&text).unwrap_err().to_string();
        assert!(error.contains("unknown variant `x`"), "{text}: {error}");
        for choice in expected(&error) {
            assert!(
                PAGE.contains(&format!("`{choice}`")) || PAGE.contains(&format!("\"{choice}\"")),
                "{choice}"
            );
        }
    }
}

#[test]
fn the_example_can_be_played() {
    let examples: Vec<_> =
        PAGE.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(!examples.is_empty());
    for example in examples {
        Scenario::parse(example).unwrap_or_else(|error| panic!("{error}"));
    }
}
