//! Classes of traffic: slots over both protocols, in clients, and held by processes that are killed.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests report by panicking")]

mod client;
mod killed;
mod layer;
mod wire;

use quota_tests::wait::{PATIENCE, until};

async fn until_so(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    until(PATIENCE, what, async || condition().await.then_some(())).await;
}
