use std::time::Duration;

/// The ceiling of the first wait; the wait itself is between half of it and all of it.
const FIRST: Duration = Duration::from_millis(200);

/// The ceiling of every wait: a service that is back is used again within a second.
const LONGEST: Duration = Duration::from_secs(1);

/// A refusal's wait grows by at most this share, as the service's do.
const SPREAD: f64 = 0.2;

/// How long to wait after the `failures`th failure in a row, counted from 1: between 0.1 and 1 s, doubling.
///
/// `jitter`, from 0 to 1, spreads callers who failed in the same moment over half of the wait.
pub(crate) fn wait(failures: u32, jitter: f64) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    let ceiling = FIRST.saturating_mul(1 << doublings).min(LONGEST);
    ceiling / 2 + (ceiling / 2).mul_f64(jitter.clamp(0.0, 1.0))
}

/// How long to tell somebody who is refused to wait: the wait, or up to a fifth more, and never less.
///
/// `jitter`, from 0 to 1, spreads those who are refused in the same moment.
pub(crate) fn spread(wait: Duration, jitter: f64) -> Duration {
    wait + wait.mul_f64(SPREAD * jitter.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_within_their_bounds() {
        let millis = |failures, jitter| wait(failures, jitter).as_millis();
        assert_eq!([millis(1, 0.0), millis(1, 1.0)], [100, 200]);
        assert_eq!([millis(2, 0.0), millis(3, 0.0), millis(3, 0.5)], [200, 400, 600]);
        assert_eq!([millis(6, 0.0), millis(6, 1.0), millis(u32::MAX, 1.0)], [500, 1000, 1000]);
    }

    #[test]
    fn f25_those_who_are_refused_together_are_spread_upward() {
        let millis = |jitter| spread(Duration::from_secs(10), jitter).as_millis();
        assert_eq!([millis(0.0), millis(0.5), millis(1.0), millis(7.0)], [10_000, 11_000, 12_000, 12_000]);
    }
}
