//! A table that nobody has told us about: its columns are known by their names, if those say their units
//! (`start_us`, `latency_ms`), or from the user.

use csv::ByteRecord;

use super::{Head, RowReader, recognised};
use crate::error::ReadError;
use crate::formats::learn::{Field, Learned, learn};
use crate::formats::names::Role;
use crate::formats::{Format, Probe, order};
use crate::options::{FieldMap, Options};
use crate::quantity::Unit;
use crate::quantity::duration::Cell;
use crate::quantity::instant::Clock;
use crate::reading::{Evidence, Output};
use crate::record::{Basis, Record, Status};

pub(crate) fn probe(head: &Head, options: &Options) -> Probe {
    let told = !options.fields.is_empty() || options.format == Some(Format::GenericCsv);
    let names = head.header.iter().filter(|name| name.chars().any(char::is_alphabetic)).count();
    let regular = head.rows.iter().filter(|row| row.len() == head.header.len()).count();
    let table = head.header.len() > 1 && names * 2 > head.header.len() && regular * 10 >= head.rows.len() * 9;
    if !told && (!table || head.rows.is_empty()) {
        return Ok(None);
    }
    let fields: Vec<Field> = head
        .header
        .iter()
        .enumerate()
        .map(|(at, name)| Field {
            name: name.clone(),
            values: head
                .rows
                .iter()
                .map(|row| row.get(at).unwrap_or_default().trim_ascii().to_vec())
                .collect(),
        })
        .collect();
    let map = &options.fields;
    let learned = learn(&fields, map)?;
    let needs = |missing, remedy| ReadError::NeedsFields { missing, columns: head.header.clone(), remedy };
    let Some(stamp) = learned.stamp.clone() else {
        return Err(needs(
            "column of the time stamp",
            "name it with --time-field, with --time-format if it is written unusually",
        ));
    };
    let both = learned.end.is_some() && map.latency.is_none();
    if learned.latency.is_none() && !both && !options.arrivals_only {
        return Err(needs(
            "column of the latency",
            "name it with --latency-field and its unit with --latency-unit; with --decimal-mark , for decimal commas",
        ));
    }
    let unit = match learned.latency {
        Some(latency) if !both => latency.unit.ok_or(ReadError::NeedsFields {
            missing: "unit of the latency",
            columns: vec![fields[latency.at].name.clone()],
            remedy: "give it with --latency-unit s|ms|us|ns",
        })?,
        _ => Unit::Nanoseconds,
    };
    check_mark(&fields, &learned, map, both)?;
    let (basis, evidence) = basis(&fields, &learned, both, unit, map);
    let unit_described = if both { "none: end minus start".to_owned() } else { unit.to_string() };
    let variant = format!("table; time `{}`", fields[stamp.at].name);
    let zone = fields[stamp.at].values.first().is_some_and(|v| stamp.style.lacks_zone(v));
    let reader = Rows {
        header: head.header.clone(),
        told,
        clock: Clock::new(stamp.style.clone()),
        stamp: stamp.at,
        end: learned.end.as_ref().filter(|_| both).map(|end| (end.at, Clock::new(end.style.clone()))),
        latency: learned.latency.filter(|_| !both).map(|l| l.at),
        service: learned.service.map(|s| (s.at, s.unit.unwrap_or(unit))),
        status: learned.status,
        unit,
        basis,
        mark: map.decimal_mark.unwrap_or(b'.'),
    };
    let mut recognised =
        recognised(Format::GenericCsv, variant, basis, unit_described, reader, head.delimiter);
    recognised.evidence = evidence;
    if zone {
        recognised.notes.push("the dates carry no zone and were read as UTC".to_owned());
    }
    if evidence == Evidence::Assumed {
        recognised.assumed.push(
            "nothing says whether the stamps mark the start or the end of a request: they were read as starts. If that is \
             wrong, say --time-basis end"
                .to_owned(),
        );
    }
    Ok(Some(recognised))
}

/// A decimal comma that nobody announced would turn 0,147 into nothing.
fn check_mark(fields: &[Field], learned: &Learned, map: &FieldMap, both: bool) -> Result<(), ReadError> {
    let Some(latency) = learned.latency.filter(|_| !both) else { return Ok(()) };
    let mark = map.decimal_mark.unwrap_or(b'.');
    let field = &fields[latency.at];
    let bad = field.values.iter().find(|v| Cell::read(v, Unit::Seconds, mark) == Cell::Bad);
    let comma = mark == b'.'
        && field.values.iter().any(|v| v.contains(&b',') && Cell::read(v, Unit::Seconds, b',') != Cell::Bad);
    let every = field.values.iter().all(|v| Cell::read(v, Unit::Seconds, mark).value().is_none());
    match bad.or(field.values.iter().find(|_| comma)) {
        Some(value) if comma => Err(ReadError::Field {
            field: field.name.clone(),
            reason: format!(
                "`{}` seems to have a decimal comma: say so with --decimal-mark ,",
                String::from_utf8_lossy(value)
            ),
        }),
        Some(value) if every => Err(ReadError::Field {
            field: field.name.clone(),
            reason: format!("`{}` is no number", String::from_utf8_lossy(value)),
        }),
        _ => Ok(()),
    }
}

fn basis(fields: &[Field], learned: &Learned, both: bool, unit: Unit, map: &FieldMap) -> (Basis, Evidence) {
    if let Some(basis) = map.basis {
        return (basis, Evidence::User);
    }
    if both {
        return (Basis::Both, Evidence::Format);
    }
    let (Some(stamp), Some(latency)) = (&learned.stamp, learned.latency) else {
        return (Basis::Start, Evidence::Assumed);
    };
    match stamp.role {
        Role::Start => return (Basis::Start, Evidence::Format),
        Role::End => return (Basis::End, Evidence::Format),
        _ => {}
    }
    let mark = map.decimal_mark.unwrap_or(b'.');
    let pairs: Vec<order::Pair> = fields[stamp.at]
        .values
        .iter()
        .zip(&fields[latency.at].values)
        .filter_map(|(t, l)| Some((stamp.style.parse(t)?, Cell::read(l, unit, mark).value()?)))
        .collect();
    order::basis(&pairs, Basis::Start)
}

struct Rows {
    header: Vec<String>,
    /// The user said what the columns mean.
    told: bool,
    clock: Clock,
    stamp: usize,
    end: Option<(usize, Clock)>,
    latency: Option<usize>,
    service: Option<(usize, Unit)>,
    status: Option<usize>,
    unit: Unit,
    basis: Basis,
    mark: u8,
}

impl RowReader for Rows {
    fn row(&mut self, line: u64, row: &ByteRecord, out: &mut Output<'_>) {
        let header = row.len() == self.header.len()
            && row.iter().zip(&self.header).all(|(cell, name)| cell.trim_ascii() == name.as_bytes());
        if header {
            // The header that told what the columns mean is no line that was skipped.
            if self.told || line > 1 {
                out.skip(line, "a header line");
            }
            return;
        }
        match self.record(row) {
            Ok(record) => out.record(record),
            Err(reason) => out.bad(line, reason),
        }
    }
}

impl Rows {
    fn record(&mut self, row: &ByteRecord) -> Result<Record, &'static str> {
        if row.len() != self.header.len() {
            return Err("not as many columns as the header has");
        }
        let cell = |at: usize| row.get(at).unwrap_or_default().trim_ascii();
        let stamp = self.clock.read(cell(self.stamp)).ok_or("no time stamp that fits the others")?;
        let mut record = match &mut self.end {
            Some((at, clock)) => {
                Record::spanning(stamp, clock.read(cell(*at)).ok_or("no end that fits the others")?)
            }
            None => {
                let latency = match self.latency.map(|at| Cell::read(cell(at), self.unit, self.mark)) {
                    Some(Cell::Bad) => return Err("the latency is no number"),
                    latency => latency.and_then(Cell::value),
                };
                Record::stamped(Some(stamp), self.basis, latency)
            }
        };
        record.service = self.service.and_then(|(at, unit)| Cell::read(cell(at), unit, self.mark).value());
        if let Some(at) = self.status {
            record = record.with_status(Status::read(cell(at)));
        }
        Ok(record)
    }
}
