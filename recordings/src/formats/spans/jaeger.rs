//! Jaeger's JSON: `data[].spans[]` with `startTime` and `duration` in microseconds. Spans tagged `span.kind=server`
//! are the requests; if no span is tagged at all, the ones without a parent.

use serde::Deserialize;
use serde_json::Value;

use crate::error::ReadError;
use crate::formats::{Format, Probe, Reader, Recognised};
use crate::input::{Input, Sample};
use crate::options::Options;
use crate::reading::Output;
use crate::record::{Basis, Outcome, Record, Status};

pub(crate) fn probe(sample: &Sample, _options: &Options) -> Probe {
    let bytes = sample.bytes();
    let tells = |needle: &[u8]| memchr::memmem::find(bytes, needle).is_some();
    let first = sample.first_line().trim_ascii_start().first().copied();
    let document = matches!(first, Some(b'{' | b'['));
    if !document
        || !tells(b"\"spans\"") && !tells(b"\"operationName\"")
        || !tells(b"\"traceID\"") && !tells(b"\"processes\"")
    {
        return Ok(None);
    }
    let mut recognised = Recognised::new(Format::Jaeger, "query API JSON", Basis::Start, "us", Document);
    recognised.notes.push(
        "traces are often sampled, or picked for being slow: the load was higher than it seems, and the latencies \
         may be biased"
            .to_owned(),
    );
    Ok(Some(recognised))
}

struct Document;

#[derive(Deserialize)]
#[serde(untagged)]
enum Root {
    Answer { data: Vec<Trace> },
    Traces(Vec<Trace>),
    Trace(Trace),
}

#[derive(Deserialize)]
struct Trace {
    spans: Vec<Span>,
}

#[derive(Deserialize)]
struct Span {
    #[serde(rename = "startTime")]
    start: Option<i64>,
    duration: Option<i64>,
    #[serde(default)]
    tags: Vec<Tag>,
    #[serde(default)]
    references: Vec<Reference>,
}

#[derive(Deserialize)]
struct Tag {
    key: String,
    #[serde(default)]
    value: Value,
}

#[derive(Deserialize)]
struct Reference {
    #[serde(rename = "refType", default)]
    kind: String,
}

impl Reader for Document {
    fn read(&mut self, input: &mut Input<'_>, out: &mut Output<'_>) -> Result<(), ReadError> {
        let document = input.document(Format::Jaeger)?;
        out.reading.lines = memchr::memchr_iter(b'\n', &document).count() as u64;
        let broken = |error: serde_json::Error| ReadError::Broken {
            format: Format::Jaeger,
            line: error.line() as u64,
            reason: error.to_string(),
        };
        let traces = match serde_json::from_slice::<Root>(&document).map_err(broken)? {
            Root::Answer { data } => data,
            Root::Traces(traces) => traces,
            Root::Trace(trace) => vec![trace],
        };
        let spans: Vec<Span> = traces.into_iter().flat_map(|trace| trace.spans).collect();
        let tagged = spans.iter().any(|span| span.tag("span.kind").is_some());
        if !tagged {
            out.note("no span says its kind: spans without a parent were taken for requests");
        }
        for (number, span) in (1..).zip(&spans) {
            let request = if tagged {
                span.tag("span.kind").and_then(Value::as_str) == Some("server")
            } else {
                !span.references.iter().any(|reference| reference.kind == "CHILD_OF")
            };
            if !request {
                out.skip(number, "a span that is not a server's (numbers count spans)");
                continue;
            }
            match span.record() {
                Some(record) => out.record(record),
                None => out.bad(number, "a span without startTime or duration (numbers count spans)"),
            }
        }
        Ok(())
    }
}

impl Span {
    fn tag(&self, key: &str) -> Option<&Value> {
        self.tags.iter().find(|tag| tag.key == key).map(|tag| &tag.value)
    }

    fn record(&self) -> Option<Record> {
        let start = self.start?.checked_mul(1_000)?;
        let latency = u64::try_from(self.duration?).ok()?.checked_mul(1_000)?;
        let mut record = Record::stamped(Some(start), Basis::Start, Some(latency));
        let code = self.tag("http.status_code").or_else(|| self.tag("http.response.status_code"));
        if let Some(code) = code {
            let text = code.as_str().map_or_else(|| code.to_string(), str::to_owned);
            record = record.with_status(Status::read(text.as_bytes()));
        }
        let failed = match self.tag("error") {
            Some(Value::Bool(failed)) => *failed,
            Some(Value::String(failed)) => failed == "true",
            _ => false,
        };
        if failed {
            record.error = true;
            if record.outcome == Outcome::Success {
                record.outcome = Outcome::Failure;
            }
        }
        Some(record)
    }
}
