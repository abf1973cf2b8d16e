//! Which of a log's numbers is the duration, in which unit, and whose log it therefore is.

use super::Duration;
use super::layout::{Column, Place};
use crate::error::ReadError;
use crate::formats::names::{Role, meanings};
use crate::formats::{Format, order};
use crate::options::Options;
use crate::quantity::duration::{Cell, with_suffix};
use crate::quantity::{Decimal, Unit};
use crate::reading::Evidence;

/// What was chosen.
pub(crate) struct Chosen {
    pub(crate) format: Format,
    pub(crate) latency: Option<Duration>,
    pub(crate) service: Option<Duration>,
    pub(crate) described: String,
    pub(crate) unit_described: String,
    pub(crate) assumed: Vec<String>,
}

/// How the values of a column look.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Shape {
    /// Whole numbers.
    Whole,
    /// Numbers with always so many digits after the point.
    Decimals(u32),
    /// Numbers with their unit: `12ms`.
    WithUnit,
    /// `seconds/microseconds`.
    Slashed,
}

/// A column of numbers.
#[derive(Clone, Copy)]
struct Numbers<'c, 's> {
    column: &'c Column<'s>,
    shape: Shape,
    /// Whether a value is missing or a list anywhere: an upstream's time, never the whole request's.
    gaps: bool,
    sum: f64,
}

pub(crate) fn choose(
    columns: &[Column<'_>],
    status: &Place,
    stamps: &[i64],
    options: &Options,
) -> Result<Chosen, ReadError> {
    if let Some(wanted) = &options.fields.latency {
        return by_user(columns, wanted, stamps, options);
    }
    let numbers: Vec<Numbers<'_, '_>> =
        columns.iter().filter(|c| c.place != *status && !is_size(c, status)).filter_map(numbers).collect();
    let named = |role: Role| {
        numbers
            .iter()
            .filter_map(|n| {
                let key = n.column.key()?;
                let meaning = meanings(&key).into_iter().find(|m| m.role == role)?;
                Some((meaning.rank, meaning.unit, *n))
            })
            .min_by_key(|(rank, ..)| *rank)
            .map(|(_, unit, n)| (unit, n))
    };
    let by_key = (named(Role::Latency), named(Role::Service));
    let found = match by_key {
        (Some(latency), service) => Some((latency, service)),
        (None, Some(service)) => Some((service, None)),
        (None, None) => by_position(&numbers),
    };
    let Some(((unit, latency), service)) = found else {
        return Ok(nothing(columns));
    };
    Ok(chosen(latency, unit, service, columns, stamps, options))
}

/// The latency and the upstream's time among the columns without keys.
type Found<'c, 's> = ((Option<Unit>, Numbers<'c, 's>), Option<(Option<Unit>, Numbers<'c, 's>)>);

fn by_position<'c, 's>(numbers: &[Numbers<'c, 's>]) -> Option<Found<'c, 's>> {
    let plain = || numbers.iter().copied().filter(|n| matches!(n.column.place, Place::After(_)));
    // nginx: three decimals. The request's time has no gaps, and no part of it is longer.
    let thousandths = || plain().filter(|n| n.shape == Shape::Decimals(3));
    let longer = |best: Numbers<'c, 's>, n: Numbers<'c, 's>| if n.sum > best.sum * 1.02 { n } else { best };
    let request = thousandths().filter(|n| !n.gaps).reduce(longer);
    if let Some(request) = request.or_else(|| thousandths().next()) {
        let others = thousandths().filter(|n| n.column.place != request.column.place);
        let upstream = others.max_by(|a, b| a.sum.total_cmp(&b.sum));
        return Some(((Some(Unit::Seconds), request), upstream.map(|n| (Some(Unit::Seconds), n))));
    }
    for wanted in [
        |shape: Shape| shape == Shape::Slashed,
        |shape: Shape| shape == Shape::WithUnit,
        |shape: Shape| matches!(shape, Shape::Decimals(_)),
    ] {
        if let Some(n) = plain().find(|n| wanted(n.shape)) {
            let unit = matches!(n.shape, Shape::Decimals(_)).then_some(Unit::Seconds);
            return Some(((unit, n), None));
        }
    }
    whole(&plain().filter(|n| n.shape == Shape::Whole).collect::<Vec<_>>()).map(|n| ((None, n), None))
}

/// The duration among columns of whole numbers. Two of them are Apache's `%D %^FB` (the first byte comes no later
/// than the last), or the same duration twice in two units (the finer one is taken), or nothing that can be told.
fn whole<'c, 's>(numbers: &[Numbers<'c, 's>]) -> Option<Numbers<'c, 's>> {
    match numbers {
        [] => None,
        [only] => Some(*only),
        [first, second, ..] => {
            let value = |text: &[u8]| Decimal::parse(text, b'.').map(Decimal::to_f64);
            let both: Vec<(f64, f64)> = first
                .column
                .values
                .iter()
                .zip(&second.column.values)
                .filter(|((a, _), (b, _))| a == b)
                .filter_map(|((_, a), (_, b))| Some((value(a)?, value(b)?)))
                .collect();
            let ratio = |scale: f64| both.iter().all(|(a, b)| (a * scale - b).abs() <= scale);
            if ratio(1e3) || ratio(1e6) {
                Some(*second)
            } else if ratio(1e-3) || ratio(1e-6) || both.iter().all(|(a, b)| b <= a) {
                Some(*first)
            } else if both.iter().all(|(a, b)| a <= b) && !both.is_empty() {
                Some(*second)
            } else {
                None
            }
        }
    }
}

fn chosen(
    latency: Numbers<'_, '_>,
    unit: Option<Unit>,
    service: Option<(Option<Unit>, Numbers<'_, '_>)>,
    columns: &[Column<'_>],
    stamps: &[i64],
    options: &Options,
) -> Chosen {
    let mut assumed = Vec::new();
    let (unit, unit_described) = match (options.fields.latency_unit, unit, latency.shape) {
        (Some(unit), ..) => (unit, format!("{unit} (as told)")),
        (None, _, Shape::Slashed) => (Unit::Microseconds, "us, after the slash of %T/%D".to_owned()),
        (None, _, Shape::WithUnit) => (Unit::Milliseconds, "written with each value".to_owned()),
        (None, Some(unit), _) => (unit, unit.to_string()),
        (None, None, Shape::Decimals(_)) => (Unit::Seconds, "s".to_owned()),
        (None, None, Shape::Whole) => {
            let (unit, evidence) = unit_of_whole(latency.column, stamps);
            let how = if evidence == Evidence::Data {
                "shown by the order of the lines"
            } else {
                assumed.push(format!(
                    "the durations are whole numbers without a unit: by their size they were read as {unit}. If that is \
                     wrong, say --latency-unit s, ms, us or ns"
                ));
                "assumed from the size of the values"
            };
            (unit, format!("{unit} ({how})"))
        }
    };
    let duration = |n: Numbers<'_, '_>, unit: Unit| Duration {
        place: n.column.place.clone(),
        unit,
        after_slash: n.shape == Shape::Slashed,
        decimals: match n.shape {
            Shape::Decimals(decimals) => decimals,
            _ => 0,
        },
    };
    let format = format_of(&latency, columns);
    let name = |n: &Numbers<'_, '_>| match n.column.key() {
        Some(key) => format!("at key {key}"),
        None => match n.column.place {
            Place::After(at) => format!("in field {at} after the date"),
            Place::Key(..) => String::new(),
        },
    };
    let mut described = format!("text; latency {}", name(&latency));
    if let Some((_, service)) = &service {
        described += &format!(", upstream time {}", name(service));
    }
    let service = service.map(|(own, n)| duration(n, own.unwrap_or(unit)));
    Chosen { format, latency: Some(duration(latency, unit)), service, described, unit_described, assumed }
}

/// Whose log this is: the writers differ in how they print a duration.
fn format_of(latency: &Numbers<'_, '_>, columns: &[Column<'_>]) -> Format {
    let process_id = columns.iter().any(|column| {
        let mut texts = column.texts();
        texts.next().is_some()
            && column.texts().all(|t| {
                t.starts_with(b"<") && t.ends_with(b">") && t[1..t.len() - 1].iter().all(u8::is_ascii_digit)
            })
    });
    match latency.shape {
        Shape::Decimals(6) => Format::Gunicorn,
        Shape::Whole if process_id => Format::Gunicorn,
        Shape::Decimals(_) => Format::Nginx,
        Shape::WithUnit => Format::Traefik,
        Shape::Whole | Shape::Slashed => Format::Apache,
    }
}

/// Apache's `%D` unless something speaks against it: no server answers within 20 µs, and the order of the lines may
/// show another unit.
fn unit_of_whole(column: &Column<'_>, stamps: &[i64]) -> (Unit, Evidence) {
    let (stamps, values): (Vec<i64>, Vec<u64>) = column
        .values
        .iter()
        .filter_map(|(row, text)| {
            Some((stamps[*row], u64::try_from(Decimal::parse(text, b'.')?.times(1)?).ok()?))
        })
        .unzip();
    let (least, most) =
        (values.iter().min().copied().unwrap_or(0), values.iter().max().copied().unwrap_or(0));
    let candidates: &[Unit] = if least >= 20 {
        &[Unit::Microseconds, Unit::Milliseconds]
    } else if most > 10 {
        &[Unit::Milliseconds, Unit::Seconds]
    } else {
        &[Unit::Seconds, Unit::Milliseconds]
    };
    order::unit(&stamps, &values, candidates)
}

/// The size of the answer, which is a number too: the column right after the status, when it is whole.
fn is_size(column: &Column<'_>, status: &Place) -> bool {
    match (&column.place, status) {
        (Place::After(at), Place::After(status)) => {
            let whole = column.texts().all(|text| text == b"-" || text.iter().all(u8::is_ascii_digit));
            *at < *status || (*at == status + 1 && whole)
        }
        _ => false,
    }
}

/// A column as numbers, if it holds nothing else, and at least one.
fn numbers<'c, 's>(column: &'c Column<'s>) -> Option<Numbers<'c, 's>> {
    let (mut shape, mut gaps, mut sum) = (None, false, 0.0);
    for text in column.texts() {
        let text = text.trim_ascii();
        if text.is_empty() || text == b"-" {
            gaps = true;
            continue;
        }
        let (here, value) = match shape_of(text) {
            Some(found) => found,
            None => {
                gaps = true;
                let parts = || text.split(|b| matches!(b, b',' | b':')).map(<[u8]>::trim_ascii);
                let (mut first, mut total) = (None, 0.0);
                for part in parts().filter(|part| *part != b"-") {
                    let (shape, value) = shape_of(part)?;
                    first = first.or(Some(shape));
                    total += value;
                }
                match first {
                    Some(shape) => (shape, total),
                    None => continue,
                }
            }
        };
        sum += value;
        shape = match (shape, here) {
            (None, here) => Some(here),
            (Some(before), here) if before == here => Some(here),
            // A `0` among decimals, decimals of several lengths: still numbers, of no fixed length.
            (Some(Shape::Decimals(_) | Shape::Whole), Shape::Decimals(_) | Shape::Whole) => {
                Some(Shape::Decimals(0))
            }
            _ => return None,
        };
    }
    Some(Numbers { column, shape: shape?, gaps, sum })
}

fn shape_of(text: &[u8]) -> Option<(Shape, f64)> {
    if let Some(number) = Decimal::parse(text, b'.') {
        let shape = if number.is_integer() { Shape::Whole } else { Shape::Decimals(number.decimals) };
        return Some((shape, number.to_f64()));
    }
    if let Some(nanos) = with_suffix(text) {
        return Some((Shape::WithUnit, nanos as f64));
    }
    let slash = memchr::memchr(b'/', text)?;
    let (seconds, micros) =
        (Decimal::parse(&text[..slash], b'.')?, Decimal::parse(&text[slash + 1..], b'.')?);
    let agree = (micros.to_f64() / 1e6 - seconds.to_f64()).abs() < 1.0;
    (agree && seconds.is_integer() && micros.is_integer()).then(|| (Shape::Slashed, micros.to_f64()))
}

/// The column that the user named by its key or its number in the line.
fn by_user(
    columns: &[Column<'_>],
    wanted: &str,
    stamps: &[i64],
    options: &Options,
) -> Result<Chosen, ReadError> {
    let column = columns.iter().find(|c| c.key().is_some_and(|key| key == wanted)).or_else(|| {
        let number: i64 = wanted.parse().ok()?;
        let last = columns
            .iter()
            .filter_map(|c| if let Place::After(at) = c.place { Some(at) } else { None })
            .max()?;
        let at = if number < 0 { i64::try_from(last).ok()? + 1 + number } else { number };
        let place = Place::After(usize::try_from(at).ok()?);
        columns.iter().find(|c| c.place == place)
    });
    let problem = |reason: String| ReadError::Field { field: wanted.to_owned(), reason };
    let column = column.ok_or_else(|| {
        problem(
            "neither a key of these lines nor the number of a field after the date (−1 is the last field)"
                .to_owned(),
        )
    })?;
    let numbers = numbers(column).ok_or_else(|| {
        let example =
            column.texts().find(|t| Cell::read(t, Unit::Seconds, b'.') == Cell::Bad).unwrap_or_default();
        problem(format!("`{}` is no number", String::from_utf8_lossy(example)))
    })?;
    Ok(chosen(numbers, None, None, columns, stamps, options))
}

fn nothing(columns: &[Column<'_>]) -> Chosen {
    let escaped = columns.iter().any(|c| c.texts().any(|t| memchr::memmem::find(t, b"\\\"").is_some()));
    Chosen {
        format: if escaped { Format::Apache } else { Format::Nginx },
        latency: None,
        service: None,
        described: "text without any duration".to_owned(),
        unit_described: String::new(),
        assumed: Vec::new(),
    }
}
