//! F03: what is sent once counts at most once, and a report that is sent again counts exactly once.

use quota_server::store::{Cause, RedisStore, Store};
use quota_tests::proxy::Proxy;
use quota_tests::redis::RedisServer;
use quota_tests::stores::Opening;
use quota_tests::values::{cpu, mark, spending, unlimited, user};

use crate::{admit, report, used};

/// What runs a script by its digest.
const SCRIPT: &str = "EVALSHA";

/// A store behind a proxy, and one beside it that sees what is there.
async fn stores() -> (RedisServer, Proxy, RedisStore, RedisStore) {
    let server = RedisServer::start().await;
    let proxy = Proxy::to(server.port()).await;
    let (behind, beside) =
        (Opening::default().open(&proxy.redis_url()), Opening::default().open(&server.url()));
    (server, proxy, behind, beside)
}

#[tokio::test]
async fn f03_a_copy_of_a_report_counts_nothing_whatever_it_says() {
    let server = RedisServer::start().await;
    let store = Opening::default().open(&server.url());
    let alice = user("alice");
    for (micros, applied) in [(10, 1), (10, 0), (10, 0), (999, 0)] {
        let settlement =
            store.settle(&report(mark("r", 1), [spending(&alice, &[(0, micros)])])).await.unwrap();
        assert_eq!((settlement.applied, settlement.duplicates), (applied, 1 - applied));
        assert_eq!(used(&store, &alice).await.unwrap(), 10);
    }
}

#[tokio::test]
async fn f03_an_admission_whose_reply_is_lost_is_not_sent_again() {
    let (_server, proxy, behind, beside) = stores().await;
    let (alice, bob) = (user("alice"), user("bob"));
    // Redis does not know the script yet: its answer to that is lost.
    proxy.drop_reply_to(SCRIPT);
    let error = admit(&behind, &alice, unlimited(), cpu(10)).await.expect_err("a lost reply");
    assert_eq!((error.cause(), proxy.dropped()), (Cause::Connection, 1), "{error}");
    assert_eq!(used(&beside, &alice).await.unwrap(), 0);

    admit(&behind, &bob, unlimited(), cpu(10)).await.expect("a new connection");
    proxy.drop_reply_to(SCRIPT);
    let error = admit(&behind, &alice, unlimited(), cpu(10)).await.expect_err("a lost reply");
    assert_eq!((error.cause(), proxy.dropped()), (Cause::Connection, 2), "{error}");
    assert_eq!(used(&beside, &alice).await.unwrap(), 10, "never twice");
}

#[tokio::test]
async fn f03_a_report_whose_reply_is_lost_counts_once_when_it_is_sent_again() {
    let (_server, proxy, behind, beside) = stores().await;
    let (alice, bob) = (user("alice"), user("bob"));
    let settle = async |sequence, micros| {
        let entries = [&alice, &bob].map(|account| spending(account, &[(0, micros)]));
        behind.settle(&report(mark("r", sequence), entries)).await
    };
    settle(1, 5).await.unwrap();
    proxy.drop_reply_to(SCRIPT);
    let error = settle(2, 10).await.expect_err("a lost reply");
    assert_eq!((error.cause(), proxy.dropped()), (Cause::Connection, 1), "{error}");
    for _ in 0..2 {
        let settlement = settle(2, 10).await.unwrap();
        assert_eq!((settlement.applied, settlement.duplicates), (0, 2));
    }
    for account in [&alice, &bob] {
        assert_eq!(used(&beside, account).await.unwrap(), 15);
    }
}
