//! OTLP as JSON: export requests, one per line (as the collector's file exporter writes them) or a single document.
//! Spans of kind 2 (server) are the requests. Times are decimal strings of nanoseconds.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::ReadError;
use crate::formats::json_lines::scalar;
use crate::formats::{Format, LineReader, Lines, Probe, Reader, Recognised};
use crate::input::{Input, Sample};
use crate::options::Options;
use crate::quantity::Decimal;
use crate::reading::Output;
use crate::record::{Basis, Outcome, Record, Status};

pub(crate) fn probe(sample: &Sample, _options: &Options) -> Probe {
    let start = &sample.bytes()[..sample.bytes().len().min(4096)];
    if memchr::memmem::find(start, b"\"resourceSpans\"").is_none() {
        return Ok(None);
    }
    let by_line = sample.first_line().len() > 100;
    let (variant, mut recognised) = if by_line {
        (
            "OTLP JSON, one export per line",
            Recognised::new(Format::Otlp, "", Basis::Both, "ns", Lines::new(Exports, sample)),
        )
    } else {
        ("OTLP JSON document", Recognised::new(Format::Otlp, "", Basis::Both, "ns", Document))
    };
    recognised.variant = variant.to_owned();
    recognised.notes.push(
        "traces are often sampled: if these are, the load was higher than it seems, by the sampling rate"
            .to_owned(),
    );
    Ok(Some(recognised))
}

struct Exports;

impl LineReader for Exports {
    fn line(&mut self, number: u64, line: &[u8], out: &mut Output<'_>) {
        match serde_json::from_slice::<Export<'_>>(line) {
            Ok(export) => export.records(number, out),
            Err(error) => out.bad(number, format!("not an OTLP export: {error}")),
        }
    }
}

struct Document;

impl Reader for Document {
    fn read(&mut self, input: &mut Input<'_>, out: &mut Output<'_>) -> Result<(), ReadError> {
        let document = input.document(Format::Otlp)?;
        let exports = serde_json::Deserializer::from_slice(&document).into_iter::<Export<'_>>();
        for export in exports {
            match export {
                Ok(export) => export.records(0, out),
                Err(error) => {
                    let line = error.line() as u64;
                    out.bad(line, format!("not an OTLP export: {error}"));
                    break;
                }
            }
        }
        out.reading.lines = memchr::memchr_iter(b'\n', &document).count() as u64;
        Ok(())
    }
}

#[derive(Deserialize)]
struct Export<'a> {
    #[serde(borrow, rename = "resourceSpans", default)]
    resources: Vec<Resource<'a>>,
}

#[derive(Deserialize)]
struct Resource<'a> {
    #[serde(borrow, rename = "scopeSpans", alias = "instrumentationLibrarySpans", default)]
    scopes: Vec<Scope<'a>>,
}

#[derive(Deserialize)]
struct Scope<'a> {
    #[serde(borrow, default)]
    spans: Vec<Span<'a>>,
}

#[derive(Deserialize)]
struct Span<'a> {
    #[serde(borrow, default)]
    kind: Option<&'a RawValue>,
    #[serde(borrow, rename = "startTimeUnixNano", alias = "start_time_unix_nano", default)]
    start: Option<&'a RawValue>,
    #[serde(borrow, rename = "endTimeUnixNano", alias = "end_time_unix_nano", default)]
    end: Option<&'a RawValue>,
    #[serde(borrow, default)]
    attributes: Vec<Attribute<'a>>,
    #[serde(borrow, default)]
    status: Option<SpanStatus<'a>>,
}

#[derive(Deserialize)]
struct Attribute<'a> {
    #[serde(borrow)]
    key: std::borrow::Cow<'a, str>,
    #[serde(borrow, default)]
    value: Option<AnyValue<'a>>,
}

#[derive(Deserialize)]
struct AnyValue<'a> {
    #[serde(borrow, rename = "intValue", alias = "stringValue", alias = "doubleValue", default)]
    value: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct SpanStatus<'a> {
    #[serde(borrow, default)]
    code: Option<&'a RawValue>,
}

impl Export<'_> {
    fn records(&self, number: u64, out: &mut Output<'_>) {
        for span in self.resources.iter().flat_map(|r| &r.scopes).flat_map(|s| &s.spans) {
            if !matches!(text(span.kind).as_ref(), b"2" | b"SPAN_KIND_SERVER") {
                out.skip(number, "a span that is not a server's");
                continue;
            }
            match span.record() {
                Some(record) => out.record(record),
                None => out.bad(number, "a server span without its start or its end"),
            }
        }
    }
}

impl Span<'_> {
    fn record(&self) -> Option<Record> {
        let time = |raw| Decimal::parse(&text(raw), b'.')?.times(1).filter(|nanos| *nanos > 0);
        let (start, end) = (time(self.start)?, time(self.end)?);
        let mut record = Record::spanning(start, end);
        let code = self
            .attributes
            .iter()
            .filter(|a| {
                matches!(
                    a.key.as_ref(),
                    "http.response.status_code" | "http.status_code" | "rpc.grpc.status_code"
                )
            })
            .find_map(|a| a.value.as_ref()?.value);
        let failed = self
            .status
            .as_ref()
            .is_some_and(|s| matches!(text(s.code).as_ref(), b"2" | b"STATUS_CODE_ERROR"));
        if let Some(code) = code {
            let grpc = !self.attributes.iter().any(|a| a.key.contains("http"));
            let status = Status::read(&text(Some(code)));
            record = if grpc { with_grpc(record, status) } else { record.with_status(status) };
        }
        if failed {
            record.error = true;
            if record.outcome == Outcome::Success {
                record.outcome = Outcome::Failure;
            }
        }
        Some(record)
    }
}

/// Takes over a gRPC status: 0 is fine, 8 (resource exhausted) and 14 (unavailable) are refusals, 4 is a deadline, 1 a
/// client that left.
fn with_grpc(mut record: Record, status: Status) -> Record {
    record.outcome = match status.code() {
        Some(0) | None => Outcome::Success,
        Some(8 | 14) => Outcome::Refused,
        Some(4) => Outcome::TimedOut,
        Some(1) => Outcome::Cancelled,
        Some(_) => Outcome::Failure,
    };
    record.error = record.outcome != Outcome::Success;
    record.status = status;
    record
}

fn text(raw: Option<&RawValue>) -> std::borrow::Cow<'_, [u8]> {
    scalar(raw.map(RawValue::get))
}
