//! Redis behind the store's back.

use quota_core::Account;
use quota_tests::redis::RedisServer;
use redis::aio::MultiplexedConnection;
use redis::{FromRedisValue, ToRedisArgs};

/// A connection of the test's own.
#[derive(Clone)]
pub(crate) struct Raw(MultiplexedConnection);

impl Raw {
    pub(crate) async fn new(server: &RedisServer) -> Self {
        Self(server.client().await)
    }

    /// Runs a command such as `["SET", "key", "value"]`.
    pub(crate) async fn run<T: FromRedisValue>(&self, command: &[impl ToRedisArgs]) -> T {
        let mut cmd = redis::Cmd::new();
        cmd.arg(command);
        cmd.query_async(&mut self.0.clone()).await.expect("a Redis that answers")
    }

    /// The value of an account.
    pub(crate) async fn value(&self, account: &Account) -> Vec<u8> {
        self.run(&["GET", &key(account)]).await
    }

    /// Puts a value in an account's place, and keeps its expiry.
    pub(crate) async fn plant(&self, account: &Account, value: &[u8]) {
        self.run::<()>(&[b"SET", key(account).as_bytes(), value, b"KEEPTTL"]).await;
    }

    /// In milliseconds; -1 for never, -2 for no such key.
    pub(crate) async fn pttl(&self, account: &Account) -> i64 {
        self.run(&["PTTL", &key(account)]).await
    }

    /// How often a command was called since `CONFIG RESETSTAT`, such as `evalsha` or `script|load`.
    pub(crate) async fn calls(&self, command: &str) -> u64 {
        let stats: String = self.run(&["INFO", "commandstats"]).await;
        let field = format!("cmdstat_{command}:calls=");
        stats.lines().find_map(|line| line.strip_prefix(&field)?.split(',').next()?.parse().ok()).unwrap_or(0)
    }
}

/// The key of an account.
pub(crate) fn key(account: &Account) -> String {
    format!("q1:{{{}}}", account.key())
}
