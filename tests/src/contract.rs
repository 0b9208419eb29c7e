//! What every store does, whatever it keeps its data in: one function for each behaviour, called by the test of each
//! backend, topic by topic.
//!
//! Each behaviour takes accounts that no other uses, so that they share one store, whose clock goes on from one to
//! the next.

pub mod admission;
pub mod boards;
pub mod clock;
pub mod limits;
pub mod marks;
pub mod names;
pub mod nodes;
pub mod releases;
pub mod settlement;
pub mod words;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use quota_core::{
    Account, Bound, Cost, Mark, PerResource, Resource, Snapshot, Tick, Timestamp, Usage, Window, WindowLength,
};
use quota_server::store::{Admitted, Entry, Limited, Report, Settlement, Store, StoreError};

use crate::redis::{RedisCluster, RedisSentinel, RedisServer};
use crate::stores::{Opening, StoreClock};
use crate::values::{spending, user};

const LENGTH: Duration = Duration::from_secs(60);
const SECOND: Duration = Duration::from_secs(1);

/// A store under test.
pub struct Fixture {
    /// The store.
    store: Arc<dyn Store>,
    /// What another server would use: the same data.
    other: Arc<dyn Store>,
    clock: StoreClock,
    accounts: AtomicU32,
    /// Held for as long as the store needs it.
    servers: Servers,
}

enum Servers {
    None,
    Single { _server: Box<RedisServer> },
    Sentinel { _servers: Box<RedisSentinel> },
    Cluster(RedisCluster),
}

impl Fixture {
    /// The store in memory.
    pub fn memory() -> Self {
        let (store, clock) = StoreClock::with_memory(WindowLength::default());
        let store: Arc<dyn Store> = Arc::new(store);
        Self {
            other: Arc::clone(&store),
            store,
            clock,
            accounts: AtomicU32::default(),
            servers: Servers::None,
        }
    }

    /// Two stores in a Redis of their own.
    pub async fn redis() -> Self {
        let server = RedisServer::start().await;
        let clock = StoreClock::in_redis(&server).await;
        Self::shared(&server.url(), clock, Servers::Single { _server: Box::new(server) })
    }

    /// The same in one that Sentinels watch.
    pub async fn sentinel() -> Self {
        let servers = RedisSentinel::start().await;
        let clock = StoreClock::in_redis(servers.primary()).await;
        Self::shared(&servers.url(), clock, Servers::Sentinel { _servers: Box::new(servers) })
    }

    /// The same in a Cluster.
    pub async fn cluster() -> Self {
        let cluster = RedisCluster::start().await;
        let clock = StoreClock::in_cluster(&cluster).await;
        Self::shared(&cluster.url(), clock, Servers::Cluster(cluster))
    }

    fn shared(url: &str, clock: StoreClock, servers: Servers) -> Self {
        let open = || Arc::new(Opening { test_clock: true, ..Opening::default() }.open(url));
        Self { store: open(), other: open(), clock, accounts: AtomicU32::default(), servers }
    }

    /// Whether a call had keys in several slots of a Cluster.
    pub async fn has_crossed_slots(&self) -> bool {
        match &self.servers {
            Servers::Cluster(cluster) => cluster.has_answered("CROSSSLOT").await,
            _ => false,
        }
    }

    /// Whether other servers may use the store.
    fn is_shared(&self) -> bool {
        !matches!(self.servers, Servers::None)
    }

    /// Whether accounts are on several nodes, each of which has one call.
    fn is_spread(&self) -> bool {
        matches!(self.servers, Servers::Cluster(_))
    }

    /// An account that nobody has used.
    fn account(&self) -> Account {
        let number = self.accounts.fetch_add(1, Ordering::Relaxed);
        user(&format!("user-{number}"))
    }

    fn new_accounts(&self, count: usize) -> Vec<Account> {
        (0..count).map(|_| self.account()).collect()
    }

    /// The bucket that is open.
    fn tick(&self) -> Tick {
        WindowLength::default().tick(self.clock.now())
    }

    /// Moves to the first moment of the next bucket.
    async fn next_bucket(&self) {
        let bucket = WindowLength::default().bucket_micros();
        self.clock.set(Timestamp::from_micros((self.tick() + 1) * bucket)).await;
    }

    async fn admit(&self, accounts: &[(&Account, PerResource<Bound>)], price: Cost) -> Admitted {
        let accounts: Vec<Limited> =
            accounts.iter().map(|&(account, bounds)| Limited { account: account.clone(), bounds }).collect();
        self.store.admit(&accounts, price).await.expect("a decision")
    }

    async fn report(&self, mark: Option<Mark>, entries: Vec<Entry>) -> Result<Settlement, StoreError> {
        self.store.settle(&Report { mark, entries }).await
    }

    async fn settle(&self, mark: Option<Mark>, entries: Vec<Entry>) -> Settlement {
        self.report(mark, entries).await.expect("a report that is stored")
    }

    /// Charges of these ages in seconds and CPU microseconds, counted each time.
    async fn spend(&self, account: &Account, spent: &[(u64, u64)]) {
        let settlement = self.settle(None, vec![spending(account, spent)]).await;
        assert_eq!(settlement.applied, 1);
    }

    async fn window(&self, account: &Account) -> Window {
        let snapshots = self.store.usage(std::slice::from_ref(account)).await.expect("a standing");
        match &snapshots.accounts[..] {
            [Snapshot::Full(window)] => window.clone(),
            other => panic!("not the one whole window that was asked for: {other:?}"),
        }
    }

    async fn usage(&self, account: &Account) -> Usage {
        *self.window(account).await.usage()
    }

    /// CPU microseconds.
    async fn used(&self, account: &Account) -> u64 {
        self.usage(account).await[Resource::Cpu]
    }
}
