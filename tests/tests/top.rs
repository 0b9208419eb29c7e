//! The heaviest of many accounts, as two servers on one Redis tell them, against what was spent.
//!
//! `scripts/top` runs it with 1,000,000 accounts, and says what it measured.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests report by panicking")]

use std::time::Instant;

use quota_proto::v1;
use quota_tests::redis::RedisServer;
use quota_tests::server::ServerProcess;
use quota_tests::wait::{PATIENCE, until};

/// The variable that says how many accounts there are.
const ACCOUNTS: &str = "QUOTA_TOP_ACCOUNTS";
const FEW: usize = 20_000;

/// How many of the heaviest are asked for.
const TOP: usize = 100;

/// By Zipf's law, in microseconds of CPU: the heaviest used 1,000 s.
fn used(rank: usize) -> u64 {
    1_000_000_000 / (rank as u64 + 1) + 2
}

fn name(rank: usize) -> String {
    format!("user-{rank:07}")
}

/// Every rank once, the heavy among the light.
fn scattered(accounts: usize) -> impl Iterator<Item = usize> {
    (0..accounts).map(move |place| place * 1_000_003 % accounts)
}

/// Spends half of what each account uses, a thousand charges to one server and then the other.
async fn spend_half(servers: &[&ServerProcess], accounts: usize, round: usize) {
    let ranks: Vec<usize> = scattered(accounts).collect();
    for (number, ranks) in ranks.chunks(1000).enumerate() {
        let charges = ranks.iter().map(|&rank| v1::Charge {
            accounts: Some(v1::Accounts { user: Some(name(rank)), ..v1::Accounts::default() }),
            cost: Some(v1::Cost { cpu_micros: used(rank) / 2, ..v1::Cost::default() }),
            ..v1::Charge::default()
        });
        let report = v1::ReportRequest { charges: charges.collect(), ..v1::ReportRequest::default() };
        let server = servers[(number + round) % servers.len()];
        let applied = server.grpc.clone().report(report).await.unwrap().into_inner().applied;
        assert_eq!(applied as usize, ranks.len());
    }
}

async fn top(server: &ServerProcess) -> Vec<(String, u64)> {
    let request = v1::ListTopRequest {
        kind: v1::Kind::User.into(),
        resource: v1::Resource::Cpu.into(),
        limit: Some(TOP as u32),
        ..v1::ListTopRequest::default()
    };
    let told = server.grpc.clone().list_top(request).await.unwrap().into_inner();
    told.accounts.into_iter().map(|account| (account.id, account.used)).collect()
}

/// Resident memory of a process, in MiB.
fn resident(server: &ServerProcess) -> f64 {
    server.process.resident() as f64 / 1024.0
}

async fn redis_memory(redis: &RedisServer) -> f64 {
    let info = redis.info("memory").await;
    let line = info.lines().find_map(|line| line.strip_prefix("used_memory:")).unwrap();
    line.trim().parse::<f64>().unwrap() / f64::from(1 << 20)
}

/// The scrape: lines and bytes.
async fn metrics(server: &ServerProcess) -> (usize, usize) {
    let answer = server.http.get("/metrics").await;
    (answer.text().lines().count(), answer.body.len())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_heaviest_hundred_of_many_are_told() {
    let accounts = std::env::var(ACCOUNTS).map_or(FEW, |count| count.parse().expect(ACCOUNTS));
    let redis = RedisServer::start().await;
    let url = redis.url();
    // Long, so that nothing leaves it while the accounts are written.
    let settings = [("QUOTA__STORE__URL", url.as_str()), ("QUOTA__WINDOW__LENGTH", "1h")];
    let (one, other) = (ServerProcess::start(&settings).await, ServerProcess::start(&settings).await);
    spend_half(&[&one, &other], 1, 0).await;
    spend_half(&[&one, &other], 1, 1).await;
    redis::cmd("FLUSHALL").exec_async(&mut redis.client().await).await.unwrap();
    // One of everything, so that what comes later is only more of it.
    top(&one).await;
    assert_eq!(one.http.get("/readyz").await.status, 200);
    until(PATIENCE, "what it saw is told", async || {
        let scrape = one.http.get("/metrics").await;
        scrape.text().contains("quota_store_seconds_count{operation=\"post\"}").then_some(())
    })
    .await;
    let before = (resident(&one), metrics(&one).await);

    let begun = Instant::now();
    for round in 0..2 {
        spend_half(&[&one, &other], accounts, round).await;
    }
    let spent = begun.elapsed();
    // What the other server saw is known a second later.
    let exact: u64 = (0..TOP).map(|rank| used(rank) / 2 * 2).sum();
    let sum = |told: &[(String, u64)]| told.iter().map(|(_, used)| *used).sum::<u64>();
    let told = until(PATIENCE, "97 % of the usage of the heaviest", async || {
        let told = top(&one).await;
        (sum(&told) * 100 >= exact * 97).then_some(told)
    })
    .await;
    let asked = Instant::now();
    let again = top(&one).await;
    let took = asked.elapsed();

    let found = (0..TOP).filter(|rank| told.iter().any(|(id, _)| *id == name(*rank))).count();
    for (id, amount) in &told {
        let rank: usize = id.trim_start_matches("user-").parse().unwrap();
        assert_eq!(*amount, used(rank) / 2 * 2, "{id}");
    }
    assert!(told.is_sorted_by(|(_, one), (_, other)| one >= other));
    assert_eq!(told.len(), TOP);
    let after = (resident(&one), metrics(&one).await);
    println!(
        "accounts={accounts} found={found}/{TOP} usage_told={:.2}% wrong_amounts=0 asking={:.1}ms spending={:.1}s \
         server_before={:.0}MiB server_after={:.0}MiB redis={:.0}MiB metrics_before={}B metrics_after={}B",
        sum(&again) as f64 * 100.0 / exact as f64,
        took.as_secs_f64() * 1e3,
        spent.as_secs_f64(),
        before.0,
        after.0,
        redis_memory(&redis).await,
        before.1.1,
        after.1.1,
    );
    assert_eq!(before.1.0, after.1.0, "lines of metrics do not grow with accounts");
}
