//! HdrHistogram's interval logs, versions 0 to 2: per line a start, a length, the largest value, and a compressed
//! histogram in Base64 ([`decode`]).
//!
//! Starts are absolute, or relative to `#[BaseTime: …]` or `#[StartTime: …]`. The unit of the values is a convention of
//! whoever recorded them: nanoseconds, unless the user says otherwise.

mod decode;

use crate::formats::{Format, LineReader, Lines, Probe, Recognised};
use crate::input::Sample;
use crate::options::Options;
use crate::quantity::Unit;
use crate::quantity::instant::of_seconds;
use crate::reading::{Evidence, Output};
use crate::record::{Step, StepLatency};

use decode::Counts;

/// Starts that lie more than a year before the log's start are relative to it.
const YEAR_S: f64 = 365.0 * 86_400.0;

pub(crate) fn probe(sample: &Sample, options: &Options) -> Probe {
    let interval = |line: &[u8]| parts(line).is_some_and(|(.., payload)| payload.starts_with(b"HIST"));
    if !sample.lines().any(interval) {
        return Ok(None);
    }
    let unit = options.fields.latency_unit.unwrap_or(Unit::Nanoseconds);
    let reader = Intervals { unit, start_time: None, base_time: None, all: Counts::default() };
    let mut recognised =
        Recognised::aggregate(Format::HdrHistogram, "interval log", "ns", Lines::new(reader, sample));
    recognised.unit = unit.to_string();
    if options.fields.latency_unit.is_none() {
        recognised.evidence = Evidence::Assumed;
        recognised.assumed.push(
            "the log does not say its unit: it was read as nanoseconds. If that is wrong, say --latency-unit us, ms or s"
                .to_owned(),
        );
    }
    Ok(Some(recognised))
}

/// Start and length in seconds, and the encoded histogram.
fn parts(line: &[u8]) -> Option<(f64, f64, &[u8])> {
    let mut fields = line.split(|b| *b == b',').skip_while(|field| field.starts_with(b"Tag="));
    let mut number =
        || std::str::from_utf8(fields.next()?).ok()?.trim().parse::<f64>().ok().filter(|n| n.is_finite());
    let (start, length) = (number()?, number()?);
    number()?;
    Some((start, length, fields.next()?.trim_ascii()))
}

struct Intervals {
    unit: Unit,
    start_time: Option<f64>,
    base_time: Option<f64>,
    all: Counts,
}

impl LineReader for Intervals {
    fn line(&mut self, number: u64, line: &[u8], out: &mut Output<'_>) {
        if line.starts_with(b"#") || line.starts_with(b"\"StartTimestamp") {
            self.start_time = self.start_time.or_else(|| seconds_after(line, "StartTime:"));
            self.base_time = self.base_time.or_else(|| seconds_after(line, "BaseTime:"));
            out.skip(number, "a comment or header");
            return;
        }
        let Some((start, length, payload)) = parts(line) else {
            out.bad(number, "not a start, a length, a maximum and a histogram");
            return;
        };
        let counts = match decode::decode(payload) {
            Ok(counts) => counts,
            Err(reason) => {
                out.bad(number, reason);
                return;
            }
        };
        self.all.add(&counts);
        let start = match (self.base_time, self.start_time) {
            (Some(base), _) => start + base,
            (None, Some(begun)) if start < begun - YEAR_S => start + begun,
            _ => start,
        };
        out.step(Step {
            start: of_seconds(start),
            seconds: length.max(0.0),
            completed: counts.total() as f64,
            latency_ms: self.latency(&counts),
            ..Step::default()
        });
    }

    fn finish(&mut self, out: &mut Output<'_>) {
        out.reading.overall_ms = Some(self.latency(&self.all));
    }
}

impl Intervals {
    fn latency(&self, counts: &Counts) -> StepLatency {
        let ms = |value: u64| value as f64 * self.unit.nanos() as f64 / 1e6;
        StepLatency {
            mean: counts.mean().map(|mean| mean * self.unit.nanos() as f64 / 1e6),
            min: counts.quantile(0.0).map(ms),
            p50: counts.quantile(0.5).map(ms),
            p90: counts.quantile(0.9).map(ms),
            p99: counts.quantile(0.99).map(ms),
            max: counts.max().map(ms),
        }
    }
}

/// The number after a key in a comment: `#[StartTime: 1438867590.285 (seconds since epoch), …]`.
fn seconds_after(line: &[u8], key: &str) -> Option<f64> {
    let line = String::from_utf8_lossy(line);
    let (_, rest) = line.split_once(key)?;
    rest.split_whitespace().next()?.parse().ok()
}
