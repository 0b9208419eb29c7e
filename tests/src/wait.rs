//! Waiting for a condition, instead of for a time.

use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval, timeout};

/// How long to wait for what must happen soon. Only a failing test waits this long, so it is far above what the
/// slowest machine needs.
pub const PATIENCE: Duration = Duration::from_secs(30);

const PAUSE: Duration = Duration::from_millis(10);

/// Polls `condition` until it gives a value, which is returned.
///
/// # Panics
///
/// Panics with `what` when `deadline` passes first, even in the middle of a poll. Runs on tokio's clock, so not under
/// a paused one: that would jump to the deadline.
pub async fn until<T>(deadline: Duration, what: &str, mut condition: impl AsyncFnMut() -> Option<T>) -> T {
    let polling = async {
        let mut pace = interval(PAUSE);
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            pace.tick().await;
            if let Some(value) = condition().await {
                return value;
            }
        }
    };
    timeout(deadline, polling).await.unwrap_or_else(|_| panic!("waited {deadline:?} in vain: {what}"))
}
