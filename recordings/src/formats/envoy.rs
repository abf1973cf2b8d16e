//! Envoy's and Istio's text access logs. (Their JSON logs are read with the other JSON lines.)
//!
//! `[START_TIME] "METHOD PATH PROTOCOL" CODE FLAGS … RX TX DURATION UPSTREAM_TIME "…"`: stamps mark the start,
//! durations are whole milliseconds. Between the flags and the byte counts Istio has put more fields, which changed
//! over its versions, and quotes in paths are not escaped; so the first run of three numbers and a number or dash
//! after a status and flags is the anchor.

use memchr::memchr_iter;

use super::{Format, LineReader, Lines, Probe, Recognised};
use crate::input::Sample;
use crate::options::Options;
use crate::quantity::Unit;
use crate::quantity::duration::in_unit;
use crate::quantity::instant::iso;
use crate::reading::Output;
use crate::record::{Basis, Outcome, Record, Status};

/// Fields that Istio may put between the flags and the byte counts.
const FIELDS_BETWEEN: usize = 12;

pub(crate) fn probe(sample: &Sample, _options: &Options) -> Probe {
    if sample.share(|line| matches!(read(line), Some(Line::Request(_)))) < 0.3 {
        return Ok(None);
    }
    let istio =
        sample.share(|line| matches!(read(line), Some(Line::Request(parts)) if parts.between > 0)) > 0.5;
    let variant = if istio { "Istio text" } else { "default text" };
    let reader = Lines::new(Envoy, sample);
    Ok(Some(Recognised::new(Format::Envoy, variant, Basis::Start, "ms", reader)))
}

/// How a request ended, by the response flags and the response code details.
pub(crate) fn judge(record: &mut Record, flags: &[u8], details: &[u8]) {
    for flag in flags.split(|b| *b == b',') {
        record.outcome = match flag {
            b"UO" | b"RL" | b"RLSE" | b"OM" => Outcome::Refused,
            b"UT" | b"SI" | b"DT" | b"UMSDR" => Outcome::TimedOut,
            b"DC" | b"DR" => Outcome::Cancelled,
            b"UF" | b"UH" | b"UC" | b"UR" | b"NR" | b"NC" | b"LH" | b"DPE" => Outcome::Failure,
            _ => continue,
        };
    }
    let tells = |needle: &[u8]| memchr::memmem::find(details, needle).is_some();
    if tells(b"overflow") || tells(b"reached_concurrency_limit") || tells(b"rate_limited") {
        record.outcome = Outcome::Refused;
    }
}

struct Envoy;

/// What a line is.
enum Line<'l> {
    Request(Parts<'l>),
    /// A TCP connection.
    Connection,
}

struct Parts<'l> {
    stamp: i64,
    code: &'l [u8],
    flags: &'l [u8],
    details: &'l [u8],
    duration: &'l [u8],
    upstream: &'l [u8],
    /// Fields between the flags and the byte counts.
    between: usize,
}

impl LineReader for Envoy {
    fn line(&mut self, number: u64, line: &[u8], out: &mut Output<'_>) {
        let parts = match read(line) {
            Some(Line::Request(parts)) => parts,
            Some(Line::Connection) => {
                out.skip(number, "a TCP connection, not a request");
                return;
            }
            None => {
                out.bad(number, "no date, request, status, flags and byte counts in Envoy's order");
                return;
            }
        };
        let latency = in_unit(parts.duration, Unit::Milliseconds);
        let mut record =
            Record::stamped(Some(parts.stamp), Basis::Start, latency).with_status(Status::read(parts.code));
        record.service = in_unit(parts.upstream, Unit::Milliseconds);
        judge(&mut record, parts.flags, parts.details);
        out.record(record);
    }
}

fn read(line: &[u8]) -> Option<Line<'_>> {
    let rest = line.strip_prefix(b"[")?;
    let end = memchr::memchr(b']', rest)?;
    let stamp = iso(&rest[..end])?;
    let rest = rest[end + 1..].strip_prefix(b" \"")?;
    if rest.starts_with(b"- - -\"") {
        return Some(Line::Connection);
    }
    memchr_iter(b'"', rest)
        .find_map(|quote| after_request(stamp, rest[quote + 1..].strip_prefix(b" ")?))
        .map(Line::Request)
}

/// Reads from the status on.
fn after_request(stamp: i64, rest: &[u8]) -> Option<Parts<'_>> {
    let number = |word: &[u8]| !word.is_empty() && word.iter().all(u8::is_ascii_digit);
    let mut words = rest.split(|b| *b == b' ');
    let code = words.next().filter(|word| word.len() <= 3 && number(word))?;
    let flags = words.next().filter(|word| {
        !word.is_empty()
            && word.iter().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b"-,".contains(b))
    })?;
    let mut details: &[u8] = b"";
    let mut run: [&[u8]; 4] = [b""; 4];
    let mut length = 0;
    for (between, word) in words.take(FIELDS_BETWEEN + 4).enumerate() {
        if between == 0 {
            details = word;
        }
        let fits = number(word) || (length >= 3 && word == b"-");
        if !fits {
            length = 0;
            continue;
        }
        run[length] = word;
        length += 1;
        if length == 4 {
            return Some(Parts {
                stamp,
                code,
                flags,
                details,
                duration: run[2],
                upstream: run[3],
                between: between - 3,
            });
        }
    }
    None
}
