//! Checks a second, and how long one takes, where each connection asks again as soon as it has its answer.

use std::sync::Arc;

use futures::future::join_all;
use hdrhistogram::Histogram;
use quota_tests::redis::RedisServer;
use quota_tests::server::{MEMORY, ServerProcess};
use redis::aio::MultiplexedConnection;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::checks::{Connection, REQUESTS, histogram, record};
use crate::plan::Plan;
use crate::report::{Report, Section, Spread};
use crate::workload::{Accounts, shuffled};

/// Each with one check in flight.
const CONNECTIONS: [usize; 3] = [1, 8, 64];

/// What is asked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Row {
    /// A method that does not exist, of the server on the memory store.
    Nothing,
    /// A check on the memory store.
    Memory,
    /// A check on Redis.
    Redis,
}

impl Row {
    const ALL: [Self; 3] = [Self::Nothing, Self::Memory, Self::Redis];

    fn key(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Memory => "memory",
            Self::Redis => "redis",
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::Nothing => "no such method",
            Self::Memory => "check on memory",
            Self::Redis => "check on Redis",
        }
    }
}

/// What a row gave in a round.
struct Measured {
    row: Row,
    connections: usize,
    per_second: f64,
    latencies: Histogram<u64>,
    /// What Redis spent a check, sockets included, in microseconds.
    redis_cpu: f64,
}

pub(crate) async fn measure(report: &mut Report, redis: &RedisServer, plan: &Plan) {
    let memory = ServerProcess::start(&[("QUOTA__STORE__URL", MEMORY)]).await;
    let in_redis = ServerProcess::start(&[("QUOTA__STORE__URL", &redis.url())]).await;
    let mut redis = redis.client().await;
    let requests = Arc::new(shuffled(REQUESTS));
    let (mut measured, mut pings) = (Vec::new(), Vec::new());
    for _ in 0..plan.check_rounds {
        pings.push(ping(&mut redis, plan).await);
        for connections in CONNECTIONS {
            for row in Row::ALL {
                let server = if row == Row::Redis { &in_redis } else { &memory };
                let connected =
                    join_all((0..connections).map(|_| Connection::to(server.grpc_address()))).await;
                let before = cpu(&mut redis).await;
                let (per_second, latencies) = ask(row, connected, &requests, plan).await;
                let redis_cpu = (cpu(&mut redis).await - before) / latencies.len() as f64;
                measured.push(Measured { row, connections, per_second, latencies, redis_cpu });
            }
        }
    }

    let section = report.section(format!(
        "Over gRPC: {} rounds of {:?}, each connection with one call in flight",
        plan.check_rounds, plan.check_time
    ));
    for connections in CONNECTIONS {
        for row in Row::ALL {
            let of_row =
                measured.iter().filter(|measured| (measured.row, measured.connections) == (row, connections));
            add(section, row, connections, &of_row.collect::<Vec<_>>());
        }
    }
    for (percentile, name) in [(50.0, "p50"), (99.0, "p99")] {
        let spread = Spread::of(pings.iter().map(|pings| pings.value_at_percentile(percentile) as f64));
        section.figure(format!("checks.ping.{name}_us"), format!("PING to Redis, {name} us"), spread);
    }
}

fn add(section: &mut Section, row: Row, connections: usize, rounds: &[&Measured]) {
    let key = format!("checks.{}.{connections}", row.key());
    let label = format!("{} x {connections}", row.label());
    let mut figure = |name: &str, unit: &str, value: &dyn Fn(&Measured) -> f64| {
        let spread = Spread::of(rounds.iter().map(|measured| value(measured)));
        section.figure(format!("{key}.{name}"), format!("{label}, {unit}"), spread);
    };
    figure("per_second", "a second", &|measured| measured.per_second);
    figure("p50_us", "p50 us", &|measured| measured.latencies.value_at_percentile(50.0) as f64);
    figure("p99_us", "p99 us", &|measured| measured.latencies.value_at_percentile(99.0) as f64);
    if row == Row::Redis {
        figure("redis_cpu_us", "Redis CPU us", &|measured| measured.redis_cpu);
    }
}

/// Asks on each connection for the plan's time. Returns answers a second, and how long each took.
async fn ask(
    row: Row,
    connections: Vec<Connection>,
    requests: &Arc<Vec<Accounts>>,
    plan: &Plan,
) -> (f64, Histogram<u64>) {
    let started = Instant::now();
    let end = started + plan.check_time;
    let mut asking = JoinSet::new();
    let number = connections.len();
    for (first, connection) in connections.into_iter().enumerate() {
        let requests = Arc::clone(requests);
        asking.spawn(async move {
            let mut latencies = histogram();
            let own = requests.iter().cycle().skip(first * requests.len() / number);
            for &accounts in own {
                let asked = Instant::now();
                match row {
                    Row::Nothing => connection.nothing(accounts).await,
                    Row::Memory | Row::Redis => connection.check(accounts).await,
                }
                record(&mut latencies, asked.elapsed());
                if Instant::now() >= end {
                    break;
                }
            }
            latencies
        });
    }
    let mut latencies = histogram();
    for of_connection in asking.join_all().await {
        latencies.add(of_connection).expect("histograms of one kind");
    }
    (latencies.len() as f64 / started.elapsed().as_secs_f64(), latencies)
}

/// How long a round trip to Redis takes.
async fn ping(redis: &mut MultiplexedConnection, plan: &Plan) -> Histogram<u64> {
    let mut latencies = histogram();
    let end = Instant::now() + plan.check_time / 4;
    while Instant::now() < end {
        let asked = Instant::now();
        redis::cmd("PING").exec_async(redis).await.expect("PONG");
        record(&mut latencies, asked.elapsed());
    }
    latencies
}

/// The CPU time of Redis' process so far, in microseconds.
async fn cpu(redis: &mut MultiplexedConnection) -> f64 {
    let info: String = redis::cmd("INFO").arg("cpu").query_async(redis).await.expect("INFO");
    let seconds = |field: &str| -> f64 {
        info.lines().find_map(|line| line.strip_prefix(field)?.parse().ok()).expect("a time")
    };
    1e6 * (seconds("used_cpu_user:") + seconds("used_cpu_sys:"))
}
