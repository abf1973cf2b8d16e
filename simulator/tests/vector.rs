//! The twelve scenarios of the tests of Vector's adaptive request concurrency, with every range that they assert: through
//! the gate and the retries that ship.

use std::{
    collections::{BTreeMap, VecDeque},
    fs,
    path::Path,
    time::Duration,
};

use goodput::algorithms::Reason;
use goodput_simulator::{Comparison, Limits, Measure, Run, run};

/// By scenario, series and statistic.
type Ranges = BTreeMap<String, BTreeMap<String, BTreeMap<String, [f64; 2]>>>;

fn file(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

#[test]
fn all_156_ranges_of_the_twelve_scenarios_hold_for_every_seed() {
    let ranges: Ranges =
        toml::from_str(&fs::read_to_string(file("tests/data/vector_ranges.toml")).unwrap()).unwrap();
    let comparison =
        Comparison::read(file("scenarios/vector.toml")).unwrap_or_else(|error| panic!("{error}"));
    let rows = &comparison.tables[0].rows;
    assert_eq!(rows.len(), 12);
    let (mut checked, mut misses) = (0, Vec::new());
    for row in rows {
        let chance = row.with.iter().any(|name| name.ends_with("jittery"));
        for seed in 1..=if chance { 20 } else { 1 } {
            let measure = Measure {
                step: Some(Duration::from_millis(1)),
                trace: true,
                answers: true,
                ..Measure::default()
            };
            let scenario = comparison.scenario(row).unwrap();
            let run = run(&scenario, &Limits::Written, seed, &measure).unwrap();
            let total = run.summary.total().counts;
            assert_eq!(total.good, total.offered, "{}: not all are answered", row.label);
            let measured = series(&run);
            for (name, statistics) in &ranges[&row.label] {
                for (statistic, [low, high]) in statistics {
                    checked += u32::from(seed == 1);
                    let value = measured[name.as_str()].statistic(statistic);
                    if !(low - 1e-9..=high + 1e-9).contains(&value) {
                        let label = &row.label;
                        misses.push(format!(
                            "{label} {seed}: {name} {statistic} is {value}, not within {low} and {high}"
                        ));
                    }
                }
            }
        }
    }
    assert_eq!(checked, 156);
    assert!(misses.is_empty(), "{}", misses.join("\n"));
}

/// What the original's tests measure. Everything happens at whole milliseconds, so steps of one tell it all.
fn series(run: &Run) -> BTreeMap<&'static str, Series> {
    let trace = run.trace.as_ref().unwrap();
    let [mut at_server, mut rate, mut at_client, mut limit] = [(); 4].map(|()| Series::of_levels());
    let [mut each, mut mean] = [(); 2].map(|()| Series::of_latencies());
    let mut arrivals: VecDeque<u64> = VecDeque::new();
    let (mut in_service, mut in_flight) = (0, 0);
    for (millis, moment) in trace.moments.iter().enumerate() {
        let now = Duration::from_millis(millis as u64);
        let counts = &moment.counts;
        let (answered, finished) = (counts.good + counts.late + counts.failed, counts.good + counts.late);
        let started = moment.in_flight as u64 + finished > in_flight;
        while arrivals.front().is_some_and(|&arrival| arrival + 1_000 <= millis as u64) {
            arrivals.pop_front();
        }
        if answered + counts.admitted > 0 {
            at_server.add(f64::from(in_service), now);
            // Answers come before requests of the same instant.
            rate.add(arrivals.len() as f64 + if answered > 0 { 0.0 } else { 1.0 }, now);
            arrivals.extend((0..counts.admitted).map(|_| millis as u64));
        }
        if finished > 0 || started {
            at_client.add(in_flight as f64, now);
        }
        in_service = moment.in_service as u32;
        in_flight = moment.in_flight as u64;
    }
    for made in trace.decisions.iter().filter(|made| made.decision.reason != Reason::Starting) {
        limit.add(made.previous_limit as f64, made.at);
        let latency_us = (made.decision.evidence.number("latency_ns").unwrap() / 1e3).round();
        if latency_us > 0.0 {
            mean.add(latency_us / 1e6, made.at);
        }
    }
    for answer in &trace.answers {
        each.add((answer.at - answer.placed).as_secs_f64(), answer.at);
    }
    let names =
        ["server_in_flight", "server_rate", "client_in_flight", "client_limit", "rtt_each", "rtt_avg"];
    names.into_iter().zip([at_server, rate, at_client, limit, each, mean]).collect()
}

/// Values, each weighed by the time since the one before. The first has no weight and counts nowhere.
#[derive(Debug, Default)]
struct Series {
    last: Option<Duration>,
    /// By bits of the value, which for values that are not negative are in the order of the values.
    weights: BTreeMap<u64, u128>,
    extremes: Option<(f64, f64)>,
    /// Whether a value that lasts for nothing may be the least or the greatest: a latency may, a level may not.
    counts_instants: bool,
}

impl Series {
    fn of_levels() -> Self {
        Self::default()
    }

    fn of_latencies() -> Self {
        Self { counts_instants: true, ..Self::default() }
    }

    fn add(&mut self, value: f64, now: Duration) {
        if let Some(last) = self.last.replace(now) {
            let weight = (now - last).as_nanos();
            *self.weights.entry(value.to_bits()).or_insert(0) += weight;
            if weight > 0 || self.counts_instants {
                let (least, greatest) = self.extremes.unwrap_or((value, value));
                self.extremes = Some((least.min(value), greatest.max(value)));
            }
        }
    }

    fn statistic(&self, name: &str) -> f64 {
        let (least, greatest) = self.extremes.expect("a series with a weight");
        let values = || self.weights.iter().map(|(&bits, &weight)| (f64::from_bits(bits), weight));
        match name {
            "min" => least,
            "max" => greatest,
            "mean" => {
                let sum: f64 = values().map(|(value, weight)| value * weight as f64).sum();
                sum / self.weights.values().sum::<u128>() as f64
            }
            // Of equal weights the higher level, which max_by_key gives: the last.
            "mode" => values().max_by_key(|&(_, weight)| weight).map_or(0.0, |(value, _)| value),
            _ => panic!("no statistic {name}"),
        }
    }
}

#[test]
fn a_series_weighs_each_value_by_the_time_since_the_one_before() {
    let mut series = Series::of_levels();
    for (value, at_ms) in [(9.0, 0), (1.0, 10), (2.0, 40), (3.0, 50)] {
        series.add(value, Duration::from_millis(at_ms));
    }
    assert_eq!(["min", "max", "mode"].map(|name| series.statistic(name)), [1.0, 3.0, 2.0]);
    assert!((series.statistic("mean") - 2.0).abs() < 1e-12);
}
