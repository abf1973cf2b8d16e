//! locust: the table `_stats_history.csv` (a row per second), the final `_stats.csv`, and the reports of workers as
//! JSON lines.
//!
//! The history's percentiles cover about the last ten seconds, so counts and means are taken from the differences of
//! its totals instead. User counts are not requests in flight: users also pause.

use csv::ByteRecord;
use serde::Deserialize;

use super::histogram::Histogram;
use crate::formats::tables::{Head, RowReader, Table};
use crate::formats::{Format, LineReader, Lines, Probe, Recognised};
use crate::input::Sample;
use crate::options::Options;
use crate::quantity::instant::of_seconds;
use crate::reading::Output;
use crate::record::{Step, StepLatency};

pub(crate) fn probe_table(sample: &Sample, options: &Options) -> Probe {
    let Some(head) = Head::of(sample, options.fields.delimiter) else { return Ok(None) };
    if head.has(&["Timestamp", "User Count", "Name", "Total Request Count", "Total Average Response Time"]) {
        let reader = Table::new(History { header: head.header, last: None }, head.delimiter);
        let mut recognised = Recognised::aggregate(Format::Locust, "statistics history", "ms", reader);
        recognised.notes.push(
            "locust is a closed loop of users that pause; its percentiles are of a sliding window".to_owned(),
        );
        return Ok(Some(recognised));
    }
    if head.has(&["Name", "Request Count", "Failure Count", "Average Response Time", "Requests/s"]) {
        let reader = Table::new(Totals { header: head.header }, head.delimiter);
        return Ok(Some(Recognised::aggregate(Format::Locust, "final statistics", "ms", reader)));
    }
    Ok(None)
}

/// A cell by its column's name.
struct Cells<'c>(&'c [String], &'c ByteRecord);

impl Cells<'_> {
    fn text(&self, name: &str) -> &[u8] {
        self.0.iter().position(|h| h == name).and_then(|at| self.1.get(at)).unwrap_or_default()
    }

    fn number(&self, name: &str) -> Option<f64> {
        std::str::from_utf8(self.text(name)).ok()?.trim().parse().ok().filter(|n: &f64| n.is_finite())
    }

    fn is_header(&self) -> bool {
        self.1.get(0).is_some_and(|first| first == self.0[0].as_bytes())
    }
}

struct History {
    header: Vec<String>,
    last: Option<Totals4>,
}

/// The totals of a row: time, requests, failures, sum of latencies.
#[derive(Clone, Copy)]
struct Totals4 {
    time: f64,
    requests: f64,
    failures: f64,
    latency: f64,
}

impl RowReader for History {
    fn row(&mut self, line: u64, row: &ByteRecord, out: &mut Output<'_>) {
        let cells = Cells(&self.header, row);
        if cells.is_header() {
            out.skip(line, "a header line");
            return;
        }
        if cells.text("Name") != b"Aggregated" {
            out.skip(line, "a row of one endpoint, which the aggregated row contains");
            return;
        }
        let totals = cells.number("Timestamp").zip(cells.number("Total Request Count"));
        let Some((time, requests)) = totals else {
            out.bad(line, "no time stamp and request count: the row is cut");
            return;
        };
        let now = Totals4 {
            time,
            requests,
            failures: cells.number("Total Failure Count").unwrap_or(0.0),
            latency: cells.number("Total Average Response Time").unwrap_or(0.0) * requests,
        };
        let latency = |name: &str| cells.number(name).filter(|ms| *ms > 0.0);
        let percentiles = StepLatency {
            p50: latency("50%"),
            p90: latency("90%"),
            p99: latency("99%"),
            ..StepLatency::default()
        };
        if let Some(last) = self.last.replace(now) {
            let count = now.requests - last.requests;
            // Totals that shrink have been reset.
            if count > 0.0 && now.time > last.time {
                out.step(Step {
                    start: of_seconds(last.time),
                    seconds: now.time - last.time,
                    completed: count,
                    errors: (now.failures - last.failures).max(0.0),
                    latency_ms: StepLatency {
                        mean: Some((now.latency - last.latency) / count).filter(|mean| *mean >= 0.0),
                        ..percentiles
                    },
                    ..Step::default()
                });
            }
        }
    }
}

struct Totals {
    header: Vec<String>,
}

impl RowReader for Totals {
    fn row(&mut self, line: u64, row: &ByteRecord, out: &mut Output<'_>) {
        let cells = Cells(&self.header, row);
        if cells.is_header() {
            out.skip(line, "a header line");
            return;
        }
        if cells.text("Name") != b"Aggregated" {
            out.skip(line, "a row of one endpoint, which the aggregated row contains");
            return;
        }
        let (Some(completed), Some(rate)) = (cells.number("Request Count"), cells.number("Requests/s"))
        else {
            out.bad(line, "no request count and rate");
            return;
        };
        out.step(Step {
            seconds: if rate > 0.0 { completed / rate } else { 0.0 },
            completed,
            errors: cells.number("Failure Count").unwrap_or(0.0),
            latency_ms: StepLatency {
                mean: cells.number("Average Response Time"),
                min: cells.number("Min Response Time"),
                p50: cells.number("50%"),
                p90: cells.number("90%"),
                p99: cells.number("99%"),
                max: cells.number("Max Response Time"),
            },
            ..Step::default()
        });
    }
}

pub(crate) fn probe_workers(sample: &Sample, _options: &Options) -> Probe {
    let report = |line: &[u8]| serde_json::from_slice::<Report>(line).is_ok();
    if sample.first_line().first() != Some(&b'{') || sample.share(report) < 0.5 {
        return Ok(None);
    }
    Ok(Some(Recognised::aggregate(Format::Locust, "reports of workers", "ms", Lines::new(Workers, sample))))
}

#[derive(Deserialize)]
struct Report {
    stats: Vec<Entry>,
    #[serde(rename = "user_count")]
    _users: f64,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(default)]
    response_times: std::collections::BTreeMap<String, f64>,
    num_requests: f64,
    #[serde(default)]
    num_failures: f64,
    #[serde(default)]
    total_response_time: f64,
    start_time: f64,
    #[serde(default)]
    last_request_timestamp: Option<f64>,
}

struct Workers;

impl LineReader for Workers {
    fn line(&mut self, number: u64, line: &[u8], out: &mut Output<'_>) {
        let report: Report = match serde_json::from_slice(line) {
            Ok(report) => report,
            Err(error) => {
                out.bad(number, format!("not a worker's report: {error}"));
                return;
            }
        };
        let sum = |of: fn(&Entry) -> f64| report.stats.iter().map(of).sum::<f64>();
        let requests = sum(|entry| entry.num_requests);
        let mut histogram = Histogram::default();
        for (time, count) in report.stats.iter().flat_map(|entry| &entry.response_times) {
            histogram.add(time.parse().unwrap_or(f64::NAN), *count);
        }
        let start = report.stats.iter().map(|e| e.start_time).fold(f64::INFINITY, f64::min);
        let end = report.stats.iter().filter_map(|e| e.last_request_timestamp).fold(0.0, f64::max);
        if !start.is_finite() || requests + sum(|entry| entry.num_failures) <= 0.0 {
            out.skip(number, "a report without requests");
            return;
        }
        let mut latency_ms = histogram.latency();
        if requests > 0.0 {
            latency_ms.mean = Some(sum(|entry| entry.total_response_time) / requests);
        }
        out.step(Step {
            start: of_seconds(start),
            // The last request's stamp is a whole second.
            seconds: (end + 1.0 - start).max(1.0),
            completed: requests,
            errors: sum(|entry| entry.num_failures),
            latency_ms,
            ..Step::default()
        });
    }
}
