//! Several servers on one Redis count together, and so do both protocols of one server.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests report by panicking")]

mod cuts;
mod lists;
mod overrides;
mod pressure;

use futures::future::join_all;
use quota_proto::v1;
use quota_proto::v1::check_response::Decision;
use quota_tests::redis::RedisServer;
use quota_tests::server::{Clients, MEMORY, TestServer};
use serde_json::{Value, json};

/// Long, so that nothing leaves it while a test runs.
const SETTINGS: &str = "window.length = \"10m\"\nlimits.ip.cpu.initial = \"100s\"\n";

async fn two_on(redis: &RedisServer) -> [TestServer; 2] {
    [TestServer::start(&redis.url(), SETTINGS).await, TestServer::start(&redis.url(), SETTINGS).await]
}

async fn report(server: &Clients, body: &Value) -> Value {
    let answer = server.http.post("/v1/report", body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

/// Seconds of CPU that an account used.
async fn used(server: &Clients, kind: &str, id: &str) -> f64 {
    server.http.account(kind, id).await.json()["resources"]["cpu"]["used"].as_f64().unwrap()
}

async fn allowed_by_http(server: &Clients) -> bool {
    let check = json!({ "accounts": { "user": "u" }, "price": { "cpu": 1.0 } });
    let answer = server.http.post("/v1/check", &check).await;
    assert!(matches!(answer.status, 200 | 429), "{}", answer.text());
    let body = answer.json();
    assert!(answer.status == 429 || body["checked"] == true, "{body}");
    answer.status == 200
}

async fn allowed_by_grpc(server: &Clients) -> bool {
    let accounts = Some(v1::Accounts { user: Some("u".into()), ..v1::Accounts::default() });
    let price = Some(v1::Cost { cpu_micros: 1_000_000, ..v1::Cost::default() });
    let check = v1::CheckRequest { accounts, price, ..v1::CheckRequest::default() };
    let response = server.grpc.clone().check(check).await.unwrap().into_inner();
    assert!(response.checked);
    response.decision() == Decision::Allow
}

/// 300 checks at once, each of one second, of which 100 fit below the limit of 100 s.
async fn assert_exactly_100_allowed(servers: &[&Clients]) {
    let checks = (0..300).map(|number| {
        let server = servers[number % servers.len()];
        async move {
            if (number / servers.len()).is_multiple_of(2) {
                allowed_by_http(server).await
            } else {
                allowed_by_grpc(server).await
            }
        }
    });
    let allowed = join_all(checks).await.into_iter().filter(|allowed| *allowed).count();
    assert_eq!(allowed, 100);
    for server in servers {
        assert_eq!(used(server, "user", "u").await, 100.0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_checks_on_two_servers_pass_the_limit_by_nothing() {
    let redis = RedisServer::start().await;
    let [one, two] = two_on(&redis).await;
    assert_exactly_100_allowed(&[&one, &two]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_checks_on_one_server_in_memory_pass_the_limit_by_nothing() {
    let server = TestServer::start(MEMORY, SETTINGS).await;
    assert_exactly_100_allowed(&[&server]).await;
}

#[tokio::test]
async fn alternating_requests_count_together() {
    let redis = RedisServer::start().await;
    let servers = two_on(&redis).await;
    for number in 0..100 {
        assert!(allowed_by_http(&servers[number % 2]).await, "{number}");
        assert_eq!(used(&servers[(number + 1) % 2], "user", "u").await, number as f64 + 1.0);
    }
    for server in &servers {
        assert!(!allowed_by_http(server).await);
        assert!(!allowed_by_grpc(server).await);
    }
}

#[tokio::test]
async fn a_report_counts_once_whichever_server_gets_it() {
    let redis = RedisServer::start().await;
    let [one, two] = two_on(&redis).await;
    let charge = json!({ "accounts": { "repo": "r", "user": "u" }, "cost": { "cpu": 10.0 } });
    let body = json!({ "source": "gitaly-01/1", "sequence": 17, "charges": [charge] });
    let answers = [
        report(&one, &body).await,
        report(&two, &body).await,
        report(&one, &body).await,
        report(&two, &body).await,
    ];
    assert_eq!(answers[0], json!({ "applied": 1, "dropped_old": 0, "duplicate": false }));
    for answer in &answers[1..] {
        assert_eq!(*answer, json!({ "applied": 0, "dropped_old": 0, "duplicate": true }));
    }
    for server in [&one, &two] {
        assert_eq!((used(server, "repo", "r").await, used(server, "user", "u").await), (10.0, 10.0));
    }
}

/// At the same moment, rather than one after another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f03_a_report_sent_many_times_at_once_counts_once() {
    let redis = RedisServer::start().await;
    let servers = two_on(&redis).await;
    let charge = json!({ "accounts": { "user": "u" }, "cost": { "cpu": 10.0 } });
    let body = json!({ "source": "gitaly-01/1", "sequence": 1, "charges": [charge] });
    let answers = join_all((0..40).map(|number| report(&servers[number % 2], &body))).await;
    assert_eq!(answers.iter().filter(|answer| answer["duplicate"] == false).count(), 1);
    assert_eq!(used(&servers[0], "user", "u").await, 10.0);
    let mut duplicates = 0;
    for server in &servers {
        let metrics = server.http.get("/metrics").await;
        let mut counts =
            metrics.text().lines().filter_map(|line| line.strip_prefix("quota_reports_duplicate_total "));
        duplicates += counts.next().unwrap().parse::<u32>().unwrap();
    }
    assert_eq!(duplicates, 39);
}

#[tokio::test]
async fn a_price_reserved_by_one_is_given_back_by_the_other() {
    let redis = RedisServer::start().await;
    let [one, two] = two_on(&redis).await;
    let accounts = json!({ "repo": "r", "user": "u" });
    let check = json!({ "accounts": accounts, "price": { "cpu": 7.0 } });
    let reservation = one.http.post("/v1/check", &check).await.json()["reservation"].clone();
    assert_eq!(used(&two, "user", "u").await, 7.0);
    let charge = json!({ "accounts": accounts, "cost": { "cpu": 2.0 }, "reservation": reservation });
    report(&two, &json!({ "charges": [charge] })).await;
    assert_eq!((used(&one, "repo", "r").await, used(&one, "user", "u").await), (2.0, 2.0));
}

#[tokio::test]
async fn a_check_denied_for_the_ip_leaves_repo_and_user_unchanged() {
    let redis = RedisServer::start().await;
    let [one, two] = two_on(&redis).await;
    let charge = json!({ "accounts": { "ip": "192.0.2.1" }, "cost": { "cpu": 100.0 } });
    report(&one, &json!({ "charges": [charge] })).await;
    let accounts = json!({ "repo": "r", "user": "u", "ip": "192.0.2.1" });
    for server in [&one, &two] {
        let check = json!({ "accounts": accounts, "price": { "cpu": 1.0 } });
        let answer = server.http.post("/v1/check", &check).await;
        assert_eq!((answer.status, &answer.json()["denied_by"]["kind"]), (429, &json!("ip")));
        assert_eq!((used(server, "repo", "r").await, used(server, "user", "u").await), (0.0, 0.0));
        assert_eq!(used(server, "ip", "192.0.2.1").await, 100.0);
    }
}

#[tokio::test]
async fn f07_every_key_expires() {
    let redis = RedisServer::start().await;
    let [one, two] = two_on(&redis).await;
    let mut connection = redis.client().await;
    // What cannot be read as an account must not stay for ever either.
    redis::cmd("SET").arg("q1:{user:corrupt}").arg("garbage").exec_async(&mut connection).await.unwrap();
    for (number, server) in [&one, &two, &one, &two].into_iter().enumerate() {
        let accounts = json!({ "repo": format!("r{number}"), "user": "u", "ip": "192.0.2.1" });
        let body = server.http.post("/v1/check", &json!({ "accounts": accounts })).await.json();
        let charge =
            json!({ "accounts": accounts, "cost": { "cpu": 1.0 }, "reservation": body["reservation"] });
        report(server, &json!({ "source": "s", "sequence": number, "charges": [charge] })).await;
        assert_eq!(server.http.get("/readyz").await.status, 200);
        assert_eq!(server.http.account("user", "corrupt").await.status, 500);
        assert_eq!(server.http.account("user", "never-seen").await.status, 200);
        let pressure = json!({ "node": format!("gitaly-{number}"), "cpu": 0.5 });
        assert_eq!(server.http.post("/v1/pressure", &pressure).await.status, 200);
    }
    let keys: Vec<String> = redis::cmd("KEYS").arg("*").query_async(&mut connection).await.unwrap();
    assert!(keys.len() >= 13, "{keys:?}");
    for key in keys {
        let left: i64 = redis::cmd("PTTL").arg(&key).query_async(&mut connection).await.unwrap();
        // Nodes are remembered for an hour at least, accounts for two windows of ten minutes.
        let most = if key.contains("node") { 3_600_000 } else { 1_200_000 };
        assert!((1..=most).contains(&left), "{key} expires in {left} ms");
    }
}
