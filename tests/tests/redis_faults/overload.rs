//! F06: more is asked than Redis answers in time.

use std::time::Duration;

use futures::future::join_all;
use quota_server::store::{Cause, RedisStore, Store as _};
use quota_tests::redis::RedisServer;
use quota_tests::stores::Opening;
use quota_tests::values::{cpu, unlimited, user};
use quota_tests::wait::{PATIENCE, until};

use crate::admit;

const AT_ONCE: usize = 300;

/// What each of many decisions came to that are asked for at once.
async fn causes(store: &RedisStore) -> Vec<Option<Cause>> {
    let calls = (0..AT_ONCE).map(|number| async move {
        admit(store, &user(&number.to_string()), unlimited(), cpu(1)).await.err().map(|error| error.cause())
    });
    join_all(calls).await
}

fn count(causes: &[Option<Cause>], cause: Option<Cause>) -> usize {
    causes.iter().filter(|each| **each == cause).count()
}

#[tokio::test]
async fn f06_what_a_redis_that_hangs_would_not_answer_in_time_is_refused_at_once() {
    let mut server = RedisServer::start().await;
    let store = Opening { deadline: Duration::from_millis(200), ..Opening::default() }.open(&server.url());
    until(PATIENCE, "decisions", async || (count(&causes(&store).await, None) == AT_ONCE).then_some(()))
        .await;

    server.pause().await;
    let mut waited = Vec::new();
    for _ in 0..7 {
        let causes = causes(&store).await;
        assert_eq!(count(&causes, None), 0);
        waited.push(AT_ONCE - count(&causes, Some(Cause::Overload)));
    }
    assert!(waited.is_sorted_by(|one, next| one >= next), "{waited:?}");
    let least = waited[6];
    assert!((1..AT_ONCE / 4).contains(&least), "{waited:?}");
    // What is no decision is tried: its answer says when it is over.
    assert_eq!(store.probe().await.unwrap_err().cause(), Cause::Timeout);

    server.resume().await;
    until(PATIENCE, "all are decided again", async || {
        let causes = causes(&store).await;
        (count(&causes, None) == AT_ONCE).then_some(())
    })
    .await;
}
