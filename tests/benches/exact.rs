//! How many requests of one user are let in where its limit is so many a minute, on two servers that share a Redis. What is
//! admitted stays reserved, and all of it happens within a window.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use quota_client::{Admission, CheckMode, CheckSettings, Client, Decision, Request};
use quota_proto::v1;
use quota_tests::redis::RedisServer;
use quota_tests::server::ServerProcess;
use quota_tests::wait::PATIENCE;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::checks::Connection;
use crate::plan::Plan;
use crate::report::{Aim, Report, Section, Spread};
use quota_tests::limitador::{Limitador, Mode};

/// Requests a minute of a user, each with a price of 10 ms of CPU.
const LIMIT: u64 = 1_000;

/// On each of the two servers, where they are asked at full speed.
const CONNECTIONS: usize = 4;

/// Fileservers, where a user wants ten times its limit of them.
const FILESERVERS: usize = 20;

/// The user wants so many times its limit.
const DEMAND: u32 = 10;

/// How far admission by shares may be above the limit, of a hundred.
const TOLERANCE: f64 = 3.0;

struct Bench<'a> {
    servers: [ServerProcess; 2],
    redis: &'a RedisServer,
    limitador: Option<&'a Path>,
    time: Duration,
}

/// What the rounds gave.
#[derive(Default)]
struct Admitted {
    strict: Vec<u64>,
    local: Vec<u64>,
    limitador: [Vec<u64>; 2],
    wanted_strict: Vec<u64>,
    wanted_local: Vec<u64>,
    unchecked: Vec<u64>,
}

/// What the clients of a fleet let in.
struct Fleet {
    checked: u64,
    /// Since no server answered in time.
    unchecked: u64,
}

/// Those of limitador's modes that share a Redis.
const PEERS: [Mode; 2] = [Mode::Redis, Mode::RedisCached];

pub(crate) async fn measure(report: &mut Report, redis: &RedisServer, limitador: Option<&Path>, plan: &Plan) {
    let start = || {
        let limit = ["INITIAL", "MAX"].map(|name| format!("QUOTA__LIMITS__USER__CPU__{name}"));
        let url = redis.url();
        async move {
            let [initial, most] = limit.each_ref().map(|key| (key.as_str(), "10s"));
            ServerProcess::start(&[("QUOTA__STORE__URL", &url), initial, most]).await
        }
    };
    let bench =
        Bench { servers: [start().await, start().await], redis, limitador, time: plan.admission_time };
    let mut admitted = Admitted::default();
    for round in 0..plan.admission_rounds {
        let user = |of: &str| format!("{of}-{round}");
        admitted.strict.push(bench.at_full_speed(&user("strict")).await);
        let fileservers = 2 * CONNECTIONS;
        let local = bench.fleet(fileservers, &user("local"), CheckMode::Local, None).await;
        for (mode, counts) in PEERS.into_iter().zip(&mut admitted.limitador) {
            if let Some(program) = bench.limitador {
                counts.push(bench.of_limitador(program, mode, &user(mode.name())).await);
            }
        }
        // Each asks in turn, so often that all of them together want so much.
        let pause = bench.time * FILESERVERS as u32 / (DEMAND * LIMIT as u32);
        let wanting = async |mode, name: &str| bench.fleet(FILESERVERS, &user(name), mode, Some(pause)).await;
        let wanted_strict = wanting(CheckMode::Strict, "wanted-strict").await;
        let wanted_local = wanting(CheckMode::Local, "wanted-local").await;
        admitted.unchecked.push(local.unchecked + wanted_strict.unchecked + wanted_local.unchecked);
        admitted.local.push(local.checked);
        admitted.wanted_strict.push(wanted_strict.checked);
        admitted.wanted_local.push(wanted_local.checked);
    }
    admitted.tell(report, plan);
}

impl Admitted {
    fn tell(&self, report: &mut Report, plan: &Plan) {
        let section = report.section(format!(
            "Admitted of {LIMIT} a minute, 2 servers x {CONNECTIONS} connections at full speed: {} rounds of {:?}",
            plan.admission_rounds, plan.admission_time
        ));
        row(section, "exact.strict.admitted", "each is asked about", &self.strict);
        section.aim(Aim::Exactly(LIMIT as f64));
        row(section, "exact.local.admitted", "quota-client, by shares", &self.local);
        section.aim(Aim::AtMost(LIMIT as f64 * (1.0 + TOLERANCE / 100.0)));
        for (mode, counts) in PEERS.into_iter().zip(&self.limitador).filter(|(_, counts)| !counts.is_empty())
        {
            row(
                section,
                &format!("exact.limitador.{}.admitted", mode.name()),
                &format!("limitador, {}", mode.name()),
                counts,
            );
        }
        let section = report
            .section(format!("A user that wants {DEMAND} times its limit of {FILESERVERS} fileservers"));
        for (name, label, counts) in [
            ("strict", "each is asked about", &self.wanted_strict),
            ("local", "by shares", &self.wanted_local),
        ] {
            row(section, &format!("fleet.{name}.admitted"), &format!("{label}: admitted"), counts);
            let beyond = counts.iter().map(|count| 100.0 * count.saturating_sub(LIMIT) as f64 / LIMIT as f64);
            section.figure(
                format!("fleet.{name}.beyond_percent"),
                format!("{label}: beyond the limit, %"),
                Spread::of(beyond),
            );
            section.aim(Aim::AtMost(TOLERANCE));
        }
        row(
            section,
            "fleet.unchecked.requests",
            "not counted: let in since nobody answered",
            &self.unchecked,
        );
        section.aim(Aim::Exactly(0.0));
    }
}

fn row(section: &mut Section, key: &str, label: &str, counts: &[u64]) {
    section.figure(key, label, Spread::of(counts.iter().map(|count| *count as f64)));
}

impl Bench<'_> {
    /// Asks over all connections, again as soon as there is an answer.
    async fn at_full_speed(&self, user: &str) -> u64 {
        let question = v1::CheckRequest {
            rpc: "/gitaly.SSHService/SSHUploadPack".into(),
            accounts: Some(v1::Accounts { user: Some(user.into()), ..v1::Accounts::default() }),
            ..v1::CheckRequest::default()
        };
        let mut asking = JoinSet::new();
        for number in 0..2 * CONNECTIONS {
            let connection = Connection::to(self.servers[number % 2].grpc_address()).await;
            let (question, until) = (question.clone(), Instant::now() + self.time);
            asking.spawn(async move {
                let mut admitted = 0;
                while Instant::now() < until {
                    let answer = connection.check(question.clone()).await;
                    admitted += u64::from(answer.decision() == v1::check_response::Decision::Allow);
                }
                admitted
            });
        }
        asking.join_all().await.into_iter().sum()
    }

    /// The same of two servers of limitador.
    async fn of_limitador(&self, program: &Path, mode: Mode, user: &str) -> u64 {
        let url = self.redis.url();
        let start = || Limitador::start(program, mode, &url, &["user"], LIMIT);
        let servers = [start().await, start().await];
        let mut asking = JoinSet::new();
        for number in 0..2 * CONNECTIONS {
            let connection = Connection::to(servers[number % 2].address).await;
            let (user, until) = (user.to_owned(), Instant::now() + self.time);
            asking.spawn(async move {
                let mut admitted = 0;
                while Instant::now() < until {
                    admitted +=
                        u64::from(connection.is_allowed_by_limitador(vec![("user", user.clone())]).await);
                }
                admitted
            });
        }
        asking.join_all().await.into_iter().sum()
    }

    /// Fileservers with a client each ask at the same time: at full speed, or with this pause after each.
    async fn fleet(&self, fileservers: usize, user: &str, mode: CheckMode, pause: Option<Duration>) -> Fleet {
        let request = Arc::new(Request::rpc("/gitaly.SSHService/SSHUploadPack").user(user));
        let mut asking = JoinSet::new();
        for number in 0..fileservers {
            let client = Client::builder()
                .endpoints([format!("http://{}", self.servers[number % 2].grpc_address())])
                .node(format!("gitaly-{number:02}"))
                // No machine is so slow: who is not answered is let in, and that is not the subject.
                .deadline(PATIENCE)
                .checks(CheckSettings { mode, ..CheckSettings::default() })
                .build()
                .expect("a client");
            asking.spawn(ask(client, Arc::clone(&request), Instant::now() + self.time, pause));
        }
        // All is given back together, when nobody asks any more.
        let kept: Vec<Admission> = asking.join_all().await.into_iter().flatten().collect();
        let checked = kept.iter().filter(|admission| admission.checked()).count() as u64;
        Fleet { checked, unchecked: kept.len() as u64 - checked }
    }
}

/// Asks until a moment, and keeps what is admitted.
async fn ask(
    client: Client,
    request: Arc<Request>,
    until: Instant,
    pause: Option<Duration>,
) -> Vec<Admission> {
    let mut pace = pause.map(|pause| {
        let mut pace = interval(pause);
        pace.set_missed_tick_behavior(MissedTickBehavior::Burst);
        pace
    });
    let mut kept = Vec::new();
    while Instant::now() < until {
        match client.admit(&request).await {
            Decision::Allow(admission) => kept.push(admission),
            // Refused without being asked about, as a rule.
            Decision::Deny(_) => tokio::task::yield_now().await,
        }
        if let Some(pace) = &mut pace {
            pace.tick().await;
        }
    }
    kept
}
