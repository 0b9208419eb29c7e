//! Durations and sizes as an operator writes them, and amounts of a resource in internal units.

use std::fmt::Display;
use std::time::Duration;

use bytesize::ByteSize;
use humantime::format_duration;
use quota_core::{Limit, Resource};

/// From a number with a unit, or several: `"1m 30s"`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text)
        .map_err(|_| "must be a duration with its unit, such as \"100s\", \"50ms\" or \"1m 30s\"".into())
}

/// From a number with a unit.
pub(super) fn duration_within(text: &str, least: Duration, most: Duration) -> Result<Duration, String> {
    let duration = duration(text)?;
    if (least..=most).contains(&duration) {
        Ok(duration)
    } else {
        Err(format!("must be from {} to {}", format_duration(least), format_duration(most)))
    }
}

/// From a whole number between two others.
pub(super) fn within<T: TryFrom<i64> + PartialOrd + Display>(
    number: i64,
    least: T,
    most: T,
) -> Result<T, String> {
    match T::try_from(number) {
        Ok(number) if (&least..=&most).contains(&&number) => Ok(number),
        _ => Err(format!("must be from {least} to {most}")),
    }
}

/// An amount of a resource, in its internal unit; memory is a size held for a while, rounded up to KiB-seconds.
pub(super) fn amount(resource: Resource, text: &str, held_for: Duration) -> Result<u128, String> {
    match resource {
        Resource::Cpu => {
            let duration = duration(text)?;
            if duration.subsec_nanos() % 1000 > 0 {
                return Err("must be whole microseconds".into());
            }
            Ok(duration.as_micros())
        }
        Resource::Memory => Ok((size(text)? * held_for.as_millis()).div_ceil(1024 * 1000)),
        Resource::Network => size(text),
    }
}

/// A limit as [`amount`] reads it: of a size or a duration that was written, the same.
pub(crate) fn written_limit(resource: Resource, limit: Limit, held_for: Duration) -> String {
    match (resource, limit) {
        (_, Limit::Unlimited) => "unlimited".to_owned(),
        (Resource::Cpu, Limit::At(micros)) => format_duration(Duration::from_micros(micros)).to_string(),
        (Resource::Memory, Limit::At(amount)) => {
            let bytes = u128::from(amount) * 1024 * 1000 / held_for.as_millis().max(1);
            written_size(bytes)
        }
        (Resource::Network, Limit::At(bytes)) => written_size(bytes.into()),
    }
}

/// In the largest unit of which it is a whole number.
fn written_size(bytes: u128) -> String {
    const UNITS: [(&str, u32); 5] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10), ("B", 0)];
    let fits = |(_, bits): &(&str, u32)| bytes.trailing_zeros() >= *bits;
    let (unit, bits) = UNITS.into_iter().find(|unit| bytes > 0 && fits(unit)).unwrap_or(("B", 0));
    format!("{}{unit}", bytes >> bits)
}

/// Bytes. A number without a unit is refused, unless it is 0: it is too easily taken for MiB. So is a fraction of a
/// byte, which would be 0.
fn size(text: &str) -> Result<u128, String> {
    let has_unit = text == "0" || text.ends_with(|last: char| last.is_ascii_alphabetic());
    let is_zero = !text.contains(|digit| matches!(digit, '1'..='9'));
    match text.parse::<ByteSize>() {
        Ok(ByteSize(bytes)) if has_unit && (bytes == 0) == is_zero => Ok(bytes.into()),
        _ => Err("must be a size with its unit, such as \"8GiB\", \"1.5MB\" or \"512B\"".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_written_as_it_is_read() {
        for window in [60, 3600].map(Duration::from_secs) {
            for (resource, text) in [
                (Resource::Cpu, "10m"),
                (Resource::Cpu, "1s 500ms"),
                (Resource::Cpu, "0s"),
                (Resource::Memory, "4GiB"),
                (Resource::Memory, "1000KiB"),
                (Resource::Memory, "1TiB"),
                (Resource::Memory, "0B"),
                (Resource::Network, "513B"),
                (Resource::Network, "3MiB"),
            ] {
                let amount = u64::try_from(amount(resource, text, window).unwrap()).unwrap();
                assert_eq!(written_limit(resource, Limit::At(amount), window), text);
            }
        }
        // A KiB-second is 17 bytes held for a minute: the same limit, in other words.
        let minute = Duration::from_secs(60);
        let other = written_limit(Resource::Memory, Limit::At(46), minute);
        assert_eq!((other.as_str(), amount(Resource::Memory, &other, minute)), ("785B", Ok(46)));
        assert_eq!(written_limit(Resource::Cpu, Limit::Unlimited, Duration::ZERO), "unlimited");
    }
}
