//! What a call of each script costs Redis, as `INFO commandstats` tells.

use std::time::Duration;

use futures::{StreamExt as _, stream};
use quota_core::{Mark, Source, Tick};
use quota_server::store::{RedisStore, Report as Charges, Store as _};
use quota_tests::redis::RedisServer;
use quota_tests::stores::Opening;
use redis::aio::MultiplexedConnection;
use tokio::time::{Instant, sleep};

use crate::plan::Plan;
use crate::report::{Aim, Report, Spread};
use crate::workload::{Accounts, key, price, shuffled};

/// What a counter of requests in Redis does at the least: the measure of the others.
pub(crate) const INCR: &str = "for i = 1, 3 do
  redis.call('INCRBY', KEYS[i], ARGV[1])
  redis.call('EXPIRE', KEYS[i], 120)
end";

/// Calls in flight.
const CALLERS: usize = 8;

/// So many calls of each script follow each other, so that what disturbs the machine disturbs all of them, and all of
/// them are made within a second.
const TURN: usize = 500;

/// Of a turn's requests, those that are asked again and again within the second.
const HOT: usize = 10;

const BUCKETS: u64 = 60;

const SECOND: Duration = Duration::from_secs(1);

/// The rows, in the order in which a round measures them.
const ROWS: [(&str, &str); 5] = [
    ("incr", "three INCRBY + EXPIRE"),
    ("deny", "admit, denied; first of its accounts in a second"),
    ("admit", "admit; first of its accounts in a second"),
    ("settle", "settle: a mark, a charge and a release for each"),
    ("admit_again", "admit; further ones in a second"),
];

/// The scripts of a Redis.
pub(crate) struct Scripts {
    pub(crate) store: RedisStore,
    redis: MultiplexedConnection,
    incr: redis::Script,
}

struct Bench {
    scripts: Scripts,
    requests: Vec<Accounts>,
    /// For each turn, when its accounts last had cost in all of the 60 seconds before.
    busy_at: Vec<Option<Instant>>,
    sequence: u64,
}

pub(crate) async fn measure(report: &mut Report, redis: &RedisServer, plan: &Plan) {
    let mut bench = Bench {
        scripts: Scripts::new(redis).await,
        requests: shuffled(plan.accounts / 3),
        busy_at: Vec::new(),
        sequence: 0,
    };
    bench.busy_at = vec![None; bench.requests.len().div_ceil(TURN)];
    let first = bench.requests[0];
    let tick = bench.scripts.load(first).await;
    bench.settle(first, tick).await;
    let mut rounds = Vec::new();
    for _ in 0..plan.script_rounds {
        rounds.push(bench.round().await);
    }

    let (calls, accounts) = (bench.requests.len(), 3 * bench.requests.len());
    let section = report.section(format!(
        "Redis CPU of a call in us: {} rounds of {calls} calls, {accounts} accounts with cost in all 60 seconds",
        plan.script_rounds
    ));
    for (row, (name, label)) in ROWS.into_iter().enumerate() {
        let micros = Spread::of(rounds.iter().map(|round| round[row]));
        section.figure(format!("redis_cpu.{name}.us"), label, micros);
    }
    for (row, (name, _)) in ROWS.into_iter().enumerate().skip(1) {
        let ratio = Spread::of(rounds.iter().map(|round| round[row] / round[0]));
        section.figure(format!("redis_cpu.{name}.ratio"), format!("{name} / three INCRBY + EXPIRE"), ratio);
        if name.starts_with("admit") {
            section.aim(Aim::AtMost(2.5));
        }
    }
    let ratio = Spread::of(rounds.iter().map(|[_, deny, admit, ..]| deny / admit));
    section.figure("redis_cpu.deny.times_admit", "deny / admit", ratio);
    section.aim(Aim::AtMost(1.6));
}

impl Bench {
    /// Microseconds a call.
    async fn round(&mut self) -> [f64; ROWS.len()] {
        self.sequence += 1;
        let mut micros = [0.0; ROWS.len()];
        for (turn, requests) in self.requests.chunks(TURN).enumerate() {
            self.busy_at[turn] = Some(self.keep_busy(requests, self.busy_at[turn]).await);
            for (sum, of_turn) in micros.iter_mut().zip(self.turn(requests).await) {
                *sum += of_turn * requests.len() as f64;
            }
        }
        micros.map(|sum| sum / self.requests.len() as f64)
    }

    async fn turn(&self, requests: &[Accounts]) -> [f64; ROWS.len()] {
        let each = requests.iter().copied();
        let (incr, _) = self.scripts.cpu(each.clone().map(|accounts| self.scripts.count(accounts))).await;
        let (deny, _) = self.scripts.cpu(each.clone().map(|accounts| self.deny(accounts))).await;
        let (admit, ticks) =
            self.scripts.cpu(each.clone().map(|accounts| self.scripts.admit(accounts))).await;
        let reserved = each.clone().zip(ticks);
        // One after the other: those that arrive together would share a call.
        let settles = reserved.map(|(accounts, tick)| self.settle(accounts, tick));
        let (settle, _) = self.scripts.cpu_of(1, settles).await;
        let hot = each.take(HOT).cycle().take(requests.len());
        let (admit_again, _) = self.scripts.cpu(hot.map(|accounts| self.scripts.admit(accounts))).await;
        [incr, deny, admit, settle, admit_again]
    }

    /// Charges the accounts in each second that has passed, and waits until the next begins: one bucket closes, and one
    /// leaves. Returns when it was.
    async fn keep_busy(&self, requests: &[Accounts], busy_at: Option<Instant>) -> Instant {
        // The charges take some milliseconds, and are all made within one second of Redis.
        self.scripts.next_second().await;
        let now = Instant::now();
        let passed = busy_at.map_or(BUCKETS - 1, |at| at.elapsed().as_secs() + 1);
        let entries = requests.iter().flat_map(|accounts| accounts.entries(0..=passed.min(BUCKETS - 1)));
        let charges = Charges { mark: None, entries: entries.collect() };
        self.scripts.store.settle(&charges).await.expect("charges that are counted");
        self.scripts.next_second().await;
        now
    }

    async fn deny(&self, accounts: Accounts) {
        let admitted = self.scripts.store.admit(&accounts.over(), price()).await.expect("an answer");
        assert!(!admitted.allowed, "the user is over");
    }

    /// Charges what an RPC did cost, and gives back its price.
    async fn settle(&self, accounts: Accounts, tick: Tick) {
        let mark = Some(Mark { source: Source::new("bench", "gitaly-01"), sequence: self.sequence });
        let charges = Charges { mark, entries: accounts.settled(tick).into() };
        let settlement = self.scripts.store.settle(&charges).await.expect("an answer");
        assert_eq!((settlement.applied, settlement.excess_releases), (3, 0));
    }
}

impl Scripts {
    pub(crate) async fn new(redis: &RedisServer) -> Self {
        Self {
            store: Opening { pool_size: CALLERS, ..Opening::default() }.open(&redis.url()),
            redis: redis.client().await,
            incr: redis::Script::new(INCR),
        }
    }

    /// Redis must know a script before it is measured.
    pub(crate) async fn load(&self, accounts: Accounts) -> Tick {
        self.count(accounts).await;
        self.admit(accounts).await
    }

    /// Waits until Redis' clock is in its next second.
    pub(crate) async fn next_second(&self) {
        let time = redis::cmd("TIME").query_async(&mut self.redis.clone()).await;
        let (_, micros): (u64, u64) = time.expect("the time");
        sleep(SECOND - Duration::from_micros(micros) + Duration::from_millis(1)).await;
    }

    /// What the calls cost Redis each, in microseconds, and what they returned.
    pub(crate) async fn cpu<T>(&self, calls: impl Iterator<Item = impl Future<Output = T>>) -> (f64, Vec<T>) {
        self.cpu_of(CALLERS, calls).await
    }

    /// The same with so many calls in flight.
    async fn cpu_of<T>(
        &self,
        callers: usize,
        calls: impl Iterator<Item = impl Future<Output = T>>,
    ) -> (f64, Vec<T>) {
        let mut redis = self.redis.clone();
        redis::cmd("CONFIG").arg("RESETSTAT").exec_async(&mut redis).await.expect("RESETSTAT");
        let returned: Vec<T> = stream::iter(calls).buffered(callers).collect().await;
        let info: String =
            redis::cmd("INFO").arg("commandstats").query_async(&mut redis).await.expect("INFO");
        let (calls, micros) = evalsha(&info).expect("scripts were called");
        assert_eq!(calls, returned.len(), "nothing else calls scripts here");
        (micros / calls as f64, returned)
    }

    pub(crate) async fn count(&self, accounts: Accounts) {
        let mut call = self.incr.prepare_invoke();
        for account in accounts.accounts() {
            call.key(format!("incr:{}", key(&account)));
        }
        call.arg(1000).invoke_async::<()>(&mut self.redis.clone()).await.expect("an answer");
    }

    pub(crate) async fn admit(&self, accounts: Accounts) -> Tick {
        let admitted = self.store.admit(&accounts.limited(), price()).await.expect("an answer");
        assert!(admitted.allowed, "no limit is near");
        admitted.ticks[0]
    }
}

/// Calls and their microseconds in all.
fn evalsha(commandstats: &str) -> Option<(usize, f64)> {
    let line = commandstats.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:"))?;
    let field = |name| line.split(',').find_map(|field| field.strip_prefix(name));
    Some((field("calls=")?.parse().ok()?, field("usec=")?.parse().ok()?))
}
