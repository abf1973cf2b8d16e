//! Times that may be missing, in config files: `"never"` where a missing field stands for a default.

use std::{fmt, time::Duration};

use serde::{Deserializer, Serializer, de};

pub(crate) fn serialize<S: Serializer>(time: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => humantime_serde::serialize(time, serializer),
        None => serializer.serialize_str("never"),
    }
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    struct Visitor;

    impl de::Visitor<'_> for Visitor {
        type Value = Option<Duration>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a duration, or \"never\"")
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
            if text == "never" {
                return Ok(None);
            }
            humantime_serde::deserialize(de::value::StrDeserializer::<E>::new(text))
                .map(Some)
                .map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
        }
    }

    deserializer.deserialize_str(Visitor)
}
