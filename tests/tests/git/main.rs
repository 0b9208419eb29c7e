//! Real git against the example fileserver, which asks a real quota-server.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod slow;
mod world;

use quota_tests::redis::{RedisCluster, RedisSentinel, RedisServer};
use quota_tests::server::MEMORY;
use serde_json::json;

use world::World;

/// More clones than any machine needs to spend the quota: each costs some milliseconds of CPU at the very least.
const MANY: usize = 500;

#[tokio::test]
async fn a_noisy_user_is_refused_in_words_and_a_light_one_is_not_on_memory() {
    a_noisy_user_is_refused_in_words_and_a_light_one_is_not(MEMORY, async || ()).await;
}

#[tokio::test]
async fn a_noisy_user_is_refused_in_words_and_a_light_one_is_not_on_redis() {
    let redis = RedisServer::start().await;
    a_noisy_user_is_refused_in_words_and_a_light_one_is_not(&redis.url(), async || ()).await;
}

#[tokio::test]
async fn a_noisy_user_is_refused_in_words_and_a_light_one_is_not_on_a_cluster() {
    let mut cluster = RedisCluster::quick_to_fail_over().await;
    let url = cluster.url();
    let (noisy, light) = ("q1:{user:noisy}", "q1:{user:light}");
    a_noisy_user_is_refused_in_words_and_a_light_one_is_not(&url, async || {
        cluster.move_slot(light, async || ()).await;
        cluster.kill(RedisCluster::place_of(noisy)).await;
    })
    .await;
}

#[tokio::test]
async fn a_noisy_user_is_refused_in_words_and_a_light_one_is_not_behind_sentinels() {
    let mut servers = RedisSentinel::quick_to_fail_over().await;
    let url = servers.url();
    let fault = async || servers.kill_primary().await;
    a_noisy_user_is_refused_in_words_and_a_light_one_is_not(&url, fault).await;
}

/// What is to happen `meanwhile` does so after the first clones.
async fn a_noisy_user_is_refused_in_words_and_a_light_one_is_not(store: &str, meanwhile: impl AsyncFnOnce()) {
    let world = World::start(store, "1500ms").await;
    assert!(world.clone_as("light").await.succeeded);
    assert!(world.clone_as("noisy").await.succeeded);
    meanwhile().await;
    let mut cloned = 1;
    let refused = loop {
        let clone = world.clone_as("noisy").await;
        if !clone.succeeded {
            break clone;
        }
        cloned += 1;
        assert!(cloned < MANY, "noisy is never refused: {}", world.used("noisy").await);
    };
    assert!(
        refused.terminal.contains("remote: user noisy is over its CPU quota on gitaly-01; try again in "),
        "{}",
        refused.terminal
    );
    // Who is refused by the fileserver itself, while the store is lost, is so before all is reported.
    world.until_used("noisy", 1.5).await;
    let light = world.clone_as("light").await;
    assert!(light.succeeded, "{}", light.terminal);
    println!("noisy: {cloned} clones, then refused; light: 2 clones, none refused");
}

#[tokio::test]
async fn a_push_admitted_just_below_the_limit_finishes_and_the_next_is_refused() {
    let world = World::start(MEMORY, "1500ms").await;
    let work = world.work("pusher").await;
    let almost = json!({ "charges": [{ "accounts": { "user": "pusher" }, "cost": { "cpu": 1.499 } }] });
    assert_eq!(world.server.http.post("/v1/report", &almost).await.status, 200);

    let push = world.commit_and_push(&work, "pusher").await;
    assert!(push.succeeded, "{}", push.terminal);
    assert!(world.hook_ran(), "the hook belongs to the push");
    world.until_used("pusher", 1.5).await;

    let push = world.commit_and_push(&work, "pusher").await;
    assert!(!push.succeeded);
    assert!(push.terminal.contains("remote: user pusher is over its CPU quota"), "{}", push.terminal);
}

/// Only who is in front of it could know better, and nobody is.
#[tokio::test]
async fn f27_a_fileserver_charges_who_is_connected_and_not_whom_a_header_names() {
    let world = World::start(MEMORY, "100s").await;
    let headers = ["X-Forwarded-For: 203.0.113.50, 127.0.0.9", "Forwarded: for=203.0.113.50"];
    let headers = headers.map(|header| format!("http.extraHeader={header}"));
    let clone = world.clone_of("project.git", "u", &headers.each_ref().map(String::as_str)).await;
    assert!(clone.succeeded, "{}", clone.terminal);
    world.until_used("u", 0.001).await;
    let used = async |ip: &str| {
        world.server.http.account("ip", ip).await.json()["resources"]["cpu"]["used"].as_f64().unwrap()
    };
    assert!(used("127.0.0.1").await > 0.0);
    assert_eq!((used("203.0.113.50").await, used("127.0.0.9").await), (0.0, 0.0));
}
