//! Access logs of one JSON object per line: nginx's own names, Caddy, Traefik, Envoy, HAProxy, pino, and anybody's.
//!
//! The [`profiles`] know what the well-known ones call their fields and how their requests end; for the rest the
//! fields are found by [`learn`](super::learn).

mod fields;
mod profiles;

use super::learn::{Field, Learned, StampField, learn};
use super::names::Role;
use super::{LineReader, Lines, Probe, Recognised, order};
use crate::error::ReadError;
use crate::input::Sample;
use crate::options::Options;
use crate::quantity::Unit;
use crate::quantity::duration::Cell;
use crate::quantity::instant::Clock;
use crate::reading::{Evidence, Output};
use crate::record::{Basis, Record, Status};

pub(crate) use fields::{Path, flatten, pick, scalar};
pub(crate) use profiles::FORMATS;
use profiles::{Kind, Profile};

/// Lines that are looked at closely.
const LEARN: usize = 300;

pub(crate) fn probe(sample: &Sample, options: &Options) -> Probe {
    if sample.share(|line| line.trim_ascii_start().first() == Some(&b'{')) < 0.05 {
        return Ok(None);
    }
    let mut repaired = false;
    let objects: Vec<Vec<(Path, String)>> = sample
        .lines()
        .filter(|line| line.first() == Some(&b'{'))
        .take(LEARN)
        .filter_map(|line| {
            flatten(line).or_else(|| {
                let object = flatten(&fields::repair(line));
                repaired |= object.is_some();
                object
            })
        })
        .collect();
    if objects.is_empty() {
        return Ok(None);
    }
    let tagged_haproxy =
        memchr::memmem::find(sample.bytes().split(|b| *b == b'{').next().unwrap_or_default(), b"haproxy")
            .is_some();
    let Some(profile) = profiles::of(&objects, tagged_haproxy, options) else {
        return Ok(None);
    };
    let objects: Vec<_> = objects.into_iter().filter(|object| profile.kind.is_access(object)).collect();
    recognised(&profile, &objects, sample, options, repaired).map(Some)
}

/// The columns of the objects, in the order in which their keys appear.
fn columns(objects: &[Vec<(Path, String)>]) -> (Vec<Path>, Vec<Field>) {
    let mut paths: Vec<Path> = Vec::new();
    for object in objects {
        for (path, _) in object {
            if !paths.contains(path) && paths.len() < 300 {
                paths.push(path.clone());
            }
        }
    }
    let fields = paths
        .iter()
        .map(|path| {
            let values = objects
                .iter()
                .map(|object| object.iter().find(|(p, _)| p == path).map(|(_, v)| v.clone().into_bytes()))
                .map(Option::unwrap_or_default)
                .collect();
            Field { name: path.join("."), values }
        })
        .collect();
    (paths, fields)
}

fn recognised(
    profile: &Profile,
    objects: &[Vec<(Path, String)>],
    sample: &Sample,
    options: &Options,
    repaired: bool,
) -> Result<Recognised, ReadError> {
    let (paths, fields) = columns(objects);
    let map = profile.field_map(&fields, options);
    let mut learned = learn(&fields, &map)?;
    if profile.kind == Kind::Caddy && options.fields.latency_unit.is_none() {
        learned.latency = learned
            .latency
            .map(|l| super::learn::DurationField { unit: Some(profiles::caddy_unit(&fields[l.at])), ..l });
    }
    let names = || fields.iter().take(30).map(|f| f.name.clone()).collect::<Vec<_>>();
    if learned.latency.is_none() && learned.end.is_none() && !options.arrivals_only {
        return Err(ReadError::NoDuration { format: profile.format, remedy: profile.remedy().to_owned() });
    }
    let Some(stamp) = learned.stamp.clone() else {
        return Err(ReadError::NeedsFields {
            missing: "time stamp",
            columns: names(),
            remedy: "name it with --time-field, and --time-format if it is unusual",
        });
    };
    let unit = match learned.latency {
        Some(latency) => latency.unit.or(profile.unit).ok_or(ReadError::NeedsFields {
            missing: "unit of the latency",
            columns: vec![fields[latency.at].name.clone()],
            remedy: "give it with --latency-unit s|ms|us|ns",
        })?,
        None => Unit::Nanoseconds,
    };
    let (basis, evidence) = basis(profile, &learned, &stamp, &fields, unit, options);

    let kept = |at: usize| paths[at].clone();
    let mut wanted = vec![kept(stamp.at)];
    let mut want = |at: Option<usize>| {
        at.map(|at| {
            wanted.push(kept(at));
            wanted.len() - 1
        })
    };
    let end = learned.end.as_ref().filter(|_| learned.latency.is_none());
    let reader = JsonLines {
        kind: profile.kind,
        clock: Clock::new(stamp.style.clone()),
        end: want(end.map(|e| e.at)).zip(end.map(|e| Clock::new(e.style.clone()))),
        latencies: learned
            .latency
            .iter()
            .map(|l| (l.at, unit))
            .chain(learned.fallbacks.iter().map(|f| (f.at, f.unit.unwrap_or(unit))))
            .filter_map(|(at, unit)| Some((want(Some(at))?, unit)))
            .collect(),
        service: want(learned.service.map(|s| s.at)),
        service_unit: learned.service.and_then(|s| s.unit).unwrap_or(unit),
        status: want(learned.status),
        mark: want(profile.kind.mark(&fields)),
        second: want(profile.kind.second(&fields)),
        basis,
        decimal_mark: map.decimal_mark.unwrap_or(b'.'),
        wanted,
        repaired: 0,
    };
    let mut notes = Vec::new();
    if repaired {
        notes.push("not quite JSON (`+2`, bare `-`): repaired line by line".to_owned());
    }
    if fields[stamp.at].values.iter().find(|v| !v.is_empty()).is_some_and(|v| stamp.style.lacks_zone(v)) {
        notes.push("the dates carry no zone and were read as UTC".to_owned());
    }
    let described = match learned.latency {
        Some(latency) => {
            format!("JSON lines; latency `{}`, time `{}`", fields[latency.at].name, fields[stamp.at].name)
        }
        None => format!("JSON lines; time `{}`, no latency", fields[stamp.at].name),
    };
    let mut recognised =
        Recognised::new(profile.format, described, basis, unit.to_string(), Lines::new(reader, sample));
    recognised.evidence = evidence;
    recognised.notes = notes;
    Ok(recognised)
}

fn basis(
    profile: &Profile,
    learned: &Learned,
    stamp: &StampField,
    fields: &[Field],
    unit: Unit,
    options: &Options,
) -> (Basis, Evidence) {
    if let Some(basis) = options.fields.basis {
        return (basis, Evidence::User);
    }
    if learned.latency.is_none() && learned.end.is_some() {
        return (Basis::Both, Evidence::Format);
    }
    match stamp.role {
        Role::Start => return (Basis::Start, Evidence::Format),
        Role::End => return (Basis::End, Evidence::Format),
        _ => {}
    }
    if let Some(basis) = profile.basis {
        return (basis, Evidence::Format);
    }
    let Some(latency) = learned.latency else { return (Basis::End, Evidence::Assumed) };
    let pairs: Vec<order::Pair> = fields[stamp.at]
        .values
        .iter()
        .zip(&fields[latency.at].values)
        .filter_map(|(t, l)| Some((stamp.style.parse(t)?, Cell::read(l, unit, b'.').value()?)))
        .collect();
    order::basis(&pairs, Basis::End)
}

struct JsonLines {
    kind: Kind,
    clock: Clock,
    end: Option<(usize, Clock)>,
    /// Fields with the latency and their units; the first one that holds a value counts.
    latencies: Vec<(usize, Unit)>,
    service: Option<usize>,
    service_unit: Unit,
    status: Option<usize>,
    /// The field that says how the request ended, beside the status.
    mark: Option<usize>,
    /// A second such field.
    second: Option<usize>,
    basis: Basis,
    decimal_mark: u8,
    wanted: Vec<Path>,
    repaired: u64,
}

impl LineReader for JsonLines {
    fn line(&mut self, number: u64, line: &[u8], out: &mut Output<'_>) {
        let line = line.trim_ascii();
        let mut found = vec![None; self.wanted.len()];
        if pick(line, &self.wanted, &mut found) {
            self.object(number, line, &found, out);
            return;
        }
        let fixed = fields::repair(line);
        let mut found = vec![None; self.wanted.len()];
        if pick(&fixed, &self.wanted, &mut found) {
            self.repaired += 1;
            self.object(number, &fixed, &found, out);
        } else {
            out.bad(number, "not a JSON object");
        }
    }

    fn finish(&mut self, out: &mut Output<'_>) {
        if self.repaired > 0 {
            out.note(format!("{} lines were not quite JSON and were repaired", self.repaired));
        }
    }
}

impl JsonLines {
    fn object(&mut self, number: u64, line: &[u8], found: &[Option<&str>], out: &mut Output<'_>) {
        let field = |at: Option<usize>| at.and_then(|at| found[at]);
        let has_latency = self.latencies.iter().any(|(at, _)| found[*at].is_some()) || self.end.is_some();
        if (!has_latency && field(self.status).is_none()) || !self.kind.is_access_line(line) {
            out.skip(number, "a line of another logger");
            return;
        }
        let stamp = scalar(found[0]);
        let Some(stamp) = self.clock.read(&stamp) else {
            out.bad(number, "no time stamp that fits the others");
            return;
        };
        let mut record = match &mut self.end {
            Some((at, clock)) => match clock.read(&scalar(found[*at])) {
                Some(end) => Record::spanning(stamp, end),
                None => Record::stamped(Some(stamp), Basis::Start, None),
            },
            None => {
                let mut cells = self
                    .latencies
                    .iter()
                    .map(|(at, unit)| Cell::read(&scalar(found[*at]), *unit, self.decimal_mark));
                match cells.find(|cell| *cell != Cell::Missing).unwrap_or(Cell::Missing) {
                    Cell::Bad => {
                        out.bad(number, "the latency is no number");
                        return;
                    }
                    cell => Record::stamped(Some(stamp), self.basis, cell.value()),
                }
            }
        };
        record.service =
            Cell::read(&scalar(field(self.service)), self.service_unit, self.decimal_mark).value();
        if self.status.is_some() {
            record = record.with_status(Status::read(&scalar(field(self.status))));
        }
        self.kind.judge(&mut record, &scalar(field(self.mark)), &scalar(field(self.second)));
        out.record(record);
    }
}
