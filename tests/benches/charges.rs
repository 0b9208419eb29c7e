//! Charges a second that one server takes on Redis, and the calls of scripts that they come to.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use futures::future::join_all;
use quota_proto::v1;
use quota_tests::redis::RedisServer;
use quota_tests::server::{Grpc, ServerProcess};
use redis::aio::MultiplexedConnection;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tonic::transport::Endpoint;

use crate::plan::Plan;
use crate::report::{Report, Spread};

/// Fileservers, each with one report in flight.
const SOURCES: usize = 8;

/// As many as a report may have.
const CHARGES: usize = 1024;

/// Users, and as many repositories and addresses, of which the n-th has an n-th part of what the first has.
const ACCOUNTS: usize = 1000;

/// Different reports of a source, which are sent in turn.
const REPORTS: usize = 4;

pub(crate) async fn measure(report: &mut Report, redis: &RedisServer, plan: &Plan) {
    let server = ServerProcess::start(&[("QUOTA__STORE__URL", &redis.url())]).await;
    let endpoint = Endpoint::from_shared(format!("http://{}", server.grpc_address())).expect("an address");
    let connected = join_all((0..SOURCES).map(|_| endpoint.connect())).await;
    let sources: Vec<_> =
        connected.into_iter().map(|channel| Grpc::new(channel.expect("a server"))).collect();
    let reports: Arc<Vec<_>> = Arc::new((0..SOURCES).map(reports).collect());
    let mut redis = redis.client().await;
    let (mut sequence, mut per_second, mut calls, mut cpu) = (0, Vec::new(), Vec::new(), Vec::new());
    for _ in 0..plan.check_rounds {
        sequence += 1 << 20;
        let before = (called(&mut redis).await, cpu_micros(&mut redis).await);
        let started = Instant::now();
        let sent = send(&sources, &reports, sequence, plan.check_time).await;
        let charges = (sent * CHARGES) as f64;
        per_second.push(charges / started.elapsed().as_secs_f64());
        calls.push((called(&mut redis).await - before.0) * 1e3 / charges);
        cpu.push((cpu_micros(&mut redis).await - before.1) * 1e3 / charges);
    }

    let section = report.section(format!(
        "Charges: {} rounds of {:?}, {SOURCES} sources with reports of {CHARGES}, {ACCOUNTS} accounts a kind by Zipf",
        plan.check_rounds, plan.check_time
    ));
    section.figure("charges.redis.per_second", "charges a second", Spread::of(per_second));
    section.figure("charges.redis.calls_per_1000", "calls of scripts for 1,000 charges", Spread::of(calls));
    section.figure("charges.redis.cpu_us_per_1000", "Redis CPU us for 1,000 charges", Spread::of(cpu));
}

/// Sends reports of each source one after the other. Returns how many in all.
async fn send(
    sources: &[Grpc],
    reports: &Arc<Vec<Vec<v1::ReportRequest>>>,
    first: u64,
    time: Duration,
) -> usize {
    let end = Instant::now() + time;
    let mut sending = JoinSet::new();
    for (number, source) in sources.iter().enumerate() {
        let (mut source, reports) = (source.clone(), Arc::clone(reports));
        sending.spawn(async move {
            let mut sent = 0;
            for (report, sequence) in reports[number].iter().cycle().zip(first..) {
                let report = v1::ReportRequest { sequence, ..report.clone() };
                let reported = source.report(report).await.expect("an answer").into_inner();
                assert_eq!((reported.applied as usize, reported.duplicate), (CHARGES, false));
                sent += 1;
                if Instant::now() >= end {
                    break;
                }
            }
            sent
        });
    }
    sending.join_all().await.into_iter().sum()
}

fn reports(source: usize) -> Vec<v1::ReportRequest> {
    let mut random = Rng::with_seed(source as u64);
    let weights = (1..=ACCOUNTS).scan(0.0, |sum, rank| {
        *sum += 1.0 / rank as f64;
        Some(*sum)
    });
    let weights: Vec<f64> = weights.collect();
    let name = format!("gitaly-{source:02}");
    let mut report = || v1::ReportRequest {
        node: name.clone(),
        source: name.clone(),
        charges: (0..CHARGES).map(|_| charge(&mut random, &weights)).collect(),
        ..v1::ReportRequest::default()
    };
    (0..REPORTS).map(|_| report()).collect()
}

/// Of a request of the last second, as it is reported once a second.
fn charge(random: &mut Rng, weights: &[f64]) -> v1::Charge {
    let all = weights.last().copied().unwrap_or_default();
    let mut rank = || {
        let at = random.f64() * all;
        weights.partition_point(|&sum| sum < at)
    };
    let (repo, user) = (rank(), rank());
    let ip = user;
    let accounts = v1::Accounts {
        repo: Some(format!("group/project-{repo}")),
        user: Some(format!("user-{user}")),
        ip: Some(format!("10.1.{}.{}", ip / 250, ip % 250 + 1)),
    };
    v1::Charge {
        accounts: Some(accounts),
        cost: Some(v1::Cost { cpu_micros: 5_000, memory_byte_seconds: 1 << 20, network_bytes: 50_000 }),
        age: Some(prost_types::Duration { seconds: 0, nanos: 1_000 * random.i32(0..1_000_000) }),
        ..v1::Charge::default()
    }
}

/// How often scripts were called so far.
async fn called(redis: &mut MultiplexedConnection) -> f64 {
    let stats: String = redis::cmd("INFO").arg("commandstats").query_async(redis).await.expect("INFO");
    let calls = stats.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls=")?.split(',').next());
    calls.map_or(0.0, |calls| calls.parse().expect("a number"))
}

/// The CPU time of Redis' process so far, in microseconds.
async fn cpu_micros(redis: &mut MultiplexedConnection) -> f64 {
    let info: String = redis::cmd("INFO").arg("cpu").query_async(redis).await.expect("INFO");
    let seconds = |field: &str| -> f64 {
        info.lines().find_map(|line| line.strip_prefix(field)?.parse().ok()).expect("a time")
    };
    1e6 * (seconds("used_cpu_user:") + seconds("used_cpu_sys:"))
}
