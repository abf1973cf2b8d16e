//! The binary simulation.log of Gatling 3.12: big-endian, each record after a byte that says its kind.
//!
//! | kind | content |
//! |---|---|
//! | 0 run | version, class: strings; start: i64 ms since the epoch; description: string; scenarios: i32 count, strings; assertions: i32 count, each i32 length and bytes |
//! | 1 request | groups: i32 count, cached strings; name: cached string; start, end: i32 ms since the run's start; ok: byte; message: cached string |
//! | 2 user | scenario: i32; start or end: byte; time: i32 |
//! | 3 group | groups; start, end, cumulated: i32; ok: byte |
//! | 4 error | message: cached string; time: i32 |
//!
//! A string is an i32 length and, unless that is 0, so many bytes and a byte for their coding (0 Latin-1, 1 UTF-16).
//! A cached string is a new positive index and the string, or the negative of an index known before.

use std::collections::BTreeMap;
use std::io::{self, Read};

use super::record;
use crate::error::ReadError;
use crate::formats::{Format, Probe, Reader, Recognised};
use crate::input::{Binary, Input, Sample};
use crate::options::Options;
use crate::reading::Output;
use crate::record::Basis;

/// Bytes that a string may have.
const MAX_STRING: i32 = 1 << 20;
/// Messages that are kept to know how requests failed, and bytes of each.
const MAX_CACHE: usize = 100_000;
const MAX_MESSAGE: usize = 200;

pub(crate) fn probe(sample: &Sample, _options: &Options) -> Probe {
    let bytes = sample.bytes();
    // Kind 0, then a version of a few characters, which begins with its major number.
    let version = bytes.len() > 20 && bytes[..4] == [0, 0, 0, 0] && (3..=40).contains(&bytes[4]);
    if !version || !bytes[5].is_ascii_digit() || !matches!(bytes[6], b'.' | b'0'..=b'9') {
        return Ok(None);
    }
    Ok(Some(Recognised::new(Format::Gatling, "binary simulation.log", Basis::Both, "ms", BinaryLog)))
}

struct BinaryLog;

impl Reader for BinaryLog {
    fn read(&mut self, input: &mut Input<'_>, out: &mut Output<'_>) -> Result<(), ReadError> {
        let mut stream = Stream { source: Binary::new(input), cache: BTreeMap::new(), run_start: None };
        let mut records = 0;
        loop {
            let kind = match stream.byte() {
                Ok(kind) => kind,
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
                Err(error) => return Err(error.into()),
            };
            records += 1;
            out.reading.lines = records;
            match stream.record(kind, out) {
                Ok(()) => {}
                Err(Stop::Io(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    out.reading.truncated = Some(format!(
                        "the file is cut within its record {records}; whole ones before it were read"
                    ));
                    break;
                }
                Err(Stop::Io(error)) => return Err(error.into()),
                Err(Stop::Broken(reason)) => {
                    out.bad(records, reason);
                    out.reading.truncated =
                        Some(format!("nothing after record {records} can be read: {reason}"));
                    break;
                }
            }
        }
        if let Some(damage) = stream.source.damage() {
            out.reading.truncated = Some(damage);
        }
        Ok(())
    }
}

/// Why reading stops.
enum Stop {
    Io(io::Error),
    Broken(&'static str),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

struct Stream<'i, 'r> {
    source: Binary<'i, 'r>,
    cache: BTreeMap<i32, Vec<u8>>,
    run_start: Option<i64>,
}

impl Stream<'_, '_> {
    fn record(&mut self, kind: u8, out: &mut Output<'_>) -> Result<(), Stop> {
        match kind {
            0 => self.run(out),
            1 => self.request(out),
            2 => self.skip(9),
            3 => {
                self.groups()?;
                self.skip(13)
            }
            4 => {
                self.cached()?;
                self.skip(4)
            }
            _ => Err(Stop::Broken("a kind of record that this version of Gatling's format does not have")),
        }
    }

    fn run(&mut self, out: &mut Output<'_>) -> Result<(), Stop> {
        let version = self.string()?;
        self.string()?;
        self.run_start = Some(self.long()?);
        self.string()?;
        for _ in 0..self.count()? {
            self.string()?;
        }
        for _ in 0..self.count()? {
            let length = self.count()?;
            self.skip(u64::from(length))?;
        }
        out.note(format!("written by Gatling {}", String::from_utf8_lossy(&version)));
        Ok(())
    }

    fn request(&mut self, out: &mut Output<'_>) -> Result<(), Stop> {
        self.groups()?;
        self.cached()?;
        let (start, end) = (self.int()?, self.int()?);
        let ok = self.byte()? != 0;
        let message = self.cached()?;
        let run = self.run_start.ok_or(Stop::Broken("a request before the start of the run"))?;
        let at =
            |offset: i32| run.checked_add(i64::from(offset)).and_then(|millis| millis.checked_mul(1_000_000));
        let (start, end) = at(start).zip(at(end)).ok_or(Stop::Broken("an impossible time"))?;
        out.record(record(start, end.max(start), ok, &message));
        Ok(())
    }

    fn groups(&mut self) -> Result<(), Stop> {
        for _ in 0..self.count()? {
            self.cached()?;
        }
        Ok(())
    }

    fn cached(&mut self) -> Result<Vec<u8>, Stop> {
        let index = self.int()?;
        if index < 0 {
            let known = index.checked_neg().and_then(|index| self.cache.get(&index));
            return known.cloned().ok_or(Stop::Broken("a reference to a string that was never given"));
        }
        let mut text = self.string()?;
        text.truncate(MAX_MESSAGE);
        text.shrink_to_fit();
        if self.cache.len() < MAX_CACHE {
            self.cache.insert(index, text.clone());
        }
        Ok(text)
    }

    fn string(&mut self) -> Result<Vec<u8>, Stop> {
        let length = self.int()?;
        if length == 0 {
            return Ok(Vec::new());
        }
        if !(0..=MAX_STRING).contains(&length) {
            return Err(Stop::Broken("a string of impossible length"));
        }
        let mut text = vec![0; usize::try_from(length).unwrap_or(0)];
        self.source.read_exact(&mut text)?;
        self.byte()?;
        Ok(text)
    }

    /// A number of things that follow.
    fn count(&mut self) -> Result<u32, Stop> {
        match self.int()? {
            count @ 0..=MAX_STRING => Ok(count.unsigned_abs()),
            _ => Err(Stop::Broken("an impossible count")),
        }
    }

    fn skip(&mut self, bytes: u64) -> Result<(), Stop> {
        let skipped = io::copy(&mut self.source.by_ref().take(bytes), &mut io::sink())?;
        if skipped < bytes { Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()) } else { Ok(()) }
    }

    fn byte(&mut self) -> io::Result<u8> {
        let mut byte = [0];
        self.source.read_exact(&mut byte).map(|()| byte[0])
    }

    fn int(&mut self) -> io::Result<i32> {
        let mut bytes = [0; 4];
        self.source.read_exact(&mut bytes).map(|()| i32::from_be_bytes(bytes))
    }

    fn long(&mut self) -> io::Result<i64> {
        let mut bytes = [0; 8];
        self.source.read_exact(&mut bytes).map(|()| i64::from_be_bytes(bytes))
    }
}
