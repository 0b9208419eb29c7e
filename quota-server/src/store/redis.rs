//! Usage in Redis: each decision is one Lua script (the folder `lua/`), atomic on all its accounts. On a Cluster it is
//! atomic on one, and `admission` makes it all or none on all of them.

mod admission;
mod board;
mod call;
mod cluster;
mod codec;
mod connections;
mod connector;
mod cuts_codec;
mod error;
mod flush;
#[cfg(any(fuzzing, test))]
pub(crate) mod fuzzing;
mod index;
mod line;
mod link;
mod loads;
mod node_codec;
mod nodes;
mod pool;
mod safety;
mod scripts;
mod sentinel;
mod settling;
mod slots;
mod words;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use quota_core::{
    Account, Adaptations, Cost, Leased, NodeReport, Progress, Renewal, Wanted, WindowLength, Word,
};
use redis::Value;
use tokio::time::Instant;

use self::call::Call;
use self::codec::Outcome;
use self::connections::Connections;
use self::flush::Part;
use self::pool::{Lane, Terms};
use self::scripts::Script;
pub use self::scripts::Scripts;
use self::settling::{Outcomes, Settling};
use super::{
    Admitted, Board, Calibrated, Entry, Heard, Limited, Nodes, Posts, Report, Safety, Saying, Settlement,
    SlotCall, Snapshots, Store, StoreError, Words,
};
use crate::config;

/// What is written to see whether writes are taken.
const PROBE: &str = "q1:probe";

/// Keeps usage in a Redis, which any number of servers share.
pub struct RedisStore {
    connections: Arc<Connections>,
    scripts: Arc<Scripts>,
    settling: Settling,
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
        let (connections, scripts) = (Arc::new(Connections::new(settings, url)?), Arc::new(scripts));
        Ok(Self {
            settling: Settling::new(Arc::clone(&connections), Arc::clone(&scripts), length),
            connections,
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
        self.connections.run_first::<Value>(&key, read).await?;
        self.connections.run_first(PROBE, probe(PROBE)).await
    }

    /// Runs a script on keys, of which a Cluster takes one, until a moment.
    async fn run(
        &self,
        end: Instant,
        script: &Script,
        keys: &[String],
        args: Vec<Vec<u8>>,
    ) -> Result<Vec<Value>, StoreError> {
        let key = keys.first().map_or("", String::as_str);
        self.connections.run(Terms::new(Lane::Decisions, end), key, self.call(script, keys, args)).await
    }

    fn call<'a>(&self, script: &'a Script, keys: &[String], args: Vec<Vec<u8>>) -> Call<'a> {
        Call::script(script, keys).arg(self.length.bucket_micros()).args(args)
    }
}

#[async_trait]
impl Store for RedisStore {
    async fn admit(&self, accounts: &[Limited], price: Cost) -> Result<Admitted, StoreError> {
        self.admit_all_or_none(accounts, price).await
    }

    async fn settle(&self, report: &Report) -> Result<Settlement, StoreError> {
        settlement(report, self.settling.together(parts(report)).await?)
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

    async fn lease_slots(&self, call: SlotCall<'_>, wanted: &Wanted) -> Result<Leased, StoreError> {
        self.run_acquire(call, wanted).await
    }

    async fn keep_slots(
        &self,
        call: SlotCall<'_>,
        renewal: &Renewal,
        progress: Progress,
    ) -> Result<Leased, StoreError> {
        self.run_renew(call, renewal, progress).await
    }

    async fn safety(&self) -> Result<Safety, StoreError> {
        self.read_safety().await
    }

    async fn probe(&self) -> Result<(), StoreError> {
        let mut result = Err(StoreError::Unreachable("no server".to_owned()));
        // One node of a Cluster that takes no writes is no reason to serve nobody.
        for key in self.connections.key_of_each(PROBE).await? {
            let terms = Terms::new(Lane::Decisions, self.connections.deadline());
            result = self.connections.run(terms, &key, probe(&key)).await;
            if result.is_ok() {
                break;
            }
        }
        result
    }
}

/// A report by account, as it goes to Redis.
fn parts(report: &Report) -> Vec<Part> {
    let part = |entry: &Entry| Part {
        key: key(&entry.account),
        packed: codec::report(report.mark, entry),
        size: entry.charges.len().max(entry.releases.len()),
    };
    report.entries.iter().map(part).collect()
}

/// What became of a report. An account that cannot take it is no reason to keep it from the others, and is the error.
fn settlement(report: &Report, outcomes: Outcomes) -> Result<Settlement, StoreError> {
    let mut settlement = Settlement::default();
    let mut result = Ok(());
    for (Entry { account, .. }, outcome) in report.entries.iter().zip(outcomes) {
        result = result.and(outcome.and_then(|Outcome { settled, rebased }| {
            settlement.rebased += rebased;
            settlement.count(account, settled.ok_or_else(|| StoreError::Corrupt(account.clone()))?)
        }));
    }
    result.map(|()| settlement)
}

/// Writes, since a replica and a primary that lacks replicas still answer reads.
fn probe(key: &str) -> Call<'static> {
    let mut probe = redis::cmd("SET");
    probe.arg(key).arg(1).arg("EX").arg(60);
    probe.into()
}

fn keys<'a>(accounts: impl IntoIterator<Item = &'a Account>) -> Vec<String> {
    accounts.into_iter().map(key).collect()
}

fn key(account: &Account) -> String {
    format!("q1:{{{}}}", account.key())
}
