//! Tab-separated lines; those of requests begin with `REQUEST` (in version 2.0 that is the third field). Which
//! fields stand before the times has changed over the versions; the times are the run of epoch milliseconds right
//! before `OK` or `KO`, the first one the start and the last one the end.

use super::record;
use crate::formats::{Format, LineReader, Lines, Probe, Recognised};
use crate::input::Sample;
use crate::options::Options;
use crate::reading::Output;
use crate::record::{Basis, Record};

const OTHER: [&[u8]; 5] = [b"RUN", b"USER", b"GROUP", b"ASSERTION", b"ERROR"];

pub(crate) fn probe(sample: &Sample, _options: &Options) -> Probe {
    let known = |line: &[u8]| kind(line) != Kind::Unknown;
    let requests = sample.lines().any(|line| kind(line) == Kind::Request);
    let run = sample.lines().take(20).any(|line| line.starts_with(b"RUN\t"));
    if !(requests || run) || sample.share(known) < 0.8 {
        return Ok(None);
    }
    Ok(Some(Recognised::new(
        Format::Gatling,
        "text simulation.log",
        Basis::Both,
        "ms",
        Lines::new(Text, sample),
    )))
}

#[derive(PartialEq, Eq)]
enum Kind {
    Request,
    Other,
    Unknown,
}

fn kind(line: &[u8]) -> Kind {
    let mut fields = line.split(|b| *b == b'\t');
    let (first, third) = (fields.next().unwrap_or_default(), fields.nth(1).unwrap_or_default());
    if first == b"REQUEST" || third == b"REQUEST" {
        Kind::Request
    } else if OTHER.contains(&first) || (OTHER.contains(&third) && memchr::memchr(b'\t', line).is_some()) {
        Kind::Other
    } else {
        Kind::Unknown
    }
}

struct Text;

impl LineReader for Text {
    fn line(&mut self, number: u64, line: &[u8], out: &mut Output<'_>) {
        match kind(line) {
            Kind::Request => match read(line) {
                Some(record) => out.record(record),
                None => out.bad(number, "a request without times and OK or KO: the line is cut"),
            },
            Kind::Other => out.skip(number, "not the line of a request"),
            Kind::Unknown => out.bad(number, "none of Gatling's kinds of lines"),
        }
    }
}

fn read(line: &[u8]) -> Option<Record> {
    let fields: Vec<&[u8]> = line.split(|b| *b == b'\t').collect();
    let time = |field: &[u8]| {
        let digits = Some(field).filter(|field| field.len() == 13)?;
        let millis = digits
            .iter()
            .try_fold(0_i64, |sum, b| b.is_ascii_digit().then(|| sum * 10 + i64::from(b - b'0')));
        millis?.checked_mul(1_000_000)
    };
    let verdict = (1..fields.len())
        .rev()
        .find(|&at| matches!(fields[at], b"OK" | b"KO") && time(fields[at - 1]).is_some())?;
    let mut first = verdict - 1;
    while first > 0 && time(fields[first - 1]).is_some() {
        first -= 1;
    }
    if first + 1 >= verdict {
        return None;
    }
    let (start, end) = (time(fields[first])?, time(fields[verdict - 1])?);
    let message = fields.get(verdict + 1).copied().unwrap_or_default();
    Some(record(start, end.max(start), fields[verdict] == b"OK", message))
}
