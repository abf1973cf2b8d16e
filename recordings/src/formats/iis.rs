//! W3C extended logs, as IIS writes them (and CloudFront).
//!
//! `#Fields:` names the columns, may come again in the middle of the file, and may then name others. Date and time are
//! UTC and mark the end of the transaction, by the W3C's definition; `time-taken` is milliseconds, at CloudFront
//! seconds. A `sc-win32-status` of 64, 121, 995 or 1236 means that the client was gone.

use super::{Format, LineReader, Lines, Probe, Recognised};
use crate::error::ReadError;
use crate::input::Sample;
use crate::options::Options;
use crate::quantity::Unit;
use crate::quantity::duration::Cell;
use crate::quantity::instant::{Clock, Style};
use crate::reading::Output;
use crate::record::{Basis, Outcome, Record, Status};

const CLIENT_GONE: [&[u8]; 4] = [b"64", b"121", b"995", b"1236"];

pub(crate) fn probe(sample: &Sample, options: &Options) -> Probe {
    let Some(header) = sample.lines().find_map(|line| line.strip_prefix(b"#Fields:")) else {
        return Ok(None);
    };
    let columns = Columns::of(header);
    if columns.taken.is_none() && !options.arrivals_only {
        return Err(ReadError::NoDuration {
            format: Format::Iis,
            remedy: "Select the field time-taken in the site's logging settings".to_owned(),
        });
    }
    if columns.date.is_none() || columns.time.is_none() {
        return Err(ReadError::NeedsFields {
            missing: "time stamp",
            columns: header
                .split(|b| *b == b' ')
                .map(|name| String::from_utf8_lossy(name).into_owned())
                .collect(),
            remedy: "select the fields date and time in the logging settings",
        });
    }
    let unit = columns.unit;
    let reader = Lines::new(W3c { columns, clock: Clock::new(Style::Iso), date: Vec::new() }, sample);
    Ok(Some(Recognised::new(Format::Iis, "W3C extended log", Basis::End, unit.to_string(), reader)))
}

/// Where the columns stand that matter.
struct Columns {
    count: usize,
    date: Option<usize>,
    time: Option<usize>,
    taken: Option<usize>,
    status: Option<usize>,
    win32: Option<usize>,
    unit: Unit,
}

impl Columns {
    fn of(header: &[u8]) -> Self {
        let names: Vec<&[u8]> =
            header.split(u8::is_ascii_whitespace).filter(|name| !name.is_empty()).collect();
        let at = |wanted: &[u8]| names.iter().position(|name| *name == wanted);
        let cloud_front = names.iter().any(|name| name.starts_with(b"x-edge"));
        Self {
            count: names.len(),
            date: at(b"date"),
            time: at(b"time"),
            taken: at(b"time-taken"),
            status: at(b"sc-status"),
            win32: at(b"sc-win32-status"),
            unit: if cloud_front { Unit::Seconds } else { Unit::Milliseconds },
        }
    }
}

struct W3c {
    columns: Columns,
    clock: Clock,
    date: Vec<u8>,
}

impl LineReader for W3c {
    fn line(&mut self, number: u64, line: &[u8], out: &mut Output<'_>) {
        if line.starts_with(b"#") {
            if let Some(header) = line.strip_prefix(b"#Fields:") {
                self.columns = Columns::of(header);
            }
            out.skip(number, "a header line");
            return;
        }
        match self.record(line) {
            Ok(record) => out.record(record),
            Err(reason) => out.bad(number, reason),
        }
    }
}

impl W3c {
    fn record(&mut self, line: &[u8]) -> Result<Record, &'static str> {
        let columns = &self.columns;
        let separator = if memchr::memchr(b'\t', line).is_some() { b'\t' } else { b' ' };
        let (mut date, mut time, mut taken, mut status, mut win32) = (None, None, None, None, None);
        let mut count = 0;
        for (at, value) in line.split(|b| *b == separator).filter(|v| !v.is_empty()).enumerate() {
            count = at + 1;
            let slots = [
                (columns.date, &mut date),
                (columns.time, &mut time),
                (columns.taken, &mut taken),
                (columns.status, &mut status),
                (columns.win32, &mut win32),
            ];
            for (column, slot) in slots {
                if column == Some(at) {
                    *slot = Some(value);
                }
            }
        }
        if count != columns.count {
            return Err("not as many fields as #Fields names");
        }
        self.date.clear();
        self.date.extend_from_slice(date.unwrap_or_default());
        self.date.push(b' ');
        self.date.extend_from_slice(time.unwrap_or_default());
        let stamp = self.clock.read(&self.date).ok_or("no date and time")?;
        let latency = match taken.map(|text| Cell::read(text, columns.unit, b'.')) {
            Some(Cell::Bad) => return Err("time-taken is no number"),
            cell => cell.and_then(Cell::value),
        };
        let mut record = Record::stamped(Some(stamp), Basis::End, latency);
        if let Some(status) = status {
            record = record.with_status(Status::read(status));
        }
        if win32.is_some_and(|code| CLIENT_GONE.contains(&code)) {
            record.outcome = Outcome::Cancelled;
        }
        Ok(record)
    }
}
