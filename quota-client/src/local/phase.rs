use std::time::Duration;

use tokio::time::Instant;

/// For so long after the service is back, or an interval of collecting, requests are judged here too: in that time what was
/// used here, and not yet collected, is, and work that the service knows nothing of has begun to be charged.
const AT_LEAST: Duration = Duration::from_secs(1);

/// For no longer: where reports are never acknowledged, the service's word counts alone.
const AT_MOST: Duration = Duration::from_secs(5);

/// Whether the service knows what was used here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    /// It does.
    #[default]
    Known,
    /// It is away.
    Away,
    /// It is back, and may not have been told yet.
    Back { since: Instant },
}

impl Phase {
    pub(super) fn unchecked(&mut self) {
        *self = Self::Away;
    }

    /// Returns whether requests are to be judged here too. What is used is collected once an interval, and `is_reported`
    /// when all of that is acknowledged.
    pub(super) fn checked(&mut self, now: Instant, interval: Duration, is_reported: bool) -> bool {
        let since = match *self {
            Self::Known => return false,
            Self::Away => now,
            Self::Back { since } => since,
        };
        let back = now.saturating_duration_since(since);
        let is_known = back >= AT_MOST || (back >= AT_LEAST.max(interval) && is_reported);
        *self = if is_known { Self::Known } else { Self::Back { since } };
        !is_known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_millis(10);

    #[test]
    fn requests_are_judged_here_too_until_what_was_used_is_reported() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut phase = Phase::default();
        assert!(!phase.checked(start, INTERVAL, false), "nothing has happened");
        phase.unchecked();
        for (millis, is_reported, judged_here) in [
            (0, true, true),
            (999, true, true),
            (1000, false, true),
            (1500, true, false),
            (1500, false, false),
        ] {
            assert_eq!(phase.checked(at(millis), INTERVAL, is_reported), judged_here, "after {millis} ms");
        }
    }

    #[test]
    fn a_service_that_acknowledges_nothing_decides_alone_after_a_while() {
        let start = Instant::now();
        let mut phase = Phase::Away;
        assert!(phase.checked(start, INTERVAL, false));
        assert!(phase.checked(start + AT_MOST - Duration::from_nanos(1), INTERVAL, false));
        assert!(!phase.checked(start + AT_MOST, INTERVAL, false));
    }

    #[test]
    fn one_that_goes_away_again_begins_anew() {
        let start = Instant::now();
        let mut phase = Phase::Away;
        assert!(phase.checked(start, INTERVAL, true));
        phase.unchecked();
        assert!(phase.checked(start + AT_LEAST, INTERVAL, true));
        assert!(!phase.checked(start + 2 * AT_LEAST, INTERVAL, true));
    }

    #[test]
    fn what_is_collected_seldom_is_waited_for() {
        let (start, interval) = (Instant::now(), Duration::from_secs(3));
        let mut phase = Phase::Away;
        assert!(phase.checked(start, interval, true));
        assert!(phase.checked(start + AT_LEAST, interval, true));
        assert!(!phase.checked(start + interval, interval, true));
    }
}
