//! A network of a test's own breaks as networks do, and leaves nothing behind.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests report by panicking")]

use std::path::Path;
use std::time::Duration;

use quota_tests::network::{Loss, Network};
use quota_tests::redis::RedisServer;
use quota_tests::wait::PATIENCE;
use tokio::time::timeout;

/// Far longer than an answer takes.
const SILENCE: Duration = Duration::from_millis(200);

#[tokio::test]
async fn what_is_lost_is_sent_again_on_connections_that_stay_open() {
    if !Network::is_possible().await {
        return;
    }
    let server = RedisServer::options().own_network().start().await;
    let mut connection = server.client().await;
    for (count, loss) in [(1, Loss::All), (2, Loss::Requests), (3, Loss::Replies)] {
        server.network().lose(loss);
        let mut incr = redis::cmd("INCR");
        let mut call = Box::pin(incr.arg("count").query_async::<u64>(&mut connection));
        assert!(timeout(SILENCE, &mut call).await.is_err(), "an answer in spite of {loss:?}");
        assert!(timeout(SILENCE, server.network().is_quiet()).await.is_err(), "nothing was lost by {loss:?}");
        server.network().mend(loss);
        let answer = timeout(PATIENCE, call).await.expect("an answer");
        assert_eq!(answer.expect("the connection of before"), count, "{loss:?}");
    }
    server.network().is_quiet().await;
}

#[tokio::test]
async fn nothing_is_left_of_it_when_a_test_fails() {
    if !Network::is_possible().await {
        return;
    }
    let server = RedisServer::options().own_network().start().await;
    let link = Path::new("/sys/class/net").join(server.network().link());
    assert!(link.exists());
    let failed = tokio::spawn(async move { panic!("{}", server.url()) }).await;
    assert!(failed.is_err() && !link.exists());
}
