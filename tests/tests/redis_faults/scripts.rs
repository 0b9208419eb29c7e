//! F02: the scripts that Redis has forgotten are loaded again, and nobody notices.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use futures::future::join_all;
use quota_server::store::{Cause, Limited, RedisStore, Store, StoreError};
use quota_tests::redis::{RedisCluster, RedisServer};
use quota_tests::stores::Opening;
use quota_tests::values::{cpu, mark, spending, unlimited, user};
use quota_tests::wait::{PATIENCE, until};
use tokio::task::JoinSet;

use crate::raw::Raw;
use crate::{admit, report, used};

const POOL_SIZE: usize = 4;
const CALLERS: usize = 16;

/// Callers that ask one after the other, until they are told to stop.
struct Load {
    callers: JoinSet<Result<(), StoreError>>,
    done: Arc<[AtomicU64]>,
    stop: Arc<AtomicBool>,
}

impl Load {
    fn on(store: &Arc<RedisStore>) -> Self {
        let (mut callers, stop) = (JoinSet::new(), Arc::new(AtomicBool::new(false)));
        let done: Arc<[AtomicU64]> = (0..CALLERS).map(|_| AtomicU64::new(0)).collect();
        for number in 0..CALLERS {
            let (store, stop, done) = (Arc::clone(store), Arc::clone(&stop), Arc::clone(&done));
            callers.spawn(async move {
                let account = user(&format!("caller-{number}"));
                while !stop.load(Ordering::SeqCst) {
                    admit(&store, &account, unlimited(), cpu(1)).await?;
                    done[number].fetch_add(1, Ordering::SeqCst);
                }
                Ok(())
            });
        }
        Self { callers, done, stop }
    }

    /// Until every caller has had a few more answers: what was under way has ended.
    async fn goes_on(&mut self) {
        let aims: Vec<u64> = self.done.iter().map(|done| done.load(Ordering::SeqCst) + 5).collect();
        until(PATIENCE, "every caller has answers", async || {
            if let Some(ended) = self.callers.try_join_next() {
                panic!("a caller ended: {ended:?}");
            }
            self.done.iter().zip(&aims).all(|(done, aim)| done.load(Ordering::SeqCst) >= *aim).then_some(())
        })
        .await;
    }

    async fn end(self) {
        self.stop.store(true, Ordering::SeqCst);
        for ended in self.callers.join_all().await {
            ended.expect("no error to any caller");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn f02_a_flush_of_the_scripts_is_an_error_to_nobody() {
    let server = RedisServer::start().await;
    let raw = Raw::new(&server).await;
    let store = Arc::new(Opening { pool_size: POOL_SIZE, ..Opening::default() }.open(&server.url()));
    let mut load = Load::on(&store);
    for round in 0..5 {
        load.goes_on().await;
        raw.run::<()>(&["CONFIG", "RESETSTAT"]).await;
        raw.run::<()>(&["SCRIPT", "FLUSH"]).await;
        load.goes_on().await;
        let loads = raw.calls("script|load").await;
        // However many calls are under way.
        assert!((1..=POOL_SIZE as u64).contains(&loads), "{loads} loads in round {round}");
    }
    load.end().await;
}

/// Calls that go together: a request's peek and reservations on a Cluster, and a flush of reports.
#[tokio::test]
async fn f02_calls_in_one_round_trip_run_though_none_of_their_scripts_is_known() {
    let cluster = RedisCluster::start().await;
    let store = Opening::default().connect(&cluster.url()).await.unwrap();
    let accounts: Vec<_> = (0..20).map(|number| user(&format!("user-{number}"))).collect();
    let flush = async || {
        for primary in cluster.primaries() {
            primary.command("SCRIPT", &["FLUSH"]).await;
        }
    };
    for round in 1..=3 {
        flush().await;
        let asked: Vec<_> = accounts
            .iter()
            .map(|account| Limited { account: account.clone(), bounds: unlimited() })
            .collect();
        assert!(store.admit(&asked, cpu(10)).await.unwrap().allowed);
        flush().await;
        let entries: Vec<_> = accounts.iter().map(|account| spending(account, &[(0, 1)])).collect();
        let settled = store.settle(&report(mark("r", round), entries)).await.unwrap();
        assert_eq!(settled.applied as usize, accounts.len());
        for account in &accounts {
            assert_eq!(used(&store, account).await.unwrap(), 11 * round);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn f02_decisions_return_with_redis() {
    let mut server = RedisServer::start().await;
    let store = Arc::new(Opening { pool_size: POOL_SIZE, ..Opening::default() }.open(&server.url()));
    let ask_all = async || {
        let accounts: Vec<_> = (0..CALLERS).map(|number| user(&format!("caller-{number}"))).collect();
        let asking = accounts.iter().map(|account| admit(&store, account, unlimited(), cpu(1)));
        join_all(asking).await
    };
    for round in 0..3 {
        for answer in ask_all().await {
            answer.unwrap_or_else(|error| panic!("Redis is there in round {round}: {error}"));
        }
        server.stop().await;
        for answer in ask_all().await {
            let error = answer.expect_err("there is no Redis");
            assert_eq!(error.cause(), Cause::Connection, "{error}");
        }
        server.restart().await;
    }
    for answer in ask_all().await {
        answer.expect("errors only while it is down");
    }
}
