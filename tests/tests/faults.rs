//! What breaks under load loses nothing that was acknowledged, counts nothing twice, and is over when it is mended:
//! see `quota_tests::faults`. `scripts/faults` runs the same for longer and holds the waits to their aims.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests report by panicking")]

use std::time::Duration;

use quota_tests::faults::{Outcome, Run, Scale, Scenario, storm};
use quota_tests::redis::RedisServer;
use serde_json::json;

/// A second of load before each fault, while it lasts and after it.
const SCALE: Scale = Scale {
    api_callers: 6,
    client_callers: 3,
    pace: Duration::from_millis(50),
    checks: 20,
    store_deadline: Duration::from_millis(50),
    client_deadline: Duration::from_millis(100),
};

/// Far above the deadlines, and far below what waiting for the fault's end would take.
const BOUND: Duration = Duration::from_secs(2);

/// How long after a fault decisions may be away.
const BACK: Duration = Duration::from_secs(5);

async fn run(scenario: Scenario, scale: &Scale) -> Outcome {
    let outcome = scenario.run(scale).await;
    eprintln!("{}: {outcome:#?}", scenario.name());
    outcome.assert_balanced();
    outcome
}

/// The same with deadlines that no machine is too slow for.
fn patient() -> Scale {
    Scale { store_deadline: Duration::from_secs(5), client_deadline: Duration::from_secs(6), ..SCALE }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f06_a_frozen_redis_is_waited_for_by_no_check() {
    let outcome = run(Scenario::RedisFrozen, &SCALE).await;
    assert!(outcome.unchecked > 0 && outcome.api_wait < BOUND && outcome.client_wait < BOUND);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_syncs_each_write_loses_nothing_when_it_is_killed() {
    let outcome = run(Scenario::RedisKilledSynced, &SCALE).await;
    assert!(outcome.unchecked > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_syncs_once_a_second_loses_the_last_seconds_at_most() {
    let outcome = run(Scenario::RedisKilledEverySecond, &SCALE).await;
    assert!(outcome.unchecked > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f01_a_primary_that_is_demoted_is_left_for_the_new_one() {
    let outcome = run(Scenario::RedisDemoted, &SCALE).await;
    assert!(outcome.unchecked > 0 && outcome.store_errors["readonly"] > 0 && outcome.back_after < BACK);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f01_a_primary_that_hands_over_loses_nothing() {
    let outcome = run(Scenario::RedisHandedOver, &SCALE).await;
    assert!(outcome.back_after < BACK);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f02_nobody_notices_that_the_scripts_are_flushed() {
    let outcome = run(Scenario::ScriptsFlushed, &patient()).await;
    assert_eq!(outcome.unchecked, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_of_a_server_that_is_killed_go_to_the_other() {
    // Who is refused a connection asks the other at once, so that a check may well miss nothing.
    let outcome = run(Scenario::ServerKilled, &SCALE).await;
    assert!(outcome.client_wait < BOUND);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_of_a_server_that_is_frozen_go_to_the_other() {
    let outcome = run(Scenario::ServerFrozen, &SCALE).await;
    assert!(outcome.unchecked > 0 && outcome.client_wait < BOUND);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f03_what_redis_did_and_could_not_say_counts_once() {
    let outcome = run(Scenario::RepliesDropped, &SCALE).await;
    assert!(outcome.unchecked > 0 && outcome.api_wait < BOUND && outcome.client_wait < BOUND);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_of_a_cluster_that_is_killed_is_left_for_its_replica() {
    let outcome = run(Scenario::ClusterNodeKilled, &SCALE).await;
    assert!(outcome.unchecked > 0 && outcome.api_wait < BOUND);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f01_a_node_of_a_cluster_that_hands_over_loses_nothing() {
    let outcome = run(Scenario::ClusterNodeHandedOver, &SCALE).await;
    assert!(outcome.back_after < BACK);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_notices_that_slots_are_moved() {
    let outcome = run(Scenario::ClusterSlotsMoved, &patient()).await;
    assert_eq!(outcome.unchecked, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_that_sentinels_watch_is_left_for_the_one_that_they_promote() {
    let outcome = run(Scenario::SentinelPrimaryKilled, &SCALE).await;
    assert!(outcome.unchecked > 0 && outcome.api_wait < BOUND);
}

/// What Redis answers every write with, and what is done about it all the same: it is asked again with each check.
async fn errors(scenario: Scenario) {
    let outcome = run(scenario, &SCALE).await;
    assert!(outcome.unchecked > 0 && outcome.api_wait < BOUND && outcome.client_wait < BOUND);
    // One warning for an outage in each of two servers, and one that it is over.
    assert!((2..=8).contains(&outcome.warnings.len()), "{:#?}", outcome.warnings);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_loads_its_data_is_waited_for_by_no_check() {
    let outcome = run(Scenario::RedisLoading, &SCALE).await;
    assert!(outcome.unchecked > 0 && outcome.api_wait < BOUND && outcome.client_wait < BOUND);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_is_full_is_as_one_that_is_away() {
    errors(Scenario::RedisFull).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn so_is_one_that_cannot_save() {
    errors(Scenario::RedisCannotSave).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn so_is_one_that_lacks_replicas() {
    errors(Scenario::RedisWithoutReplicas).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn so_is_one_that_is_busy() {
    errors(Scenario::RedisBusy).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn so_is_a_primary_that_lost_its_own() {
    let outcome = run(Scenario::RedisMasterDown, &SCALE).await;
    assert!(outcome.unchecked > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_notices_that_the_clock_of_redis_steps() {
    let outcome = run(Scenario::RedisClockSteps, &patient()).await;
    assert_eq!(outcome.unchecked, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_redis_never_heard_counts_when_it_is_said_again() {
    errors(Scenario::RequestsDropped).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_come_too_late_are_for_nobody() {
    let outcome = run(Scenario::RepliesLate, &SCALE).await;
    assert!(outcome.unchecked > 0 && outcome.api_wait < BOUND && outcome.client_wait < BOUND);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn garbage_is_no_answer() {
    let outcome = run(Scenario::RepliesGarbled, &SCALE).await;
    assert!(outcome.unchecked > 0 && outcome.api_wait < BOUND && outcome.client_wait < BOUND);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nor_is_half_of_one() {
    let outcome = run(Scenario::RepliesTruncated, &SCALE).await;
    assert!(outcome.unchecked > 0 && outcome.api_wait < BOUND && outcome.client_wait < BOUND);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_are_cut_are_made_again() {
    let outcome = run(Scenario::ConnectionsCut, &SCALE).await;
    assert!(outcome.api_wait < BOUND && outcome.client_wait < BOUND);
}

/// In a network that takes root to be made.
async fn partition(scenario: Scenario) {
    if !scenario.is_possible().await {
        return;
    }
    let outcome = run(scenario, &SCALE).await;
    assert!(outcome.unchecked > 0 && outcome.api_wait < BOUND && outcome.client_wait < BOUND);
    assert!(outcome.back_after < BACK);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f05_a_link_that_is_down_is_waited_for_by_no_check() {
    partition(Scenario::LinkDown).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f06_a_network_that_loses_requests_is_waited_for_by_no_check() {
    partition(Scenario::LinkLosesRequests).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f03_what_redis_did_and_the_network_lost_counts_once() {
    partition(Scenario::LinkLosesReplies).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_notices_that_a_certificate_is_replaced() {
    let outcome = run(Scenario::CertificateReplaced, &patient()).await;
    assert_eq!(outcome.unchecked, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f06_a_certificate_of_redis_that_has_expired_is_not_accepted_and_its_successor_is() {
    let outcome = run(Scenario::RedisCertificateExpired, &SCALE).await;
    assert!(outcome.unchecked > 0 && outcome.api_wait < BOUND && outcome.client_wait < BOUND);
    assert!(outcome.back_after < BACK && outcome.store_errors["denied"] > 0);
    // Once by each server, whatever it noticed first.
    let told = outcome.warnings.iter().filter(|line| line.contains("certificate expired")).count();
    assert_eq!(told, 2, "{outcome:#?}");
}

/// Faults at random, of which `scripts/soak` runs as many as you have time for.
async fn a_storm(seed: u64) {
    let outcome = storm(seed, 8, &SCALE).await;
    eprintln!("seed {seed}: {outcome:#?}");
    outcome.assert_balanced();
    assert!(outcome.checks > outcome.unchecked, "seed {seed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_loses_nothing_and_counts_nothing_twice() {
    a_storm(1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nor_does_another() {
    a_storm(2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_bookkeeper_finds_what_is_lost_and_what_counts_twice() {
    let redis = RedisServer::start().await;
    let settled = Run::start(&redis.url(), &patient()).await.settle().await;
    settled.outcome().await.assert_balanced();

    redis.command("DEL", &["q1:{repo:api-0-3}"]).await;
    let charge = json!({ "accounts": { "repo": "client-6-2" }, "cost": { "network": 3 } });
    assert_eq!(settled.http().post("/v1/report", &json!({ "charges": [charge] })).await.status, 200);

    let balance = settled.outcome().await.balance;
    let lost: Vec<_> = balance.lost.iter().map(|(account, _)| account.as_str()).collect();
    assert_eq!(lost, ["api-0-3"]);
    assert!(balance.wrong.len() == 1 && balance.wrong[0].starts_with("client-6-2:"), "{balance:#?}");
    let torn: Vec<_> = balance.torn.iter().filter_map(|line| line.split(':').next()).collect();
    assert_eq!(torn, ["api-0", "client-6"]);
}
