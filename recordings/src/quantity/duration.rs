//! Units of time, and durations that carry their unit, as `1.5ms` and `1m2.5s`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Decimal;

/// A unit of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Unit {
    /// 10⁻⁹ s.
    #[serde(rename = "ns")]
    Nanoseconds,
    /// 10⁻⁶ s.
    #[serde(rename = "us")]
    Microseconds,
    /// 10⁻³ s.
    #[serde(rename = "ms")]
    Milliseconds,
    /// Seconds.
    #[serde(rename = "s")]
    Seconds,
}

impl Unit {
    /// Nanoseconds in one of this unit.
    pub fn nanos(self) -> u64 {
        match self {
            Self::Nanoseconds => 1,
            Self::Microseconds => 1_000,
            Self::Milliseconds => 1_000_000,
            Self::Seconds => 1_000_000_000,
        }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nanoseconds => "ns",
            Self::Microseconds => "us",
            Self::Milliseconds => "ms",
            Self::Seconds => "s",
        })
    }
}

/// A unit that is none of `ns`, `us`, `ms` and `s`.
#[derive(Debug, thiserror::Error)]
#[error("unit `{0}` is unknown: use ns, us, ms or s")]
pub struct UnknownUnit(String);

impl FromStr for Unit {
    type Err = UnknownUnit;

    fn from_str(text: &str) -> Result<Self, UnknownUnit> {
        Ok(match text.trim() {
            "ns" | "nanoseconds" => Self::Nanoseconds,
            "us" | "µs" | "μs" | "microseconds" => Self::Microseconds,
            "ms" | "milliseconds" => Self::Milliseconds,
            "s" | "sec" | "secs" | "seconds" => Self::Seconds,
            _ => return Err(UnknownUnit(text.to_owned())),
        })
    }
}

/// Nanoseconds of a number in `unit`. Negative numbers are no durations.
pub(crate) fn in_unit(text: &[u8], unit: Unit) -> Option<u64> {
    Decimal::parse(text, b'.')?.times(unit.nanos()).and_then(|ns| u64::try_from(ns).ok())
}

/// Nanoseconds of a duration that carries its units, as Go prints it: `1m2.5s`, `64.16ms`, `300µs`.
pub(crate) fn with_suffix(text: &[u8]) -> Option<u64> {
    let mut rest = text;
    let mut sum = 0_i64;
    while !rest.is_empty() {
        let (number, after) = Decimal::parse_prefix(rest, b'.')?;
        let letters = after.iter().take_while(|b| !b.is_ascii_digit() && **b != b'.').count();
        let nanos = match &after[..letters] {
            b"ns" => 1,
            b"us" | b"\xC2\xB5s" | b"\xCE\xBCs" => 1_000,
            b"ms" => 1_000_000,
            b"s" | b"sec" | b"secs" => 1_000_000_000,
            b"m" => 60_000_000_000,
            b"h" => 3_600_000_000_000,
            _ => return None,
        };
        sum = sum.checked_add(number.times(nanos)?)?;
        rest = &after[letters..];
    }
    if text.is_empty() { None } else { u64::try_from(sum).ok() }
}

/// What a field holds that should hold a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cell {
    /// Nothing, a dash, or a negative number: not measured.
    Missing,
    /// Nanoseconds.
    Value(u64),
    /// Something else.
    Bad,
}

impl Cell {
    pub(crate) fn value(self) -> Option<u64> {
        match self {
            Self::Value(nanos) => Some(nanos),
            Self::Missing | Self::Bad => None,
        }
    }

    /// Reads a field in `unit`. A unit written with the number is stronger. A list, as nginx writes it for a
    /// request that tried several servers (`0.001, 0.050` and `0.001 : 0.050`), is summed up.
    pub(crate) fn read(text: &[u8], unit: Unit, mark: u8) -> Self {
        let text = text.trim_ascii();
        if let Some(number) = Decimal::parse(text, mark) {
            return match number.times(unit.nanos()) {
                Some(nanos) => u64::try_from(nanos).map_or(Self::Missing, Self::Value),
                None => Self::Bad,
            };
        }
        if matches!(text, b"" | b"-" | b"null" | b"NULL" | b"N/A" | b"NaN" | b"None") {
            return Self::Missing;
        }
        if let Some(nanos) = with_suffix(text) {
            return Self::Value(nanos);
        }
        if !text.iter().any(|b| matches!(b, b',' | b':')) || mark == b',' {
            return Self::Bad;
        }
        let mut sum = Self::Missing;
        for part in text.split(|b| matches!(b, b',' | b':')) {
            let part = part.trim_ascii();
            match Decimal::parse(part, mark).and_then(|n| n.times(unit.nanos())) {
                Some(nanos) => {
                    let nanos = u64::try_from(nanos).unwrap_or(0);
                    sum = Self::Value(sum.value().unwrap_or(0).saturating_add(nanos));
                }
                None if part == b"-" => {}
                None => return Self::Bad,
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_may_hold_a_list_a_dash_or_its_own_unit() {
        let read = |text: &str| Cell::read(text.as_bytes(), Unit::Seconds, b'.');
        assert_eq!(read("0.001, 0.050"), Cell::Value(51_000_000));
        assert_eq!(read("-, 0.050"), Cell::Value(50_000_000));
        assert_eq!(read("0.001 : 0.050"), Cell::Value(51_000_000));
        assert_eq!(read("-"), Cell::Missing);
        assert_eq!(read("-1"), Cell::Missing);
        assert_eq!(read("12ms"), Cell::Value(12_000_000));
        assert_eq!(read("curl/7.88"), Cell::Bad);
        assert_eq!(Cell::read(b"0,147", Unit::Seconds, b','), Cell::Value(147_000_000));
    }

    #[test]
    fn durations_with_suffixes_add_up() {
        assert_eq!(with_suffix(b"1m2.5s"), Some(62_500_000_000));
        assert_eq!(with_suffix(b"64.16ms"), Some(64_160_000));
        assert_eq!(with_suffix("300µs".as_bytes()), Some(300_000));
        assert_eq!(with_suffix(b"12"), None);
        assert_eq!(with_suffix(b""), None);
        assert_eq!(with_suffix(b"-1ms"), None);
    }
}
