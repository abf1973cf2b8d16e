//! tsung's statistics as JSON: samples of counters every few seconds.

use serde::Deserialize;

use crate::error::ReadError;
use crate::formats::{Format, Probe, Reader, Recognised};
use crate::input::{Input, Sample};
use crate::options::Options;
use crate::reading::Output;
use crate::record::{Step, StepLatency};

pub(crate) fn probe(sample: &Sample, _options: &Options) -> Probe {
    let has = |needle: &[u8]| memchr::memmem::find(sample.bytes(), needle).is_some();
    if sample.first_line().trim_ascii_start().first() != Some(&b'{')
        || !(has(b"\"stats\"") && has(b"\"samples\"") && has(b"\"timestamp\""))
    {
        return Ok(None);
    }
    Ok(Some(Recognised::aggregate(Format::Tsung, "JSON statistics", "ms", Statistics)))
}

struct Statistics;

#[derive(Deserialize)]
struct Root {
    stats: Vec<Interval>,
}

#[derive(Deserialize)]
struct Interval {
    timestamp: i64,
    samples: Vec<Counter>,
}

#[derive(Deserialize)]
struct Counter {
    name: String,
    #[serde(default)]
    value: f64,
    mean: Option<f64>,
    max: Option<f64>,
    min: Option<f64>,
}

impl Reader for Statistics {
    fn read(&mut self, input: &mut Input<'_>, out: &mut Output<'_>) -> Result<(), ReadError> {
        let text = input.document(Format::Tsung)?;
        out.reading.lines = memchr::memchr_iter(b'\n', &text).count() as u64;
        let root: Root = serde_json::from_slice(&text).map_err(|error| ReadError::Broken {
            format: Format::Tsung,
            line: error.line() as u64,
            reason: format!("{error}: tsung closes its file only at the end of a run"),
        })?;
        for (before, interval) in root.stats.iter().zip(root.stats.iter().skip(1)) {
            let Some(request) = interval.samples.iter().find(|counter| counter.name == "request") else {
                continue;
            };
            let failed = |counter: &&Counter| counter.name.starts_with("http_5");
            out.step(Step {
                start: before.timestamp.checked_mul(1_000_000_000),
                seconds: (interval.timestamp.saturating_sub(before.timestamp)).max(0) as f64,
                completed: request.value,
                errors: interval.samples.iter().filter(failed).map(|counter| counter.value).sum(),
                latency_ms: StepLatency {
                    mean: request.mean,
                    min: request.min,
                    max: request.max,
                    ..StepLatency::default()
                },
                ..Step::default()
            });
        }
        Ok(())
    }
}
