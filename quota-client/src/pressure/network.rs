//! What the network carries (proc(5): `/proc/PID/net/dev`).

use std::path::Path;

use super::counters::Counters;
use super::files::Files;
use super::measured::{Absent, Measured, read, share};

/// Use of the line rate, in bytes a second, in the direction that is used more.
pub(super) fn measure(
    files: &impl Files,
    process: &Path,
    line_rate: u64,
    counters: &mut Counters,
) -> Measured {
    let file = process.join("net/dev");
    let text = read(files, &file)?;
    let (received, sent) = carried(&text).ok_or_else(|| Absent::garbage(&file, &text))?;
    let received = counters.rate(&file, "received", received);
    let sent = counters.rate(&file, "sent", sent);
    let rate = received.zip(sent).ok_or(Absent::Unset)?;
    Ok(share(rate.0.max(rate.1), line_rate as f64, &file))
}

/// Bytes that all interfaces but the loopback received and sent. Two lines are a heading, without a colon.
fn carried(text: &str) -> Option<(u64, u64)> {
    let mut total = (0u64, 0u64);
    for (name, counts) in text.lines().filter_map(|line| line.split_once(':')) {
        if name.trim() == "lo" {
            continue;
        }
        let mut counts = counts.split_ascii_whitespace().map(str::parse::<u64>);
        let (received, sent) = (counts.next()?.ok()?, counts.nth(7)?.ok()?);
        total = (total.0.saturating_add(received), total.1.saturating_add(sent));
    }
    text.contains('|').then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADING: &str = "Inter-|   Receive   |  Transmit\n face |bytes packets|bytes packets\n";

    #[test]
    fn all_interfaces_but_the_loopback_count() {
        let text = format!(
            "{HEADING}    lo: 9 1 0 0 0 0 0 0 9 1 0 0 0 0 0 0\n  eth0: 100 8 0 0 0 0 0 0 7 3 0 0 0 0 0 0\n\
             eth1:23 8 0 0 0 0 0 0 5 3 0 0 0 0 0 0\n"
        );
        assert_eq!(carried(&text), Some((123, 12)));
        assert_eq!(carried(HEADING), Some((0, 0)));
    }

    #[test]
    fn what_is_not_understood_is_not_nothing() {
        assert_eq!(carried(""), None);
        for line in ["eth0: 1 2 3", "eth0: x 0 0 0 0 0 0 0 7", "eth0:", "eth0: -1 0 0 0 0 0 0 0 7"] {
            assert_eq!(carried(&format!("{HEADING}{line}\n")), None, "{line}");
        }
    }
}
