//! Fileservers in local mode: what all of them admit together, by shares of a limit.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests report by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use quota_client::{Admission, CheckMode, CheckSettings, Client, Decision, Request};
use quota_tests::redis::RedisServer;
use quota_tests::server::TestServer;
use quota_tests::wait::{PATIENCE, until};
use tokio::task::JoinSet;

/// Of users, in prices of 10 ms.
const LIMIT: usize = 1000;

const FILESERVERS: usize = 20;

fn client(server: &TestServer, node: usize) -> Client {
    let checks = CheckSettings { mode: CheckMode::Local, ..CheckSettings::default() };
    Client::builder()
        .endpoints([format!("http://{}", server.grpc_address())])
        .node(format!("gitaly-{node:02}"))
        .deadline(PATIENCE)
        .report_interval(Duration::from_millis(100))
        .checks(checks)
        .build()
        .unwrap()
}

/// Asks without end, and keeps what is admitted, so that its price stays reserved.
async fn ask(client: Client, admitted: Arc<AtomicUsize>, is_over: Arc<AtomicBool>) -> Vec<Admission> {
    let request = Request::rpc("/gitaly.SSHService/SSHUploadPack").user("alice");
    let mut kept = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        match client.admit(&request).await {
            Decision::Allow(admission) => {
                assert!(admission.checked());
                admitted.fetch_add(1, Ordering::Relaxed);
                kept.push(admission);
            }
            // Refused without being asked about, as a rule.
            Decision::Deny(_) => tokio::task::yield_now().await,
        }
    }
    kept
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_more_is_admitted_by_shares_than_a_limit_has_and_no_less() {
    let redis = RedisServer::start().await;
    let settings = "limits.user.cpu.initial = \"10s\"\nlimits.user.cpu.max = \"10s\"\n";
    let servers =
        [TestServer::start(&redis.url(), settings).await, TestServer::start(&redis.url(), settings).await];
    let (admitted, is_over) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let clients: Vec<Client> =
        (0..FILESERVERS).map(|node| client(&servers[node % servers.len()], node)).collect();
    let mut asking = JoinSet::new();
    for client in &clients {
        asking.spawn(ask(client.clone(), Arc::clone(&admitted), Arc::clone(&is_over)));
    }
    let count = || admitted.load(Ordering::Relaxed);
    // What is left of shares comes back, and is admitted at the next question, which is one a second.
    until(PATIENCE, "all of the limit is used", async || (count() >= LIMIT).then_some(())).await;
    is_over.store(true, Ordering::Relaxed);
    let kept = asking.join_all().await;
    assert_eq!(kept.iter().map(Vec::len).sum::<usize>(), LIMIT);
    let by_share: u64 = clients.iter().map(|client| client.stats().allowed_by_share).sum();
    println!("{by_share} of {LIMIT} by shares");
    assert!(by_share > 0);
}
