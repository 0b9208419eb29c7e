use std::time::Duration;

use redis::{FromRedisValue, Value};
use tokio::time::Instant;

use super::call::Call;
use super::cluster::Cluster;
use super::error::classify;
use super::pool::{Lane, Pool, Sizing, Terms};
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
        let sizing = Sizing { decisions: settings.pool_size, patience: settings.deadline };
        let servers = match url.expose() {
            RedisServers::Single(url) => Servers::Single(Pool::to(&**url, None, sizing)?),
            RedisServers::Sentinel { sentinels, name, server } => {
                let sentinel =
                    Sentinel::new(sentinels, name, server, url.tls()).map_err(|error| classify(&error))?;
                Servers::Single(Pool::to(&**server, Some(sentinel), sizing)?)
            }
            RedisServers::Cluster(nodes) => Servers::Cluster(Cluster::new(nodes, sizing)?),
        };
        Ok(Self { servers, deadline: settings.deadline, tls: url.tls() })
    }

    /// When a decision that begins now must be made.
    pub(super) fn deadline(&self) -> Instant {
        Instant::now() + self.deadline
    }

    /// When what no decision waits for must have ended that begins now.
    pub(super) fn aside(&self) -> Instant {
        Instant::now() + self.deadline.max(ASIDE_TIMEOUT)
    }

    /// When a flush of reports must have ended that begins now. A node of a Cluster that does not answer holds up the reports on
    /// the others for a part of their time: for the flush that they come during, and their own.
    pub(super) fn flush(&self) -> Instant {
        let part = if self.are_many() { 4 } else { 1 };
        Instant::now() + self.deadline.max(ASIDE_TIMEOUT) / part
    }

    /// Runs one call on what is stored at a key, until a moment, waiting for a connection included.
    ///
    /// It is never sent twice, but where a node of a Cluster says that the key is elsewhere, and has done nothing. A
    /// connection that broke, or that leads to a server which takes no writes any more, is dropped with its first error, so
    /// that the next call makes a new one, which may lead to another server.
    pub(super) async fn run<T: FromRedisValue>(
        &self,
        terms: Terms,
        key: &str,
        call: Call<'_>,
    ) -> Result<T, StoreError> {
        let answer = match &self.servers {
            Servers::Single(pool) => {
                let called = terms.within(pool.call(terms, &call, false)).await?;
                called.map_err(|error| classify(&error))
            }
            Servers::Cluster(cluster) => terms.within(cluster.call(terms, key, &call)).await,
        };
        let answer = answer.inspect_err(|error| self.doubt(error))?;
        redis::from_redis_value(answer).map_err(|error| classify(&error.into()))
    }

    /// The same for what no decision waits for.
    pub(super) async fn run_aside<T: FromRedisValue>(
        &self,
        key: &str,
        call: Call<'_>,
    ) -> Result<T, StoreError> {
        self.run(Terms::new(Lane::Aside, self.aside()), key, call).await
    }

    /// The same as a decision, with time enough for a first connection. One to a port without TLS, which never answers a
    /// handshake, is an error that waiting does not mend.
    pub(super) async fn run_first<T: FromRedisValue>(
        &self,
        key: &str,
        call: Call<'_>,
    ) -> Result<T, StoreError> {
        let terms = Terms::new(Lane::Decisions, Instant::now() + CONNECT_TIMEOUT);
        match self.run(terms, key, call).await {
            Err(StoreError::Timeout(_)) if self.tls => {
                Err(StoreError::Refused("no answer to the TLS handshake".to_owned(), Cause::Denied))
            }
            result => result,
        }
    }

    /// Runs calls, each on what is stored at its key. Those on one server take one round trip, and what fails on one is no
    /// reason to know nothing of the others.
    pub(super) async fn run_each(
        &self,
        terms: Terms,
        calls: &[(String, Call<'_>)],
    ) -> Vec<Result<Value, StoreError>> {
        match &self.servers {
            Servers::Cluster(cluster) => cluster.run_each(terms, calls).await,
            Servers::Single(pool) => {
                let all: Vec<&Call<'_>> = calls.iter().map(|(_, call)| call).collect();
                match terms.within(pool.calls(terms, &all)).await {
                    Ok(told) => {
                        told.into_iter().map(|answer| answer.map_err(|error| classify(&error))).collect()
                    }
                    Err(error) => vec![Err(error); calls.len()],
                }
            }
        }
    }

    /// The same for what no decision waits for.
    pub(super) async fn run_each_aside(
        &self,
        calls: Vec<(String, Call<'_>)>,
    ) -> Vec<Result<Value, StoreError>> {
        self.run_each(Terms::new(Lane::Aside, self.aside()), &calls).await
    }

    /// Of each server that takes writes, a key that it holds.
    pub(super) async fn key_of_each(&self, key: &str) -> Result<Vec<String>, StoreError> {
        match &self.servers {
            Servers::Single(_) => Ok(vec![key.to_owned()]),
            Servers::Cluster(cluster) => {
                Terms::new(Lane::Aside, self.aside()).within(cluster.key_of_each(key)).await
            }
        }
    }

    /// Whether keys may be on several servers.
    pub(super) const fn are_many(&self) -> bool {
        matches!(self.servers, Servers::Cluster(_))
    }

    /// A node that does not answer may have handed over to another.
    fn doubt(&self, error: &StoreError) {
        if let (Servers::Cluster(cluster), StoreError::Timeout(_)) = (&self.servers, error) {
            cluster.doubt();
        }
    }
}
