//! Access logs in the style of the common log format, with durations added: nginx, Apache, gunicorn, Traefik.
//!
//! What stands where is learnt from the first lines ([`layout`]), because everybody arranges these logs in his own
//! way: durations by position or by key, quoted or not, the date as a fraction of a second or a whole one.
//!
//! | writer | durations | stamps |
//! |---|---|---|
//! | nginx | `$request_time`, `$upstream_response_time`: seconds with three decimals | end |
//! | Apache | `%D` µs, `%T` s, `%{ms}T`, `%T/%D` | start, unless `%{end:…}t` |
//! | gunicorn | `%(D)s` µs, `%(L)s` s with six decimals | end |
//! | Traefik | whole milliseconds with their unit | start |

mod durations;
mod layout;
pub(crate) mod tokens;

use super::{Format, LineReader, Lines, Probe, Recognised};
use crate::error::ReadError;
use crate::input::Sample;
use crate::options::Options;
use crate::quantity::Unit;
use crate::quantity::duration::Cell;
use crate::reading::Output;
use crate::record::{Outcome, Record, Status};

use layout::{Layout, Place};
use tokens::Token;

pub(crate) fn probe(sample: &Sample, options: &Options) -> Probe {
    let Some(layout) = Layout::learn(sample, options)? else { return Ok(None) };
    if layout.latency.is_none() && !options.arrivals_only {
        return Err(ReadError::NoDuration {
            format: layout.format,
            remedy: "Add $request_time $upstream_response_time (nginx), %D (Apache) or %(D)s (gunicorn) to the log \
                     format; if the duration is there, name its key or column with --latency-field"
                .to_owned(),
        });
    }
    let (format, basis, evidence) = (layout.format, layout.basis, layout.evidence);
    let (variant, unit) = (layout.described.clone(), layout.unit_described.clone());
    let (assumed, notes) = (layout.assumed.clone(), layout.notes.clone());
    let mut recognised =
        Recognised::new(format, variant, basis, unit, Lines::new(Combined::new(layout), sample));
    recognised.evidence = evidence;
    recognised.assumed = assumed;
    recognised.notes = notes;
    Ok(Some(recognised))
}

/// Reads lines of a known layout.
struct Combined {
    layout: Layout,
    tokens: Vec<Token>,
}

impl Combined {
    fn new(layout: Layout) -> Self {
        Self { layout, tokens: Vec::with_capacity(32) }
    }

    /// The record of a line, or what is wrong with the line.
    fn record(&mut self, line: &[u8]) -> Result<Record, &'static str> {
        if !tokens::split(line, &mut self.tokens) {
            return Err("a quote or bracket never closes: the line is cut, or of another format");
        }
        let (date, stamp) = self.layout.date(line, &self.tokens).ok_or("no date that fits the others")?;
        let words = &self.tokens[date..];
        if let Some(count) = self.layout.count
            && words.len() != count
        {
            return Err("not as many fields as the other lines have");
        }
        let latency = match &mut self.layout.latency {
            None => None,
            Some(duration) => match duration.place.find(line, words).map(|text| duration.read(text)) {
                Some(Cell::Value(latency)) => Some(latency),
                Some(Cell::Missing) => None,
                Some(Cell::Bad) => return Err("the latency is no number"),
                None => return Err("no latency"),
            },
        };
        let mut record = Record::stamped(Some(stamp), self.layout.basis, latency);
        let status = self.layout.status.find(line, words).ok_or("no status")?;
        record = record.with_status(Status::read(status));
        if let Some(duration) = &mut self.layout.service {
            record.service = duration.place.find(line, words).and_then(|text| duration.read(text).value());
            let code = record.status.code().unwrap_or(0);
            if record.service.is_none() && (400..499).contains(&code) && code != 429 {
                // Answered by the proxy itself: the time is the client's own, as it sent its headers.
                record.outcome = Outcome::Failure;
            }
        }
        Ok(record)
    }
}

impl LineReader for Combined {
    fn line(&mut self, number: u64, line: &[u8], out: &mut Output<'_>) {
        match self.record(line) {
            Ok(record) => out.record(record),
            Err(reason) => out.bad(number, reason),
        }
    }
}

/// A duration in a line: where it stands, and how it is written.
#[derive(Clone, Debug)]
struct Duration {
    place: Place,
    unit: Unit,
    /// Whole seconds stand before a slash, and the real value after it: `%T/%D`.
    after_slash: bool,
    /// Digits after the point that every value has; 0 for any number of them.
    decimals: u32,
}

impl Duration {
    fn read(&self, text: &[u8]) -> Cell {
        let text = match (self.after_slash, memchr::memchr(b'/', text)) {
            (false, _) => text,
            (true, Some(slash)) => &text[slash + 1..],
            (true, None) => return Cell::Bad,
        };
        if self.decimals > 0
            && let Some(number) = crate::quantity::Decimal::parse(text, b'.')
        {
            // A number with fewer digits has been cut off, with the rest of its line.
            return match number.times(self.unit.nanos()) {
                Some(nanos) if number.decimals == self.decimals => {
                    u64::try_from(nanos).map_or(Cell::Missing, Cell::Value)
                }
                _ => Cell::Bad,
            };
        }
        Cell::read(text, self.unit, b'.')
    }
}

/// The formats of this family.
pub(crate) const FORMATS: &[Format] = &[Format::Nginx, Format::Apache, Format::Gunicorn, Format::Traefik];
