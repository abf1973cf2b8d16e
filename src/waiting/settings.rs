use std::{fmt, time::Duration};

use goodput_algorithms::InvalidSettings;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::CoDelSettings;
use crate::{
    priority::CriticalityShares,
    share::{Allowance, Share},
};

/// Longer than anybody waits: a hundred years of 365.25 days.
const FOREVER: Duration = Duration::from_secs(3_155_760_000);

/// Who of those that wait alike is served first.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Whoever came first.
    #[default]
    FirstIn,
    /// Whoever came last: under overload it is the one whose caller is still there.
    LastIn,
    /// Whoever came last while a queue stands ([`WaitingSettings::standing_above`]), else whoever came first.
    Adaptive,
}

/// When a request leaves whose time is up.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Expiry {
    /// At once.
    #[default]
    AtOnce,
    /// When its turn comes: until then it takes a place of the queue, as where nobody looks at more than the head.
    AtTurn,
}

/// Settings of a [`WaitingRoom`](super::WaitingRoom).
///
/// The default is a short queue: at most half as many as the limit, for at most a second, the most critical first.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct WaitingSettings {
    /// How many may wait, of the limit: a share of it, or a count, which may exceed it. Default 0.5. Zero refuses at
    /// once.
    pub max_waiting: QueueBound,
    /// How long a request may wait. Default 1 s.
    #[serde(with = "humantime_serde")]
    pub max_wait: Duration,
    /// Who is served first among those of the same criticality. Default first-in.
    pub order: Order,
    /// For [`Order::Adaptive`]: a queue stands while more wait than this part of `max_waiting`. Default
    /// `{ at_most = 0 }`: any.
    pub standing_above: Allowance,
    /// For [`Order::Adaptive`]: and have done so for this long. Default 100 ms.
    #[serde(with = "humantime_serde")]
    pub standing_for: Duration,
    /// Whether the more critical are served first. Else all stand in one line, whatever the shares are. Default yes.
    pub by_criticality: bool,
    /// How much of `max_waiting` each criticality may use. Default 1, 1, 0.5 and 0.25.
    pub shares: CriticalityShares,
    /// Whether a more critical request takes the place of a less critical one when the queue is full. Only with
    /// `by_criticality`. Default yes.
    pub displace: bool,
    /// A line that has been passed over by this many more critical requests less one is served next, so that the least
    /// critical get one place of so many at least. 0 for never. Default 20.
    pub passed_over_at_most: u32,
    /// Controlled delay on the time waited. Default none: a queue this short needs it not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub codel: Option<CoDelSettings>,
    /// A request with less time than this before its deadline is expired: it could not be served in time. Default 0.
    #[serde(with = "humantime_serde")]
    pub least_time_left: Duration,
    /// When a request leaves whose time is up: at once, or when its turn comes. Default at once.
    pub expiry: Expiry,
    /// Whether a request is refused at the door when the wait ahead, by the rate at which the queue drains, exceeds
    /// its deadline or `max_wait`. Default yes.
    pub refuse_hopeless: bool,
}

impl WaitingSettings {
    /// As many as `max_waiting`, first-in first-out for as long as they like, and nothing else.
    #[must_use]
    pub fn plain(max_waiting: usize) -> Self {
        Self {
            max_waiting: QueueBound::Count(max_waiting),
            max_wait: FOREVER,
            by_criticality: false,
            shares: CriticalityShares::EQUAL,
            refuse_hopeless: false,
            ..Self::default()
        }
    }

    /// Nobody waits.
    #[must_use]
    pub fn none() -> Self {
        Self { max_waiting: QueueBound::Count(0), ..Self::default() }
    }

    /// Whether anybody may wait.
    #[must_use]
    pub const fn lets_wait(&self) -> bool {
        !matches!(self.max_waiting, QueueBound::Count(0) | QueueBound::OfLimit(Share::NONE))
    }

    pub(crate) fn check(&self) -> Result<(), InvalidSettings> {
        if self.max_wait.is_zero() {
            return Err(InvalidSettings::new(
                "max_wait",
                "must be above 0; for no waiting, set `max_waiting` to 0",
            ));
        }
        if self.passed_over_at_most == 1 {
            return Err(InvalidSettings::new("passed_over_at_most", "must be 0 for never, or at least 2"));
        }
        self.codel.as_ref().map_or(Ok(()), CoDelSettings::check).map_err(|error| error.within("codel"))
    }
}

impl Default for WaitingSettings {
    fn default() -> Self {
        Self {
            max_waiting: QueueBound::OfLimit(Share::of_hundred(50)),
            max_wait: Duration::from_secs(1),
            order: Order::FirstIn,
            standing_above: Allowance::AtMost(0),
            standing_for: Duration::from_millis(100),
            by_criticality: true,
            shares: CriticalityShares {
                sheddable_plus: Allowance::Share(Share::of_hundred(50)),
                sheddable: Allowance::Share(Share::of_hundred(25)),
                ..CriticalityShares::EQUAL
            },
            displace: true,
            passed_over_at_most: 20,
            codel: None,
            least_time_left: Duration::ZERO,
            expiry: Expiry::AtOnce,
            refuse_hopeless: true,
        }
    }
}

/// How many may wait. In a config file a whole number (`100`), or a part of the limit with a decimal point (`0.5`).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum QueueBound {
    /// So many.
    Count(usize),
    /// This part of the limit, rounded up.
    OfLimit(Share),
}

impl QueueBound {
    /// How many may wait under `limit`.
    #[must_use]
    pub const fn under(self, limit: usize) -> usize {
        match self {
            Self::Count(count) => count,
            Self::OfLimit(share) => share.ceil_of(limit),
        }
    }
}

impl Serialize for QueueBound {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Count(count) => count.serialize(serializer),
            Self::OfLimit(share) => share.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for QueueBound {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl de::Visitor<'_> for Visitor {
            type Value = QueueBound;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number, or a part of the limit from 0.0 to 1.0")
            }

            fn visit_u64<E: de::Error>(self, count: u64) -> Result<QueueBound, E> {
                usize::try_from(count)
                    .map(QueueBound::Count)
                    .map_err(|_| E::invalid_value(de::Unexpected::Unsigned(count), &self))
            }

            fn visit_i64<E: de::Error>(self, count: i64) -> Result<QueueBound, E> {
                usize::try_from(count)
                    .map(QueueBound::Count)
                    .map_err(|_| E::invalid_value(de::Unexpected::Signed(count), &self))
            }

            fn visit_f64<E: de::Error>(self, part: f64) -> Result<QueueBound, E> {
                Share::new(part)
                    .map(QueueBound::OfLimit)
                    .map_err(|_| E::invalid_value(de::Unexpected::Float(part), &self))
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_config_file_gives_a_count_or_a_part_of_the_limit() {
        let bound = |text: &str| toml::from_str::<WaitingSettings>(text).map(|settings| settings.max_waiting);
        assert_eq!(bound("max_waiting = 1"), Ok(QueueBound::Count(1)));
        assert_eq!(bound("max_waiting = 1.0"), Ok(QueueBound::OfLimit(Share::ALL)));
        for wrong in ["max_waiting = -1", "max_waiting = 1.5", "max_waiting = \"all\""] {
            let error = bound(wrong).unwrap_err().to_string();
            assert!(error.contains("part of the limit"), "{error}");
        }
    }

    #[test]
    fn settings_round_trip() {
        let full = WaitingSettings { codel: Some(CoDelSettings::default()), ..WaitingSettings::default() };
        for settings in [full, WaitingSettings::plain(40), WaitingSettings::none()] {
            let text = toml::to_string(&settings).unwrap();
            assert_eq!(toml::from_str::<WaitingSettings>(&text).unwrap(), settings, "{text}");
        }
    }

    #[test]
    fn settings_that_cannot_hold_are_named() {
        let never = WaitingSettings { max_wait: Duration::ZERO, ..WaitingSettings::default() };
        assert_eq!(never.check().unwrap_err().field, "max_wait");
        let always = WaitingSettings { passed_over_at_most: 1, ..WaitingSettings::default() };
        assert_eq!(always.check().unwrap_err().field, "passed_over_at_most");
        assert!(toml::from_str::<WaitingSettings>("max_wating = 3").is_err());
    }
}
