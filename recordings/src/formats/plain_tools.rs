//! Per-request output of small load generators without a header: h2load's log, siege's verbose lines.

use super::{Format, LineReader, Lines, Probe, Recognised};
use crate::input::Sample;
use crate::options::Options;
use crate::quantity::duration::in_unit;
use crate::quantity::{Decimal, Unit};
use crate::reading::Output;
use crate::record::{Basis, Record, Status};

/// h2load `--log-file`: start in µs since the epoch, status (−1 for none), duration in µs, between tabs. Written at
/// completion, so that the starts are out of order.
pub(crate) fn probe_h2load(sample: &Sample, _options: &Options) -> Probe {
    if sample.share(|line| h2load(line).is_some()) < 0.8 {
        return Ok(None);
    }
    Ok(Some(Recognised::new(Format::H2load, "--log-file", Basis::Start, "us", Lines::new(H2load, sample))))
}

struct H2load;

impl LineReader for H2load {
    fn line(&mut self, number: u64, line: &[u8], out: &mut Output<'_>) {
        match h2load(line) {
            Some(record) => out.record(record),
            None => out.bad(number, "not a start, a status and a duration"),
        }
    }
}

fn h2load(line: &[u8]) -> Option<Record> {
    let mut fields = line.split(|b| *b == b'\t');
    let (start, status, duration) = (fields.next()?, fields.next()?, fields.next()?);
    if fields.next().is_some() || start.len() < 14 {
        return None;
    }
    let start = Decimal::parse(start, b'.').filter(|n| n.is_integer())?.times(Unit::Microseconds.nanos())?;
    let status = Status::read(status);
    status.code()?;
    let duration = in_unit(duration, Unit::Microseconds)?;
    Some(Record::stamped(Some(start), Basis::Start, Some(duration)).with_status(status))
}

/// siege `-v`: `HTTP/1.1 200     0.04 secs:      61 bytes ==> GET  /path`, often in colour. No stamps; the order is
/// that of completion.
pub(crate) fn probe_siege(sample: &Sample, _options: &Options) -> Probe {
    if sample.share(|line| siege(line).is_some()) < 0.3 {
        return Ok(None);
    }
    let mut recognised =
        Recognised::new(Format::Siege, "verbose output", Basis::None, "s", Lines::new(Siege, sample));
    recognised.notes.push("siege writes no time stamps: neither load nor concurrency can be told".to_owned());
    Ok(Some(recognised))
}

struct Siege;

impl LineReader for Siege {
    fn line(&mut self, number: u64, line: &[u8], out: &mut Output<'_>) {
        match siege(line) {
            Some(record) => out.record(record),
            None => out.skip(number, "not the line of a request"),
        }
    }
}

fn siege(line: &[u8]) -> Option<Record> {
    let start = memchr::memmem::find(line, b"HTTP/")?;
    let colour = line[..start].iter().all(|b| matches!(b, 0x1b | b'[' | b';' | b'm') || b.is_ascii_digit());
    if !colour {
        return None;
    }
    let mut words = line[start..].split(|b| *b == b' ').filter(|word| !word.is_empty());
    let (_, status, seconds, unit) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let status = Status::read(status);
    status.code().filter(|_| unit == b"secs:")?;
    Some(Record::unstamped(Some(in_unit(seconds, Unit::Seconds)?)).with_status(status))
}
