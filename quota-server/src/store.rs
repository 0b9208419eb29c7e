//! Where usage is kept: in this process, or in Redis.
//!
//! The trait is cut at whole decisions, so that each is atomic in the store: nobody reads usage, decides, and then
//! writes. One contract suite (in the package quota-tests) runs against both.

mod board;
mod clock;
mod error;
mod measured;
mod memory;
mod node;
mod redis;
mod safety;
mod words;

use std::time::Duration;

use async_trait::async_trait;
use quota_core::{
    Account, Adaptations, Bound, Charge, Cost, Leased, Mark, NodeReport, PerResource, Progress, Release,
    Renewal, Settled, SlotTerms, Snapshot, Tick, Timestamp, Wanted, Word,
};

pub use board::{Board, Posts};
pub use clock::Clock;
pub use error::{Cause, StoreError};
pub use measured::Measured;
pub use memory::MemoryStore;
pub use node::{Calibrated, MAX_NODES, Node, Nodes};
#[cfg(any(fuzzing, test))]
pub(crate) use redis::fuzzing;
pub use redis::{RedisStore, Scripts};
pub use safety::{Danger, Risk, Safety};
pub use words::{Heard, Saying, Words};

/// The most accounts in one call: the scripts' bound.
pub const MAX_ACCOUNTS: usize = 64;

/// The most charges to one account in a report: the scripts' bound.
pub const MAX_CHARGES: usize = 1024;

/// Keeps what accounts have used. Its clock is the only one that decides.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Compares every account with its bounds; where none is reached that refuses, reserves the price on all of
    /// them, else changes nothing. At most [`MAX_ACCOUNTS`].
    async fn admit(&self, accounts: &[Limited], price: Cost) -> Result<Admitted, StoreError>;

    /// Counts a report on its accounts, on each of them once. After an error, the accounts that have it already
    /// skip it when it is sent again.
    async fn settle(&self, report: &Report) -> Result<Settlement, StoreError>;

    /// What the accounts have used; each comes as [`Snapshot::Full`]. At most [`MAX_ACCOUNTS`].
    async fn usage(&self, accounts: &[Account]) -> Result<Snapshots, StoreError>;

    /// Takes in what a node tells, and calibrates its limits where an interval is over.
    async fn calibrate(
        &self,
        node: &str,
        report: &NodeReport,
        adaptations: &Adaptations,
    ) -> Result<Calibrated, StoreError>;

    /// Every node that is remembered, by name; one of which what is stored cannot be read is left out.
    async fn nodes(&self) -> Result<Nodes, StoreError>;

    /// Tells the other servers on the store what this one saw, in place of what it told before of that part.
    async fn post(&self, board: Board, part: u64, content: &[u8]) -> Result<(), StoreError>;

    /// What other servers on the store have told within so long.
    async fn posts(&self, board: Board, within: Duration) -> Result<Posts, StoreError>;

    /// What operators have said, unless it is the version that is known; 0 is none.
    async fn words(&self, known: u64) -> Result<Words, StoreError>;

    /// Puts down what an operator says, or withdraws it. At most [`quota_core::Book::MOST`] names.
    async fn say(&self, saying: Saying<'_>) -> Result<Heard, StoreError>;

    /// Puts words back that the store has lost, unless later ones are there. Returns how many.
    async fn restore(&self, words: &[(Box<str>, Word)]) -> Result<u32, StoreError>;

    /// Leases slots of a class.
    async fn lease_slots(&self, call: SlotCall<'_>, wanted: &Wanted) -> Result<Leased, StoreError>;

    /// Renews a lease of slots, or gives it back.
    async fn keep_slots(
        &self,
        call: SlotCall<'_>,
        kept: &Renewal,
        progress: Progress,
    ) -> Result<Leased, StoreError>;

    /// Whether the store may lose what never expires.
    async fn safety(&self) -> Result<Safety, StoreError>;

    /// Whether the store takes writes.
    async fn probe(&self) -> Result<(), StoreError>;
}

/// Which slots are asked for, and on which terms.
#[derive(Clone, Copy, Debug)]
pub struct SlotCall<'a> {
    /// The name of the class, one of few.
    pub class: &'a str,
    /// Its terms.
    pub terms: &'a SlotTerms,
    /// Whether nodes are under pressure, so that a cap that adapts is lowered.
    pub pressed: bool,
}

/// An account with the limits that it is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limited {
    /// Who.
    pub account: Account,
    /// Its limits.
    pub bounds: PerResource<Bound>,
}

/// The answer to an admission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// Whether the price was reserved.
    pub allowed: bool,
    /// The buckets that it was reserved in, in the order of the request. They differ where accounts are on servers whose
    /// clocks do, if only by the moment in which a bucket ends.
    pub ticks: Vec<Tick>,
    /// The accounts as they were compared, in the order of the request; [`Snapshot::Full`] where a limit is reached.
    pub snapshots: Snapshots,
}

/// What accounts have used, at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshots {
    /// When, by the store's clock.
    pub now: Timestamp,
    /// In the order of the request.
    pub accounts: Vec<Snapshot>,
    /// How many windows were dated back, since the store's clock had stepped back.
    pub rebased: u32,
}

/// What a fileserver reports, summed by account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Which report it is; without it, it counts each time it arrives.
    pub mark: Option<Mark>,
    /// Each account once; at most [`MAX_CHARGES`] charges and releases each.
    pub entries: Vec<Entry>,
}

/// The part of a report that concerns one account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Who.
    pub account: Account,
    /// What was consumed.
    pub charges: Vec<Charge>,
    /// What is given back.
    pub releases: Vec<Release>,
}

impl Entry {
    /// Nothing yet.
    pub const fn new(account: Account) -> Self {
        Self { account, charges: Vec::new(), releases: Vec::new() }
    }

    /// Whether it changes nothing.
    pub const fn is_empty(&self) -> bool {
        self.charges.is_empty() && self.releases.is_empty()
    }
}

/// What became of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settlement {
    /// Accounts on which it counts now.
    pub applied: u32,
    /// Accounts on which it had counted before.
    pub duplicates: u32,
    /// Releases that asked for more than was there.
    pub excess_releases: u32,
    /// Windows that were dated back, since the store's clock had stepped back.
    pub rebased: u32,
}

impl std::ops::AddAssign for Settlement {
    fn add_assign(&mut self, other: Self) {
        self.applied += other.applied;
        self.duplicates += other.duplicates;
        self.excess_releases += other.excess_releases;
        self.rebased += other.rebased;
    }
}

impl Settlement {
    /// Counts what became of it on one account; the account without room for the source is an error.
    fn count(&mut self, account: &Account, settled: Settled) -> Result<(), StoreError> {
        match settled {
            Settled::Applied { excess_releases } => {
                self.applied += 1;
                self.excess_releases += excess_releases;
            }
            Settled::Duplicate => self.duplicates += 1,
            Settled::TooManySources => return Err(StoreError::TooManySources(account.clone())),
        }
        Ok(())
    }
}
