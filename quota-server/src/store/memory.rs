//! Usage in this process alone: `quota-core` behind sharded locks.

mod nodes;
mod shard;
mod slots;

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::{Mutex, MutexGuard};
use quota_core::{
    Account, Adaptations, Book, Bound, Cost, Leased, Ledger, NodeReport, PerResource, Progress, Renewal,
    Snapshot, Tick, Timestamp, Wanted, WindowLength, Word, admit,
};

use self::nodes::MemoryNodes;
use self::shard::Shard;
use self::slots::MemorySlots;
use super::{
    Admitted, Board, Calibrated, Clock, Heard, Limited, Nodes, Posts, Report, Safety, Saying, Settlement,
    SlotCall, Snapshots, Store, StoreError, Words,
};

/// Enough that two requests seldom meet at one lock.
const SHARDS: usize = 64;

/// Keeps usage in memory, for at most about so many accounts: idle ones are dropped, further ones refused.
///
/// It is lost with the process, and not shared with another.
pub struct MemoryStore {
    shards: Vec<Mutex<Shard>>,
    hasher: RandomState,
    nodes: MemoryNodes,
    book: Mutex<Book>,
    slots: MemorySlots,
    length: WindowLength,
    clock: Clock,
    max_accounts_per_shard: usize,
}

/// Accounts' ledgers, brought to a moment.
struct Opened<'a> {
    ledgers: &'a mut [Ledger],
    /// Whether those that are new fit.
    room: bool,
    now: Timestamp,
    tick: Tick,
    rebased: u32,
}

impl MemoryStore {
    /// An empty store for about `max_accounts`.
    pub fn new(length: WindowLength, max_accounts: usize, clock: Clock) -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            hasher: RandomState::new(),
            nodes: MemoryNodes::default(),
            book: Mutex::default(),
            slots: MemorySlots::new(clock.now()),
            length,
            clock,
            max_accounts_per_shard: max_accounts.div_ceil(SHARDS),
        }
    }

    /// Drops the accounts without usage; to be called about once a window.
    pub fn drop_idle(&self) {
        for shard in &self.shards {
            shard.lock().drop_idle(self.clock.now(), self.length);
        }
    }

    /// How many accounts it holds.
    pub fn accounts(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().len()).sum()
    }

    /// Runs `act` on the ledgers of different accounts at once, and keeps what it leaves behind.
    fn with<T>(&self, accounts: &[&Account], act: impl FnOnce(Opened<'_>) -> T) -> T {
        let shard_of = |account: &Account| self.hasher.hash_one(account) as usize % SHARDS;
        let mut indices: Vec<usize> = accounts.iter().map(|account| shard_of(account)).collect();
        let places = indices.clone();
        // In ascending order, so that no two calls wait for each other.
        indices.sort_unstable();
        indices.dedup();
        let mut locked: Vec<MutexGuard<'_, Shard>> =
            indices.iter().map(|&index| self.shards[index].lock()).collect();
        let places: Vec<usize> =
            places.iter().map(|index| indices.partition_point(|other| other < index)).collect();

        let now = self.clock.now();
        let room = locked.iter_mut().enumerate().all(|(place, shard)| {
            let new =
                accounts.iter().zip(&places).filter(|&(account, at)| *at == place && !shard.holds(account));
            let new = new.count();
            shard.has_room(new, self.max_accounts_per_shard, now, self.length)
        });
        let mut ledgers: Vec<Ledger> =
            accounts.iter().zip(&places).map(|(account, &place)| locked[place].take(account)).collect();
        let tick = Ledger::now(now, self.length, &ledgers);
        let rebased = ledgers.iter_mut().map(|ledger| u32::from(ledger.advance(tick))).sum();
        let result = act(Opened { ledgers: &mut ledgers, room, now, tick, rebased });
        for ((account, &place), ledger) in accounts.iter().zip(&places).zip(ledgers) {
            locked[place].keep(account, ledger);
        }
        result
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn admit(&self, accounts: &[Limited], price: Cost) -> Result<Admitted, StoreError> {
        let names: Vec<&Account> = accounts.iter().map(|limited| &limited.account).collect();
        self.with(&names, |opened| {
            let snapshots = opened
                .ledgers
                .iter()
                .zip(accounts)
                .map(|(ledger, limited)| snapshot(ledger, &limited.bounds))
                .collect();
            let mut compared: Vec<_> =
                opened.ledgers.iter_mut().zip(accounts.iter().map(|limited| limited.bounds)).collect();
            // Without room for the price, who is over is refused nevertheless.
            let allowed = admit(&mut compared, if opened.room { price } else { Cost::ZERO });
            if allowed && !opened.room && !price.is_zero() {
                return Err(StoreError::Full);
            }
            let snapshots = Snapshots { now: opened.now, accounts: snapshots, rebased: opened.rebased };
            Ok(Admitted { allowed, ticks: vec![opened.tick; accounts.len()], snapshots })
        })
    }

    async fn settle(&self, report: &Report) -> Result<Settlement, StoreError> {
        let mut settlement = Settlement::default();
        let mut outcome = Ok(());
        for entry in &report.entries {
            let settled = self.with(&[&entry.account], |opened| {
                settlement.rebased += opened.rebased;
                let ledger = opened.ledgers.first_mut().filter(|_| opened.room).ok_or(StoreError::Full)?;
                Ok(ledger.settle(report.mark, &entry.charges, &entry.releases, opened.now, self.length))
            });
            outcome = outcome.and(settled.and_then(|settled| settlement.count(&entry.account, settled)));
        }
        outcome.map(|()| settlement)
    }

    async fn usage(&self, accounts: &[Account]) -> Result<Snapshots, StoreError> {
        let names: Vec<&Account> = accounts.iter().collect();
        Ok(self.with(&names, |opened| Snapshots {
            now: opened.now,
            accounts: opened.ledgers.iter().map(|ledger| Snapshot::Full(ledger.window().clone())).collect(),
            rebased: opened.rebased,
        }))
    }

    async fn calibrate(
        &self,
        node: &str,
        report: &NodeReport,
        adaptations: &Adaptations,
    ) -> Result<Calibrated, StoreError> {
        self.nodes.calibrate(node, report, adaptations, self.clock.now())
    }

    async fn nodes(&self) -> Result<Nodes, StoreError> {
        Ok(self.nodes.list(self.clock.now()))
    }

    /// There is no other server to tell.
    async fn post(&self, _board: Board, _part: u64, _content: &[u8]) -> Result<(), StoreError> {
        Ok(())
    }

    async fn posts(&self, _board: Board, _within: Duration) -> Result<Posts, StoreError> {
        Ok(Posts { now: self.clock.now(), contents: Vec::new() })
    }

    async fn words(&self, known: u64) -> Result<Words, StoreError> {
        let book = self.book.lock();
        let book = (book.version() != known).then(|| book.clone());
        Ok(Words { now: self.clock.now(), book, unreadable: 0 })
    }

    async fn say(&self, Saying { name, text, lasts }: Saying<'_>) -> Result<Heard, StoreError> {
        let mut book = self.book.lock();
        let now = self.clock.now();
        Ok(Heard { now, said: book.say(now, name, text, lasts, Book::MOST) })
    }

    async fn restore(&self, words: &[(Box<str>, Word)]) -> Result<u32, StoreError> {
        Ok(self.book.lock().restore(self.clock.now(), words.iter().cloned(), Book::MOST))
    }

    async fn lease_slots(&self, call: SlotCall<'_>, wanted: &Wanted) -> Result<Leased, StoreError> {
        let now = self.clock.now();
        Ok(self.slots.with(call, |slots| slots.acquire(now, wanted, call.terms, call.pressed)))
    }

    async fn keep_slots(
        &self,
        call: SlotCall<'_>,
        renewal: &Renewal,
        progress: Progress,
    ) -> Result<Leased, StoreError> {
        let now = self.clock.now();
        Ok(self.slots.with(call, |slots| slots.renew(now, renewal, progress, call.terms, call.pressed)))
    }

    async fn safety(&self) -> Result<Safety, StoreError> {
        // That nothing outlives the process is told of every store in memory.
        Ok(Safety::default())
    }

    async fn probe(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

fn snapshot(ledger: &Ledger, bounds: &PerResource<Bound>) -> Snapshot {
    let window = ledger.window();
    if bounds.iter().any(|(resource, bound)| bound.breached_by(window.usage()[resource])) {
        Snapshot::Full(window.clone())
    } else {
        Snapshot::Below(*window.usage())
    }
}

#[cfg(test)]
mod tests;
