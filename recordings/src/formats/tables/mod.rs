//! Tables: a header, then a row per request. The [`known`] ones are recognised by their header; in any other the
//! columns are found by their names, if those say their units, or by what the user says ([`generic`]).

mod generic;
mod known;

use csv::{ByteRecord, ReaderBuilder};

use super::{Format, Probe, Reader, Recognised};
use crate::error::ReadError;
use crate::input::{Bounded, Input, MAX_LINE, Sample};
use crate::options::Options;
use crate::reading::Output;

/// The formats of known tables.
pub(crate) const KNOWN: &[Format] = &[
    Format::Ab,
    Format::Alibaba,
    Format::AzureFunctions,
    Format::AzureLlm,
    Format::Goodput,
    Format::Hey,
    Format::Oha,
    Format::TraceCsv,
    Format::Truth,
    Format::WorldCup98,
];

/// Rows of the sample that are looked at closely.
const LEARN: usize = 300;

/// Reads the rows of a table, the header included.
pub(crate) trait RowReader {
    fn row(&mut self, line: u64, row: &ByteRecord, out: &mut Output<'_>);

    /// Called after the last row.
    fn finish(&mut self, _out: &mut Output<'_>) {}
}

/// Feeds rows to a [`RowReader`].
pub(crate) struct Table<R> {
    reader: R,
    delimiter: u8,
}

impl<R: RowReader> Table<R> {
    pub(crate) fn new(reader: R, delimiter: u8) -> Self {
        Self { reader, delimiter }
    }
}

impl<R: RowReader> Reader for Table<R> {
    fn read(&mut self, input: &mut Input<'_>, out: &mut Output<'_>) -> Result<(), ReadError> {
        let (input, bound) = Bounded::new(input);
        let mut rows = builder(self.delimiter).from_reader(input);
        let mut row = ByteRecord::new();
        loop {
            bound.begin();
            let begin = rows.position().line();
            match rows.read_byte_record(&mut row) {
                Ok(true) => {}
                Ok(false) => break,
                Err(_) if bound.is_exceeded() => {
                    let reason = format!(
                        "a row longer than {} MiB: a quote never closes, and nothing after it was read",
                        MAX_LINE / 1024 / 1024
                    );
                    out.reading.truncated = Some(format!("line {begin} begins {reason}"));
                    out.bad(begin, reason);
                    break;
                }
                Err(error) => match error.into_kind() {
                    csv::ErrorKind::Io(error) => return Err(error.into()),
                    // Rows of bytes of any length cannot be wrong in themselves.
                    _ => break,
                },
            }
            let line = row.position().map_or(0, csv::Position::line);
            self.reader.row(line, &row, out);
        }
        out.reading.lines = rows.position().line().saturating_sub(1);
        self.reader.finish(out);
        Ok(())
    }
}

fn builder(delimiter: u8) -> ReaderBuilder {
    let mut builder = ReaderBuilder::new();
    builder.delimiter(delimiter).has_headers(false).flexible(true);
    builder
}

/// The first rows of a table, cut at one delimiter.
pub(crate) struct Head {
    pub(crate) delimiter: u8,
    pub(crate) header: Vec<String>,
    /// The rows after the header.
    pub(crate) rows: Vec<ByteRecord>,
}

impl Head {
    pub(crate) fn of(sample: &Sample, delimiter: Option<u8>) -> Option<Self> {
        let first = sample.first_line();
        let count = |delimiter: u8| first.iter().filter(|b| **b == delimiter).count();
        let delimiter = delimiter.or_else(|| {
            [b',', b';', b'\t', b'|']
                .into_iter()
                .max_by_key(|d| (count(*d), *d == b','))
                .filter(|d| count(*d) > 0)
        })?;
        let mut reader = builder(delimiter).from_reader(sample.bytes());
        let mut rows = reader.byte_records().take(LEARN + 1).map_while(Result::ok).collect::<Vec<_>>();
        if !sample.whole && rows.len() <= LEARN {
            rows.pop(); // It may be cut.
        }
        if rows.is_empty() {
            return None;
        }
        let header = rows.remove(0);
        let header =
            header.iter().map(|name| String::from_utf8_lossy(name.trim_ascii()).into_owned()).collect();
        Some(Self { delimiter, header, rows })
    }

    /// The column of this name.
    pub(crate) fn column(&self, name: &str) -> Option<usize> {
        self.header.iter().position(|h| h == name)
    }

    /// Whether all these columns are there.
    pub(crate) fn has(&self, names: &[&str]) -> bool {
        names.iter().all(|name| self.column(name).is_some())
    }
}

pub(crate) fn probe_known(sample: &Sample, options: &Options) -> Probe {
    match Head::of(sample, options.fields.delimiter) {
        Some(head) => known::probe(&head, sample, options),
        None => Ok(None),
    }
}

pub(crate) fn probe_generic(sample: &Sample, options: &Options) -> Probe {
    match Head::of(sample, options.fields.delimiter) {
        Some(head) => generic::probe(&head, options),
        None => Ok(None),
    }
}

/// A recognised table.
pub(crate) fn recognised(
    format: Format,
    variant: impl Into<String>,
    basis: crate::record::Basis,
    unit: impl Into<String>,
    reader: impl RowReader + 'static,
    delimiter: u8,
) -> Recognised {
    Recognised::new(format, variant, basis, unit, Table::new(reader, delimiter))
}
