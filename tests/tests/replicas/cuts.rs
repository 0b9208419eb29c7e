//! Who loads a node is cut once, whichever server is told of it, and is refused by every server.

use std::time::Duration;

use quota_tests::redis::RedisServer;
use quota_tests::server::ServerProcess;
use quota_tests::wait::{PATIENCE, until};
use serde_json::{Value, json};

/// Two cores are 120 s a minute, of which a fair share of ten users is 10.8 s.
fn pressure(cpu: f64, alice: [f64; 2]) -> Value {
    let [used, recent] = alice;
    json!({
        "node": "gitaly-01", "cpu": cpu, "capacity": { "cpu": 2.0 }, "active": { "user": 10 },
        "heaviest": [
            { "kind": "user", "id": "alice", "cpu": used, "recent": { "cpu": recent } },
            { "kind": "user", "id": "bob", "cpu": 9.0, "recent": { "cpu": 1.5 } },
        ],
    })
}

fn check(user: &str) -> Value {
    json!({ "node": "gitaly-01", "accounts": { "user": user } })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_loads_a_node_is_cut_once_and_refused_by_every_server() {
    let redis = RedisServer::start().await;
    let url = redis.url();
    let settings = [
        ("QUOTA__STORE__URL", url.as_str()),
        ("QUOTA__ADAPT__CPU__RULE", "blame"),
        ("QUOTA__ADAPT__CPU__INTERVAL", "1s"),
    ];
    let servers = [ServerProcess::start(&settings).await, ServerProcess::start(&settings).await];
    let charge = |user: &str, cpu: f64| json!({ "accounts": { "user": user }, "cost": { "cpu": cpu } });
    let charges = json!({ "charges": [charge("alice", 60.0), charge("bob", 9.0)] });
    assert_eq!(servers[0].http.post("/v1/report", &charges).await.status, 200);
    let told = async |body: &Value, number: usize| {
        let answer = servers[number % 2].http.post("/v1/pressure", body).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()["accounts"].clone()
    };

    // Both are told by turns, as fast as they answer.
    let mut number = 0;
    let hot = pressure(1.0, [60.0, 18.0]);
    until(PATIENCE, "a cut", async || {
        number += 1;
        told(&hot, number).await.as_array().is_some_and(|cut| !cut.is_empty()).then_some(())
    })
    .await;
    for server in &servers {
        let denied = until(Duration::from_secs(5), "both to refuse", async || {
            let answer = server.http.post("/v1/check", &check("alice")).await;
            (answer.status == 429).then(|| answer.json())
        })
        .await;
        let by = &denied["denied_by"];
        assert_eq!((&by["id"], &by["scope"]), (&json!("alice"), &json!("node")));
        let why = by["why"].as_str().expect("a sentence");
        assert!(why.ends_with("while pressure was 1.00)"), "{why}");
        assert_eq!(server.http.post("/v1/check", &check("bob")).await.status, 200);
        let accounts = server.http.get("/v1/nodes/gitaly-01").await.json()["accounts"].clone();
        assert_eq!(accounts.as_array().map(Vec::len), Some(1), "{accounts}");
    }
    let cut = servers.iter().flat_map(|server| server.log("account cut")).collect::<Vec<_>>();
    assert_eq!(cut.len(), 1, "told once, by the server that made the step: {cut:?}");

    let calm = pressure(0.1, [0.0, 0.0]);
    until(Duration::from_secs(60), "the limit to be forgotten", async || {
        number += 1;
        told(&calm, number).await.as_array().is_some_and(Vec::is_empty).then_some(())
    })
    .await;
    for server in &servers {
        until(PATIENCE, "both to let her in", async || {
            (server.http.post("/v1/check", &check("alice")).await.status == 200).then_some(())
        })
        .await;
    }
    let forgotten = servers.iter().flat_map(|server| server.log("limit of an account forgotten"));
    assert_eq!(forgotten.count(), 1);
}
