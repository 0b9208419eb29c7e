use std::time::Duration;

use quota_core::{Breach, WindowLength};

/// A wait grows by at most this share, so that those who are refused together do not return together.
const SPREAD: f64 = 0.2;

/// The longest wait that repeated attempts lead to, jitter apart.
const MAX_BACKOFF: Duration = Duration::from_secs(300);

/// How waits are spread: a source of numbers from 0 to 1.
#[derive(Clone, Copy, Debug)]
pub struct Jitter(fn() -> f64);

impl Default for Jitter {
    fn default() -> Self {
        Self(fastrand::f64)
    }
}

impl Jitter {
    /// Always the same share of the spread, for tests.
    pub const fn none() -> Self {
        Self(|| 0.0)
    }

    /// The wait, or up to a fifth more, and never less.
    fn spread(self, wait: Duration) -> Duration {
        wait + wait.mul_f64(SPREAD * (self.0)().clamp(0.0, 1.0))
    }
}

/// When to come back, the same wherever an answer says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Waiting this long on otherwise idle accounts leads to an allow.
    pub after: Duration,
    /// Waiting does not help.
    pub permanent: bool,
}

impl Retry {
    pub(super) fn new(breach: &Breach, jitter: Jitter) -> Self {
        Self { after: jitter.spread(breach.retry_after), permanent: breach.permanent }
    }

    /// The same for the `attempt`th try in a row, counted from 1: the wait doubles with each.
    pub(super) fn for_attempt(breach: &Breach, attempt: u32, window: WindowLength, jitter: Jitter) -> Self {
        let doublings = attempt.saturating_sub(1).min(16);
        let grown = breach.retry_after.saturating_mul(1 << doublings).min(MAX_BACKOFF.max(window.length()));
        Self { after: jitter.spread(grown.max(breach.retry_after)), permanent: breach.permanent }
    }

    /// After so long, or a little more.
    pub(super) fn soon(after: Duration, jitter: Jitter) -> Self {
        Self { after: jitter.spread(after), permanent: false }
    }

    /// The header `Retry-After`: whole seconds, rounded up, at least 1.
    pub fn header_seconds(self) -> u64 {
        (self.after.as_secs() + u64::from(self.after.subsec_nanos() > 0)).max(1)
    }
}

#[cfg(test)]
mod tests {
    use quota_core::{Account, Ipv6Prefix, Kind, Limit, Resource, Scope};

    use super::*;

    fn breach(millis: u64) -> Breach {
        Breach {
            account: Account::new(Kind::User, "alice", Ipv6Prefix::default()).unwrap(),
            resource: Resource::Cpu,
            scope: Scope::Cluster,
            used: 1,
            limit: Limit::At(1),
            retry_after: Duration::from_millis(millis),
            permanent: false,
        }
    }

    #[test]
    fn f25_the_header_is_whole_seconds_rounded_up_and_at_least_one() {
        for (millis, seconds) in [(0, 1), (1, 1), (200, 1), (1000, 1), (1010, 2), (59_900, 60), (60_000, 60)]
        {
            assert_eq!(Retry::new(&breach(millis), Jitter::none()).header_seconds(), seconds, "{millis} ms");
        }
    }

    #[test]
    fn f25_jitter_goes_upward_by_a_fifth_at_most_and_spreads() {
        let waits: Vec<Duration> =
            (0..200).map(|_| Retry::new(&breach(10_000), Jitter::default()).after).collect();
        let (least, most) = (waits.iter().min().unwrap(), waits.iter().max().unwrap());
        assert!(*least >= Duration::from_secs(10) && *most <= Duration::from_secs(12));
        assert!(*most - *least >= Duration::from_secs(1), "200 of them within {:?}", *most - *least);
    }

    #[test]
    fn waits_double_with_each_attempt_up_to_a_cap() {
        let after = |millis, attempt, window| {
            let window = WindowLength::new(Duration::from_secs(window)).unwrap();
            Retry::for_attempt(&breach(millis), attempt, window, Jitter::none()).after
        };
        assert_eq!(after(9000, 0, 60), Duration::from_secs(9));
        assert_eq!(after(9000, 1, 60), Duration::from_secs(9));
        assert_eq!(after(9000, 2, 60), Duration::from_secs(18));
        assert_eq!(after(9000, 3, 60), Duration::from_secs(36));
        assert_eq!(after(9000, u32::MAX, 60), MAX_BACKOFF);
        // Never less than the time until usage is below the limit.
        assert_eq!(after(1_800_000, 9, 3600), Duration::from_secs(3600));
        assert_eq!(after(0, u32::MAX, 60), Duration::ZERO);
    }
}
