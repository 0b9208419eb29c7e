//! What callers of HTTP send and read since before pressure was told.

use quota_tests::redis::RedisServer;
use quota_tests::server::{MEMORY, TestServer};
use serde_json::{Value, json};

const SETTINGS: &str = "window.length = \"10m\"\nlimits.user.cpu.initial = \"10s\"\n";

/// A body, its path, and the status and members (as JSON pointers) of the answer that callers read.
fn exchanges() -> Vec<(&'static str, Option<Value>, u16, &'static [&'static str])> {
    let accounts = json!({ "repo": "group/project", "user": "alice", "ip": "203.0.113.7" });
    let check = json!({
        "node": "gitaly-01", "rpc": "/gitaly.SmartHTTPService/PostUploadPackWithSidechannel", "accounts": accounts,
        "class": "interactive", "price": { "cpu": 1.5, "memory": 0, "network": 0 },
        "used_here": { "user": { "cpu": 9.1 }, "repo": { "cpu": 30.0 } },
    });
    let cost = json!({ "cpu": 200.0, "memory": 52428800, "network": 1048576 });
    let charge =
        json!({ "accounts": { "repo": "group/project", "user": "alice" }, "cost": cost, "age_seconds": 0.4 });
    let report = json!({
        "source": "gitaly-01/0198f3", "sequence": 17, "held_seconds": 0.0, "node": "gitaly-01", "charges": [charge],
    });
    let standing: &[&str] = &[
        "/kind",
        "/id",
        "/over",
        "/retry_after_seconds",
        "/resources/cpu/used",
        "/resources/cpu/limit",
        "/resources/cpu/mode",
        "/resources/memory/limit",
        "/resources/network/limit",
    ];
    let allowed: &[&str] = &[
        "/decision",
        "/reserved/cpu",
        "/reserved/memory",
        "/reserved/network",
        "/reservation",
        "/checked",
        "/standings/0/kind",
        "/standings/0/resources/cpu/used",
    ];
    let denied: &[&str] = &[
        "/type",
        "/title",
        "/status",
        "/detail",
        "/decision",
        "/denied_by/kind",
        "/denied_by/id",
        "/denied_by/resource",
        "/denied_by/used",
        "/denied_by/limit",
        "/retry_after_seconds",
        "/permanent",
        "/standings/0/over",
    ];
    let reported: &[&str] = &["/applied", "/dropped_old", "/duplicate"];
    let backing_off: &[&str] = &["/backoff", "/retry_after_seconds", "/permanent", "/denied_by/resource"];
    vec![
        ("/v1/check", Some(check.clone()), 200, allowed),
        ("/v1/backoff?repo=group/project&user=alice&node=gitaly-01", None, 200, &["/backoff"]),
        ("/v1/report", Some(report.clone()), 200, reported),
        ("/v1/report", Some(report), 200, reported),
        ("/v1/check", Some(check), 429, denied),
        ("/v1/accounts/user/alice?node=gitaly-01", None, 200, standing),
        ("/v1/accounts/repo/group/project", None, 200, standing),
        ("/v1/backoff?user=alice&attempt=2", None, 200, backing_off),
        (
            "/v1/check",
            Some(json!({ "accounts": {} })),
            400,
            &["/type", "/title", "/status", "/errors/0/field"],
        ),
        ("/readyz", None, 200, &["/ready", "/store"]),
    ]
}

#[tokio::test]
async fn bodies_are_taken_and_answers_have_what_is_read() {
    let redis = RedisServer::start().await;
    for store in [MEMORY, &redis.url()] {
        let server = TestServer::start(store, SETTINGS).await;
        for (path, body, status, members) in exchanges() {
            let answer = match body {
                Some(body) => server.http.post(path, &body).await,
                None => server.http.get(path).await,
            };
            assert_eq!(answer.status, status, "{path}: {}", answer.text());
            let json = answer.json();
            for member in members {
                assert!(json.pointer(member).is_some(), "{path}: {member} is not in {json}");
            }
        }
    }
}
