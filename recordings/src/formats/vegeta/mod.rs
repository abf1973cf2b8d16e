//! vegeta's results: its own binary ([`gob`]), and what `vegeta encode` makes of it, CSV and JSON. Stamps mark the
//! start; latencies are nanoseconds. A code of 0 means that there was no answer; the error text says why.

mod gob;
mod results;

use csv::ByteRecord;

use super::json_lines::{Path, pick, scalar};
use super::tables::{Head, RowReader, recognised};
use super::{Format, LineReader, Lines, Probe, Recognised};
use crate::input::Sample;
use crate::options::Options;
use crate::quantity::Unit;
use crate::quantity::duration::in_unit;
use crate::quantity::instant::{Clock, Style};
use crate::reading::Output;
use crate::record::{Basis, Outcome, Record, Status};

pub(crate) use results::probe as probe_gob;

/// A result. Success is a code from 200 to 399 without an error, as vegeta counts it.
fn record(start: i64, latency: u64, code: i32, error: &[u8]) -> Record {
    let mut record =
        Record::stamped(Some(start), Basis::Start, Some(latency)).with_status(Status::Code(code));
    record.error = !(200..400).contains(&code);
    if code == 0 {
        let tells = |needle: &[u8]| memchr::memmem::find(error, needle).is_some();
        let timed_out =
            tells(b"deadline exceeded") || tells(b"timeout") || tells(b"Timeout") || tells(b"timed out");
        record.outcome = if timed_out { Outcome::TimedOut } else { Outcome::Failure };
    }
    record
}

pub(crate) fn probe_csv(sample: &Sample, _options: &Options) -> Probe {
    let Some(mut head) = Head::of(sample, Some(b',')) else { return Ok(None) };
    head.rows.insert(0, ByteRecord::from(head.header.clone()));
    let fits = head.rows.iter().filter(|row| row_of(row).is_some()).count();
    if fits * 10 < head.rows.len() * 9 {
        return Ok(None);
    }
    Ok(Some(recognised(Format::Vegeta, "CSV", Basis::Start, "ns", Rows, b',')))
}

struct Rows;

impl RowReader for Rows {
    fn row(&mut self, line: u64, row: &ByteRecord, out: &mut Output<'_>) {
        match row_of(row) {
            Some(record) => out.record(record),
            None => out.bad(line, "not a time stamp, a code and a latency: the row is cut"),
        }
    }
}

fn row_of(row: &ByteRecord) -> Option<Record> {
    if row.len() < 6 {
        return None;
    }
    let stamp = row.get(0).filter(|stamp| stamp.len() == 19)?;
    let start = i64::try_from(in_unit(stamp, Unit::Nanoseconds)?).ok()?;
    let code = Status::read(row.get(1)?).code().filter(|code| (0..1000).contains(code))?;
    let latency = in_unit(row.get(2)?, Unit::Nanoseconds)?;
    in_unit(row.get(3)?, Unit::Nanoseconds)?;
    in_unit(row.get(4)?, Unit::Nanoseconds)?;
    Some(record(start, latency, code, row.get(5)?))
}

pub(crate) fn probe_json(sample: &Sample, _options: &Options) -> Probe {
    let reader = Json::new();
    let fits = |line: &[u8]| {
        let mut found = vec![None; reader.wanted.len()];
        pick(line, &reader.wanted, &mut found)
            && found[..4].iter().all(Option::is_some)
            && found[4].or(found[5]).is_some()
    };
    if sample.share(fits) < 0.5 {
        return Ok(None);
    }
    Ok(Some(Recognised::new(Format::Vegeta, "JSON", Basis::Start, "ns", Lines::new(reader, sample))))
}

struct Json {
    wanted: Vec<Path>,
    clock: Clock,
}

impl Json {
    fn new() -> Self {
        let wanted = ["timestamp", "code", "latency", "bytes_in", "attack", "seq", "error"];
        Self {
            wanted: wanted.iter().map(|name| vec![(*name).to_owned()]).collect(),
            clock: Clock::new(Style::Iso),
        }
    }

    fn read(&mut self, line: &[u8]) -> Option<Record> {
        let mut found = vec![None; self.wanted.len()];
        if !pick(line, &self.wanted, &mut found) {
            return None;
        }
        let start = self.clock.read(&scalar(found[0]))?;
        let code = Status::read(&scalar(found[1])).code()?;
        let latency = in_unit(&scalar(found[2]), Unit::Nanoseconds)?;
        Some(record(start, latency, code, &scalar(found[6])))
    }
}

impl LineReader for Json {
    fn line(&mut self, number: u64, line: &[u8], out: &mut Output<'_>) {
        match self.read(line) {
            Some(record) => out.record(record),
            None => out.bad(number, "no timestamp, code and latency"),
        }
    }
}
