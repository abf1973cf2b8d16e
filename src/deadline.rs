//! Deadlines as headers carry them, from the caller and, reduced, to the next hop.
//!
//! A [`DeadlineHeader`] reads how much time is left ([`DeadlineHeader::parse`]), which with the gate's clock makes the
//! [deadline](crate::Request::deadline) of a request: it is then refused at the door, dropped from the queue, or counted
//! as overload when its token is dropped, as soon as nobody waits for its answer. What is left goes on to the next hop
//! ([`DeadlineHeader::for_next_hop`]), less what is needed here.

use std::time::Duration;

use goodput_algorithms::Instant;
use serde::{Deserialize, Serialize};

/// How a header says how much time is left.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(tag = "header", rename_all = "kebab-case", deny_unknown_fields)]
pub enum DeadlineHeader {
    /// `grpc-timeout`: up to eight digits and a unit, of `H`, `M`, `S`, `m`, `u`, `n`.
    GrpcTimeout,
    /// `x-envoy-expected-rq-timeout-ms`: whole milliseconds.
    XEnvoyExpectedRqTimeoutMs,
    /// A header of one's own, with a whole number.
    Custom {
        /// Its name, in lower case.
        name: String,
        /// What it counts.
        unit: DeadlineUnit,
    },
}

/// What a deadline header of one's own counts.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DeadlineUnit {
    /// Milliseconds.
    Milliseconds,
    /// Seconds.
    Seconds,
}

/// A header value that is no time.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{header}: {value}` is not {expected}")]
pub struct InvalidDeadline {
    /// The header's name.
    pub header: String,
    /// Its value.
    pub value: String,
    /// What would have been right.
    pub expected: &'static str,
}

impl DeadlineHeader {
    /// The header's name, in lower case.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::GrpcTimeout => "grpc-timeout",
            Self::XEnvoyExpectedRqTimeoutMs => "x-envoy-expected-rq-timeout-ms",
            Self::Custom { name, .. } => name,
        }
    }

    /// The time left that a value says.
    ///
    /// ```
    /// use std::time::Duration;
    /// use goodput::deadline::DeadlineHeader;
    ///
    /// assert_eq!(DeadlineHeader::GrpcTimeout.parse("250m"), Ok(Duration::from_millis(250)));
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidDeadline`] if the value has another form.
    pub fn parse(&self, value: &str) -> Result<Duration, InvalidDeadline> {
        let (time_left, expected) = match self {
            Self::GrpcTimeout => {
                (parse_grpc_timeout(value), "up to eight digits and one of H, M, S, m, u, n")
            }
            Self::XEnvoyExpectedRqTimeoutMs => (parse_whole(value, MILLISECOND), "whole milliseconds"),
            Self::Custom { unit: DeadlineUnit::Milliseconds, .. } => {
                (parse_whole(value, MILLISECOND), "whole milliseconds")
            }
            Self::Custom { unit: DeadlineUnit::Seconds, .. } => (parse_whole(value, SECOND), "whole seconds"),
        };
        time_left.ok_or_else(|| InvalidDeadline {
            header: self.name().to_owned(),
            value: value.to_owned(),
            expected,
        })
    }

    /// The value that tells the next hop how much time is left of `deadline` at `now`, less `reserve` for the way there
    /// and back and for what is still to be done here. `None` if nothing is left to pass on: there is no point in
    /// sending. Rounded down.
    #[must_use]
    pub fn for_next_hop(&self, deadline: Instant, now: Instant, reserve: Duration) -> Option<String> {
        let left = deadline.since(now).checked_sub(reserve)?;
        let whole = |unit: Duration| {
            let count = left.as_nanos() / unit.as_nanos();
            (count > 0).then(|| count.to_string())
        };
        match self {
            Self::GrpcTimeout => format_grpc_timeout(left),
            Self::XEnvoyExpectedRqTimeoutMs | Self::Custom { unit: DeadlineUnit::Milliseconds, .. } => {
                whole(MILLISECOND)
            }
            Self::Custom { unit: DeadlineUnit::Seconds, .. } => whole(SECOND),
        }
    }
}

const MILLISECOND: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// From the finest to the coarsest, with its length in nanoseconds.
const GRPC_UNITS: [(char, u128); 6] = [
    ('n', 1),
    ('u', 1_000),
    ('m', 1_000_000),
    ('S', 1_000_000_000),
    ('M', 60_000_000_000),
    ('H', 3_600_000_000_000),
];

fn parse_grpc_timeout(value: &str) -> Option<Duration> {
    let unit = value.chars().next_back()?;
    let digits = value.strip_suffix(unit)?;
    if digits.len() > 8 {
        return None;
    }
    let (_, nanos) = GRPC_UNITS.into_iter().find(|&(name, _)| name == unit)?;
    let nanos = u128::from(parse_digits(digits)?) * nanos;
    // Eight digits of hours are fewer seconds than fit.
    Some(Duration::new((nanos / 1_000_000_000) as u64, (nanos % 1_000_000_000) as u32))
}

/// In the finest unit that takes no more than eight digits.
fn format_grpc_timeout(left: Duration) -> Option<String> {
    let (unit, nanos) = GRPC_UNITS.into_iter().find(|&(_, nanos)| left.as_nanos() / nanos < 100_000_000)?;
    let count = left.as_nanos() / nanos;
    (count > 0).then(|| format!("{count}{unit}"))
}

fn parse_whole(value: &str, unit: Duration) -> Option<Duration> {
    let count = parse_digits(value.trim())?;
    let seconds = count.checked_mul(u64::try_from(unit.as_millis()).ok()?)? / 1_000;
    let millis = count * u64::try_from(unit.as_millis()).ok()? % 1_000;
    Some(Duration::from_secs(seconds) + Duration::from_millis(millis))
}

/// Digits alone: `u64::from_str` would take a plus sign too.
fn parse_digits(digits: &str) -> Option<u64> {
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn custom(unit: DeadlineUnit) -> DeadlineHeader {
        DeadlineHeader::Custom { name: String::from("x-time-left"), unit }
    }

    #[test]
    fn every_unit_of_grpc_timeout_is_read() {
        for (value, time_left) in [
            ("2H", Duration::from_secs(7_200)),
            ("3M", Duration::from_secs(180)),
            ("99999999S", Duration::from_secs(99_999_999)),
            ("250m", Duration::from_millis(250)),
            ("100u", Duration::from_micros(100)),
            ("1n", Duration::from_nanos(1)),
            ("0S", Duration::ZERO),
            ("99999999H", Duration::from_secs(99_999_999 * 3_600)),
        ] {
            assert_eq!(DeadlineHeader::GrpcTimeout.parse(value), Ok(time_left), "{value}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused_with_the_remedy() {
        for value in ["", "S", "1", "123456789S", "-1S", "+1S", "1.5S", "1h", "1 S", "1µ", "٣S"] {
            let error = DeadlineHeader::GrpcTimeout.parse(value).unwrap_err();
            assert!(error.to_string().contains("eight digits"), "{error}");
        }
        for value in ["", "-1", "1.5", "1s", "99999999999999999999"] {
            assert!(DeadlineHeader::XEnvoyExpectedRqTimeoutMs.parse(value).is_err(), "{value}");
            assert!(custom(DeadlineUnit::Seconds).parse(value).is_err(), "{value}");
        }
        assert!(custom(DeadlineUnit::Seconds).parse("18446744073709551615").is_err());
    }

    #[test]
    fn whole_numbers_are_read_in_their_unit() {
        let envoy = DeadlineHeader::XEnvoyExpectedRqTimeoutMs;
        assert_eq!(envoy.parse("1500"), Ok(Duration::from_millis(1_500)));
        assert_eq!(custom(DeadlineUnit::Milliseconds).parse(" 20 "), Ok(Duration::from_millis(20)));
        assert_eq!(custom(DeadlineUnit::Seconds).parse("20"), Ok(Duration::from_secs(20)));
        assert_eq!(envoy.parse("18446744073709551615").unwrap().as_millis(), u128::from(u64::MAX));
    }

    #[test]
    fn the_next_hop_is_told_what_is_left_less_the_reserve() {
        let deadline = Instant::from_nanos(2_000_000_000);
        let now = Instant::from_nanos(500_000_000);
        let reserve = Duration::from_millis(100);
        let next = |header: DeadlineHeader| header.for_next_hop(deadline, now, reserve);
        assert_eq!(next(DeadlineHeader::GrpcTimeout).as_deref(), Some("1400000u"));
        assert_eq!(next(DeadlineHeader::XEnvoyExpectedRqTimeoutMs).as_deref(), Some("1400"));
        assert_eq!(next(custom(DeadlineUnit::Seconds)).as_deref(), Some("1"));
        assert_eq!(DeadlineHeader::GrpcTimeout.for_next_hop(deadline, now, Duration::from_secs(2)), None);
        assert_eq!(
            DeadlineHeader::XEnvoyExpectedRqTimeoutMs.for_next_hop(deadline, deadline, Duration::ZERO),
            None
        );
    }

    #[test]
    fn a_config_file_names_the_header() {
        let parse = |text| toml::from_str::<DeadlineHeader>(text);
        assert_eq!(parse("header = \"grpc-timeout\""), Ok(DeadlineHeader::GrpcTimeout));
        assert_eq!(
            parse("header = \"x-envoy-expected-rq-timeout-ms\""),
            Ok(DeadlineHeader::XEnvoyExpectedRqTimeoutMs)
        );
        assert_eq!(
            parse("header = \"custom\"\nname = \"x-time-left\"\nunit = \"seconds\""),
            Ok(custom(DeadlineUnit::Seconds))
        );
    }

    proptest! {
        #[test]
        fn what_is_passed_on_reads_back_as_no_more_than_was_left(left in 0_u64..u64::MAX, reserve in 0_u64..10_000_000_000) {
            let reserve = Duration::from_nanos(reserve);
            let headers = [DeadlineHeader::GrpcTimeout, DeadlineHeader::XEnvoyExpectedRqTimeoutMs,
                custom(DeadlineUnit::Seconds)];
            for header in headers {
                if let Some(value) = header.for_next_hop(Instant::from_nanos(left), Instant::ZERO, reserve) {
                    let read = header.parse(&value).unwrap();
                    let truth = Duration::from_nanos(left) - reserve;
                    prop_assert!(read <= truth && !read.is_zero());
                    // Less than the coarsest unit, which gRPC needs above 190 years.
                    prop_assert!(truth - read < Duration::from_secs(3_600));
                }
            }
        }
    }
}
