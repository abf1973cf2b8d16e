//! Which fields of a table, of JSON lines or of labelled values hold the time stamp, the latency and the status:
//! by what the user says, else by their names, and in the end by what is in them.

use super::names::{Meaning, Role, meanings};
use crate::error::ReadError;
use crate::options::{FieldMap, TimeForm};
use crate::quantity::Unit;
use crate::quantity::duration::Cell;
use crate::quantity::instant::Style;

/// A field with its values in the first lines.
#[derive(Debug, Default)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) values: Vec<Vec<u8>>,
}

/// A stamp's field and how it is written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StampField {
    pub(crate) at: usize,
    pub(crate) style: Style,
    /// `Stamp` when the name does not say which end it marks.
    pub(crate) role: Role,
}

/// A duration's field and its unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct DurationField {
    pub(crate) at: usize,
    /// `None` when neither the name nor the values say it.
    pub(crate) unit: Option<Unit>,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Learned {
    pub(crate) stamp: Option<StampField>,
    /// The completion, where the file has both.
    pub(crate) end: Option<StampField>,
    pub(crate) latency: Option<DurationField>,
    /// Fields to look at, in this order, in records whose latency is missing.
    pub(crate) fallbacks: Vec<DurationField>,
    pub(crate) service: Option<DurationField>,
    pub(crate) status: Option<usize>,
}

/// Looks through the fields. The user's word goes first; a field he names that does not exist is an error.
pub(crate) fn learn(fields: &[Field], map: &FieldMap) -> Result<Learned, ReadError> {
    let mut learned = Learned::default();
    let mark = map.decimal_mark.unwrap_or(b'.');
    let named = |wanted: &Option<String>| wanted.as_ref().map(|name| find(fields, name)).transpose();

    let user_time = named(&map.time)?;
    let user_latency = named(&map.latency)?;
    learned.status = named(&map.status)?.or_else(|| status(fields));
    if let Some(at) = named(&map.service)? {
        learned.service = Some(DurationField { at, unit: map.latency_unit });
    }

    let stamps = stamps(fields, user_latency);
    learned.stamp = match user_time {
        Some(at) => Some(user_stamp(fields, at, map)?),
        None => stamps.iter().find(|s| s.role != Role::End).or(stamps.first()).cloned(),
    };
    if let Some(stamp) = &learned.stamp
        && stamp.role == Role::Start
        && user_time.is_none()
    {
        learned.end = stamps.iter().find(|s| s.role == Role::End).cloned();
    }

    let taken = learned.stamp.as_ref().map(|s| s.at);
    let latencies = durations(fields, Role::Latency, taken, mark);
    learned.latency = match user_latency {
        Some(at) => {
            Some(DurationField { at, unit: map.latency_unit.or_else(|| unit_of(&fields[at], Role::Latency)) })
        }
        None => latencies.first().copied(),
    };
    let services = durations(fields, Role::Service, learned.latency.map(|l| l.at), mark);
    if learned.service.is_none() {
        learned.service = services.first().copied();
    }
    if user_latency.is_none() {
        learned.fallbacks =
            latencies.into_iter().skip(1).chain(services).filter(|field| field.unit.is_some()).collect();
    }
    if let Some(latency) = &mut learned.latency
        && let Some(unit) = map.latency_unit
    {
        latency.unit = Some(unit);
    }
    Ok(learned)
}

/// The field that the user means: its exact name, its name in another case, or its number.
fn find(fields: &[Field], wanted: &str) -> Result<usize, ReadError> {
    if let Some(at) = fields.iter().position(|f| f.name == wanted) {
        return Ok(at);
    }
    if let Ok(number) = wanted.parse::<i64>() {
        let count = i64::try_from(fields.len()).unwrap_or(i64::MAX);
        let at = if number > 0 { number - 1 } else { count + number };
        if number != 0 && (0..count).contains(&at) {
            return Ok(usize::try_from(at).unwrap_or(0));
        }
    }
    fields.iter().position(|f| f.name.eq_ignore_ascii_case(wanted)).ok_or_else(|| ReadError::Field {
        field: wanted.to_owned(),
        reason: format!(
            "there is none of this name; the file has {}",
            fields.iter().map(|f| f.name.as_str()).collect::<Vec<_>>().join(", ")
        ),
    })
}

fn user_stamp(fields: &[Field], at: usize, map: &FieldMap) -> Result<StampField, ReadError> {
    let field = &fields[at];
    let first = field.values.iter().find(|v| !v.is_empty());
    let style = match &map.time_form {
        Some(TimeForm::Epoch(unit)) => Style::Epoch(*unit),
        Some(TimeForm::Pattern(pattern)) => Style::Pattern(pattern.clone()),
        None => first.and_then(|value| Style::of(value)).ok_or_else(|| ReadError::Field {
            field: field.name.clone(),
            reason: format!(
                "`{}` is no date that can be recognised: say how it is written with --time-format",
                first.map(|v| String::from_utf8_lossy(v).into_owned()).unwrap_or_default()
            ),
        })?,
    };
    if let Some(value) = first
        && field.values.iter().all(|v| style.parse(v).is_none())
    {
        return Err(ReadError::Field {
            field: field.name.clone(),
            reason: format!("`{}` does not fit the {}", String::from_utf8_lossy(value), style.name()),
        });
    }
    let role = meanings(&field.name).iter().map(|m| m.role).find(|r| matches!(r, Role::Start | Role::End));
    Ok(StampField { at, style, role: role.unwrap_or(Role::Stamp) })
}

/// The fields that hold time stamps, best first: with a fitting name and the finest stamps.
fn stamps(fields: &[Field], taken: Option<usize>) -> Vec<StampField> {
    let mut found = Vec::new();
    for (at, field) in fields.iter().enumerate().filter(|(at, _)| Some(*at) != taken) {
        let meaning = meaning_of(&field.name, |r| matches!(r, Role::Stamp | Role::Start | Role::End));
        let Some(first) = field.values.iter().find(|v| !v.is_empty()) else { continue };
        let Some(mut style) = Style::of(first) else { continue };
        if let (Style::Epoch(unit), Some(Meaning { unit: Some(named), .. })) = (&mut style, meaning) {
            *unit = named;
        }
        if share(&field.values, |v| style.parse(v).is_some()) < 0.8 {
            continue;
        }
        // A nameless number may be anything; a nameless date is a date.
        let rank = match meaning {
            Some(meaning) => meaning.rank,
            None if matches!(style, Style::Epoch(_)) => continue,
            None => 1_000,
        };
        let coarse = field.values.iter().filter_map(|v| style.parse(v)).all(|t| t % 1_000_000_000 == 0);
        let role = meaning.map_or(Role::Stamp, |m| m.role);
        found.push((coarse, rank, StampField { at, style, role }));
    }
    found.sort_by_key(|(coarse, rank, _)| (*coarse, *rank));
    found.into_iter().map(|(_, _, stamp)| stamp).collect()
}

/// The fields that hold durations of this kind, best first.
fn durations(fields: &[Field], role: Role, taken: Option<usize>, mark: u8) -> Vec<DurationField> {
    let mut found: Vec<(usize, DurationField)> = fields
        .iter()
        .enumerate()
        .filter(|(at, _)| Some(*at) != taken)
        .filter_map(|(at, field)| {
            let meaning = meaning_of(&field.name, |r| r == role)?;
            let cell = |v: &Vec<u8>| Cell::read(v, Unit::Seconds, mark);
            let fits = share(&field.values, |v| cell(v) != Cell::Bad) >= 0.8
                && field.values.iter().any(|v| cell(v).value().is_some());
            fits.then_some((meaning.rank, DurationField { at, unit: unit_of(field, role) }))
        })
        .collect();
    found.sort_by_key(|(rank, _)| *rank);
    found.into_iter().map(|(_, field)| field).collect()
}

/// The unit that a field's name or its values tell. Three decimals everywhere are how servers print seconds.
fn unit_of(field: &Field, role: Role) -> Option<Unit> {
    if let Some(unit) = meaning_of(&field.name, |r| r == role).and_then(|m| m.unit) {
        return Some(unit);
    }
    let mut seen = false;
    for value in &field.values {
        let value = value.trim_ascii();
        match crate::quantity::Decimal::parse(value, b'.') {
            Some(number) if number.decimals == 3 => seen = true,
            Some(number) if number.negative => {}
            Some(_) => return None,
            None if crate::quantity::duration::with_suffix(value).is_some() => seen = true,
            None => {}
        }
    }
    seen.then_some(Unit::Seconds)
}

fn status(fields: &[Field]) -> Option<usize> {
    fields
        .iter()
        .enumerate()
        .filter_map(|(at, field)| meaning_of(&field.name, |r| r == Role::Status).map(|m| (m.rank, at)))
        .min()
        .map(|(_, at)| at)
}

/// What a field's name means, by its last part: `res.statusCode` is a `statusCode`.
fn meaning_of(name: &str, wanted: impl Fn(Role) -> bool) -> Option<Meaning> {
    let last = name.rsplit('.').next().unwrap_or(name);
    [last, name].into_iter().flat_map(meanings).find(|m| wanted(m.role))
}

fn share(values: &[Vec<u8>], test: impl Fn(&Vec<u8>) -> bool) -> f64 {
    let present: Vec<_> = values.iter().filter(|v| !v.is_empty()).collect();
    if present.is_empty() {
        return 0.0;
    }
    present.iter().filter(|v| test(v)).count() as f64 / present.len() as f64
}
