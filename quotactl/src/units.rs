use crate::args::Resource;

/// Seconds of a window, over which memory is told as an average.
const WINDOW: f64 = 60.0;

/// An amount as an operator reads it: seconds of CPU, memory held on average over a minute, bytes.
pub(crate) fn amount(resource: Resource, value: f64) -> String {
    match resource {
        Resource::Cpu => format!("{value:.1} s"),
        Resource::Memory => bytes(value / WINDOW),
        Resource::Network => bytes(value),
    }
}

pub(crate) fn bytes(value: f64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = value.max(0.0);
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{value:.0} B") } else { format!("{value:.1} {}", UNITS[unit]) }
}

/// A time that is left, or ago.
pub(crate) fn seconds(value: f64) -> String {
    let whole = value.max(0.0).ceil() as u64;
    match whole {
        0..60 => format!("{whole} s"),
        60..3600 => format!("{} min {} s", whole / 60, whole % 60),
        3600..86_400 => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
        _ => format!("{} d {} h", whole / 86_400, whole % 86_400 / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_told_in_units_that_can_be_read() {
        assert_eq!(amount(Resource::Cpu, 104.25), "104.2 s");
        assert_eq!(amount(Resource::Memory, 515_396_075_520.0), "8.0 GiB");
        assert_eq!(amount(Resource::Network, 1023.0), "1023 B");
        assert_eq!(bytes(1e20), "90949470.2 TiB");
        assert_eq!(bytes(-1.0), "0 B");
    }

    #[test]
    fn times_are_told_in_two_units_at_most() {
        assert_eq!([0.2, 61.0, 3_661.0, 90_000.0].map(seconds), ["1 s", "1 min 1 s", "1 h 1 min", "1 d 1 h"]);
    }
}
