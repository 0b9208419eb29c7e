//! What arrives together goes to Redis together, and what fails of it is an error to nobody else.

use futures::future::join_all;
use quota_core::Account;
use quota_server::store::{RedisStore, Store, StoreError};
use quota_tests::proxy::Proxy;
use quota_tests::redis::{RedisCluster, RedisServer};
use quota_tests::stores::Opening;
use quota_tests::values::{cpu, mark, spending, unlimited, user};

use crate::raw::{Raw, key};
use crate::{admit, report, used};

/// Accounts in a call to a single Redis.
const ACCOUNTS_IN_CALL: usize = 16;

/// Reports of as many sources, each of the same accounts.
async fn report_together(store: &RedisStore, accounts: &[Account], sequence: u64, reports: usize) {
    let reports = (0..reports).map(async |source| {
        let entries: Vec<_> = accounts.iter().map(|account| spending(account, &[(0, 1)])).collect();
        let settled = store.settle(&report(mark(&format!("source-{source}"), sequence), entries)).await;
        assert_eq!(settled.unwrap().applied as usize, accounts.len());
    });
    join_all(reports).await;
}

#[tokio::test]
async fn calls_of_reports_that_arrive_together_are_as_many_as_their_accounts_need() {
    let server = RedisServer::start().await;
    let raw = Raw::new(&server).await;
    let store = Opening::default().open(&server.url());
    let accounts: Vec<_> = (0..40).map(|number| user(&format!("user-{number}"))).collect();
    report_together(&store, &accounts, 1, 1).await;
    for reports in [1, 2, 20] {
        raw.run::<()>(&["CONFIG", "RESETSTAT"]).await;
        report_together(&store, &accounts, 1 + reports as u64, reports).await;
        let calls = raw.calls("evalsha").await as usize;
        // Twice, where the first did not wait for the others.
        let most = 2 * accounts.len().div_ceil(ACCOUNTS_IN_CALL);
        assert!((1..=most).contains(&calls), "{calls} calls for {reports} reports");
    }
    for account in &accounts {
        assert_eq!(used(&store, account).await.unwrap(), 1 + 1 + 2 + 20);
    }
}

#[tokio::test]
async fn a_cluster_is_asked_once_for_each_account_of_reports_that_arrive_together() {
    let cluster = RedisCluster::start().await;
    let store = Opening::default().connect(&cluster.url()).await.unwrap();
    let accounts: Vec<_> = (0..40).map(|number| user(&format!("user-{number}"))).collect();
    report_together(&store, &accounts, 1, 1).await;
    let mut nodes = Vec::new();
    for primary in cluster.primaries() {
        nodes.push(Raw::new(primary).await);
    }
    for raw in &nodes {
        raw.run::<()>(&["CONFIG", "RESETSTAT"]).await;
    }
    report_together(&store, &accounts, 2, 20).await;
    let calls: Vec<u64> = join_all(nodes.iter().map(|raw| raw.calls("evalsha"))).await;
    let calls: u64 = calls.iter().sum();
    // As above.
    assert!((40..=80).contains(&calls), "{calls} calls");
}

#[tokio::test]
async fn an_account_that_cannot_be_read_is_an_error_of_its_own_reports_alone() {
    let server = RedisServer::start().await;
    let raw = Raw::new(&server).await;
    let store = Opening::default().open(&server.url());
    let (alice, bob, broken) = (user("alice"), user("bob"), user("broken"));
    raw.run::<()>(&["SET", &key(&broken), "nan"]).await;
    let send = |source: &str, accounts: &[&Account]| {
        let entries: Vec<_> = accounts.iter().map(|account| spending(account, &[(0, 10)])).collect();
        let sent = report(mark(source, 1), entries);
        let store = &store;
        async move { store.settle(&sent).await }
    };
    let (of_both, of_bob, of_broken, of_others) = tokio::join!(
        send("a", &[&alice, &broken]),
        send("b", &[&bob]),
        send("c", &[&broken, &bob]),
        send("d", &[&alice, &bob]),
    );
    for refused in [of_both, of_broken] {
        assert!(matches!(&refused, Err(StoreError::Corrupt(account)) if *account == broken), "{refused:?}");
    }
    assert_eq!((of_bob.unwrap().applied, of_others.unwrap().applied), (1, 2));
    assert_eq!((used(&store, &alice).await.unwrap(), used(&store, &bob).await.unwrap()), (20, 30));
}

#[tokio::test]
async fn decisions_share_a_connection_and_reports_have_another() {
    let server = RedisServer::start().await;
    let proxy = Proxy::to(server.port()).await;
    let store = Opening { pool_size: 1, ..Opening::default() }.open(&proxy.redis_url());
    let alice = user("alice");
    for answer in join_all((0..100).map(|_| admit(&store, &alice, unlimited(), cpu(1)))).await {
        assert!(answer.unwrap().allowed);
    }
    assert_eq!(proxy.accepted(), 1);
    let settled = (0..100).map(async |source| {
        let entries = [spending(&alice, &[(0, 1)])];
        store.settle(&report(mark(&format!("{source}"), 1), entries)).await.unwrap()
    });
    join_all(settled).await;
    assert_eq!(proxy.accepted(), 2);
    assert_eq!(used(&store, &alice).await.unwrap(), 200);
}
