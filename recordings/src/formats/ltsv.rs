//! Labelled tab-separated values, as nginx writes them for alp and its relatives: `time:...<TAB>reqtime:0.057`.
//!
//! Stamps mark the end. A value may contain colons: the first one ends the label.

use super::learn::{Field, learn};
use super::{Format, LineReader, Lines, Probe, Recognised, order};
use crate::error::ReadError;
use crate::input::Sample;
use crate::options::Options;
use crate::quantity::Unit;
use crate::quantity::duration::Cell;
use crate::quantity::instant::Clock;
use crate::reading::{Evidence, Output};
use crate::record::{Basis, Record, Status};

/// Lines that are looked at closely.
const LEARN: usize = 300;
/// Labels that are told apart.
const MAX_LABELS: usize = 300;

/// The labels and values of a line; `None` if it has a field without a label.
fn pairs(line: &[u8]) -> Option<Vec<(&[u8], &[u8])>> {
    line.split(|b| *b == b'\t')
        .filter(|field| !field.is_empty())
        .map(|field| {
            let colon = memchr::memchr(b':', field)?;
            let label = &field[..colon];
            let fits =
                !label.is_empty() && label.iter().all(|b| b.is_ascii_alphanumeric() || b"_.-@$".contains(b));
            fits.then_some((label, &field[colon + 1..]))
        })
        .collect()
}

pub(crate) fn probe(sample: &Sample, options: &Options) -> Probe {
    let labelled = |line: &[u8]| pairs(line).is_some_and(|pairs| pairs.len() >= 3);
    if sample.share(labelled) < 0.5 {
        return Ok(None);
    }
    let mut fields: Vec<Field> = Vec::new();
    for (row, line) in sample.lines().filter(|line| labelled(line)).take(LEARN).enumerate() {
        for (label, value) in pairs(line).into_iter().flatten() {
            let name = String::from_utf8_lossy(label);
            let known = fields.iter().position(|f| f.name == name);
            if known.is_none() && fields.len() == MAX_LABELS {
                continue;
            }
            let at = known.unwrap_or_else(|| {
                fields.push(Field { name: name.into_owned(), values: Vec::new() });
                fields.len() - 1
            });
            fields[at].values.resize(row, Vec::new());
            fields[at].values.push(value.to_vec());
        }
    }
    let mut learned = learn(&fields, &options.fields)?;
    if learned.latency.is_none() {
        learned.latency = learned.service.take();
        learned.fallbacks.clear();
    }
    let Some(latency) = learned.latency else {
        return Err(ReadError::NoDuration {
            format: Format::Nginx,
            remedy: "Add reqtime:$request_time and apptime:$upstream_response_time to the log_format, or name the \
                     field with --latency-field"
                .to_owned(),
        });
    };
    let Some(stamp) = learned.stamp else {
        return Err(ReadError::NeedsFields {
            missing: "time stamp",
            columns: fields.into_iter().map(|f| f.name).collect(),
            remedy: "name it with --time-field, and --time-format if it is unusual",
        });
    };
    let unit = latency.unit.unwrap_or(Unit::Seconds);
    let rows: Vec<order::Pair> = fields[stamp.at]
        .values
        .iter()
        .zip(&fields[latency.at].values)
        .filter_map(|(t, l)| Some((stamp.style.parse(t)?, Cell::read(l, unit, b'.').value()?)))
        .collect();
    let (basis, evidence) = match options.fields.basis {
        Some(basis) => (basis, Evidence::User),
        None => order::basis(&rows, Basis::End),
    };
    let label = |at: usize| fields[at].name.clone().into_bytes();
    let reader = Ltsv {
        stamp: label(stamp.at),
        clock: Clock::new(stamp.style),
        latencies: std::iter::once((label(latency.at), unit))
            .chain(learned.fallbacks.iter().map(|f| (label(f.at), f.unit.unwrap_or(unit))))
            .collect(),
        service: learned.service.map(|s| label(s.at)),
        service_unit: learned.service.and_then(|s| s.unit).unwrap_or(unit),
        status: learned.status.map(label),
        basis,
    };
    let variant = format!("LTSV; latency `{}`, time `{}`", fields[latency.at].name, fields[stamp.at].name);
    let mut recognised =
        Recognised::new(Format::Nginx, variant, basis, unit.to_string(), Lines::new(reader, sample));
    recognised.evidence = evidence;
    Ok(Some(recognised))
}

struct Ltsv {
    stamp: Vec<u8>,
    clock: Clock,
    /// Labels of the latency and their units; the first one that holds a value counts.
    latencies: Vec<(Vec<u8>, Unit)>,
    service: Option<Vec<u8>>,
    service_unit: Unit,
    status: Option<Vec<u8>>,
    basis: Basis,
}

impl LineReader for Ltsv {
    fn line(&mut self, number: u64, line: &[u8], out: &mut Output<'_>) {
        let (mut stamp, mut service, mut status) = (None, None, None);
        let mut cells = vec![None; self.latencies.len()];
        for field in line.split(|b| *b == b'\t') {
            let Some(colon) = memchr::memchr(b':', field) else { continue };
            let (label, value) = (&field[..colon], Some(&field[colon + 1..]));
            if let Some(at) = self.latencies.iter().position(|(known, _)| *known == label) {
                cells[at] = Some(Cell::read(&field[colon + 1..], self.latencies[at].1, b'.'));
            }
            if label == self.stamp {
                stamp = value;
            } else if Some(label) == self.service.as_deref() {
                service = value;
            } else if Some(label) == self.status.as_deref() {
                status = value;
            }
        }
        let Some(stamp) = stamp.and_then(|text| self.clock.read(text)) else {
            out.bad(number, "no time stamp that fits the others");
            return;
        };
        if cells.iter().all(Option::is_none) {
            out.bad(number, "no latency");
            return;
        }
        let latency = match cells.into_iter().flatten().find(|cell| *cell != Cell::Missing) {
            Some(Cell::Bad) => {
                out.bad(number, "the latency is no number");
                return;
            }
            cell => cell.and_then(Cell::value),
        };
        let mut record = Record::stamped(Some(stamp), self.basis, latency);
        record.service = service.and_then(|text| Cell::read(text, self.service_unit, b'.').value());
        if self.status.is_some() {
            record = record.with_status(Status::read(status.unwrap_or_default()));
        }
        out.record(record);
    }
}
