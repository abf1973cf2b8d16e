//! Results of load generators as one JSON document per run: autocannon, oha, fortio and Nighthawk, vegeta's report,
//! k6's summary. Several documents in one file are several steps.

use serde_json::Value;

use super::histogram::Histogram;
use crate::error::ReadError;
use crate::formats::{Format, Probe, Reader, Recognised};
use crate::input::{Input, Sample};
use crate::options::Options;
use crate::quantity::instant::iso;
use crate::reading::Output;
use crate::record::{Step, StepLatency};

/// A tool that writes such documents.
#[derive(Clone, Copy, Debug)]
struct Tool {
    format: Format,
    variant: &'static str,
    unit: &'static str,
    /// Keys that its document has.
    keys: &'static [&'static str],
    step: fn(&Value) -> Option<Step>,
    note: &'static str,
}

const TOOLS: &[Tool] = &[
    Tool {
        format: Format::Autocannon,
        variant: "JSON result",
        unit: "ms",
        keys: &["\"latency\"", "\"connections\"", "\"non2xx\"", "\"requests\""],
        step: autocannon,
        note: "autocannon is a closed loop: its connections wait for the service, and so does its load",
    },
    Tool {
        format: Format::Fortio,
        variant: "JSON result",
        unit: "s",
        keys: &["\"DurationHistogram\"", "\"Data\"", "\"Percent\""],
        step: fortio,
        note: "",
    },
    Tool {
        format: Format::Oha,
        variant: "JSON summary",
        unit: "s",
        keys: &["\"summary\"", "\"requestsPerSec\"", "\"latencyPercentiles\""],
        step: oha,
        note: "",
    },
    Tool {
        format: Format::Vegeta,
        variant: "JSON report",
        unit: "ns",
        keys: &["\"latencies\"", "\"status_codes\"", "\"throughput\"", "\"rate\""],
        step: vegeta,
        note: "",
    },
    Tool {
        format: Format::K6,
        variant: "JSON summary",
        unit: "ms",
        keys: &["\"metrics\"", "\"http_req_duration\"", "\"http_reqs\""],
        step: k6,
        note: "",
    },
];

pub(crate) fn probe(sample: &Sample, _options: &Options) -> Probe {
    if sample.first_line().trim_ascii_start().first() != Some(&b'{') {
        return Ok(None);
    }
    let has = |key: &str| memchr::memmem::find(sample.bytes(), key.as_bytes()).is_some();
    let Some(tool) = TOOLS.iter().find(|tool| tool.keys.iter().all(|key| has(key))) else { return Ok(None) };
    let mut recognised =
        Recognised::aggregate(tool.format, tool.variant, tool.unit, Documents { tool: *tool });
    if !tool.note.is_empty() {
        recognised.notes.push(tool.note.to_owned());
    }
    Ok(Some(recognised))
}

struct Documents {
    tool: Tool,
}

impl Reader for Documents {
    fn read(&mut self, input: &mut Input<'_>, out: &mut Output<'_>) -> Result<(), ReadError> {
        let text = input.document(self.tool.format)?;
        out.reading.lines = memchr::memchr_iter(b'\n', &text).count() as u64;
        for document in serde_json::Deserializer::from_slice(&text).into_iter::<Value>() {
            let document = document.map_err(|error| ReadError::Broken {
                format: self.tool.format,
                line: error.line() as u64,
                reason: format!("{error}: the document is cut or damaged"),
            })?;
            match (self.tool.step)(&document) {
                Some(step) => out.step(step),
                None => out.bad(1, "the document lacks the counts and latencies of a run"),
            }
        }
        Ok(())
    }
}

/// A number, also as a string: tools write 64-bit counts so.
fn number(value: &Value) -> Option<f64> {
    let number = match value {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => text.parse().ok()?,
        _ => return None,
    };
    number.is_finite().then_some(number)
}

fn at(value: &Value, path: &str) -> Option<f64> {
    path.split('.').try_fold(value, |value, key| value.get(key)).and_then(number)
}

fn date(value: &Value, key: &str) -> Option<i64> {
    iso(value.get(key)?.as_str()?.as_bytes())
}

/// Counts by status: all, errors (500 and more), refusals (429 and 503).
fn statuses(codes: Option<&Value>, count: impl Fn(&Value) -> Option<f64>) -> (f64, f64, f64) {
    let (mut all, mut errors, mut refused) = (0.0, 0.0, 0.0);
    for (code, value) in codes.and_then(Value::as_object).into_iter().flatten() {
        let count = count(value).unwrap_or(0.0);
        let code: i32 = code.parse().unwrap_or(0);
        all += count;
        errors += if code >= 500 || code <= 0 { count } else { 0.0 };
        refused += if matches!(code, 429 | 503) { count } else { 0.0 };
    }
    (all, errors, refused)
}

fn autocannon(run: &Value) -> Option<Step> {
    let latency = |key: &str| at(run, &format!("latency.{key}"));
    let (_, _, refused) = statuses(run.get("statusCodeStats"), |stats| number(stats.get("count")?));
    Some(Step {
        start: date(run, "start"),
        seconds: at(run, "duration")?,
        clients: at(run, "connections"),
        completed: at(run, "requests.total")?,
        errors: at(run, "5xx").or_else(|| at(run, "non2xx")).unwrap_or(0.0),
        refused: run.get("statusCodeStats").map(|_| refused),
        timeouts: at(run, "timeouts").unwrap_or(0.0),
        latency_ms: StepLatency {
            mean: latency("average"),
            min: latency("min"),
            p50: latency("p50"),
            p90: latency("p90"),
            p99: latency("p99"),
            max: latency("max"),
        },
        offered_per_s: None,
    })
}

fn oha(run: &Value) -> Option<Step> {
    let summary = |key: &str| at(run, &format!("summary.{key}"));
    let ms = |seconds: Option<f64>| seconds.map(|s| s * 1e3);
    let percentile = |key: &str| ms(at(run, &format!("latencyPercentiles.{key}")));
    let (all, errors, refused) = statuses(run.get("statusCodeDistribution"), number);
    let failed: f64 = run
        .get("errorDistribution")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter_map(|(_, n)| number(n))
        .sum();
    Some(Step {
        seconds: summary("total")?,
        completed: all,
        errors,
        refused: Some(refused),
        timeouts: failed,
        latency_ms: StepLatency {
            mean: ms(summary("average")),
            min: ms(summary("fastest")),
            p50: percentile("p50"),
            p90: percentile("p90"),
            p99: percentile("p99"),
            max: ms(summary("slowest")),
        },
        ..Step::default()
    })
}

fn fortio(run: &Value) -> Option<Step> {
    let histogram = run.get("DurationHistogram")?;
    let mut buckets = Histogram::default();
    for bucket in histogram.get("Data")?.as_array()? {
        let middle = f64::midpoint(at(bucket, "Start")?, at(bucket, "End")?);
        buckets.add(middle * 1e3, at(bucket, "Count").unwrap_or(0.0));
    }
    let count = at(histogram, "Count").unwrap_or_else(|| buckets.count());
    let percentile = |wanted: f64| {
        let list = histogram.get("Percentiles")?.as_array()?;
        list.iter()
            .find(|p| at(p, "Percentile") == Some(wanted))
            .and_then(|p| at(p, "Value"))
            .map(|s| s * 1e3)
    };
    let from_buckets = buckets.latency();
    // Nanoseconds; early Nighthawks wrote seconds, which no rate agrees with.
    let seconds = at(run, "ActualDuration").filter(|ns| *ns >= 1e6).map(|ns| ns / 1e9);
    let seconds = seconds.or_else(|| at(run, "ActualQPS").filter(|qps| *qps > 0.0).map(|qps| count / qps))?;
    let (_, errors, refused) = statuses(run.get("RetCodes"), number);
    let ms = |key: &str| at(histogram, key).map(|s| s * 1e3);
    let offered = at(run, "RequestedQPS").filter(|qps| *qps > 0.0);
    Some(Step {
        start: date(run, "StartTime"),
        seconds,
        // With a rate asked for, the connections are a pool, not the load.
        clients: at(run, "NumThreads").filter(|_| offered.is_none()),
        offered_per_s: offered,
        completed: count,
        errors,
        refused: Some(refused),
        timeouts: 0.0,
        latency_ms: StepLatency {
            mean: ms("Avg").or(from_buckets.mean),
            min: ms("Min").or(from_buckets.min),
            p50: percentile(50.0).or(from_buckets.p50),
            p90: percentile(90.0).or(from_buckets.p90),
            p99: percentile(99.0).or(from_buckets.p99),
            max: ms("Max").or(from_buckets.max),
        },
    })
}

fn vegeta(report: &Value) -> Option<Step> {
    let ms = |key: &str| at(report, &format!("latencies.{key}")).map(|ns| ns / 1e6);
    let (_, errors, refused) = statuses(report.get("status_codes"), number);
    let timeouts = report.get("status_codes").and_then(|codes| at(codes, "0")).unwrap_or(0.0);
    Some(Step {
        start: date(report, "earliest"),
        seconds: at(report, "duration")? / 1e9,
        clients: None,
        offered_per_s: at(report, "rate"),
        completed: at(report, "requests")? - timeouts,
        errors: errors - timeouts,
        refused: Some(refused),
        timeouts,
        latency_ms: StepLatency {
            mean: ms("mean"),
            min: ms("min"),
            p50: ms("50th"),
            p90: ms("90th"),
            p99: ms("99th"),
            max: ms("max"),
        },
    })
}

fn k6(summary: &Value) -> Option<Step> {
    let metrics = summary.get("metrics")?;
    // Two layouts: values right in the metric, or below "values".
    let metric = |name: &str, key: &str| {
        let metric = metrics.get(name)?;
        metric.get("values").unwrap_or(metric).get(key).and_then(number)
    };
    let duration = |key: &str| metric("http_req_duration", key);
    let count = metric("http_reqs", "count")?;
    let rate = metric("http_reqs", "rate").filter(|rate| *rate > 0.0)?;
    let failed =
        metric("http_req_failed", "rate").or_else(|| metric("http_req_failed", "value")).unwrap_or(0.0);
    Some(Step {
        seconds: count / rate,
        completed: count,
        errors: count * failed,
        latency_ms: StepLatency {
            mean: duration("avg"),
            min: duration("min"),
            p50: duration("med"),
            p90: duration("p(90)"),
            p99: duration("p(99)"),
            max: duration("max"),
        },
        ..Step::default()
    })
}
