//! Parts of a limit, in integers.
//!
//! A [`Share`] is a part of a whole in millionths, so that shares that are written down as decimals add up exactly. An
//! [`Allowance`] is how much of a bound somebody may use: a share of it, all but a reserve, or a count. Both are written
//! in config files as `docs/configuration.md` says.

use std::fmt;

use goodput_algorithms::InvalidSettings;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser::SerializeMap};

/// A part of a whole, from none (0) to all (1).
///
/// Kept in whole millionths, so that a tenth is exactly a tenth however often it is added up. In a config file a
/// number from 0 to 1.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Share(u32);

impl Share {
    /// Nothing.
    pub const NONE: Self = Self(0);

    /// Everything.
    pub const ALL: Self = Self(Self::MILLION);

    const MILLION: u32 = 1_000_000;

    /// The share `part`, to the nearest millionth.
    ///
    /// # Errors
    ///
    /// [`InvalidSettings`] unless `part` lies within 0 and 1.
    pub fn new(part: f64) -> Result<Self, InvalidSettings> {
        if !(0.0..=1.0).contains(&part) {
            return Err(InvalidSettings::new("share", format!("must lie within 0 and 1, not {part}")));
        }
        Ok(Self((part * f64::from(Self::MILLION)).round() as u32))
    }

    pub(crate) const fn of_hundred(hundredths: u32) -> Self {
        assert!(hundredths <= 100);
        Self(hundredths * (Self::MILLION / 100))
    }

    /// As a number from 0 to 1.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / f64::from(Self::MILLION)
    }

    /// As whole millionths, from 0 to 1,000,000.
    #[must_use]
    pub const fn millionths(self) -> u32 {
        self.0
    }

    /// This part of `whole`, rounded down.
    #[must_use]
    pub const fn floor_of(self, whole: usize) -> usize {
        (whole as u128 * self.0 as u128 / Self::MILLION as u128) as usize
    }

    /// This part of `whole`, rounded up: `n < share · whole` exactly when `n < share.ceil_of(whole)`, for whole `n`.
    #[must_use]
    pub const fn ceil_of(self, whole: usize) -> usize {
        (whole as u128 * self.0 as u128).div_ceil(Self::MILLION as u128) as usize
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_f64().fmt(f)
    }
}

impl Serialize for Share {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.as_f64())
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl de::Visitor<'_> for Visitor {
            type Value = Share;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a share, from 0 to 1")
            }

            fn visit_f64<E: de::Error>(self, part: f64) -> Result<Share, E> {
                Share::new(part).map_err(|_| E::invalid_value(de::Unexpected::Float(part), &self))
            }

            fn visit_i64<E: de::Error>(self, part: i64) -> Result<Share, E> {
                self.visit_f64(part as f64)
            }

            fn visit_u64<E: de::Error>(self, part: u64) -> Result<Share, E> {
                self.visit_f64(part as f64)
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

/// How much of a bound somebody may use.
///
/// In a config file a share (`0.8`), all but some (`{ all_but = 2 }`) or a count (`{ at_most = 40 }`).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Allowance {
    /// A part of the bound, rounded up, so that a share above zero of a bound above zero is never nothing.
    Share(Share),
    /// All but so many places, which are a reserve for others.
    AllBut(usize),
    /// So many places, however large the bound is.
    AtMost(usize),
}

impl Allowance {
    /// The whole bound.
    pub const ALL: Self = Self::Share(Share::ALL);

    /// The places that this allows of `bound`. Never more than `bound`.
    #[must_use]
    pub fn of(self, bound: usize) -> usize {
        match self {
            Self::Share(share) => share.ceil_of(bound),
            Self::AllBut(reserve) => bound.saturating_sub(reserve),
            Self::AtMost(count) => count.min(bound),
        }
    }

    /// Requires that the allowance means what it says for a bound that never moves: a reserve or a count larger than
    /// `bound` is a contradiction there, though it makes sense for a limit that may grow.
    ///
    /// # Errors
    ///
    /// [`InvalidSettings`] naming `field`.
    pub fn check_against(self, field: &'static str, bound: usize) -> Result<(), InvalidSettings> {
        match self {
            Self::AllBut(count) | Self::AtMost(count) if count > bound => Err(InvalidSettings::new(
                field,
                format!("must be at most the capacity ({bound}), not {count}"),
            )),
            _ => Ok(()),
        }
    }
}

impl Serialize for Allowance {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (name, count) = match self {
            Self::Share(share) => return share.serialize(serializer),
            Self::AllBut(reserve) => ("all_but", reserve),
            Self::AtMost(count) => ("at_most", count),
        };
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry(name, count)?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for Allowance {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Allowance;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a share from 0 to 1, { all_but = count } or { at_most = count }")
            }

            fn visit_f64<E: de::Error>(self, part: f64) -> Result<Allowance, E> {
                Share::new(part)
                    .map(Allowance::Share)
                    .map_err(|_| E::invalid_value(de::Unexpected::Float(part), &self))
            }

            fn visit_i64<E: de::Error>(self, part: i64) -> Result<Allowance, E> {
                self.visit_f64(part as f64)
            }

            fn visit_u64<E: de::Error>(self, part: u64) -> Result<Allowance, E> {
                self.visit_f64(part as f64)
            }

            fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Allowance, A::Error> {
                let Some(name) = map.next_key::<String>()? else {
                    return Err(de::Error::invalid_length(0, &self));
                };
                let allowance = match name.as_str() {
                    "all_but" => Allowance::AllBut(map.next_value()?),
                    "at_most" => Allowance::AtMost(map.next_value()?),
                    _ => return Err(de::Error::unknown_field(&name, &["all_but", "at_most"])),
                };
                if map.next_key::<String>()?.is_some() {
                    return Err(de::Error::invalid_length(2, &self));
                }
                Ok(allowance)
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Deserialize, PartialEq, Serialize)]
    struct Holder {
        value: Allowance,
    }

    #[test]
    fn a_tenth_of_ten_is_one_and_seven_hundredths_of_a_hundred_are_seven() {
        // In floating point 0.07 · 100 is above 7, and its ceiling 8.
        assert_eq!(Share::new(0.1).unwrap().ceil_of(10), 1);
        assert_eq!(Share::new(0.07).unwrap().ceil_of(100), 7);
    }

    #[test]
    fn a_share_outside_zero_and_one_is_refused() {
        for part in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
            assert!(Share::new(part).is_err(), "{part}");
        }
    }

    #[test]
    fn an_allowance_round_trips_through_a_config_file() {
        for (text, value) in [
            ("value = 0.8\n", Allowance::Share(Share::of_hundred(80))),
            ("[value]\nall_but = 2\n", Allowance::AllBut(2)),
            ("[value]\nat_most = 40\n", Allowance::AtMost(40)),
        ] {
            let holder = Holder { value };
            assert_eq!(toml::from_str::<Holder>(text).unwrap(), holder);
            assert_eq!(toml::to_string(&holder).unwrap(), text);
        }
        assert_eq!(toml::from_str::<Holder>("value = 1").unwrap().value, Allowance::ALL);
    }

    #[test]
    fn a_count_where_a_share_belongs_is_refused_with_the_remedy() {
        let error = toml::from_str::<Holder>("value = 40").unwrap_err().to_string();
        assert!(error.contains("at_most"), "{error}");
        let error = toml::from_str::<Holder>("value = { most = 40 }").unwrap_err().to_string();
        assert!(error.contains("at_most"), "{error}");
    }

    proptest! {
        #[test]
        fn a_share_never_exceeds_its_whole_and_rounds_by_less_than_one(
            millionths in 0_u32..=1_000_000, whole in 0_usize..=usize::MAX
        ) {
            let share = Share(millionths);
            prop_assert!(share.ceil_of(whole) <= whole);
            prop_assert!(share.ceil_of(whole) - share.floor_of(whole) <= 1);
            prop_assert!(millionths == 0 || whole == 0 || share.ceil_of(whole) >= 1);
        }
    }
}
