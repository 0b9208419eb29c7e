use std::time::Duration;

use redis::{Cmd, FromRedisValue, RedisResult, Value};
use tokio::time::{Instant, timeout_at};

use super::cluster::Cluster;
use super::error::classify;
use super::pool::{Call, Pool};
use super::sentinel::Sentinel;
use crate::config::{self, RedisServers};
use crate::store::{Cause, StoreError};

/// How long may take what no decision waits for: a thousand nodes with all that they report are some megabytes.
const ASIDE_TIMEOUT: Duration = Duration::from_secs(1);

/// How long the first connection may take, and its first answer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The connections to a Redis, whatever servers it has.
pub(super) struct Connections {
    servers: Servers,
    deadline: Duration,
    tls: bool,
}

enum Servers {
    Single(Pool),
    Cluster(Cluster),
}

impl Connections {
    pub(super) fn new(settings: &config::Store, url: &config::RedisUrl) -> Result<Self, StoreError> {
        let size = settings.pool_size;
        let servers = match url.expose() {
            RedisServers::Single(url) => Servers::Single(Pool::to(&**url, None, size)?),
            RedisServers::Sentinel { sentinels, name, server } => {
                let sentinel =
                    Sentinel::new(sentinels, name, server, url.tls()).map_err(|error| classify(&error))?;
                Servers::Single(Pool::to(&**server, Some(sentinel), size)?)
            }
            RedisServers::Cluster(nodes) => Servers::Cluster(Cluster::new(nodes, size)?),
        };
        Ok(Self { servers, deadline: settings.deadline, tls: url.tls() })
    }

    /// When a decision that begins now must be made.
    pub(super) fn deadline(&self) -> Instant {
        Instant::now() + self.deadline
    }

    /// Runs one call on what is stored at a key, within the deadline, waiting for a connection included.
    ///
    /// It is never sent twice, but where a node of a Cluster says that the key is elsewhere, and has done nothing. A
    /// connection that broke, or that leads to a server which takes no writes any more, is dropped with its first error, so
    /// that the next call makes a new one, which may lead to another server.
    pub(super) async fn run<T: FromRedisValue>(&self, key: &str, call: Call<'_>) -> Result<T, StoreError> {
        self.run_until(self.deadline(), key, call).await
    }

    /// The same for what no decision waits for.
    pub(super) async fn run_aside<T: FromRedisValue>(
        &self,
        key: &str,
        call: Call<'_>,
    ) -> Result<T, StoreError> {
        self.run_until(self.aside(), key, call).await
    }

    /// The same with time enough for a first connection. One to a port without TLS, which never answers a handshake,
    /// is an error that waiting does not mend.
    pub(super) async fn run_first<T: FromRedisValue>(
        &self,
        key: &str,
        call: Call<'_>,
    ) -> Result<T, StoreError> {
        match self.run_until(Instant::now() + CONNECT_TIMEOUT, key, call).await {
            Err(StoreError::Timeout(_)) if self.tls => {
                Err(StoreError::Refused("no answer to the TLS handshake".to_owned(), Cause::Denied))
            }
            result => result,
        }
    }

    /// The same until a moment.
    pub(super) async fn run_until<T: FromRedisValue>(
        &self,
        end: Instant,
        key: &str,
        call: Call<'_>,
    ) -> Result<T, StoreError> {
        let began = Instant::now();
        let called = async {
            match &self.servers {
                Servers::Single(pool) => pool.call(call, false).await?.map_err(|error| classify(&error)),
                Servers::Cluster(cluster) => cluster.call(key, call).await,
            }
        };
        timeout_at(end, called).await.unwrap_or_else(|_| {
            self.doubt();
            Err(StoreError::Timeout(end - began))
        })
    }

    /// Runs a command that reads one key, on each of many keys, for what no decision waits for. Those on one server take
    /// one round trip.
    pub(super) async fn read_each(
        &self,
        keys: &[String],
        command: impl Fn(&str) -> Cmd,
    ) -> Result<Vec<RedisResult<Value>>, StoreError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let commands: Vec<Cmd> = keys.iter().map(|key| command(key)).collect();
        let commands: Vec<&Cmd> = commands.iter().collect();
        let end = self.aside();
        let called = async {
            match &self.servers {
                Servers::Single(pool) => pool.read(&commands).await,
                Servers::Cluster(cluster) => cluster.read_each(keys, &commands).await,
            }
        };
        timeout_at(end, called).await.unwrap_or_else(|_| {
            self.doubt();
            Err(StoreError::Timeout(self.deadline.max(ASIDE_TIMEOUT)))
        })
    }

    /// Of each server that takes writes, a key that it holds.
    pub(super) async fn key_of_each(&self, key: &str) -> Result<Vec<String>, StoreError> {
        match &self.servers {
            Servers::Single(_) => Ok(vec![key.to_owned()]),
            Servers::Cluster(cluster) => timeout_at(self.aside(), cluster.key_of_each(key))
                .await
                .unwrap_or(Err(StoreError::Timeout(self.deadline.max(ASIDE_TIMEOUT)))),
        }
    }

    /// Whether keys may be on several servers.
    pub(super) const fn are_many(&self) -> bool {
        matches!(self.servers, Servers::Cluster(_))
    }

    fn aside(&self) -> Instant {
        Instant::now() + self.deadline.max(ASIDE_TIMEOUT)
    }

    /// A node that does not answer may have handed over to another.
    fn doubt(&self) {
        if let Servers::Cluster(cluster) = &self.servers {
            cluster.doubt();
        }
    }
}
