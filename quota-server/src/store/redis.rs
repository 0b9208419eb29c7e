//! Usage in Redis: each decision is one Lua script (the folder `lua/`), atomic on all its accounts.

mod board;
mod codec;
mod connections;
mod cuts_codec;
mod manager;
mod node_codec;
mod nodes;
mod safety;
mod scripts;
mod words;

use std::time::Duration;

use async_trait::async_trait;
use quota_core::{Account, Adaptations, Cost, NodeReport, WindowLength, Word};
use redis::aio::MultiplexedConnection;
use redis::{RedisResult, Value};

use self::connections::Connections;
pub use self::scripts::Scripts;
use super::{
    Admitted, Board, Calibrated, Heard, Limited, MAX_ACCOUNTS, MAX_CHARGES, Nodes, Posts, Report, Safety,
    Saying, Settlement, Snapshots, Store, StoreError, Words,
};
use crate::config;

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
        let read = self.call(&self.scripts.standing, vec!["q1:{probe}".to_owned()], Vec::new());
        self.connections.run_first(async |connection| read.invoke_async::<Value>(connection).await).await?;
        self.connections.run_first(probe).await
    }

    async fn run(
        &self,
        script: &redis::Script,
        keys: Vec<String>,
        args: Vec<Vec<u8>>,
    ) -> Result<Vec<Value>, StoreError> {
        let call = self.call(script, keys, args);
        self.connections.run(async |connection| call.invoke_async(connection).await).await
    }

    fn call<'a>(
        &self,
        script: &'a redis::Script,
        keys: Vec<String>,
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
        let names = accounts.iter().map(|limited| &limited.account);
        let args = vec![codec::price(price), codec::bounds(accounts)];
        let reply = self.run(&self.scripts.admit, keys(names.clone()), args).await?;
        codec::admitted(&reply, names)
    }

    async fn settle(&self, report: &Report) -> Result<Settlement, StoreError> {
        let mut settlement = Settlement::default();
        let mut outcome = Ok(());
        for entries in codec::chunks(&report.entries, MAX_ACCOUNTS, MAX_CHARGES) {
            let mut args = vec![codec::mark(report.mark)];
            for entry in entries {
                args.push(codec::charges(&entry.charges));
                args.push(codec::releases(&entry.releases));
            }
            let accounts = entries.iter().map(|entry| &entry.account);
            let reply = self.run(&self.scripts.settle, keys(accounts.clone()), args).await?;
            // An account that cannot take the report is no reason to keep it from the others.
            outcome = outcome.and(codec::settled(&reply, accounts, &mut settlement));
        }
        outcome.map(|()| settlement)
    }

    async fn usage(&self, accounts: &[Account]) -> Result<Snapshots, StoreError> {
        let reply = self.run(&self.scripts.standing, keys(accounts), Vec::new()).await?;
        codec::snapshots(&reply, accounts)
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
        self.connections.run(probe).await
    }
}

/// Writes, since a replica and a primary that lacks replicas still answer reads.
async fn probe(connection: &mut MultiplexedConnection) -> RedisResult<()> {
    redis::cmd("SET").arg("q1:probe").arg(1).arg("EX").arg(60).query_async(connection).await
}

fn keys<'a>(accounts: impl IntoIterator<Item = &'a Account>) -> Vec<String> {
    accounts.into_iter().map(|account| format!("q1:{{{}}}", account.key())).collect()
}
