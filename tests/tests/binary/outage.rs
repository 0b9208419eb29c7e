//! Redis is lost: the fail policy answers, says so once, and ends when Redis is back, without a restart.

use quota_proto::v1;
use quota_tests::http::Answer;
use quota_tests::redis::RedisServer;
use quota_tests::server::ServerProcess;
use quota_tests::wait::{PATIENCE, until};
use serde_json::{Value, json};
use tonic::Code;
use tonic_types::StatusExt as _;

const WARNING: &str = "the store is lost: the fail policy answers";

async fn start(redis: &RedisServer, settings: &[(&str, &str)]) -> ServerProcess {
    let url = redis.url();
    // A long window, so that nothing leaves it while a test runs.
    let always = [("QUOTA__STORE__URL", url.as_str()), ("QUOTA__WINDOW__LENGTH", "10m")];
    let settings: Vec<_> = settings.iter().copied().chain(always).collect();
    ServerProcess::start(&settings).await
}

/// What it used is on disk, and so still there after the outage.
async fn durable_redis() -> RedisServer {
    RedisServer::options().appendonly().start().await
}

async fn check(server: &ServerProcess) -> Answer {
    server.http.post("/v1/check", &json!({ "accounts": { "user": "u" }, "price": { "cpu": 5.0 } })).await
}

fn grpc_check() -> v1::CheckRequest {
    let accounts = Some(v1::Accounts { user: Some("u".into()), ..v1::Accounts::default() });
    let price = Some(v1::Cost { cpu_micros: 5_000_000, ..v1::Cost::default() });
    v1::CheckRequest { accounts, price, ..v1::CheckRequest::default() }
}

fn report() -> Value {
    json!({ "source": "s", "sequence": 1, "charges": [{ "accounts": { "user": "u" }, "cost": { "cpu": 1.0 } }] })
}

fn assert_unavailable(answer: &Answer) {
    assert_eq!(answer.status, 503, "{}", answer.text());
    assert_eq!(answer.header("content-type"), Some("application/problem+json"));
    assert!(answer.header("retry-after").unwrap().parse::<u64>().unwrap() >= 1);
    assert!(answer.json()["type"].as_str().unwrap().ends_with("/store-unavailable"));
}

async fn assert_grpc_unavailable(server: &ServerProcess) {
    let mut grpc = server.grpc.clone();
    let account = v1::GetStandingRequest { kind: v1::Kind::User.into(), id: "u".into(), node: String::new() };
    let charge = v1::Charge { accounts: grpc_check().accounts, ..v1::Charge::default() };
    let report = v1::ReportRequest { charges: vec![charge], ..v1::ReportRequest::default() };
    for status in [grpc.get_standing(account).await.unwrap_err(), grpc.report(report).await.unwrap_err()] {
        assert_eq!(status.code(), Code::Unavailable, "{status:?}");
        assert!(status.get_details_retry_info().is_some(), "{status:?}");
    }
}

/// What `open` answers without a store.
async fn assert_open(server: &ServerProcess) {
    let allowed = check(server).await;
    assert_eq!(allowed.status, 200);
    let nothing = json!({ "cpu": 0.0, "memory": 0, "network": 0 });
    let unchecked = json!({ "decision": "allow", "reserved": nothing, "checked": false, "standings": [] });
    assert_eq!(allowed.json(), unchecked);
    let allowed = server.grpc.clone().check(grpc_check()).await.unwrap().into_inner();
    assert_eq!(allowed.decision(), v1::check_response::Decision::Allow);
    assert!(!allowed.checked && allowed.reservation.is_empty() && allowed.standings.is_empty());
    assert_eq!(allowed.reserved, Some(v1::Cost::default()));
    let go_on = json!({ "backoff": false, "action": "proceed" });
    assert_eq!(server.http.get("/v1/backoff?user=u").await.json(), go_on);
    let two = json!({ "requests": [{ "user": "u" }, { "repo": "r" }] });
    assert_eq!(server.http.post("/v1/backoff", &two).await.json(), json!({ "results": [go_on, go_on] }));
    let backoff = v1::BackoffRequest { accounts: grpc_check().accounts, ..v1::BackoffRequest::default() };
    assert!(!server.grpc.clone().backoff(backoff).await.unwrap().into_inner().backoff);
}

async fn assert_back(server: &ServerProcess) {
    until(PATIENCE, "the store is used again", async || {
        (server.http.get("/readyz").await.status == 200 && !server.log("the store answers again").is_empty())
            .then_some(())
    })
    .await;
}

#[tokio::test]
async fn f05_open_allows_unchecked_and_keeps_nothing() {
    let mut redis = durable_redis().await;
    let server = start(&redis, &[]).await;
    assert_eq!(server.http.post("/v1/report", &report()).await.json()["applied"], 1);

    redis.stop().await;
    for _ in 0..20 {
        assert_open(&server).await;
        assert_unavailable(&server.http.post("/v1/report", &report()).await);
        assert_unavailable(&server.http.account("user", "u").await);
        assert_grpc_unavailable(&server).await;
    }
    assert_eq!(server.http.get("/readyz").await.status, 503);
    assert_eq!(server.http.get("/healthz").await.status, 200);
    let metrics = server.http.get("/metrics").await;
    assert!(metrics.text().contains("quota_store_up 0\n"));
    assert!(metrics.text().contains(
        r#"quota_decisions_total{kind="none",mode="none",outcome="unchecked",resource="none"} 40"#
    ));
    assert_eq!(server.log(WARNING).len(), 1, "{:#?}", server.log(""));

    redis.restart().await;
    assert_back(&server).await;
    let standing = server.http.account("user", "u").await.json();
    assert_eq!(
        standing["resources"]["cpu"]["used"], 1.0,
        "what was not reserved counts, or what was counted is lost"
    );
    assert_eq!(server.http.post("/v1/report", &report()).await.json()["duplicate"], true);
    let allowed = check(&server).await.json();
    assert_eq!((&allowed["checked"], &allowed["reserved"]["cpu"]), (&json!(true), &json!(5.0)));
    assert!(server.http.get("/metrics").await.text().contains("quota_store_up 1\n"));
}

#[tokio::test]
async fn f05_closed_refuses_and_says_when_to_come_back() {
    let mut redis = durable_redis().await;
    let server = start(&redis, &[("QUOTA__STORE__FAIL", "closed")]).await;
    assert_eq!(check(&server).await.json()["checked"], true);

    redis.stop().await;
    for _ in 0..20 {
        assert_unavailable(&check(&server).await);
        assert_unavailable(&server.http.get("/v1/backoff?user=u").await);
        let two = json!({ "requests": [{ "user": "u" }, { "repo": "r" }] });
        assert_unavailable(&server.http.post("/v1/backoff", &two).await);
        assert_unavailable(&server.http.post("/v1/report", &report()).await);
        assert_grpc_unavailable(&server).await;
        let status = server.grpc.clone().check(grpc_check()).await.unwrap_err();
        assert_eq!(status.code(), Code::Unavailable);
        assert!(status.get_details_retry_info().is_some());
    }
    assert_eq!(server.log(WARNING).len(), 1, "{:#?}", server.log(""));

    redis.restart().await;
    assert_back(&server).await;
    let standing = server.http.account("user", "u").await.json();
    assert_eq!(standing["resources"]["cpu"]["used"], 5.0);
}

#[tokio::test]
async fn f05_each_outage_is_told_once_and_its_end_too() {
    let mut redis = RedisServer::start().await;
    let server = start(&redis, &[]).await;
    for outage in 1..=2 {
        redis.stop().await;
        let checks = (0..50).map(|_| check(&server));
        for answer in futures::future::join_all(checks).await {
            assert_eq!(answer.json()["checked"], false);
        }
        assert_eq!(server.log(WARNING).len(), outage, "{:#?}", server.log(""));
        redis.restart().await;
        until(PATIENCE, "the end of the outage is told", async || {
            check(&server).await;
            (server.log("the store answers again").len() == outage).then_some(())
        })
        .await;
    }
}

/// It accepts connections and does not answer: the deadline does.
#[tokio::test]
async fn f05_a_store_that_hangs_is_lost_too() {
    let mut redis = durable_redis().await;
    let server = start(&redis, &[("QUOTA__STORE__DEADLINE", "100ms")]).await;
    redis.pause().await;
    assert_open(&server).await;
    assert_unavailable(&server.http.post("/v1/report", &report()).await);
    redis.resume().await;
    assert_back(&server).await;
    until(PATIENCE, "a check is checked", async || {
        (check(&server).await.json()["checked"] == true).then_some(())
    })
    .await;
}
