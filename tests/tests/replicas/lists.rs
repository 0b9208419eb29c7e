//! What each of several servers saw is told by any of them.

use quota_tests::redis::RedisServer;
use quota_tests::server::{Clients, TestServer};
use quota_tests::wait::{PATIENCE, until};
use serde_json::{Value, json};

use super::{report, two_on};

/// Who is heaviest in CPU: id, seconds, denials.
async fn top(server: &Clients) -> Vec<(String, f64, u64)> {
    let body = server.http.get("/v1/top?kind=user&resource=cpu").await.json();
    let consumer = |json: &Value| {
        let id = json["id"].as_str().unwrap().to_owned();
        (id, json["used"].as_f64().unwrap(), json["denied"].as_u64().unwrap())
    };
    body["accounts"].as_array().unwrap().iter().map(consumer).collect()
}

/// How often which RPC was denied to whom.
async fn denials(server: &Clients) -> Vec<(String, String, u64)> {
    let body = server.http.get("/v1/denials").await.json();
    let denial = |json: &Value| {
        let text = |name: &str| json[name].as_str().unwrap().to_owned();
        (text("id"), text("rpc"), json["count"].as_u64().unwrap())
    };
    body["denials"].as_array().unwrap().iter().map(denial).collect()
}

async fn spend(server: &Clients, id: &str, cpu: f64) {
    let charge = json!({ "accounts": { "user": id }, "cost": { "cpu": cpu } });
    report(server, &json!({ "charges": [charge] })).await;
}

async fn deny(server: &Clients, id: &str, rpc: &str) {
    let answer = server.http.post("/v1/check", &json!({ "rpc": rpc, "accounts": { "user": id } })).await;
    assert_eq!(answer.status, 429, "{}", answer.text());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn top_adds_up_what_two_servers_were_told() {
    let redis = RedisServer::start().await;
    let [one, two] = two_on(&redis).await;
    spend(&one, "a", 60.0).await;
    spend(&two, "a", 60.0).await;
    spend(&two, "b", 110.0).await;
    deny(&one, "b", "/svc/A").await;
    deny(&two, "b", "/svc/A").await;
    let expected = [("a".to_owned(), 120.0, 0), ("b".to_owned(), 110.0, 2)];
    for server in [&one, &two] {
        until(PATIENCE, "what both saw", async || (top(server).await == expected).then_some(())).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn denials_add_up_and_outlive_their_server() {
    let redis = RedisServer::start().await;
    let [one, two] = two_on(&redis).await;
    spend(&one, "a", 100.0).await;
    deny(&one, "a", "/svc/A").await;
    deny(&two, "a", "/svc/A").await;
    deny(&two, "a", "/svc/B").await;
    let told = |id: &str, rpc: &str, count| (id.to_owned(), rpc.to_owned(), count);
    let expected = [told("a", "/svc/A", 2), told("a", "/svc/B", 1)];
    for server in [&one, &two] {
        until(PATIENCE, "what both saw", async || (denials(server).await == expected).then_some(())).await;
    }
    one.stop().await;
    two.stop().await;
    let third = TestServer::start(&redis.url(), super::SETTINGS).await;
    assert_eq!(denials(&third).await, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_post_that_cannot_be_read_is_missing_and_nothing_else() {
    let redis = RedisServer::start().await;
    let [one, two] = two_on(&redis).await;
    spend(&one, "a", 100.0).await;
    deny(&one, "a", "/svc/A").await;
    let mut client = redis.client().await;
    for board in ["top", "denials"] {
        let now = format!("{}", i64::MAX / 2);
        redis::cmd("ZADD")
            .arg(format!("q1:{board}"))
            .arg(now)
            .arg("x-0")
            .exec_async(&mut client)
            .await
            .unwrap();
        let key = format!("q1:{board}:{{x-0}}");
        redis::cmd("SET").arg(key).arg("garbage").exec_async(&mut client).await.unwrap();
    }
    let expected = [("a".to_owned(), 100.0, 1)];
    until(PATIENCE, "what the other saw", async || (top(&two).await == expected).then_some(())).await;
    let expected = [("a".to_owned(), "/svc/A".to_owned(), 1)];
    until(PATIENCE, "what the other saw", async || (denials(&two).await == expected).then_some(())).await;
}
