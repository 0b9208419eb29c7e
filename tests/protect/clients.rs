use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio::time::{interval, sleep};

use crate::fetch::{Fetch, Fetched};
use crate::figures::Sample;

/// How often the light user fetches.
const EVERY: Duration = Duration::from_secs(1);

/// A noisy client that was refused does not wait as long as it is told.
const IMPATIENCE: Duration = Duration::from_millis(200);

/// Fetches once a second, whether the last one is done or not. Returns every fetch that began within the time.
pub(crate) async fn light(fetch: Fetch, lasts: Duration) -> Vec<Sample> {
    let begun = Instant::now();
    let mut ticks = interval(EVERY);
    let mut fetches = JoinSet::new();
    while begun.elapsed() < lasts {
        ticks.tick().await;
        let fetch = fetch.clone();
        fetches.spawn(async move {
            let at = begun.elapsed();
            let fetched = fetch.run().await;
            Sample { at, took: begun.elapsed() - at, succeeded: fetched == Fetched::Whole }
        });
    }
    fetches.join_all().await
}

/// Clones again and again, until it is dropped. Counts how often it was refused.
pub(crate) async fn noisy(fetch: Fetch, refused: &std::sync::atomic::AtomicU64) {
    loop {
        match fetch.run().await {
            Fetched::Whole => {}
            Fetched::Refused { .. } => {
                refused.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                sleep(IMPATIENCE).await;
            }
            Fetched::Failed => sleep(IMPATIENCE).await,
        }
    }
}
