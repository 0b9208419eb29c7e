use std::time::Duration;

use http::HeaderMap;
use tokio::time::Instant;

/// When the caller of a gRPC request that comes now gives up, by its header `grpc-timeout`: at most 8 digits and a unit. None where it
/// does not say, or says what is no such thing.
pub(super) fn of(headers: &HeaderMap) -> Option<Instant> {
    let timeout = parse(headers.get("grpc-timeout")?.to_str().ok()?)?;
    Instant::now().checked_add(timeout)
}

fn parse(timeout: &str) -> Option<Duration> {
    let (digits, unit) = timeout.split_at_checked(timeout.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(number * 3600)),
        "M" => Some(Duration::from_secs(number * 60)),
        "S" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_millis(number)),
        "u" => Some(Duration::from_micros(number)),
        "n" => Some(Duration::from_nanos(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deadline_of_grpc() {
        for (text, expected) in [
            ("1H", Some(Duration::from_secs(3600))),
            ("2M", Some(Duration::from_secs(120))),
            ("99999999S", Some(Duration::from_secs(99_999_999))),
            ("100m", Some(Duration::from_millis(100))),
            ("0u", Some(Duration::ZERO)),
            ("7n", Some(Duration::from_nanos(7))),
            ("", None),
            ("S", None),
            ("1", None),
            ("1s", None),
            ("+1S", None),
            ("-1S", None),
            ("123456789S", None),
            ("1ü", None),
        ] {
            assert_eq!(parse(text), expected, "{text:?}");
        }
    }
}
