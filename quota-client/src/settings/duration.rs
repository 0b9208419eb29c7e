//! Durations as people write them: `"30s"`, `"100ms"`, `"1h 30m"`.

use std::time::Duration;

use serde::de::Error;
use serde::{Deserialize as _, Deserializer};

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    humantime::parse_duration(&text)
        .map_err(|error| Error::custom(format_args!("{text:?} is no duration: {error}")))
}

pub(crate) mod optional {
    use super::*;

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        super::deserialize(deserializer).map(Some)
    }
}
