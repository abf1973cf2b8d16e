//! JTL as a table: comma, tab or semicolon; with the columns that the header names, or the default ones without it.

use csv::ByteRecord;

use super::{Nesting, is_transaction, with_verdict};
use crate::error::ReadError;
use crate::formats::tables::{Head, RowReader, recognised};
use crate::formats::{Format, Probe};
use crate::input::Sample;
use crate::options::{Options, TimeForm};
use crate::quantity::Unit;
use crate::quantity::duration::Cell;
use crate::quantity::instant::{Clock, Style};
use crate::reading::{Evidence, Output};
use crate::record::{Basis, Record};

/// The first columns of every JMeter version, in order.
const DEFAULT: [&str; 8] =
    ["timeStamp", "elapsed", "label", "responseCode", "responseMessage", "threadName", "dataType", "success"];

/// Where the columns stand.
#[derive(Clone, Copy)]
struct Columns {
    stamp: usize,
    elapsed: usize,
    label: Option<usize>,
    code: Option<usize>,
    message: Option<usize>,
    thread: Option<usize>,
    success: Option<usize>,
}

pub(crate) fn probe(sample: &Sample, options: &Options) -> Probe {
    let Some(mut head) = Head::of(sample, options.fields.delimiter) else { return Ok(None) };
    let with_header = head.has(&["timeStamp", "elapsed"]);
    if !with_header {
        let first: Vec<&str> = head.header.iter().map(String::as_str).collect();
        let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let fits = first.len() >= 10
            && first[0].len() == 13
            && number(first[0])
            && number(first[1])
            && matches!(first[7], "true" | "false");
        if !fits {
            return Ok(None);
        }
        head.rows.insert(0, ByteRecord::from(first));
        head.header = DEFAULT.iter().map(|name| (*name).to_owned()).collect();
    }
    let columns = Columns {
        stamp: head.column("timeStamp").unwrap_or(0),
        elapsed: head.column("elapsed").unwrap_or(1),
        label: head.column("label"),
        code: head.column("responseCode"),
        message: head.column("responseMessage"),
        thread: head.column("threadName"),
        success: head.column("success"),
    };
    let style = style(&head, columns.stamp, options)?;
    let nesting = nesting(&head, columns);
    let (basis, evidence) = match options.fields.basis {
        Some(basis) => (basis, Evidence::User),
        None => basis(&head, columns, &style, &nesting),
    };
    let zone = style != Style::Epoch(Unit::Milliseconds);
    let reader = Rows {
        columns,
        count: if with_header { head.header.len() } else { head.rows[0].len() },
        clock: Clock::new(style),
        nesting,
        basis,
        nested: 0,
    };
    let variant = if with_header { "JTL table" } else { "JTL table without a header" };
    let mut recognised = recognised(Format::Jmeter, variant, basis, "ms", reader, head.delimiter);
    recognised.evidence = evidence;
    if zone {
        recognised.notes.push("the dates carry no zone and were read as UTC".to_owned());
    }
    Ok(Some(recognised))
}

fn style(head: &Head, stamp: usize, options: &Options) -> Result<Style, ReadError> {
    match &options.fields.time_form {
        Some(TimeForm::Epoch(unit)) => return Ok(Style::Epoch(*unit)),
        Some(TimeForm::Pattern(pattern)) => return Ok(Style::Pattern(pattern.clone())),
        None => {}
    }
    match head.rows.iter().find_map(|row| row.get(stamp)) {
        None => Ok(Style::Epoch(Unit::Milliseconds)),
        Some(first) => Style::of(first.trim_ascii()).ok_or_else(|| ReadError::Field {
            field: "timeStamp".to_owned(),
            reason: format!(
                "`{}` is no date that can be recognised: say how it is written with --time-format",
                String::from_utf8_lossy(first)
            ),
        }),
    }
}

fn nesting(head: &Head, columns: Columns) -> Nesting {
    let mut nesting = Nesting::default();
    let cell =
        |row: &ByteRecord, at: Option<usize>| at.and_then(|at| row.get(at)).unwrap_or_default().to_vec();
    for row in &head.rows {
        nesting.see(&cell(row, columns.label));
    }
    nesting.transactions_only =
        !head.rows.is_empty() && head.rows.iter().all(|row| is_transaction(&cell(row, columns.message)));
    nesting
}

/// A thread does one request after another: with starts, each begins no earlier than the one before it ended; with
/// ends, each has begun no earlier than the one before it ended.
fn basis(head: &Head, columns: Columns, style: &Style, nesting: &Nesting) -> (Basis, Evidence) {
    let mut last: std::collections::BTreeMap<Vec<u8>, (i64, i64)> = std::collections::BTreeMap::new();
    let (mut pairs, mut starts, mut ends) = (0_u32, 0_u32, 0_u32);
    for row in &head.rows {
        let cell = |at: Option<usize>| at.and_then(|at| row.get(at)).unwrap_or_default();
        if columns.thread.is_none() || nesting.is_nested(cell(columns.label), cell(columns.message)) {
            continue;
        }
        let stamp = style.parse(cell(Some(columns.stamp)).trim_ascii());
        let elapsed = Cell::read(cell(Some(columns.elapsed)), Unit::Milliseconds, b'.').value();
        let (Some(stamp), Some(elapsed)) = (stamp, elapsed.and_then(|e| i64::try_from(e).ok())) else {
            continue;
        };
        if let Some((before, length)) = last.insert(cell(columns.thread).to_vec(), (stamp, elapsed)) {
            pairs += 1;
            starts += u32::from(before.saturating_add(length) <= stamp.saturating_add(2_000_000));
            ends += u32::from(stamp.saturating_sub(elapsed) >= before.saturating_sub(2_000_000));
        }
    }
    if pairs < 20 {
        (Basis::Start, Evidence::Assumed)
    } else if ends * 50 > pairs * 49 && starts * 10 < pairs * 9 {
        (Basis::End, Evidence::Data)
    } else if starts * 50 > pairs * 49 && ends * 10 < pairs * 9 {
        (Basis::Start, Evidence::Data)
    } else {
        (Basis::Start, Evidence::Assumed)
    }
}

struct Rows {
    columns: Columns,
    count: usize,
    clock: Clock,
    nesting: Nesting,
    basis: Basis,
    nested: u64,
}

impl RowReader for Rows {
    fn row(&mut self, line: u64, row: &ByteRecord, out: &mut Output<'_>) {
        if row.get(self.columns.stamp).is_some_and(|cell| cell.trim_ascii() == b"timeStamp") {
            out.skip(line, "a header line");
            return;
        }
        match self.record(row) {
            Ok(record) => {
                self.nested += u64::from(record.nested);
                out.record(record);
            }
            Err(reason) => out.bad(line, reason),
        }
    }

    fn finish(&mut self, out: &mut Output<'_>) {
        if self.nested > 0 {
            out.note(format!(
                "{} records are sub-samples or transactions: counted, but not taken for load of their own",
                self.nested
            ));
        }
    }
}

impl Rows {
    fn record(&mut self, row: &ByteRecord) -> Result<Record, &'static str> {
        if row.len() != self.count {
            return Err("not as many columns as the header has: the row is cut, or its quotes are broken");
        }
        let cell = |at: Option<usize>| at.and_then(|at| row.get(at)).unwrap_or_default();
        let stamp = self.clock.read(cell(Some(self.columns.stamp)).trim_ascii()).ok_or("no time stamp")?;
        let elapsed = match Cell::read(cell(Some(self.columns.elapsed)), Unit::Milliseconds, b'.') {
            Cell::Bad => return Err("elapsed is no number"),
            cell => cell.value(),
        };
        let success = match cell(self.columns.success).trim_ascii() {
            b"true" => Some(true),
            b"false" => Some(false),
            _ => None,
        };
        let (label, message) = (cell(self.columns.label), cell(self.columns.message));
        let record = Record::stamped(Some(stamp), self.basis, elapsed);
        let mut record = with_verdict(record, cell(self.columns.code).trim_ascii(), success, message);
        self.nesting.see(label);
        record.nested = self.nesting.is_nested(label, message);
        Ok(record)
    }
}
