//! The report of a reading: what was assumed, and what was skipped and why.

use std::borrow::Cow;

use serde::Serialize;

use crate::formats::Format;
use crate::input::Compression;
use crate::record::{Basis, Item, Record, Step, StepLatency};

/// How many problems of each kind are kept with their line numbers.
const EXAMPLES: usize = 5;

/// What was assumed about a file, and what could not be read.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reading {
    /// The format.
    pub format: Format,
    /// Which variant of the format, in words.
    pub variant: String,
    /// How the file was compressed.
    pub compression: Compression,
    /// Which end of a request the stamps mark.
    pub basis: Basis,
    /// How that is known: from the format, from the data, or from the user.
    pub basis_known_from: Evidence,
    /// The unit of the latencies in the file, with how it is known.
    pub latency_unit: String,
    /// The finest step seen between stamps, in nanoseconds; `None` without stamps.
    pub resolution_ns: Option<u64>,
    /// Lines, rows or messages in the file.
    pub lines: u64,
    /// Requests read.
    pub records: u64,
    /// Load steps read, in files of aggregates.
    pub steps: u64,
    /// Non-empty lines that are neither a request nor a known other thing.
    pub unparseable_lines: u64,
    /// Headers, comments, blank lines, other metrics, other span kinds.
    pub skipped_non_record_lines: u64,
    /// The first few unparseable lines.
    pub unparseable: Vec<Problem>,
    /// The first few skipped lines, without blank ones.
    pub skipped: Vec<Problem>,
    /// The latency over the whole file, where a format of aggregates allows to tell it.
    pub overall_ms: Option<StepLatency>,
    /// Why the file ends before its end, when it does.
    pub truncated: Option<String>,
    /// What neither the file nor the user said, and what all numbers hang on; each with the option that overrules it.
    pub assumed: Vec<String>,
    /// Anything else that the reader of the numbers should know.
    pub notes: Vec<String>,
}

/// How something is known that a file does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// The format defines it.
    Format,
    /// The order of the lines shows it.
    Data,
    /// It is the usual case, and nothing in the file contradicts it.
    Assumed,
    /// The user said so.
    User,
}

/// A line that was not read as a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The line, row or message, counted from 1.
    pub line: u64,
    /// What is wrong with it.
    pub reason: Cow<'static, str>,
}

impl Reading {
    pub(crate) fn new(format: Format, compression: Compression) -> Self {
        Self {
            format,
            variant: String::new(),
            compression,
            basis: Basis::None,
            basis_known_from: Evidence::Format,
            latency_unit: String::new(),
            resolution_ns: None,
            lines: 0,
            records: 0,
            steps: 0,
            unparseable_lines: 0,
            skipped_non_record_lines: 0,
            unparseable: Vec::new(),
            skipped: Vec::new(),
            overall_ms: None,
            truncated: None,
            assumed: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Which end of the requests the order of the lines follows; `None` where the lines are in another order than time.
    pub(crate) fn order(&self) -> Basis {
        if self.format == Format::Ab { Basis::None } else { self.basis }
    }

    /// The first problem of the file in words, for an error.
    pub(crate) fn first_problem(&self) -> String {
        match self.unparseable.first().or(self.skipped.first()) {
            Some(problem) => format!("line {}: {}", problem.line, problem.reason),
            None => "none".to_owned(),
        }
    }
}

/// Where a format's reader puts what it finds.
pub(crate) struct Output<'a> {
    pub(crate) reading: &'a mut Reading,
    sink: &'a mut dyn FnMut(Item),
    resolution: Resolution,
}

impl<'a> Output<'a> {
    pub(crate) fn new(reading: &'a mut Reading, sink: &'a mut dyn FnMut(Item)) -> Self {
        Self { reading, sink, resolution: Resolution::default() }
    }

    pub(crate) fn record(&mut self, record: Record) {
        self.reading.records += 1;
        if let Some(stamp) = record.stamp {
            self.resolution.see(stamp);
        }
        (self.sink)(Item::Request(record));
    }

    pub(crate) fn step(&mut self, step: Step) {
        self.reading.steps += 1;
        (self.sink)(Item::Step(step));
    }

    /// Counts a line that is no request and was not meant to be one.
    pub(crate) fn skip(&mut self, line: u64, reason: impl Into<Cow<'static, str>>) {
        self.reading.skipped_non_record_lines += 1;
        if self.reading.skipped.len() < EXAMPLES {
            self.reading.skipped.push(Problem { line, reason: reason.into() });
        }
    }

    /// Counts a blank line.
    pub(crate) fn blank(&mut self) {
        self.reading.skipped_non_record_lines += 1;
    }

    /// Counts a line that should have been a request.
    pub(crate) fn bad(&mut self, line: u64, reason: impl Into<Cow<'static, str>>) {
        self.reading.unparseable_lines += 1;
        if self.reading.unparseable.len() < EXAMPLES {
            self.reading.unparseable.push(Problem { line, reason: reason.into() });
        }
    }

    pub(crate) fn note(&mut self, note: impl Into<String>) {
        self.reading.notes.push(note.into());
    }

    /// Files what can only be said at the end.
    pub(crate) fn finish(self) {
        self.reading.resolution_ns = self.resolution.nanos();
    }
}

/// The coarsest power of ten of nanoseconds, up to a second, that divides every stamp.
#[derive(Default)]
struct Resolution {
    step: u64,
}

impl Resolution {
    fn see(&mut self, stamp: i64) {
        if self.step == 0 {
            self.step = 1_000_000_000;
        }
        while self.step > 1 && !stamp.unsigned_abs().is_multiple_of(self.step) {
            self.step /= 10;
        }
    }

    fn nanos(&self) -> Option<u64> {
        (self.step > 0).then_some(self.step)
    }
}
