//! Instants as logs write them, as nanoseconds since the Unix epoch.

use super::{Decimal, Unit};

/// How a file writes its instants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// `29/Nov/2026:23:01:48 +0000`, as in the common log format; a fraction and the zone are optional.
    Clf,
    /// `2026-11-29T23:01:48.123Z` and its relatives: a space or `T` between, `/` or `-` within the date, a
    /// fraction after `.` or `,`, a zone or none.
    Iso,
    /// A number since the epoch, in a unit.
    Epoch(Unit),
    /// A `strptime` pattern from the user.
    Pattern(String),
}

impl Style {
    /// The style of one written instant, if it is one that can be recognised.
    pub(crate) fn of(text: &[u8]) -> Option<Self> {
        if clf(text).is_some() {
            return Some(Self::Clf);
        }
        if iso(text).is_some() {
            return Some(Self::Iso);
        }
        epoch_unit(text).map(Self::Epoch)
    }

    /// Reads an instant of this style.
    pub(crate) fn parse(&self, text: &[u8]) -> Option<i64> {
        match self {
            Self::Clf => clf(text),
            Self::Iso => iso(text),
            Self::Epoch(unit) => Decimal::parse(text, b'.')?.times(unit.nanos()),
            Self::Pattern(pattern) => with_pattern(pattern, text),
        }
    }

    /// Whether instants of this style may come without a zone, so that one has to be assumed.
    pub(crate) fn lacks_zone(&self, text: &[u8]) -> bool {
        match self {
            Self::Clf | Self::Iso => !has_zone(text),
            Self::Pattern(pattern) => !pattern.contains("%z") && !pattern.contains("%s"),
            Self::Epoch(_) => false,
        }
    }

    /// The style in words.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Clf => "common log format date".to_owned(),
            Self::Iso => "ISO 8601 date".to_owned(),
            Self::Epoch(unit) => format!("{unit} since 1970"),
            Self::Pattern(pattern) => format!("pattern `{pattern}`"),
        }
    }
}

/// Reads instants of one style, and remembers the last one: neighbouring lines of a log often share it.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    style: Style,
    last: Vec<u8>,
    value: Option<i64>,
}

impl Clock {
    pub(crate) fn new(style: Style) -> Self {
        Self { style, last: Vec::new(), value: None }
    }

    pub(crate) fn read(&mut self, text: &[u8]) -> Option<i64> {
        if text != self.last.as_slice() || text.is_empty() {
            self.value = self.style.parse(text);
            self.last.clear();
            self.last.extend_from_slice(text);
        }
        self.value
    }
}

/// Nanoseconds of an instant in seconds as a double. Doubles of this size hold no more than about a microsecond.
pub(crate) fn of_seconds(seconds: f64) -> Option<i64> {
    let micros = (seconds * 1e6).round();
    (micros.abs() < 9e15).then(|| micros as i64 * 1_000)
}

/// The unit of a number since the epoch, told by its magnitude: instants between 1986 and 2286.
pub(crate) fn epoch_unit(text: &[u8]) -> Option<Unit> {
    let number = Decimal::parse(text, b'.')?;
    let value = number.to_f64();
    let within = |scale: f64| (5e8 * scale..1e10 * scale).contains(&value);
    if within(1.0) {
        Some(Unit::Seconds)
    } else if within(1e3) {
        Some(Unit::Milliseconds)
    } else if within(1e6) {
        Some(Unit::Microseconds)
    } else if within(1e9) {
        Some(Unit::Nanoseconds)
    } else {
        None
    }
}

/// `29/Nov/2026:23:01:48[.fraction][ +0000]`.
pub(crate) fn clf(text: &[u8]) -> Option<i64> {
    if text.len() < 20 || text[2] != b'/' || text[6] != b'/' || !matches!(text[11], b':' | b' ') {
        return None;
    }
    let day = number(&text[0..2])?;
    let month = month_of(&text[3..6])?;
    let year = number(&text[7..11])?;
    let (seconds, rest) = clock_time(&text[12..])?;
    let zone = zone_offset(trim_start(rest))?;
    combine(year, month, day, seconds, zone)
}

/// `2026-11-29T23:01:48[.fraction][zone]`, also with a space, with slashes, and with a decimal comma.
pub(crate) fn iso(text: &[u8]) -> Option<i64> {
    if text.len() < 16 || !matches!(text[4], b'-' | b'/') || text[7] != text[4] {
        return None;
    }
    if !matches!(text[10], b'T' | b't' | b' ' | b'_') {
        return None;
    }
    let year = number(&text[0..4])?;
    let month = number(&text[5..7])?;
    let day = number(&text[8..10])?;
    let (seconds, rest) = clock_time(&text[11..])?;
    let zone = zone_offset(trim_start(rest))?;
    combine(year, month, day, seconds, zone)
}

/// `HH:MM[:SS[.fraction]]`: nanoseconds since midnight, and what follows.
fn clock_time(text: &[u8]) -> Option<(i64, &[u8])> {
    if text.len() < 5 || text[2] != b':' {
        return None;
    }
    let hour = number(&text[0..2])?;
    let minute = number(&text[3..5])?;
    if hour > 23 || minute > 59 {
        return None;
    }
    let mut rest = &text[5..];
    let mut nanos = (hour * 3600 + minute * 60) * 1_000_000_000;
    if rest.len() >= 3 && rest[0] == b':' {
        let second = number(&rest[1..3])?;
        if second > 60 {
            return None;
        }
        nanos += second * 1_000_000_000;
        rest = &rest[3..];
        if matches!(rest.first(), Some(b'.' | b',')) {
            let digits = rest[1..].iter().take_while(|b| b.is_ascii_digit()).count();
            if digits == 0 {
                return None;
            }
            let mut scale = 100_000_000;
            for byte in &rest[1..=digits] {
                nanos += i64::from(byte - b'0') * scale;
                scale /= 10;
            }
            rest = &rest[1 + digits..];
        }
    }
    Some((nanos, rest))
}

/// Seconds east of Greenwich; nothing written counts as UTC.
fn zone_offset(text: &[u8]) -> Option<i64> {
    let (sign, digits) = match text.first() {
        None => return Some(0),
        Some(b'Z' | b'z') if text.len() == 1 => return Some(0),
        Some(b'+') => (1, &text[1..]),
        Some(b'-') => (-1, &text[1..]),
        Some(_) if matches!(text, b"UTC" | b"GMT") => return Some(0),
        Some(_) => return None,
    };
    let (hours, minutes) = match digits.len() {
        2 => (number(digits)?, 0),
        4 => (number(&digits[..2])?, number(&digits[2..])?),
        5 if digits[2] == b':' => (number(&digits[..2])?, number(&digits[3..])?),
        _ => return None,
    };
    (hours <= 18 && minutes <= 59).then_some(sign * (hours * 3600 + minutes * 60))
}

/// Whether a date ends in a zone.
fn has_zone(text: &[u8]) -> bool {
    let tail = &text[text.len().saturating_sub(6)..];
    matches!(text.last(), Some(b'Z' | b'z' | b'C' | b'T'))
        || (text.len() > 18 && tail.iter().any(|b| matches!(b, b'+' | b'-')))
}

fn combine(year: i64, month: i64, day: i64, nanos_of_day: i64, zone_s: i64) -> Option<i64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || year < 1900 {
        return None;
    }
    let seconds = days_from_civil(year, month, day) * 86_400 - zone_s;
    seconds.checked_mul(1_000_000_000)?.checked_add(nanos_of_day)
}

/// Days since 1970-01-01 of a Gregorian date. Formula: Hinnant, "chrono-Compatible Low-Level Date Algorithms".
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

fn with_pattern(pattern: &str, text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    let broken_down = jiff::fmt::strtime::parse(pattern, text.trim()).ok()?;
    let timestamp = broken_down.to_timestamp().ok().or_else(|| {
        let local = broken_down.to_datetime().ok()?;
        jiff::tz::TimeZone::UTC.to_timestamp(local).ok()
    })?;
    i64::try_from(timestamp.as_nanosecond()).ok()
}

fn number(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0_i64, |sum, b| b.is_ascii_digit().then(|| sum * 10 + i64::from(b - b'0')))
}

fn month_of(name: &[u8]) -> Option<i64> {
    const MONTHS: [&[u8; 3]; 12] =
        [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];
    MONTHS.iter().position(|month| name == *month).map(|at| at as i64 + 1)
}

fn trim_start(text: &[u8]) -> &[u8] {
    text.trim_ascii_start()
}

#[cfg(test)]
mod tests {
    use super::*;

    // Expected values: `date -u -d ... +%s%N`.
    #[test]
    fn dates_of_every_style_become_nanoseconds_since_the_epoch() {
        assert_eq!(clf(b"29/Nov/2026:23:01:48 +0000"), Some(1_795_993_308_000_000_000));
        assert_eq!(clf(b"29/Nov/2026:23:04:07.703"), Some(1_795_993_447_703_000_000));
        assert_eq!(iso(b"2015-09-06T05:58:05+09:00"), Some(1_441_486_685_000_000_000));
        assert_eq!(iso(b"2022-08-24T08:12:58.475558008-07:00"), Some(1_661_353_978_475_558_008));
        assert_eq!(iso(b"2023-11-16 18:17:03.9799600"), Some(1_700_158_623_979_960_000));
        assert_eq!(iso(b"2000-02-29T00:00:00Z"), Some(951_782_400_000_000_000));
        assert_eq!(iso(b"1998-05-14 22:00"), Some(895_183_200_000_000_000));
    }

    #[test]
    fn numbers_since_the_epoch_tell_their_unit_by_their_size() {
        assert_eq!(Style::of(b"1795993308.828"), Some(Style::Epoch(Unit::Seconds)));
        assert_eq!(Style::of(b"1551783627191"), Some(Style::Epoch(Unit::Milliseconds)));
        assert_eq!(Style::of(b"1795993725960379"), Some(Style::Epoch(Unit::Microseconds)));
        assert_eq!(Style::of(b"1697087625869178417"), Some(Style::Epoch(Unit::Nanoseconds)));
        assert_eq!(Style::of(b"200"), None);
    }

    #[test]
    fn a_pattern_of_the_user_reads_a_german_date() {
        let style = Style::Pattern("%d.%m.%Y %H:%M:%S,%f".to_owned());
        assert_eq!(style.parse(b"29.11.2026 23:40:05,368"), Some(1_795_995_605_368_000_000));
        assert_eq!(style.parse(b"2026-11-29"), None);
    }

    #[test]
    fn impossible_dates_are_refused() {
        for text in ["29/Foo/2026:23:01:48 +0000", "29/Nov/2026:25:01:48 +0000", "99/Nov/2026:23:01:48 +00"] {
            assert_eq!(clf(text.as_bytes()), None, "{text}");
        }
        for text in
            ["2026-13-01T00:00:00Z", "2026-11-29T23:01:48.", "2026-11-29T23:01:48 foo", "0000-00-00T00:00"]
        {
            assert_eq!(iso(text.as_bytes()), None, "{text}");
        }
    }
}
