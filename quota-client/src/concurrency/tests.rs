//! What limiter, pace and calibrator do together, under paused time but for the one test with threads.

mod calibration;
mod f21_permits;
mod f22_queue;
mod limits;
mod returns;

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use super::adaptive::AdaptiveLimit;
use super::limiter::{Limiter, Permit};
use super::refusal::Reason;
use super::settings::Order;
use super::slots::{Key, Slots};

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn key() -> Key {
    Arc::from("project-42")
}

/// A limit between 1 and 1,000.
fn limiter(limit: usize, max_queue: usize, max_wait: Duration, order: Order) -> Limiter {
    let limit = AdaptiveLimit::new(1, limit, 1_000).unwrap();
    Limiter::new(Slots::new(limit, max_queue, order, None), max_wait)
}

/// One that has a slot now, or a panic.
async fn run(limiter: &Limiter) -> Permit {
    limiter.acquire(&key(), 0, None).await.unwrap()
}

/// Nothing runs, nobody waits, nothing is kept, and all slots are free.
async fn assert_all_free(limiter: &Limiter) {
    let figures = limiter.figures();
    assert_eq!((figures.in_flight, figures.queued, figures.keys), (0, 0, 0));
    let mut permits = Vec::new();
    for _ in 0..figures.limit {
        permits.push(run(limiter).await);
    }
    assert_eq!(limiter.figures().in_flight, figures.limit);
    let over = tokio::time::timeout(millis(1), limiter.acquire(&key(), 0, None)).await;
    assert!(!matches!(over, Ok(Ok(_))), "one more than the limit");
    drop(over);
    drop(permits);
    assert_eq!(limiter.figures().in_flight, 0);
}

/// Polls once.
async fn poll_once<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    std::future::poll_fn(|context| match std::pin::Pin::new(&mut *future).poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}
