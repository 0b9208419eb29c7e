//! Usage in Redis: each decision is one Lua script (the folder `lua/`), atomic on all its accounts. On a Cluster it is
//! atomic on one, and `admission` makes it all or none on all of them.

mod admission;
mod board;
mod cluster;
mod codec;
mod connections;
mod cuts_codec;
mod error;
mod index;
mod manager;
mod node_codec;
mod nodes;
mod pool;
mod safety;
mod scripts;
mod sentinel;
mod words;

use std::time::Duration;

use async_trait::async_trait;
use futures::{StreamExt as _, stream};
use quota_core::{Account, Adaptations, Cost, NodeReport, WindowLength, Word};
use redis::Value;
use tokio::time::Instant;

use self::connections::Connections;
use self::pool::Call;
pub use self::scripts::Scripts;
use super::{
    Admitted, Board, Calibrated, Entry, Heard, Limited, MAX_ACCOUNTS, MAX_CHARGES, Nodes, Posts, Report,
    Safety, Saying, Settlement, Snapshots, Store, StoreError, Words,
};
use crate::config;

/// What is written to see whether writes are taken.
const PROBE: &str = "q1:probe";

/// How many accounts of a report are on their way to a Cluster at once.
const SETTLED_AT_ONCE: usize = 16;

/// Keeps usage in a Redis, which any number of servers share.
pub struct RedisStore {
    connections: Connections,
    scripts: Scripts,
    length: WindowLength,
    /// What a node's limits were calibrated for, beside others that share the Redis: a random number.
    caller: [u8; node_codec::CALLER],
}

impl RedisStore {
    /// A store behind an address; it connects when it is first used.
    pub fn new(
        settings: &config::Store,
        url: &config::RedisUrl,
        length: WindowLength,
        scripts: Scripts,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            connections: Connections::new(settings, url)?,
            scripts,
            length,
            caller: fastrand::u64(..).to_le_bytes(),
        })
    }

    /// Connects for the first time, with seconds where a decision has milliseconds, and runs a script that reads and a
    /// command that writes: a wrong password, a missing right or a port that speaks another protocol shows here.
    pub async fn connect(&self) -> Result<(), StoreError> {
        let key = "q1:{probe}".to_owned();
        let read = self.call(&self.scripts.standing, std::slice::from_ref(&key), Vec::new());
        self.connections.run_first::<Value>(&key, Call::Script(&read)).await?;
        self.connections.run_first(PROBE, Call::Command(&probe(PROBE))).await
    }

    /// Runs a script on keys, of which a Cluster takes one, until a moment.
    async fn run(
        &self,
        end: Instant,
        script: &redis::Script,
        keys: &[String],
        args: Vec<Vec<u8>>,
    ) -> Result<Vec<Value>, StoreError> {
        let call = self.call(script, keys, args);
        let key = keys.first().map_or("", String::as_str);
        self.connections.run_until(end, key, Call::Script(&call)).await
    }

    fn call<'a>(
        &self,
        script: &'a redis::Script,
        keys: &[String],
        args: Vec<Vec<u8>>,
    ) -> redis::ScriptInvocation<'a> {
        let mut call = script.prepare_invoke();
        for key in keys {
            call.key(key);
        }
        call.arg(self.length.bucket_micros());
        for arg in args {
            call.arg(arg);
        }
        call
    }
}

#[async_trait]
impl Store for RedisStore {
    async fn admit(&self, accounts: &[Limited], price: Cost) -> Result<Admitted, StoreError> {
        self.admit_all_or_none(accounts, price).await
    }

    async fn settle(&self, report: &Report) -> Result<Settlement, StoreError> {
        // On a Cluster an account is rarely in another's slot.
        let (accounts, at_once) =
            if self.connections.are_many() { (1, SETTLED_AT_ONCE) } else { (MAX_ACCOUNTS, 1) };
        let mut calls = Vec::new();
        for entries in codec::chunks(&report.entries, accounts, MAX_CHARGES) {
            calls.push(self.settle_entries(report, entries));
        }
        let mut settled = stream::iter(calls).buffered(at_once);
        let mut settlement = Settlement::default();
        let mut outcome = Ok(());
        while let Some((part, result)) = settled.next().await {
            settlement += part;
            // An account that cannot take the report is no reason to keep it from the others.
            outcome = outcome.and(result);
        }
        outcome.map(|()| settlement)
    }

    async fn usage(&self, accounts: &[Account]) -> Result<Snapshots, StoreError> {
        self.usage_of_all(accounts).await
    }

    async fn calibrate(
        &self,
        node: &str,
        report: &NodeReport,
        adaptations: &Adaptations,
    ) -> Result<Calibrated, StoreError> {
        self.calibrate_node(node, report, adaptations).await
    }

    async fn nodes(&self) -> Result<Nodes, StoreError> {
        self.list_nodes().await
    }

    async fn post(&self, board: Board, part: u64, content: &[u8]) -> Result<(), StoreError> {
        self.write_post(board, part, content).await
    }

    async fn posts(&self, board: Board, within: Duration) -> Result<Posts, StoreError> {
        self.read_posts(board, within).await
    }

    async fn words(&self, known: u64) -> Result<Words, StoreError> {
        self.read_words(known).await
    }

    async fn say(&self, saying: Saying<'_>) -> Result<Heard, StoreError> {
        self.say_word(saying).await
    }

    async fn restore(&self, words: &[(Box<str>, Word)]) -> Result<u32, StoreError> {
        self.restore_words(words).await
    }

    async fn safety(&self) -> Result<Safety, StoreError> {
        self.read_safety().await
    }

    async fn probe(&self) -> Result<(), StoreError> {
        let mut result = Err(StoreError::Unreachable("no server".to_owned()));
        // One node of a Cluster that takes no writes is no reason to serve nobody.
        for key in self.connections.key_of_each(PROBE).await? {
            result = self.connections.run(&key, Call::Command(&probe(&key))).await;
            if result.is_ok() {
                break;
            }
        }
        result
    }
}

impl RedisStore {
    /// Settles what is in one call. Other chunks are settled whatever becomes of it.
    async fn settle_entries(
        &self,
        report: &Report,
        entries: &[Entry],
    ) -> (Settlement, Result<(), StoreError>) {
        let mut args = vec![codec::mark(report.mark)];
        for entry in entries {
            args.push(codec::charges(&entry.charges));
            args.push(codec::releases(&entry.releases));
        }
        let accounts = entries.iter().map(|entry| &entry.account);
        let keys = keys(accounts.clone());
        let mut settlement = Settlement::default();
        let reply = self.run(self.connections.deadline(), &self.scripts.settle, &keys, args).await;
        let result = reply.and_then(|reply| codec::settled(&reply, accounts, &mut settlement));
        (settlement, result)
    }
}

/// Writes, since a replica and a primary that lacks replicas still answer reads.
fn probe(key: &str) -> redis::Cmd {
    let mut probe = redis::cmd("SET");
    probe.arg(key).arg(1).arg("EX").arg(60);
    probe
}

fn keys<'a>(accounts: impl IntoIterator<Item = &'a Account>) -> Vec<String> {
    accounts.into_iter().map(|account| format!("q1:{{{}}}", account.key())).collect()
}
