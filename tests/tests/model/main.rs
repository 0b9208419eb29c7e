//! The scripts in a real Redis do what `quota-core` says, in whatever order things happen.
//!
//! A failure names a seed; `QUOTA_MODEL_SEED=<seed>` runs that one alone. What has failed once is kept in
//! [`REGRESSIONS`].
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests report by panicking")]

mod nodes;
mod operation;
mod reference;
mod slots;
mod words;

use std::fmt::Debug;
use std::time::Duration;

use futures::future::join_all;
use quota_core::{BUCKET_CAP, Snapshot, WindowLength};
use quota_server::store::{RedisStore, Snapshots, Store};
use quota_tests::redis::{RedisCluster, RedisSentinel, RedisServer};
use quota_tests::stores::{Opening, StoreClock};
use redis::Script;
use redis::aio::MultiplexedConnection;

use self::operation::{Operation, Operations};
use self::reference::Reference;

/// Seeds that failed once.
const REGRESSIONS: [u64; 1] = [0];

/// Expiry goes by real time, which is not the test's, and a short window's comes soon. Here, no value expires.
const KEEP: &str =
    "for _, key in ipairs(redis.call('KEYS', 'q1:*')) do redis.call('PEXPIRE', key, 3600000) end";

/// How often each thing happened: a run in which one did not proves nothing of it.
#[derive(Debug, Default)]
struct Seen {
    allowed: u32,
    denied: u32,
    told_whole: u32,
    applied: u32,
    duplicates: u32,
    together: u32,
    excess_releases: u32,
    rebased: u32,
    saturated: u32,
}

enum Servers {
    Single(Box<RedisServer>),
    Sentinel(Box<RedisSentinel>),
    Cluster(RedisCluster),
}

impl Servers {
    async fn single() -> Self {
        Self::Single(Box::new(RedisServer::start().await))
    }

    fn url(&self) -> String {
        match self {
            Self::Single(server) => server.url(),
            Self::Sentinel(servers) => servers.url(),
            Self::Cluster(cluster) => cluster.url(),
        }
    }

    /// A connection to each that takes writes.
    async fn clients(&self) -> Vec<MultiplexedConnection> {
        match self {
            Self::Single(server) => vec![server.client().await],
            Self::Sentinel(servers) => vec![servers.primary().client().await],
            Self::Cluster(cluster) => cluster.clients().await,
        }
    }

    async fn clock(&self) -> StoreClock {
        match self {
            Self::Single(server) => StoreClock::in_redis(server).await,
            Self::Sentinel(servers) => StoreClock::in_redis(servers.primary()).await,
            Self::Cluster(cluster) => StoreClock::in_cluster(cluster).await,
        }
    }
}

struct Run {
    store: RedisStore,
    model: Reference,
    operations: Operations,
    clock: StoreClock,
    /// To each server.
    connections: Vec<MultiplexedConnection>,
    keep: Script,
    seen: Seen,
    /// Where it is, for the message of a failure.
    place: String,
}

impl Run {
    async fn new(servers: &Servers, seed: u64, length: WindowLength) -> Self {
        let mut connections = servers.clients().await;
        for connection in &mut connections {
            redis::cmd("FLUSHALL").exec_async(connection).await.unwrap();
        }
        Self {
            store: Opening { length, test_clock: true, ..Opening::default() }.open(&servers.url()),
            model: Reference::new(length, matches!(servers, Servers::Cluster(_))),
            operations: Operations::new(seed, length),
            clock: servers.clock().await,
            connections,
            keep: Script::new(KEEP),
            seen: Seen::default(),
            place: String::new(),
        }
    }

    async fn step(&mut self) {
        let now = self.clock.now();
        let operation = self.operations.next(now);
        self.place = format!("{}\n{operation:?}", self.place);
        match operation {
            Operation::Pass(by) => self.clock.advance(by).await,
            Operation::StepBack(by) => self.clock.step_back(by).await,
            Operation::Admit(accounts, price) => {
                let expected = self.model.admit(&accounts, price, now);
                let got = self.store.admit(&accounts, price).await;
                let got = got.unwrap_or_else(|error| panic!("{error}: {}", self.place));
                self.same("allowed", &got.allowed, &expected.allowed);
                self.same("ticks", &got.ticks, &expected.ticks);
                self.same_snapshots(&got.snapshots, &expected.snapshots);
                if expected.allowed {
                    self.operations.reserved(&accounts, &expected.ticks, price);
                    self.seen.allowed += 1;
                } else {
                    self.seen.denied += 1;
                }
            }
            Operation::Settle(reports) => {
                let expected = self.model.settle(&reports, now);
                let got = join_all(reports.iter().map(|report| self.store.settle(report))).await;
                for (got, expected) in got.into_iter().zip(expected) {
                    let got = got.unwrap_or_else(|error| panic!("{error}: {}", self.place));
                    self.same("settlement", &got, &expected);
                    self.seen.applied += got.applied;
                    self.seen.duplicates += got.duplicates;
                    self.seen.excess_releases += got.excess_releases;
                    self.seen.rebased += got.rebased;
                }
                self.seen.together += u32::from(reports.len() > 1);
            }
            Operation::Usage(accounts) => {
                let expected = self.model.usage(&accounts, now);
                let got = self.store.usage(&accounts).await;
                let got = got.unwrap_or_else(|error| panic!("{error}: {}", self.place));
                self.same_snapshots(&got, &expected);
            }
        }
        for connection in &mut self.connections {
            self.keep.prepare_invoke().invoke_async::<()>(connection).await.unwrap();
        }
    }

    fn same<T: PartialEq + Debug>(&self, what: &str, store: &T, model: &T) {
        assert_eq!(store, model, "{what}, of the store and of the model: {}", self.place);
    }

    /// Below every limit, a store may tell the whole window, and need not.
    fn same_snapshots(&mut self, store: &Snapshots, model: &Snapshots) {
        self.same("now", &store.now, &model.now);
        self.same("rebased", &store.rebased, &model.rebased);
        self.same("accounts", &store.accounts.len(), &model.accounts.len());
        for (store, model) in store.accounts.iter().zip(&model.accounts) {
            match model {
                Snapshot::Full(_) => self.same("snapshot", store, model),
                Snapshot::Below(usage) => self.same("usage", store.usage(), usage),
            }
            self.seen.told_whole += u32::from(matches!(model, Snapshot::Full(_)));
            let most = model.usage().iter().map(|(_, &amount)| amount).max();
            self.seen.saturated += u32::from(most >= Some(BUCKET_CAP));
        }
        self.seen.rebased += model.rebased;
    }
}

/// The seed of the environment, else those that failed once and a new one.
fn seeds() -> Vec<u64> {
    match std::env::var("QUOTA_MODEL_SEED") {
        Ok(seed) => vec![seed.parse().expect("QUOTA_MODEL_SEED is a number")],
        Err(_) => [&REGRESSIONS[..], &[fastrand::u64(..)]].concat(),
    }
}

async fn agree(servers: Servers, length: Duration, operations: u32) {
    let length = WindowLength::new(length).unwrap();
    for seed in seeds() {
        let mut run = Run::new(&servers, seed, length).await;
        for number in 0..operations {
            run.place = format!("QUOTA_MODEL_SEED={seed}, {length:?}, operation {number}");
            run.step().await;
        }
        println!("seed {seed}, {length:?}: {:?}", run.seen);
        let Seen { allowed, denied, told_whole, applied, duplicates, together, .. } = run.seen;
        let Seen { excess_releases, rebased, saturated, .. } = run.seen;
        let of_reports = [applied, duplicates, together, excess_releases];
        for seen in [allowed, denied, told_whole, rebased, saturated].into_iter().chain(of_reports) {
            assert!(seen > operations / 1000, "the operations of seed {seed} prove little");
        }
    }
}

#[tokio::test]
async fn a_minute() {
    agree(Servers::single().await, Duration::from_secs(60), 10_000).await;
}

/// Where each account has its own call.
#[tokio::test]
async fn a_minute_on_a_cluster() {
    agree(Servers::Cluster(RedisCluster::start().await), Duration::from_secs(60), 3_000).await;
}

#[tokio::test]
async fn a_minute_behind_sentinels() {
    agree(Servers::Sentinel(Box::new(RedisSentinel::start().await)), Duration::from_secs(60), 1_000).await;
}

/// Buckets of 100 ms, whose ticks need more than the four bytes that a mark has for them.
#[tokio::test]
async fn six_seconds() {
    agree(Servers::single().await, Duration::from_secs(6), 3_000).await;
}

/// Buckets of a minute: a small step back is a fraction of one.
#[tokio::test]
async fn an_hour() {
    agree(Servers::single().await, Duration::from_secs(3600), 3_000).await;
}
