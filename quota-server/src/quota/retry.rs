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

    /// The header `Retry-After`: whole seconds, rounded up, at least 1.
    pub fn header_seconds(self) -> u64 {
        (self.after.as_secs() + u64::from(self.after.subsec_nanos() > 0)).max(1)
    }
}
