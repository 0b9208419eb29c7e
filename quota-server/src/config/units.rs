//! Durations and sizes as an operator writes them, and amounts of a resource in internal units.

use std::fmt::Display;
use std::time::Duration;

use bytesize::ByteSize;
use humantime::format_duration;
use quota_core::Resource;

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
