//! Redis is lost to several servers under load, and comes back to all of them at once (F05).

use std::collections::BTreeSet;

use futures::future::join_all;
use quota_tests::http::Answer;
use quota_tests::proxy::{Fault, Proxy};
use quota_tests::redis::RedisServer;
use quota_tests::server::ServerProcess;
use quota_tests::wait::{PATIENCE, until};
use serde_json::{Value, json};

/// Of checks that are under way at each server at once, of a second each.
const CHECKS: usize = 50;

/// CPU-seconds of a user.
const LIMIT: usize = 20;

/// Of one server: what decisions share, and one each of reports and of what no decision waits for.
const CONNECTIONS: u32 = 2 + 1 + 1;

const WARNING: &str = "the store is lost: the fail policy answers";

async fn start(url: &str) -> ServerProcess {
    let limit = format!("{LIMIT}s");
    ServerProcess::start(&[
        ("QUOTA__STORE__URL", url),
        ("QUOTA__STORE__POOL_SIZE", "2"),
        ("QUOTA__STORE__DEADLINE", "500ms"),
        // Nothing leaves it while the test runs.
        ("QUOTA__WINDOW__LENGTH", "10m"),
        ("QUOTA__LIMITS__USER__CPU__INITIAL", &limit),
        ("QUOTA__LIMITS__USER__CPU__MAX", &limit),
    ])
    .await
}

/// Asks for a user all at once, and returns the answers of each server.
async fn check(servers: &[ServerProcess], user: &str) -> Vec<Vec<Value>> {
    let body = json!({ "accounts": { "user": user }, "price": { "cpu": 1.0 } });
    let of_one = async |server: &ServerProcess| -> Vec<Value> {
        let answers: Vec<Answer> = join_all((0..CHECKS).map(|_| server.http.post("/v1/check", &body))).await;
        answers
            .into_iter()
            .map(|answer| {
                assert!(matches!(answer.status, 200 | 429), "{}", answer.text());
                answer.json()
            })
            .collect()
    };
    join_all(servers.iter().map(of_one)).await
}

fn is_unchecked(answer: &Value) -> bool {
    answer["checked"] == false
}

fn is_admitted(answer: &Value) -> bool {
    answer["checked"] == true
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f05_servers_that_lose_redis_together_warn_once_each_and_return_without_a_storm() {
    let redis = RedisServer::start().await;
    let proxy = Proxy::to(redis.port()).await;
    let url = proxy.redis_url();
    let servers = [start(&url).await, start(&url).await, start(&url).await];
    check(&servers, "before").await;
    let shown = async |line: &'static str| {
        let metrics = join_all(servers.iter().map(|server| server.http.get("/metrics"))).await;
        metrics.iter().all(|metrics| metrics.text().lines().any(|shown| shown == line))
    };
    let told = |text: &'static str| servers.each_ref().map(|server| server.log(text).len());
    until(PATIENCE, "the store answers", async || shown("quota_store_up 1").await.then_some(())).await;
    let warned_before = told(WARNING);

    proxy.set(Fault::Freeze);
    for _ in 0..3 {
        let answers = check(&servers, "meanwhile").await;
        assert!(answers.iter().flatten().all(is_unchecked), "{answers:?}");
    }
    assert!(shown("quota_store_up 0").await);
    assert_eq!(told(WARNING), warned_before.map(|count| count + 1), "one an outage, not one a check");

    let before = proxy.accepted();
    proxy.set(Fault::None);
    let (mut admitted, mut back) = (0, BTreeSet::new());
    until(PATIENCE, "every server decides again", async || {
        let answers = check(&servers, "after").await;
        admitted += answers.iter().flatten().filter(|answer| is_admitted(answer)).count();
        back.extend(
            (0..).zip(&answers).filter(|(_, of_one)| !of_one.iter().any(is_unchecked)).map(|(at, _)| at),
        );
        (back.len() == servers.len()).then_some(())
    })
    .await;
    assert!(admitted <= LIMIT, "{admitted} of {LIMIT}");
    let attempts = proxy.accepted() - before;
    assert!(attempts <= CONNECTIONS * servers.len() as u32, "{attempts} connections are made");
    until(PATIENCE, "the end is told", async || {
        check(&servers, "after").await;
        shown("quota_store_up 1").await.then_some(())
    })
    .await;
    println!("{admitted} of {LIMIT} were admitted, over {attempts} new connections");
}
