//! ghz's JSON report: one document, with the calls in `details`. Stamps mark the end (ghz takes the time of the gRPC
//! end event), latencies are nanoseconds, statuses are the names of gRPC codes.

use std::borrow::Cow;

use serde::Deserialize;

use super::{Format, Probe, Reader, Recognised};
use crate::error::ReadError;
use crate::input::{Input, Sample};
use crate::options::Options;
use crate::quantity::instant::iso;
use crate::reading::Output;
use crate::record::{Basis, Outcome, Record, Status};

pub(crate) fn probe(sample: &Sample, _options: &Options) -> Probe {
    let has = |key: &[u8]| memchr::memmem::find(sample.bytes(), key).is_some();
    let keys: [&[u8]; 4] = [b"\"fastest\"", b"\"slowest\"", b"\"rps\"", b"\"count\""];
    if sample.first_line().trim_ascii_start().first() != Some(&b'{') || !keys.iter().all(|key| has(key)) {
        return Ok(None);
    }
    Ok(Some(Recognised::new(Format::Ghz, "JSON report", Basis::End, "ns", Report)))
}

struct Report;

#[derive(Deserialize)]
struct Root {
    count: Option<u64>,
    #[serde(default)]
    details: Vec<Call>,
}

#[derive(Deserialize)]
struct Call {
    timestamp: Option<String>,
    latency: Option<u64>,
    #[serde(default)]
    status: String,
}

impl Reader for Report {
    fn read(&mut self, input: &mut Input<'_>, out: &mut Output<'_>) -> Result<(), ReadError> {
        let text = input.document(Format::Ghz)?;
        out.reading.lines = memchr::memchr_iter(b'\n', &text).count() as u64;
        let root: Root = serde_json::from_slice(&text).map_err(|error| ReadError::Broken {
            format: Format::Ghz,
            line: error.line() as u64,
            reason: format!("{error}: the report is cut or damaged"),
        })?;
        if root.details.is_empty() {
            return Err(ReadError::NotARecording {
                what: "a ghz report without its calls",
                remedy: "write it with --format json, which keeps the details",
            });
        }
        if let Some(count) = root.count.filter(|count| *count > root.details.len() as u64) {
            out.note(format!("ghz kept {} of {count} calls", root.details.len()));
        }
        for (number, call) in (1..).zip(root.details) {
            let Some(stamp) = call.timestamp.and_then(|date| iso(date.as_bytes())) else {
                out.bad(number, "a call without a time stamp (numbers count calls)");
                continue;
            };
            let outcome = match call.status.as_str() {
                "OK" => Outcome::Success,
                "Unavailable" | "ResourceExhausted" => Outcome::Refused,
                "DeadlineExceeded" => Outcome::TimedOut,
                "Canceled" => Outcome::Cancelled,
                _ => Outcome::Failure,
            };
            out.record(Record {
                outcome,
                error: outcome != Outcome::Success,
                status: Status::Text(Cow::Owned(call.status)),
                ..Record::stamped(Some(stamp), Basis::End, call.latency)
            });
        }
        Ok(())
    }
}
