//! Stores under test, with a clock that the test moves.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quota_core::{Timestamp, WindowLength};
use quota_server::config::{self, Config, StoreUrl};
use quota_server::store::{Clock, MemoryStore, RedisStore, Scripts, StoreError};
use redis::aio::MultiplexedConnection;

use crate::redis::{RedisCluster, RedisServer};
use crate::wait::PATIENCE;

/// Where every clock starts: in the middle of a bucket.
const START: Timestamp = Timestamp::from_micros(1_764_500_000_400_000);

/// Of each node of a [`RedisCluster`], in the order of its primaries, a tag of a key that it holds.
const TAGS: [&str; 3] = ["b", "c", "a"];

/// What the scripts read in place of Redis' clock: of the keys with these tags, those that are there.
const TEST_CLOCK: &str = "(function() for _, tag in ipairs({ 'b', 'c', 'a' }) do \
     local time = redis.pcall('MGET', '{' .. tag .. '}test:seconds', '{' .. tag .. '}test:micros') \
     if not time.err and time[1] then return time end end end)()";

/// How to open a store in Redis.
#[derive(Clone, Copy, Debug)]
pub struct Opening {
    /// The deadline of each call; as a rule, one that no machine is too slow for.
    pub deadline: Duration,
    /// Connections at most.
    pub pool_size: usize,
    /// The window's length.
    pub length: WindowLength,
    /// Whether time is what a [`StoreClock`] says, in place of Redis'.
    pub test_clock: bool,
}

impl Default for Opening {
    fn default() -> Self {
        Self { deadline: PATIENCE, pool_size: 8, length: WindowLength::default(), test_clock: false }
    }
}

impl Opening {
    /// The store at an address as in the configuration, not connected yet.
    pub fn open(self, url: &str) -> RedisStore {
        self.try_open(url).expect("an address of Redis")
    }

    /// The same and connected, or why not.
    pub async fn connect(self, url: &str) -> Result<RedisStore, StoreError> {
        let store = self.try_open(url)?;
        store.connect().await?;
        Ok(store)
    }

    fn try_open(self, url: &str) -> Result<RedisStore, StoreError> {
        let config = Config::from_toml(&format!("store.url = \"{url}\"")).expect("a configuration");
        let StoreUrl::Redis(url) = &config.store.url else { panic!("{url} is no address of Redis") };
        let settings =
            config::Store { deadline: self.deadline, pool_size: self.pool_size, ..config.store.clone() };
        let scripts = if self.test_clock { Scripts::with_clock(TEST_CLOCK) } else { Scripts::default() };
        RedisStore::new(&settings, url, self.length, scripts)
    }
}

/// A store's clock, which stands still until it is moved.
#[derive(Clone, Debug)]
pub struct StoreClock {
    micros: Arc<AtomicU64>,
    /// A connection to each server.
    redis: Vec<MultiplexedConnection>,
}

impl StoreClock {
    /// A memory store with its clock.
    pub fn with_memory(length: WindowLength) -> (MemoryStore, Self) {
        let micros = Arc::new(AtomicU64::new(START.as_micros()));
        let store = MemoryStore::new(length, 100_000, Clock::Manual(Arc::clone(&micros)));
        (store, Self { micros, redis: Vec::new() })
    }

    /// The clock of all stores in this Redis that were opened with [`Opening::test_clock`].
    pub async fn in_redis(server: &RedisServer) -> Self {
        Self::through(vec![server.client().await]).await
    }

    /// The same of a Cluster. All its nodes have the same time.
    pub async fn in_cluster(cluster: &RedisCluster) -> Self {
        Self::through(cluster.clients().await).await
    }

    async fn through(redis: Vec<MultiplexedConnection>) -> Self {
        let clock = Self { micros: Arc::default(), redis };
        clock.set(START).await;
        clock
    }

    /// The present moment.
    pub fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.micros.load(Ordering::Relaxed))
    }

    /// Sets it, forward or back.
    pub async fn set(&self, now: Timestamp) {
        let micros = now.as_micros();
        self.micros.store(micros, Ordering::Relaxed);
        for (redis, tag) in self.redis.iter().zip(TAGS) {
            redis::cmd("MSET")
                .arg(&[
                    (format!("{{{tag}}}test:seconds"), micros / 1_000_000),
                    (format!("{{{tag}}}test:micros"), micros % 1_000_000),
                ])
                .exec_async(&mut redis.clone())
                .await
                .expect("a Redis that takes the time");
        }
    }

    /// Lets time pass.
    pub async fn advance(&self, by: Duration) {
        let by = u64::try_from(by.as_micros()).expect("a time within reach");
        self.set(Timestamp::from_micros(self.now().as_micros() + by)).await;
    }

    /// Steps back, as a clock that was wrong does.
    pub async fn step_back(&self, by: Duration) {
        self.set(self.now().before(by)).await;
    }
}
