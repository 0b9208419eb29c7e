//! What was spent, and when, against what counts in Redis.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use quota_core::{Account, BUCKETS, Kind, Resource, Snapshot, Tick, WindowLength};
use quota_server::store::{RedisStore, Store as _};
use quota_tests::redis::RedisServer;
use quota_tests::stores::Opening;
use quota_tests::wait::{PATIENCE, until};

use crate::cluster::REPO;

/// A report is on its way for at most so many buckets, which are of a second: what it dates to the moment at which it
/// was collected lies in a bucket that is later by at most as many. Far above what it takes on one machine.
const ON_ITS_WAY: Tick = 2;

/// What users have spent, by phase. The time is that of Redis, and the window the default one, of which no bucket
/// leaves while a test runs. Between two phases are [`ON_ITS_WAY`] empty buckets, so that each bucket is known to be
/// of one, whatever the machine's speed: what was spent in a phase must be what its buckets hold, to the microsecond. A
/// sum over all would not tell when it counts: what is dated to when an outage was over is in the buckets of a later
/// phase.
pub(crate) struct Books {
    store: RedisStore,
    phases: Mutex<Vec<Phase>>,
}

/// From its first bucket to the next phase.
struct Phase {
    first: Tick,
    /// CPU microseconds by user.
    spent: BTreeMap<String, u64>,
}

/// What counts on an account, of one phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counted {
    cpu_micros: u64,
    network_bytes: u64,
}

impl Books {
    /// The first phase begins.
    pub(crate) async fn open(redis: &RedisServer) -> Arc<Self> {
        let store = Opening::default().open(&redis.url());
        let books = Self { store, phases: Mutex::default() };
        books.begin().await;
        Arc::new(books)
    }

    /// All that was spent is collected: waits until the next phase may begin, and begins it.
    pub(crate) async fn turn_over(&self) {
        let first = self.now().await + 1 + ON_ITS_WAY;
        until(PATIENCE, "time passes", async || (self.now().await >= first).then_some(())).await;
        self.begin().await;
    }

    async fn begin(&self) {
        let phase = Phase { first: self.now().await, spent: BTreeMap::new() };
        self.phases.lock().unwrap().push(phase);
    }

    /// A user has spent something now.
    pub(crate) fn spend(&self, user: &str, cpu: Duration) {
        let micros = u64::try_from(cpu.as_micros()).unwrap();
        let mut phases = self.phases.lock().unwrap();
        *phases.last_mut().unwrap().spent.entry(user.to_owned()).or_default() += micros;
    }

    /// CPU microseconds that a user has spent so far.
    pub(crate) fn spent(&self, user: &str) -> u64 {
        self.phases.lock().unwrap().iter().filter_map(|phase| phase.spent.get(user)).sum()
    }

    /// All is reported: compares every phase of every account. A user may have had so many checks under way when the
    /// service was killed, each of which has reserved this much of network or nothing.
    pub(crate) async fn assert_kept(&self, lost_replies: u64, price_bytes: u64) {
        let users: BTreeSet<String> = {
            let phases = self.phases.lock().unwrap();
            phases.iter().flat_map(|phase| phase.spent.keys().cloned()).collect()
        };
        let mut sums = vec![Counted::default(); self.phases.lock().unwrap().len()];
        for user in &users {
            for (phase, counted) in self.counted(Kind::User, user).await.into_iter().enumerate() {
                assert_eq!(counted.cpu_micros, self.spent_in(phase, user), "{user} in phase {phase}");
                let stray = counted.network_bytes;
                assert!(
                    stray.is_multiple_of(price_bytes) && stray <= lost_replies * price_bytes,
                    "{user} in phase {phase}: {stray} bytes are reserved"
                );
                sums[phase].cpu_micros += counted.cpu_micros;
                sums[phase].network_bytes += stray;
            }
        }
        assert_eq!(self.counted(Kind::Repo, REPO).await, sums, "the repository is the sum of its users");
    }

    /// What counts on a user: CPU microseconds, and bytes of network.
    pub(crate) async fn counted_of(&self, user: &str) -> (u64, u64) {
        let phases = self.counted(Kind::User, user).await;
        phases
            .iter()
            .fold((0, 0), |(cpu, network), phase| (cpu + phase.cpu_micros, network + phase.network_bytes))
    }

    fn spent_in(&self, phase: usize, user: &str) -> u64 {
        self.phases.lock().unwrap()[phase].spent.get(user).copied().unwrap_or_default()
    }

    /// What the buckets of each phase hold.
    async fn counted(&self, kind: Kind, id: &str) -> Vec<Counted> {
        let account = Account::from_spelling(kind, id).unwrap();
        let snapshots = self.store.usage(&[account]).await.unwrap();
        let now = WindowLength::default().tick(snapshots.now);
        let [Snapshot::Full(window)] = &snapshots.accounts[..] else { panic!("{snapshots:?}") };
        let firsts: Vec<Tick> = self.phases.lock().unwrap().iter().map(|phase| phase.first).collect();
        assert!(
            now < firsts[0] + BUCKETS,
            "a bucket has left the window: the test took longer than a minute"
        );
        let since = |first: &Tick| {
            // The bucket before it has left then, and it has not.
            let mut window = window.clone();
            window.advance(first + BUCKETS - 1);
            let usage = window.usage();
            Counted { cpu_micros: usage[Resource::Cpu], network_bytes: usage[Resource::Network] }
        };
        let mut counted: Vec<Counted> = firsts.iter().map(since).collect();
        for at in 1..counted.len() {
            let later = counted[at];
            counted[at - 1].cpu_micros -= later.cpu_micros;
            counted[at - 1].network_bytes -= later.network_bytes;
        }
        counted
    }

    /// The bucket that is open in Redis.
    async fn now(&self) -> Tick {
        let nobody = Account::from_spelling(Kind::User, "nobody").unwrap();
        WindowLength::default().tick(self.store.usage(&[nobody]).await.unwrap().now)
    }
}
