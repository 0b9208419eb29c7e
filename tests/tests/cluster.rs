//! What a node of a Cluster, or a Sentinel, that does not answer means for the accounts of the others.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests report by panicking")]

use std::time::Duration;

use quota_core::Account;
use quota_server::config::Config;
use quota_server::store::{Cause, Limited, RedisStore, Report, Store, StoreError};
use quota_tests::redis::{RedisCluster, RedisSentinel, RedisServer};
use quota_tests::server::{ServerProcess, TestServer};
use quota_tests::stores::Opening;
use quota_tests::values::{cpu, enforced, mark, spending, user};
use quota_tests::wait::{PATIENCE, until};
use redis::cluster_routing::Slot;
use serde_json::json;

/// An account that the primary at a place held at first.
fn account_at(place: usize) -> Account {
    let mut accounts = (0..).map(|number| user(&format!("user-{number}")));
    accounts.find(|account| RedisCluster::place_of(&format!("q1:{{{}}}", account.key())) == place).unwrap()
}

async fn admit(store: &RedisStore, accounts: &[&Account]) -> Result<bool, StoreError> {
    let limited = accounts.iter().map(|&account| Limited { account: account.clone(), bounds: enforced(100) });
    Ok(store.admit(&limited.collect::<Vec<_>>(), cpu(1)).await?.allowed)
}

async fn used(store: &RedisStore, account: &Account) -> u64 {
    let snapshots = store.usage(std::slice::from_ref(account)).await.unwrap();
    snapshots.accounts[0].usage()[quota_core::Resource::Cpu]
}

fn impatient(url: &str) -> RedisStore {
    Opening { deadline: Duration::from_millis(300), ..Opening::default() }.open(url)
}

#[tokio::test(flavor = "multi_thread")]
async fn f11_who_is_on_a_node_that_is_frozen_is_not_served_and_all_others_are() {
    let mut cluster = RedisCluster::start().await;
    let store = impatient(&cluster.url());
    let accounts = [account_at(0), account_at(1), account_at(2)];
    let [frozen, second, third] = &accounts;
    until(PATIENCE, "all are served", async || admit(&store, &[frozen, second, third]).await.ok()).await;
    let before = (used(&store, second).await, used(&store, third).await);

    cluster.pause(0).await;
    for _ in 0..20 {
        let error = admit(&store, &[frozen, second, third]).await.unwrap_err();
        assert_eq!(error.cause(), Cause::Timeout, "{error}");
        // A slow machine may miss this deadline too: then the next one is met.
        until(PATIENCE, "the others are served", async || admit(&store, &[second, third]).await.ok()).await;
        until(PATIENCE, "the store is ready", async || store.probe().await.ok()).await;
    }
    // Looking at all comes before reserving on any: what was not decided counts nowhere.
    let after = (used(&store, second).await, used(&store, third).await);
    assert!(after.0 >= before.0 + 20 && after.0 == after.1, "{before:?} {after:?}");

    cluster.resume(0).await;
    until(PATIENCE, "all are served again", async || admit(&store, &[frozen, second, third]).await.ok())
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_on_other_nodes_is_stored_while_one_is_frozen() {
    let mut cluster = RedisCluster::start().await;
    let store = impatient(&cluster.url());
    let (frozen, other) = (account_at(0), account_at(1));
    let settle = async |source: &str, account: &Account, sequence| {
        let entries = vec![spending(account, &[(0, 1)])];
        store.settle(&Report { mark: mark(source, sequence), entries }).await
    };
    settle("a", &frozen, 1).await.unwrap();

    cluster.pause(0).await;
    for sequence in 2..6 {
        let others = async {
            // A slow machine may miss the deadline too: then the copy finds it counted, or is counted.
            until(PATIENCE, "it is stored", async || settle("b", &other, sequence).await.ok()).await
        };
        let (refused, _) = tokio::join!(settle("a", &frozen, sequence), others);
        assert_eq!(refused.unwrap_err().cause(), Cause::Timeout);
    }
    cluster.resume(0).await;
    until(PATIENCE, "it is stored again", async || settle("a", &frozen, 9).await.ok()).await;
    assert_eq!(used(&store, &other).await, 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn f11_two_accounts_in_one_slot_are_served_while_only_one_of_them_has_moved() {
    let cluster = RedisCluster::start().await;
    let store = Opening::default().connect(&cluster.url()).await.unwrap();
    let key = |account: &Account| format!("q1:{{{}}}", account.key());
    let first = user("first");
    let slot = Slot::for_key(key(&first));
    let mut others = (0..).map(|number| user(&format!("other-{number}")));
    let second = others.find(|other| Slot::for_key(key(other)) == slot).unwrap();
    let both = [&first, &second];
    assert!(admit(&store, &both).await.unwrap());

    let mut asked = 1;
    cluster
        .move_slot(&key(&first), async || {
            assert!(admit(&store, &both).await.unwrap(), "after {asked}");
            asked += 1;
        })
        .await;
    assert!(asked > 3, "before, between and after the moves of the two: {asked}");
    assert_eq!((used(&store, &first).await, used(&store, &second).await), (asked, asked));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sentinel_that_is_frozen_keeps_nobody_waiting() {
    let mut servers = RedisSentinel::start().await;
    servers.pause_first();
    let store = Opening::default().connect(&servers.url()).await.unwrap();
    assert!(admit(&store, &[&user("a")]).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_is_found_through_one_of_its_nodes_and_a_redis_that_is_none_is_not() {
    let cluster = RedisCluster::start().await;
    let url = format!("redis+cluster://127.0.0.1:{}", cluster.primaries()[2].port());
    let server = TestServer::start(&url, "").await;
    for place in 0..3 {
        let account = account_at(place);
        assert_eq!(server.http.account("user", account.id()).await.status, 200);
    }

    let redis = RedisServer::start().await;
    let store = Opening::default().connect(&format!("redis+cluster://127.0.0.1:{}", redis.port())).await;
    let error = store.map(drop).unwrap_err();
    assert!(error.to_string().contains("cluster support disabled"), "{error}");
}

/// It is its own node, and does not know its address.
#[tokio::test]
async fn a_cluster_is_spoken_to_by_tls_and_with_a_password() {
    let options = RedisServer::options().tls().password("secret");
    let options = options.args(&["--cluster-enabled", "yes", "--tls-cluster", "yes"]);
    let node = options.start().await;
    let slots: Vec<String> = (0..16384).map(|slot| slot.to_string()).collect();
    let args: Vec<&str> = ["ADDSLOTS"].into_iter().chain(slots.iter().map(String::as_str)).collect();
    node.command("CLUSTER", &args).await;
    let url = node.url().replace("rediss://", "rediss+cluster://");
    let ca_file = node.ca_file().display().to_string();
    let server = ServerProcess::start(&[("QUOTA__STORE__URL", &url), ("SSL_CERT_FILE", &ca_file)]).await;
    until(PATIENCE, "the store decides", async || {
        let check = json!({ "accounts": { "user": "alice", "repo": "a" } });
        (server.http.post("/v1/check", &check).await.json()["checked"] == true).then_some(())
    })
    .await;

    let wrong = url.replace("secret", "wrong");
    let mut refused =
        ServerProcess::program().env("QUOTA__STORE__URL", &wrong).env("SSL_CERT_FILE", &ca_file).start();
    assert!(!refused.wait_for_exit().await.success());
    assert!(
        refused.stderr().contains("WRONGPASS") && !refused.stderr().contains("wrong@"),
        "{}",
        refused.stderr()
    );
}

#[test]
fn the_urls_of_all_three_are_taken() {
    for url in ["redis://a", "redis+sentinel://a,b/main", "redis+cluster://a,b", "rediss+cluster://a"] {
        assert!(Config::from_toml(&format!("store.url = \"{url}\"")).is_ok(), "{url}");
    }
}
