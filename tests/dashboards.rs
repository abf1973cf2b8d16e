//! The dashboard and the alert rules read what is published, and all of it.

use std::collections::BTreeSet;

use goodput::observe::{METRICS, Metric, MetricKind};

const DASHBOARD: &str = include_str!("../dashboards/grafana.json");
const ALERTS: &str = include_str!("../dashboards/alerts.yaml");

/// Everything that Prometheus is asked.
fn expressions() -> Vec<String> {
    let dashboard: serde_json::Value = serde_json::from_str(DASHBOARD).unwrap();
    let mut expressions = Vec::new();
    collect(&dashboard, &mut expressions);
    // An expression of the rules goes on until a line is indented no deeper than its key.
    let mut lines = ALERTS.lines().peekable();
    while let Some(line) = lines.next() {
        let Some((before, rest)) = line.split_once("expr:") else { continue };
        let mut expression = String::from(rest.trim_start().trim_start_matches('|'));
        while let Some(line) = lines.next_if(|line| line.starts_with(&format!("{before}  "))) {
            expression += line;
        }
        expressions.push(expression);
    }
    expressions
}

fn collect(value: &serde_json::Value, expressions: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    serde_json::Value::String(text) if name == "expr" || name == "query" => {
                        expressions.push(text.clone());
                    }
                    value => collect(value, expressions),
                }
            }
        }
        serde_json::Value::Array(values) => values.iter().for_each(|value| collect(value, expressions)),
        _ => {}
    }
}

/// Words, each with what stands before and after it.
fn words(text: &str) -> impl Iterator<Item = (&str, &str, &str)> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut rest = 0;
    std::iter::from_fn(move || {
        let start = rest + text[rest..].find(is_word)?;
        let end = text[start..].find(|c| !is_word(c)).map_or(text.len(), |length| start + length);
        rest = end;
        Some((&text[..start], &text[start..end], &text[end..]))
    })
}

fn metric(name: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| metric.name == name)
}

#[test]
fn every_metric_on_the_dashboard_and_in_the_rules_is_published_and_every_published_one_is_there() {
    let expressions = expressions();
    let read: BTreeSet<&str> = expressions
        .iter()
        .flat_map(|expression| words(expression).map(|(_, word, _)| word))
        .filter(|word| word.starts_with("goodput_"))
        .collect();
    let published: BTreeSet<&str> = METRICS.iter().map(|metric| metric.name).collect();
    assert_eq!(read, published);
}

#[test]
fn counters_are_read_by_their_rate_and_gauges_are_not() {
    for expression in expressions() {
        for (before, word, _) in words(&expression) {
            let Some(metric) = metric(word) else { continue };
            let by_rate = before.ends_with("rate(") || before.ends_with("increase(");
            assert_eq!(by_rate, metric.kind == MetricKind::Counter, "{word} in {expression}");
        }
    }
}

#[test]
fn metrics_are_chosen_by_labels_that_they_have() {
    for expression in expressions() {
        for (_, word, after) in words(&expression) {
            let (Some(metric), Some(selector)) = (metric(word), after.strip_prefix('{')) else { continue };
            let (selector, _) = selector.split_once('}').unwrap();
            let labels =
                words(selector).filter(|(_, _, after)| after.starts_with('=') || after.starts_with('!'));
            for (_, label, _) in labels {
                assert!(metric.labels.contains(&label), "{label} of {word} in {expression}");
            }
        }
    }
}

#[test]
fn names_end_in_their_unit_as_prometheus_has_it_and_no_two_are_the_same() {
    let names: BTreeSet<&str> = METRICS.iter().map(|metric| metric.name).collect();
    assert_eq!(names.len(), METRICS.len());
    for metric in METRICS {
        assert_eq!(metric.name.ends_with("_total"), metric.kind == MetricKind::Counter, "{}", metric.name);
        assert_eq!(metric.labels[0], "gate", "{}", metric.name);
        assert!(metric.help.ends_with('.'), "{}", metric.name);
    }
}
