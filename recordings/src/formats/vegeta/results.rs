//! vegeta's binary results: a gob stream of its struct `Result`.

use super::gob::{Decoder, Stop, Value};
use super::record;
use crate::error::ReadError;
use crate::formats::{Format, Probe, Reader, Recognised};
use crate::input::{Binary, Input, Sample};
use crate::options::Options;
use crate::reading::Output;
use crate::record::{Basis, Record};

pub(crate) fn probe(sample: &Sample, _options: &Options) -> Probe {
    let start = &sample.bytes()[..sample.bytes().len().min(512)];
    let tells = |needle: &[u8]| memchr::memmem::find(start, needle).is_some();
    if !(tells(b"Result") && tells(b"Timestamp") && tells(b"Latency")) || start.starts_with(b"{") {
        return Ok(None);
    }
    let mut decoder = Decoder::new(sample.bytes());
    if !matches!(decoder.next(), Ok(Some(_))) {
        return Ok(None);
    }
    Ok(Some(Recognised::new(Format::Vegeta, "gob", Basis::Start, "ns", Results)))
}

struct Results;

impl Reader for Results {
    fn read(&mut self, input: &mut Input<'_>, out: &mut Output<'_>) -> Result<(), ReadError> {
        let mut decoder = Decoder::new(Binary::new(input));
        let mut number = 0;
        loop {
            number += 1;
            match decoder.next() {
                Ok(None) => break,
                Ok(Some(fields)) => match result(&fields) {
                    Some(record) => out.record(record),
                    None => out.bad(number, "a result without a time stamp"),
                },
                Err(Stop::Io(error)) => return Err(error.into()),
                Err(Stop::Cut) => {
                    out.reading.truncated = Some(format!(
                        "the stream is cut within result {number}, as after a killed vegeta; whole ones were read"
                    ));
                    break;
                }
                Err(Stop::Broken(reason)) => {
                    out.bad(number, reason);
                    out.reading.truncated =
                        Some(format!("nothing after result {number} can be read: {reason}"));
                    break;
                }
            }
        }
        out.reading.lines = number - 1;
        if let Some(damage) = decoder.source().damage() {
            out.reading.truncated = Some(damage);
        }
        Ok(())
    }
}

/// Fields of value zero are not written.
fn result(fields: &[(String, Value)]) -> Option<Record> {
    let field = |name: &str| fields.iter().find(|(n, _)| n == name).map(|(_, value)| value);
    let Some(Value::Bytes(time)) = field("Timestamp") else { return None };
    let start = go_time(time)?;
    let latency = match field("Latency") {
        Some(Value::Int(nanos)) => u64::try_from(*nanos).ok()?,
        _ => 0,
    };
    let code = match field("Code") {
        Some(Value::Uint(code)) => i32::try_from(*code).ok()?,
        _ => 0,
    };
    let error: &[u8] = match field("Error") {
        Some(Value::Bytes(text)) => text,
        _ => b"",
    };
    Some(record(start, latency, code, error))
}

/// Go's binary `time.Time`: version, seconds since year 1, nanoseconds, minutes east of Greenwich.
fn go_time(bytes: &[u8]) -> Option<i64> {
    /// Seconds from year 1 to 1970.
    const UNIX: i64 = 62_135_596_800;
    if bytes.len() < 15 || !matches!(bytes[0], 1 | 2) {
        return None;
    }
    let seconds = i64::from_be_bytes(bytes[1..9].try_into().ok()?);
    let nanos = i32::from_be_bytes(bytes[9..13].try_into().ok()?);
    seconds.checked_sub(UNIX)?.checked_mul(1_000_000_000)?.checked_add(i64::from(nanos))
}
