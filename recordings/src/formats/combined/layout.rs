//! Learns from the first lines what stands where.

use std::collections::BTreeMap;

use super::Duration;
use super::durations::{self, Chosen};
use super::tokens::{self, Kind, Token};
use crate::error::ReadError;
use crate::formats::names::{Role, meanings};
use crate::formats::{Format, order};
use crate::input::Sample;
use crate::options::{Options, TimeForm};
use crate::quantity::instant::{Clock, Style};
use crate::reading::Evidence;
use crate::record::Basis;

/// Lines that are looked at closely.
const LEARN: usize = 600;
/// Columns that are told apart.
const MAX_COLUMNS: usize = 200;

/// Where a value stands in a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// So many words after the date.
    After(usize),
    /// At a key; the number is where the key was last seen.
    Key(Vec<u8>, usize),
}

impl Place {
    /// Whether two places are the same column; where a key was last seen does not matter.
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::After(a), Self::After(b)) => a == b,
            (Self::Key(a, _), Self::Key(b, _)) => a == b,
            _ => false,
        }
    }

    /// The value in this line, whose words from the date on are given.
    pub(crate) fn find<'l>(&mut self, line: &'l [u8], words: &[Token]) -> Option<&'l [u8]> {
        match self {
            Self::After(at) => words.get(*at).map(|word| word.value(line)),
            Self::Key(key, last) => {
                let here = |word: &Token| word.key(line) == key.as_slice();
                if !words.get(*last).is_some_and(here) {
                    *last = words.iter().position(here)?;
                }
                Some(words[*last].value(line))
            }
        }
    }
}

/// What stands where in the lines of a file.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) format: Format,
    pub(crate) basis: Basis,
    pub(crate) evidence: Evidence,
    pub(crate) described: String,
    pub(crate) unit_described: String,
    pub(crate) assumed: Vec<String>,
    pub(crate) notes: Vec<String>,
    clock: Clock,
    /// The word that usually holds the date.
    date_at: usize,
    /// The zone is a word of its own after the date.
    zone_apart: bool,
    /// Words from the date on, when values are found by position.
    pub(crate) count: Option<usize>,
    pub(super) status: Place,
    pub(super) latency: Option<Duration>,
    pub(super) service: Option<Duration>,
}

/// A line of the sample, cut into words.
struct Row<'s> {
    line: &'s [u8],
    words: Vec<Token>,
    date_at: usize,
}

/// One column: the values of all sampled lines at one place.
pub(crate) struct Column<'s> {
    pub(crate) place: Place,
    /// The line's index among those sampled, and its value.
    pub(crate) values: Vec<(usize, &'s [u8])>,
}

impl<'s> Column<'s> {
    pub(crate) fn texts(&self) -> impl Iterator<Item = &'s [u8]> + Clone + '_ {
        self.values.iter().map(|(_, text)| *text)
    }

    /// The key that the column stands at, if it has one.
    pub(crate) fn key(&self) -> Option<std::borrow::Cow<'_, str>> {
        match &self.place {
            Place::Key(key, _) => Some(String::from_utf8_lossy(key)),
            Place::After(_) => None,
        }
    }
}

impl Layout {
    /// The layout of these lines; `None` if they are not in this style.
    pub(crate) fn learn(sample: &Sample, options: &Options) -> Result<Option<Self>, ReadError> {
        let Some((style, zone_apart)) = date_style(sample, options) else { return Ok(None) };
        let rows = rows(sample, &style, zone_apart);
        let lines = sample.lines().take(LEARN).filter(|line| !line.trim_ascii().is_empty()).count();
        if rows.len() * 4 < lines || rows.is_empty() {
            return Ok(None);
        }
        let columns = columns(&rows);
        let Some(status) = status_of(&columns) else { return Ok(None) };
        if !has_request(&rows) {
            return Ok(None);
        }
        let stamps = stamps(&rows, &style, zone_apart);
        let chosen = durations::choose(&columns, &status, &stamps, options)?;
        let (date_at, _) = common(rows.iter().map(|row| row.date_at));
        let positional = [
            Some(&status),
            chosen.latency.as_ref().map(|d| &d.place),
            chosen.service.as_ref().map(|d| &d.place),
        ];
        let positional = positional.into_iter().flatten().any(|place| matches!(place, Place::After(_)));
        let keyed_only = chosen.latency.as_ref().is_some_and(|d| matches!(d.place, Place::Key(..)));
        let count = (positional && !keyed_only)
            .then(|| common(rows.iter().map(|row| row.words.len() - row.date_at)).0);

        let mut notes = Vec::new();
        if rows.first().is_some_and(|row| !zone_apart && style.lacks_zone(date_of(row))) {
            notes.push("the dates carry no zone and were read as UTC".to_owned());
        }
        let (basis, evidence) = basis(&chosen, &columns, &stamps, options);
        Ok(Some(Self {
            format: chosen.format,
            basis,
            evidence,
            described: chosen.described,
            unit_described: chosen.unit_described,
            assumed: chosen.assumed,
            notes,
            clock: Clock::new(style),
            date_at,
            zone_apart,
            count,
            status,
            latency: chosen.latency,
            service: chosen.service,
        }))
    }

    /// The date of a line: which word it is, and the instant.
    pub(crate) fn date(&mut self, line: &[u8], words: &[Token]) -> Option<(usize, i64)> {
        if let Some(stamp) = self.date_in(line, words, self.date_at) {
            return Some((self.date_at, stamp));
        }
        (0..words.len()).find_map(|at| self.date_in(line, words, at).map(|stamp| (at, stamp)))
    }

    fn date_in(&mut self, line: &[u8], words: &[Token], at: usize) -> Option<i64> {
        let text = words.get(at)?.value(line);
        if self.zone_apart {
            let zone = words.get(at + 1)?.value(line);
            return self.clock.read(&[text, zone].join(&b' '));
        }
        if text.len() < 10 { None } else { self.clock.read(text) }
    }
}

fn date_of<'s>(row: &Row<'s>) -> &'s [u8] {
    row.words[row.date_at].value(row.line)
}

/// How the dates are written, and whether their zone is a word of its own.
fn date_style(sample: &Sample, options: &Options) -> Option<(Style, bool)> {
    match &options.fields.time_form {
        Some(TimeForm::Epoch(unit)) => return Some((Style::Epoch(*unit), false)),
        Some(TimeForm::Pattern(pattern)) => return Some((Style::Pattern(pattern.clone()), false)),
        None => {}
    }
    let mut words = Vec::new();
    for line in sample.lines().take(50) {
        if !tokens::split(line, &mut words) {
            continue;
        }
        for (at, word) in words.iter().enumerate().take(10) {
            let text = word.value(line);
            // Dates first: a number that could be an instant may be anything else.
            if text.len() < 10 {
                continue;
            }
            if let Some(style) = Style::of(text) {
                let zone = words.get(at + 1).map(|w| w.value(line)).filter(|_| word.kind == Kind::Bare);
                let apart = style == Style::Clf
                    && zone.is_some_and(|z| {
                        z.len() == 5 && matches!(z[0], b'+' | b'-') && z[1..].iter().all(u8::is_ascii_digit)
                    });
                return Some((style, apart));
            }
        }
    }
    None
}

fn rows<'s>(sample: &'s Sample, style: &Style, zone_apart: bool) -> Vec<Row<'s>> {
    let mut clock = Clock::new(style.clone());
    let mut rows = Vec::new();
    for line in sample.lines().take(LEARN) {
        let mut words = Vec::new();
        if !tokens::split(line, &mut words) {
            continue;
        }
        let date_at = words
            .iter()
            .position(|word| word.value(line).len() >= 10 && clock.read(word.value(line)).is_some());
        if let Some(mut date_at) = date_at {
            if zone_apart {
                date_at += 1;
                if date_at >= words.len() {
                    continue;
                }
            }
            let date_at = date_at - usize::from(zone_apart);
            rows.push(Row { line, words, date_at });
        }
    }
    rows
}

/// The most common of some numbers, and how often it occurs.
fn common(numbers: impl Iterator<Item = usize>) -> (usize, usize) {
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    for number in numbers {
        *counts.entry(number).or_default() += 1;
    }
    counts.into_iter().max_by_key(|(number, count)| (*count, *number)).unwrap_or((0, 0))
}

/// The columns by position, of the lines that have the most common number of words; and those by key, of all lines.
fn columns<'s>(rows: &[Row<'s>]) -> Vec<Column<'s>> {
    let (count, _) = common(rows.iter().map(|row| row.words.len() - row.date_at));
    let mut columns: Vec<Column<'s>> = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let words = &row.words[row.date_at..];
        for (at, word) in words.iter().enumerate().skip(1) {
            let place = if word.has_key() {
                Place::Key(word.key(row.line).to_vec(), at)
            } else if words.len() == count {
                Place::After(at)
            } else {
                continue;
            };
            let value = (index, word.value(row.line));
            match columns.iter().position(|column| column.place.is_same(&place)) {
                Some(known) => columns[known].values.push(value),
                None if columns.len() < MAX_COLUMNS => columns.push(Column { place, values: vec![value] }),
                None => {}
            }
        }
    }
    columns
}

/// The first column of three-digit codes; a key that says so goes first.
fn status_of(columns: &[Column<'_>]) -> Option<Place> {
    let code = |value: &[u8]| value.len() == 3 && value.iter().all(u8::is_ascii_digit) && (value[0] <= b'5');
    let fits = |column: &&Column<'_>| {
        let values = column.texts().filter(|v| *v != b"-");
        let codes = values.clone().filter(|v| code(v)).count();
        codes > 0 && codes * 20 >= values.count() * 19
    };
    let keyed = columns
        .iter()
        .filter(|c| c.key().is_some_and(|key| meanings(&key).iter().any(|m| m.role == Role::Status)));
    let by_position = columns.iter().filter(|c| matches!(c.place, Place::After(_)));
    keyed.chain(by_position).find(fits).map(|c| c.place.clone())
}

/// Whether most lines hold a request: without one, the codes may be anything.
fn has_request(rows: &[Row<'_>]) -> bool {
    const METHODS: [&[u8]; 9] =
        [b"GET ", b"POST ", b"PUT ", b"HEAD ", b"DELETE ", b"OPTIONS ", b"PATCH ", b"CONNECT ", b"PROPFIND "];
    let with = rows.iter().filter(|row| {
        row.words.iter().any(|word| {
            let text = word.value(row.line);
            word.kind != Kind::Bracketed
                && METHODS
                    .iter()
                    .any(|m| text.starts_with(m) || (word.kind == Kind::Bare && text == &m[..m.len() - 1]))
        })
    });
    with.count() * 4 >= rows.len()
}

/// The instants of the rows, by row.
fn stamps(rows: &[Row<'_>], style: &Style, zone_apart: bool) -> Vec<i64> {
    rows.iter()
        .map(|row| {
            let date = date_of(row);
            let text = match row.words.get(row.date_at + 1).filter(|_| zone_apart) {
                Some(zone) => [date, zone.value(row.line)].join(&b' '),
                None => date.to_vec(),
            };
            style.parse(&text).unwrap_or(0)
        })
        .collect()
}

fn basis(chosen: &Chosen, columns: &[Column<'_>], stamps: &[i64], options: &Options) -> (Basis, Evidence) {
    if let Some(basis) = options.fields.basis {
        return (basis, Evidence::User);
    }
    let usual = match chosen.format {
        Format::Apache | Format::Traefik => Basis::Start,
        _ => return (Basis::End, Evidence::Format),
    };
    let Some(duration) = &chosen.latency else { return (usual, Evidence::Assumed) };
    let Some(column) = columns.iter().find(|c| c.place == duration.place) else {
        return (usual, Evidence::Assumed);
    };
    let pairs: Vec<order::Pair> = column
        .values
        .iter()
        .filter_map(|(row, text)| Some((stamps[*row], duration.read(text).value()?)))
        .collect();
    order::basis(&pairs, usual)
}
