//! What a user may say about a file: which format it is, and which of its fields mean what.

use std::str::FromStr;

use crate::formats::Format;
use crate::quantity::Unit;
use crate::record::Basis;

/// How to read a file. The default is to find everything out from its content.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The format, instead of recognising it.
    pub format: Option<Format>,
    /// Which fields mean what, where the format does not say.
    pub fields: FieldMap,
    /// Accept files without any latency, for their arrivals alone.
    pub arrivals_only: bool,
}

/// Names the fields of a table or of JSON lines, with their units.
///
/// A field is a column's header, a column's number counted from 1 (from the end when negative), or a JSON key with
/// dots between the levels (`res.statusCode`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldMap {
    /// The field with the time stamp.
    pub time: Option<String>,
    /// How the time stamp is written.
    pub time_form: Option<TimeForm>,
    /// Which end of the request the stamp marks.
    pub basis: Option<Basis>,
    /// The field with the latency.
    pub latency: Option<String>,
    /// The unit of the latency.
    pub latency_unit: Option<Unit>,
    /// The field with the status.
    pub status: Option<String>,
    /// The field with the time spent in the service itself, in the latency's unit.
    pub service: Option<String>,
    /// What separates the columns of a table.
    pub delimiter: Option<u8>,
    /// What separates whole from fraction in numbers: `.` or `,`.
    pub decimal_mark: Option<u8>,
}

impl FieldMap {
    /// Whether nothing was said.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// How a time stamp is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimeForm {
    /// A number since 1970 in a unit.
    Epoch(Unit),
    /// A `strptime` pattern, as `%d.%m.%Y %H:%M:%S,%f`. Without a zone, UTC is assumed.
    Pattern(String),
}

impl FromStr for TimeForm {
    type Err = crate::quantity::duration::UnknownUnit;

    /// A unit (`s`, `ms`, `us`, `ns`), or a pattern when there is a `%` in it.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.contains('%') { Ok(Self::Pattern(text.to_owned())) } else { text.parse().map(Self::Epoch) }
    }
}
