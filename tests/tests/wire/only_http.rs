//! What HTTP alone has: headers, media types, paths, problem documents.

use futures::future::join_all;
use quota_tests::http::Http;
use quota_tests::openapi::{faults, judge};
use quota_tests::redis::RedisServer;
use quota_tests::server::{MEMORY, TestServer};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use crate::answer::LIMITS;
use crate::drive_http::{assert_problem, post, retry_after};

fn members(json: &Value) -> Vec<&str> {
    json.as_object().unwrap().keys().map(String::as_str).collect()
}

async fn spend(http: &Http, accounts: Value, cpu: f64) {
    let report = json!({ "charges": [{ "accounts": accounts, "cost": { "cpu": cpu } }] });
    assert_eq!(http.post("/v1/report", &report).await.status, 200);
}

#[tokio::test]
async fn an_allow_has_the_documented_members() {
    let server = TestServer::start(MEMORY, LIMITS).await;
    let check = json!({
        "node": "gitaly-01", "rpc": "/svc/Clone", "class": "interactive", "accounts": { "user": "alice" },
        "price": { "cpu": 1.5, "memory": 0, "network": 0 },
        "used_here": { "user": { "cpu": 9.1 }, "repo": { "cpu": 30.0 } },
    });
    let body = post(&server.http, "/v1/check", &check).await.json();
    assert_eq!(members(&body), ["decision", "reserved", "checked", "standings", "reservation"]);
    assert_eq!(body["reserved"], json!({ "cpu": 1.5, "memory": 0, "network": 0 }));
    assert!(body["reservation"].as_str().unwrap().starts_with("r1."));
    let standing = &body["standings"][0];
    assert_eq!(members(standing), ["kind", "id", "over", "retry_after_seconds", "resources"]);
    assert_eq!(standing["resources"]["cpu"], json!({ "used": 0.0, "limit": 10.0, "mode": "enforce" }));
    assert_eq!(standing["resources"]["network"]["limit"], json!(10_u64 << 30));
}

#[tokio::test]
async fn a_deny_is_a_problem_document_in_words_and_numbers() {
    let server = TestServer::start(MEMORY, LIMITS).await;
    spend(&server.http, json!({ "user": "alice" }), 10.25).await;
    let check = json!({ "node": "gitaly-01", "accounts": { "user": "alice" } });
    let answer = post(&server.http, "/v1/check", &check).await;
    assert_eq!(answer.status, 429);
    assert_problem(&answer);
    assert!(retry_after(&answer).as_secs() >= 1);
    let policy = "\"user-cpu\";q=10000000;qu=\"cpu-microseconds\";w=60";
    assert_eq!(answer.header("ratelimit-policy"), Some(policy));
    let remains = format!("\"user-cpu\";r=0;t={}", answer.header("retry-after").unwrap());
    assert_eq!(answer.header("ratelimit"), Some(&*remains));
    let body = answer.json();
    assert!(body["type"].as_str().unwrap().ends_with("/problems/over-quota"));
    assert_eq!(body["detail"], "user alice used 10.2 s of 10.0 s CPU in the last 60 s on gitaly-01");
    let breach = json!({
        "kind": "user", "id": "alice", "resource": "cpu", "used": 10.25, "limit": 10.0, "scope": "cluster",
    });
    assert_eq!(body["denied_by"], breach);
    assert_eq!(body["permanent"], false);
}

#[tokio::test]
async fn an_allow_tells_what_is_left_of_the_limit_that_is_nearest() {
    let server = TestServer::start(
        MEMORY,
        &format!("{LIMITS}adapt.cpu.rule = \"aimd\"\nadapt.cpu.interval = \"60s\"\n"),
    )
    .await;
    let all = json!({ "user": "alice", "repo": "r", "ip": "192.0.2.1" });
    let headers = async |check: Value| {
        let answer = post(&server.http, "/v1/check", &check).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        ["ratelimit-policy", "ratelimit"].map(|name| answer.header(name).map(str::to_owned))
    };
    let told = |policy: &str, limit: &str| [Some(policy.to_owned()), Some(limit.to_owned())];
    // Of the node, since one that is not known begins at `initial`; the price that is now reserved is taken off.
    let here = "\"user-cpu-node\";q=10000000;qu=\"cpu-microseconds\";w=60";
    assert_eq!(
        headers(json!({ "accounts": all, "price": { "cpu": 1.5 }, "used_here": { "user": { "cpu": 2.0 } } }))
            .await,
        told(here, "\"user-cpu-node\";r=6500000")
    );
    spend(&server.http, all.clone(), 90.0).await;
    let unused = json!({ "cpu": 0.0 });
    let used_here = json!({ "user": unused, "repo": unused, "ip": unused });
    assert_eq!(
        headers(json!({ "accounts": all, "price": { "cpu": 0.5 }, "used_here": used_here })).await,
        told("\"repo-cpu\";q=100000000;qu=\"cpu-microseconds\";w=60", "\"repo-cpu\";r=8000000")
    );
    let nothing_enforced = TestServer::start(MEMORY, "limits.user.cpu.mode = \"shadow\"\n").await;
    let answer = post(&nothing_enforced.http, "/v1/check", &json!({ "accounts": { "user": "alice" } })).await;
    assert_eq!((answer.header("ratelimit-policy"), answer.header("ratelimit")), (None, None));
}

#[tokio::test]
async fn paths_of_repositories_need_no_escaping() {
    let server = TestServer::start(MEMORY, LIMITS).await;
    spend(&server.http, json!({ "repo": "group/sub/project" }), 1.0).await;
    for path in
        ["group/sub/project", "group/sub/project.git", "group%2Fsub%2Fproject", "group/sub//project/?node=n"]
    {
        let body = server.http.get(&format!("/v1/accounts/repo/{path}")).await.json();
        assert_eq!(
            (&body["id"], &body["resources"]["cpu"]["used"]),
            (&json!("group/sub/project"), &json!(1.0))
        );
    }
}

#[tokio::test]
async fn whatever_is_not_there_is_a_problem_document() {
    let server = TestServer::start(MEMORY, "").await;
    for path in
        ["/nothing", "/v1", "/v1/nothing", "/v1/accounts/user", "/v1/check/more", "//v1/check", "/%ff"]
    {
        let answer = server.http.get(path).await;
        assert_eq!(answer.status, 404, "{path}");
        assert_problem(&answer);
    }
    for (method, path) in [
        (Method::GET, "/v1/check"),
        (Method::PUT, "/v1/report"),
        (Method::DELETE, "/v1/accounts/user/alice"),
        (Method::PUT, "/v1/backoff"),
        (Method::POST, "/metrics"),
    ] {
        let answer = server.http.request(method.clone(), path, "").await;
        assert_eq!(answer.status, 405, "{method} {path}");
        assert!(answer.header("allow").is_some(), "{method} {path}: {answer:?}");
        assert_problem(&answer);
    }
}

#[tokio::test]
async fn an_error_names_the_field_and_the_reason() {
    let server = TestServer::start(MEMORY, "").await;
    let check = json!({ "accounts": { "ip": "unknown" } });
    let answer = post(&server.http, "/v1/check", &check).await;
    assert_eq!(answer.status, 400);
    assert_problem(&answer);
    let body = answer.json();
    let reason = "must be an IPv4 or IPv6 address without port or zone";
    assert_eq!(body["errors"], json!([{ "field": "accounts.ip", "reason": reason }]));
    assert_eq!(body["detail"], format!("accounts.ip: {reason}"));
}

#[tokio::test]
async fn health_readiness_and_metrics_are_told() {
    let redis = RedisServer::start().await;
    for (store, name) in [(MEMORY, "memory"), (redis.url().as_str(), "redis")] {
        let server = TestServer::start(store, "").await;
        let health = server.http.get("/healthz").await;
        assert_eq!(health.status, 200);
        judge("get", "/healthz", None, &health);
        let ready = server.http.get("/readyz").await;
        assert_eq!((ready.status, &ready.json()["store"]), (200, &json!(name)));
        judge("get", "/readyz", None, &ready);
        let metrics = server.http.get("/metrics").await;
        judge("get", "/metrics", None, &metrics);
        assert!(metrics.header("content-type").unwrap().starts_with("text/plain; version=0.0.4"));
        assert!(metrics.text().contains("quota_store_up 1\n"));
    }
}

#[tokio::test]
async fn an_account_that_cannot_be_read_is_an_error_and_the_others_are_not() {
    let redis = RedisServer::start().await;
    let server = TestServer::start(&redis.url(), "").await;
    redis::cmd("SET")
        .arg("q1:{user:alice}")
        .arg("garbage")
        .exec_async(&mut redis.client().await)
        .await
        .unwrap();
    let check = json!({ "accounts": { "repo": "r", "user": "alice" } });
    let answer = post(&server.http, "/v1/check", &check).await;
    assert_eq!(answer.status, 500);
    assert_problem(&answer);
    assert!(answer.json()["detail"].as_str().unwrap().contains("user alice"));
    assert_eq!(server.http.account("user", "alice").await.status, 500);
    assert_eq!(server.http.account("repo", "r").await.json()["resources"]["cpu"]["used"], 0.0);
    let other = json!({ "accounts": { "repo": "r", "user": "bob" } });
    assert_eq!(server.http.post("/v1/check", &other).await.status, 200);
}

#[tokio::test]
async fn denials_are_told_as_they_happen() {
    let server = TestServer::start(MEMORY, LIMITS).await;
    spend(&server.http, json!({ "user": "alice" }), 10.25).await;
    let check = json!({ "node": "gitaly-01", "rpc": "/svc/Clone", "accounts": { "user": "alice" } });
    assert_eq!(post(&server.http, "/v1/check", &check).await.status, 429);
    let mut events = server.http.events("/v1/denials/stream").await;
    // What was denied before is not told.
    let check = json!({ "accounts": { "user": "alice" } });
    assert_eq!(post(&server.http, "/v1/check", &check).await.status, 429);
    let (name, told) = events.next().await.expect("an event");
    assert_eq!(name, "denial");
    let expected = json!({
        "kind": "user", "id": "alice", "resource": "cpu", "used": 10.25, "limit": 10.0, "scope": "cluster",
        "mode": "enforce",
    });
    assert_eq!(told, expected);
    let check = json!({ "node": "gitaly-01", "rpc": "/svc/Clone", "accounts": { "user": "alice" } });
    assert_eq!(post(&server.http, "/v1/check", &check).await.status, 429);
    let (_, told) = events.next().await.expect("an event");
    assert_eq!((&told["node"], &told["rpc"]), (&json!("gitaly-01"), &json!("/svc/Clone")));
    assert_eq!(faults(&json!({ "$ref": "#/components/schemas/DenialEvent" }), &told), [""; 0]);

    let followers = join_all((0..31).map(|_| server.http.events("/v1/denials/stream"))).await;
    let answer = server.http.get("/v1/denials/stream").await;
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")));
    judge("get", "/v1/denials/stream", None, &answer);
    drop(followers);
    // A stream holds nobody up who stops the server.
    server.stop().await;
    assert_eq!(events.next().await, None);
}

#[tokio::test]
async fn one_connection_serves_many() {
    let server = TestServer::start(MEMORY, LIMITS).await;
    let mut connection = BufReader::new(TcpStream::connect(server.http.address()).await.unwrap());
    for number in 0..100 {
        let question = format!("GET /v1/backoff?user=user-{number} HTTP/1.1\r\nhost: quota\r\n\r\n");
        connection.write_all(question.as_bytes()).await.unwrap();
        let mut head = Vec::new();
        while head.last().is_none_or(|line| line != "\r\n") {
            let mut line = String::new();
            assert_ne!(connection.read_line(&mut line).await.unwrap(), 0, "closed after {number} answers");
            head.push(line);
        }
        let length = head.iter().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
        let mut body = vec![0; length.trim().parse().unwrap()];
        connection.read_exact(&mut body).await.unwrap();
        let go_on = json!({ "backoff": false, "action": "proceed" });
        assert_eq!(serde_json::from_slice::<Value>(&body).unwrap(), go_on);
    }
}

#[tokio::test]
async fn a_standing_is_not_to_be_kept() {
    let server = TestServer::start(MEMORY, "").await;
    let answer = server.http.account("user", "alice").await;
    assert_eq!(answer.header("cache-control"), Some("no-store"));
}
