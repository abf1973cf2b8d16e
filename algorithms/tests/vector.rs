//! The scenarios of Vector's own tests, on the limiter alone: a client with a backlog and retries, and a server, both as
//! small as they can be. The product's simulator runs the same scenarios with the product's gate.

#[path = "vector/world.rs"]
mod world;

use std::{collections::BTreeMap, fs};

use serde::Deserialize;
use world::Series;

#[derive(Deserialize)]
struct Suite {
    scenario: Vec<Scenario>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Scenario {
    name: String,
    requests: usize,
    #[serde(default)]
    interval_s: f64,
    delay_s: f64,
    #[serde(default)]
    jitter: f64,
    concurrency: Concurrency,
    #[serde(default)]
    conc_scale: f64,
    conc_knee_start: Option<f64>,
    conc_knee_exp: Option<f64>,
    conc_limit: Option<usize>,
    conc_action: Option<Action>,
    rate_limit: Option<usize>,
    rate_action: Option<Action>,
    expect: BTreeMap<String, BTreeMap<String, [f64; 2]>>,
}

#[derive(Clone, Deserialize)]
#[serde(untagged)]
enum Concurrency {
    Fixed(usize),
    Named(String),
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Action {
    Defer,
    Drop,
}

fn suite() -> Vec<Scenario> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/vector.toml");
    toml::from_str::<Suite>(&fs::read_to_string(path).unwrap()).unwrap().scenario
}

#[test]
fn all_156_ranges_of_the_twelve_scenarios_hold_for_twenty_seeds() {
    let mut checked = 0;
    let mut misses = Vec::new();
    for scenario in suite() {
        let seeds = if scenario.jitter > 0.0 { 20 } else { 1 };
        for seed in 0..seeds {
            let measured = world::run(&scenario, seed);
            for (series, statistics) in &scenario.expect {
                for (statistic, [low, high]) in statistics {
                    checked += u32::from(seed == 0);
                    let value = measured[series.as_str()].statistic(statistic);
                    if !(low - 1e-9..=high + 1e-9).contains(&value) {
                        misses.push(format!(
                            "{} seed {seed}: {series} {statistic} is {value}, not within {low} and {high}",
                            scenario.name
                        ));
                    }
                }
            }
        }
    }
    assert_eq!(checked, 156);
    assert!(misses.is_empty(), "{}", misses.join("\n"));
}

#[test]
fn a_series_weighs_each_value_by_the_time_since_the_one_before() {
    let mut series = Series::default();
    for (value, at_ms) in [(9.0, 0), (1.0, 10), (2.0, 40), (3.0, 50)] {
        series.add(value, at_ms * 1_000_000);
    }
    assert_eq!(series.statistic("min"), 1.0);
    assert_eq!(series.statistic("max"), 3.0);
    assert_eq!(series.statistic("mode"), 2.0);
    assert!((series.statistic("mean") - 2.0).abs() < 1e-12);
}
