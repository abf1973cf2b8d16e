//! OpenStack's API logs, as eventlet's server writes them: `… "GET /v2/servers HTTP/1.1" status: 200 len: 1893
//! time: 0.2477829`. Stamps mark the end, with milliseconds; durations are seconds.

use memchr::memmem;

use super::{Format, LineReader, Lines, Probe, Recognised};
use crate::input::Sample;
use crate::options::Options;
use crate::quantity::instant::iso;
use crate::quantity::{Decimal, Unit};
use crate::reading::Output;
use crate::record::{Basis, Record, Status};

pub(crate) fn probe(sample: &Sample, _options: &Options) -> Probe {
    if sample.share(|line| read(line).is_some()) < 0.1 {
        return Ok(None);
    }
    let reader = Lines::new(Openstack, sample);
    let mut recognised = Recognised::new(Format::Openstack, "API log", Basis::End, "s", reader);
    recognised.notes.push("the dates carry no zone and were read as UTC".to_owned());
    Ok(Some(recognised))
}

struct Openstack;

impl LineReader for Openstack {
    fn line(&mut self, number: u64, line: &[u8], out: &mut Output<'_>) {
        match read(line) {
            Some(record) => out.record(record),
            None => out.bad(number, "no date, status and time: not the line of a request"),
        }
    }
}

fn read(line: &[u8]) -> Option<Record> {
    let status_at = memmem::find(line, b"\" status: ")?;
    let mut words = line[status_at + 10..].split(|b| *b == b' ');
    let status = words.next()?;
    let mut words = words.skip_while(|word| *word != b"time:").skip(1);
    let latency = Decimal::parse(words.next()?, b'.')?.times(Unit::Seconds.nanos())?;
    let stamp = date(&line[..status_at])?;
    let latency = u64::try_from(latency).ok();
    Some(Record::stamped(Some(stamp), Basis::End, latency).with_status(Status::read(status)))
}

/// The first date of the form `2017-05-16 00:00:00.008` that begins a word.
fn date(line: &[u8]) -> Option<i64> {
    let mut before = b' ';
    for (at, &byte) in line.iter().enumerate() {
        if before == b' ' && byte.is_ascii_digit() {
            let text = &line[at..];
            let end = text
                .iter()
                .enumerate()
                .skip(11)
                .find(|(_, b)| **b == b' ')
                .map_or(text.len(), |(end, _)| end);
            if let Some(stamp) = iso(&text[..end]) {
                return Some(stamp);
            }
        }
        before = byte;
    }
    None
}
