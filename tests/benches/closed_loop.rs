//! Checks a second, and how long one takes, where each connection asks again as soon as it has its answer: of this service, of
//! a server that decides nothing, and of limitador where there is one, in turn within each round.

mod figures;

use std::path::Path;
use std::sync::Arc;

use futures::future::join_all;
use hdrhistogram::Histogram;
use quota_tests::latency::{histogram, record};
use quota_tests::redis::RedisServer;
use quota_tests::server::{MEMORY, ServerProcess};
use redis::aio::MultiplexedConnection;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::Instant;

use self::figures::Rounds;
use crate::checks::{Call, Connection, REQUESTS};
use crate::echo::Echo;
use crate::plan::Plan;
use crate::redis_benchmark;
use crate::report::Report;
use crate::workload::{Accounts, shuffled};
use quota_tests::limitador::{Limitador, Mode};

/// Each with one check in flight.
const CONNECTIONS: [usize; 3] = [1, 8, 64];

/// What is asked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Row {
    /// A method that does not exist, of the server on the memory store.
    Nothing,
    /// A check of a server that gives each the same answer.
    Echo,
    /// A check on the memory store.
    Memory,
    /// A check on Redis.
    Redis,
    Limitador(Mode),
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

/// How long checks over one connection took in all rounds, in microseconds.
pub(crate) struct Latencies {
    pub(crate) echo: Histogram<u64>,
    pub(crate) memory: Histogram<u64>,
    pub(crate) redis: Histogram<u64>,
}

struct Servers {
    memory: ServerProcess,
    redis: ServerProcess,
    echo: Echo,
    limitador: Vec<(Mode, Limitador)>,
}

pub(crate) async fn measure(
    report: &mut Report,
    redis: &RedisServer,
    limitador: Option<&Path>,
    plan: &Plan,
) -> Latencies {
    let servers = Servers::start(redis, limitador).await;
    let mut client = redis.client().await;
    let requests = Arc::new(shuffled(REQUESTS));
    let mut rounds = Rounds::default();
    for _ in 0..plan.check_rounds {
        rounds.pings.push(ping(redis, plan).await);
        for connections in CONNECTIONS {
            for row in servers.rows() {
                let (address, call) = servers.of(row);
                let connected = join_all((0..connections).map(|_| Connection::to(address))).await;
                let before = cpu(&mut client).await;
                let (per_second, latencies) = ask(call, connected, &requests, plan).await;
                let redis_cpu = (cpu(&mut client).await - before) / latencies.len() as f64;
                rounds.measured.push(Measured { row, connections, per_second, latencies, redis_cpu });
            }
            let calls = redis_benchmark::run(redis, connections, plan.redis_calls).await;
            rounds.redis_benchmark.push((connections, calls));
        }
    }
    rounds.tell(report, &servers.rows(), plan);
    rounds.latencies()
}

impl Servers {
    async fn start(redis: &RedisServer, limitador: Option<&Path>) -> Self {
        let memory = ServerProcess::start(&[("QUOTA__STORE__URL", MEMORY)]).await;
        let connection = Connection::to(memory.grpc_address()).await;
        let echo = Echo::start(&connection.check(shuffled(1)[0].check()).await).await;
        let mut peers = Vec::new();
        for mode in Mode::ALL {
            let Some(program) = limitador else { break };
            let limit = u64::from(u32::MAX);
            let peer = Limitador::start(program, mode, &redis.url(), &["repo", "user", "ip"], limit).await;
            peers.push((mode, peer));
        }
        let redis = ServerProcess::start(&[("QUOTA__STORE__URL", &redis.url())]).await;
        Self { memory, redis, echo, limitador: peers }
    }

    /// In the order in which a round measures them.
    fn rows(&self) -> Vec<Row> {
        let peers = self.limitador.iter().map(|(mode, _)| Row::Limitador(*mode));
        [Row::Nothing, Row::Echo, Row::Memory, Row::Redis].into_iter().chain(peers).collect()
    }

    fn of(&self, row: Row) -> (std::net::SocketAddr, Call) {
        match row {
            Row::Nothing => (self.memory.grpc_address(), Call::Nothing),
            Row::Echo => (self.echo.address, Call::Check),
            Row::Memory => (self.memory.grpc_address(), Call::Check),
            Row::Redis => (self.redis.grpc_address(), Call::Check),
            Row::Limitador(of_mode) => {
                let peer = self.limitador.iter().find(|(mode, _)| *mode == of_mode);
                (peer.expect("one that was started").1.address, Call::Limitador)
            }
        }
    }
}

/// Asks on each connection for the plan's time. Returns answers a second, and how long each took.
pub(crate) async fn ask(
    call: Call,
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
                connection.call(call, accounts).await;
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

/// How long a bare round trip to Redis takes, on a socket that nothing else uses.
async fn ping(redis: &RedisServer, plan: &Plan) -> Histogram<u64> {
    const PONG: &[u8] = b"+PONG\r\n";
    let mut socket = TcpStream::connect(("127.0.0.1", redis.port())).await.expect("Redis");
    socket.set_nodelay(true).expect("a socket");
    let mut latencies = histogram();
    let end = Instant::now() + plan.check_time / 2;
    while Instant::now() < end {
        let asked = Instant::now();
        let mut answer = [0; PONG.len()];
        socket.write_all(b"PING\r\n").await.expect("a connection");
        socket.read_exact(&mut answer).await.expect("an answer");
        record(&mut latencies, asked.elapsed());
        assert_eq!(answer, PONG);
    }
    latencies
}

/// The CPU time of Redis' process so far, in microseconds.
pub(crate) async fn cpu(redis: &mut MultiplexedConnection) -> f64 {
    let info: String = redis::cmd("INFO").arg("cpu").query_async(redis).await.expect("INFO");
    let seconds = |field: &str| -> f64 {
        info.lines().find_map(|line| line.strip_prefix(field)?.parse().ok()).expect("a time")
    };
    1e6 * (seconds("used_cpu_user:") + seconds("used_cpu_sys:"))
}
