use std::time::Duration;

/// The ceiling of the first wait; the wait itself is between half of it and all of it.
const FIRST: Duration = Duration::from_millis(200);

/// The ceiling of every wait: a service that is back is used again within a second.
const LONGEST: Duration = Duration::from_secs(1);

/// How long to wait after the `failures`th failure in a row, counted from 1: between 0.1 and 1 s, doubling.
///
/// `jitter`, from 0 to 1, spreads callers who failed in the same moment over half of the wait.
pub(crate) fn wait(failures: u32, jitter: f64) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    let ceiling = FIRST.saturating_mul(1 << doublings).min(LONGEST);
    ceiling / 2 + (ceiling / 2).mul_f64(jitter.clamp(0.0, 1.0))
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
}
