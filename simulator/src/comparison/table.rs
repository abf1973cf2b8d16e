use std::{collections::BTreeMap, fmt, time::Duration};

use super::{Columns, TablePlan};
use crate::{Counts, Run};

/// A table, filled. `Display` draws it.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedTable {
    /// What stands above it.
    pub title: String,
    /// What stands above the columns, that of the labels aside.
    pub header: Vec<String>,
    /// The rows.
    pub rows: Vec<ComparedRow>,
    label_width: usize,
    widths: Vec<usize>,
}

/// A row, filled.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedRow {
    /// What stands before it.
    pub label: String,
    /// The rest.
    pub cells: Vec<Cell>,
}

/// What a cell tells. `Display` rounds halves up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell {
    /// So many of so many, as a percentage with one decimal.
    Share(u64, u64),
    /// A quotient with two decimals.
    Quotient(u64, u64),
    /// A number.
    Count(u64),
    /// A time, in whole milliseconds.
    Time(Duration),
}

/// The runs from which a table is filled.
pub(super) struct Play<'p> {
    pub(super) table: &'p TablePlan,
    pub(super) runs: &'p BTreeMap<&'p [String], Run>,
}

impl Play<'_> {
    pub(super) fn fill(&self) -> ComparedTable {
        let rows = self.table.rows.iter().map(|row| ComparedRow {
            label: row.label.clone(),
            cells: self.cells(&self.runs[row.with.as_slice()]),
        });
        let (label_width, widths) = match &self.table.columns {
            Columns::Success { from, .. } => {
                (44, std::iter::repeat_n(11, from.len()).chain([10]).collect::<Vec<_>>())
            }
            Columns::Counts => (26, vec![9, 9, 9, 9, 9, 12, 8]),
            Columns::Classes { .. } => (26, vec![11; self.classes().len()]),
        };
        ComparedTable {
            title: self.table.title.clone(),
            header: self.header(),
            rows: rows.collect(),
            label_width,
            widths,
        }
    }

    fn header(&self) -> Vec<String> {
        match &self.table.columns {
            Columns::Success { from, until, .. } => {
                let windows = from.iter().zip(from.iter().skip(1).chain([until]));
                windows
                    .map(|(from, until)| {
                        format!("{}-{}", from.as_millis(), until.as_millis().saturating_sub(1))
                    })
                    .chain(["tries/req".into()])
                    .collect()
            }
            Columns::Counts => ["attempts", "refused", "dropped", "on time", "too late", "wasted", "queue"]
                .map(String::from)
                .into(),
            Columns::Classes { .. } => self.classes(),
        }
    }

    fn classes(&self) -> Vec<String> {
        let run = self.table.rows.first().map(|row| &self.runs[row.with.as_slice()]);
        run.map(|run| run.summary.classes.iter().map(|class| class.name.clone()).collect())
            .unwrap_or_default()
    }

    fn cells(&self, run: &Run) -> Vec<Cell> {
        let summary = &run.summary;
        match &self.table.columns {
            Columns::Success { from, until, tries_from } => {
                let windows = from.iter().zip(from.iter().skip(1).chain([until]));
                let counts: Vec<_> = windows.map(|(&from, &until)| window(run, from, until).0).collect();
                let tries = from.iter().position(|from| from == tries_from).unwrap_or(0);
                counts
                    .iter()
                    .map(|counts| Cell::Share(counts.good, counts.offered))
                    .chain([Cell::Quotient(counts[tries].attempts, counts[tries].offered)])
                    .collect()
            }
            Columns::Counts => {
                let counts = summary.total().counts;
                vec![
                    Cell::Count(counts.attempts - counts.refused.throttled),
                    Cell::Count(counts.refused.total() - counts.refused.throttled - counts.dropped),
                    Cell::Count(counts.dropped),
                    Cell::Count(counts.good),
                    Cell::Count(counts.late),
                    Cell::Time(Duration::from_nanos(counts.wasted_ns)),
                    Cell::Count(summary.largest_queue.max(summary.largest_waiting) as u64),
                ]
            }
            Columns::Classes { from, until } => {
                let classes = window(run, *from, *until).1;
                classes.iter().map(|counts| Cell::Share(counts.good, counts.offered)).collect()
            }
        }
    }
}

/// What became of the requests first sent in a window, all together and by class. The run was cut at its ends.
fn window(run: &Run, from: Duration, until: Duration) -> (Counts, Vec<Counts>) {
    let (mut all, mut classes) = (Counts::default(), vec![Counts::default(); run.summary.classes.len()]);
    for part in run.summary.parts.iter().filter(|part| part.from >= from && part.until <= until) {
        all.add(&part.counts);
        classes.iter_mut().zip(&part.classes).for_each(|(sum, counts)| sum.add(counts));
    }
    (all, classes)
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Share(part, whole) => {
                let tenths = rounded(u128::from(part) * 1_000, whole);
                f.pad(&format!("{}.{}%", tenths / 10, tenths % 10))
            }
            Self::Quotient(part, whole) => {
                let hundredths = rounded(u128::from(part) * 100, whole);
                f.pad(&format!("{}.{:02}", hundredths / 100, hundredths % 100))
            }
            Self::Count(count) => f.pad(&count.to_string()),
            Self::Time(time) => f.pad(&format!("{} ms", time.as_millis())),
        }
    }
}

/// Halves are rounded up; nothing of nothing is nothing.
fn rounded(part: u128, whole: u64) -> u128 {
    let whole = u128::from(whole);
    (2 * part + whole).checked_div(2 * whole).unwrap_or(0)
}

impl fmt::Display for ComparedTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.title)?;
        write!(f, "{:width$}", "", width = self.label_width)?;
        for (name, &width) in self.header.iter().zip(&self.widths) {
            write!(f, "{name:>width$}")?;
        }
        writeln!(f)?;
        for row in &self.rows {
            write!(f, "{:width$}", row.label, width = self.label_width)?;
            for (cell, &width) in row.cells.iter().zip(&self.widths) {
                write!(f, "{cell:>width$}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
