use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use deadpool::managed::{self, Manager as _, Metrics, RecycleResult};
use redis::aio::{AsyncPushSender, MultiplexedConnection, SendError};
use redis::{AsyncConnectionConfig, ConnectionInfo, ProtocolVersion, PushInfo, PushKind, RedisError};

use super::sentinel::Sentinel;

/// A connection that was used so recently, and answered, is used again as it is.
const FRESH: Duration = Duration::from_secs(1);

/// Makes the connections of a pool, and has one that may have broken answer a PING before it is used again. In a busy
/// server that is none, so that a decision takes one round trip.
pub(super) struct Manager {
    redis: deadpool_redis::Manager,
    /// Where it, rather than the address, says where a connection leads.
    sentinel: Option<Sentinel>,
    config: AsyncConnectionConfig,
    breaks: Breaks,
}

/// How many connections the other side has closed. It is told at once, whether the connection is in use or not.
#[derive(Clone, Default)]
struct Breaks(Arc<AtomicU64>);

/// A connection of the pool.
pub(super) struct Link {
    pub(super) connection: MultiplexedConnection,
    /// Whether its last call was answered, if only by an error.
    pub(super) answered: bool,
    /// The breaks that were known before that call.
    breaks: u64,
}

impl Manager {
    pub(super) fn new(
        address: ConnectionInfo,
        sentinel: Option<Sentinel>,
        config: AsyncConnectionConfig,
    ) -> Result<Self, RedisError> {
        let breaks = Breaks::default();
        let config = config.set_push_sender(breaks.clone());
        let redis = deadpool_redis::Manager::new_with_config(that_tells(address), config.clone())?;
        Ok(Self { redis, sentinel, config, breaks })
    }

    async fn connect(&self) -> Result<MultiplexedConnection, RedisError> {
        match &self.sentinel {
            None => self.redis.create().await,
            Some(sentinel) => {
                let address = that_tells(sentinel.primary().await?);
                redis::Client::open(address)?.get_multiplexed_async_connection_with_config(&self.config).await
            }
        }
    }
}

/// Only RESP3 connections tell when they are closed.
fn that_tells(address: ConnectionInfo) -> ConnectionInfo {
    let settings = address.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
    address.set_redis_settings(settings)
}

impl Breaks {
    fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl AsyncPushSender for Breaks {
    fn send(&self, push: PushInfo) -> Result<(), SendError> {
        if push.kind == PushKind::Disconnection {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl managed::Manager for Manager {
    type Type = Link;
    type Error = RedisError;

    async fn create(&self) -> Result<Link, RedisError> {
        let breaks = self.breaks.count();
        Ok(Link { connection: self.connect().await?, answered: false, breaks })
    }

    async fn recycle(&self, link: &mut Link, metrics: &Metrics) -> RecycleResult<RedisError> {
        let breaks = self.breaks.count();
        // What breaks does not tell which it was, so all are asked once.
        let unbroken = mem::replace(&mut link.breaks, breaks) == breaks;
        let answered = mem::take(&mut link.answered);
        if answered && unbroken && metrics.last_used() < FRESH {
            return Ok(());
        }
        self.redis.recycle(&mut link.connection, metrics).await
    }
}
