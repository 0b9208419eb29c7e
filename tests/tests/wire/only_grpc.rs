//! What gRPC alone has: messages in which something is missing, and codes.

use quota_proto::{ACCOUNT_NOT_STORED, v1};
use quota_tests::redis::RedisServer;
use quota_tests::server::{MEMORY, TestServer};
use serde_json::json;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

fn user(id: &str) -> Option<v1::Accounts> {
    Some(v1::Accounts { user: Some(id.to_owned()), ..v1::Accounts::default() })
}

fn field(status: &Status) -> String {
    assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
    status.get_details_bad_request().expect("a BadRequest").field_violations.remove(0).field
}

#[tokio::test]
async fn what_is_missing_is_named() {
    let server = TestServer::start(MEMORY, "").await;
    let mut grpc = server.grpc.clone();
    let status = grpc.check(v1::CheckRequest::default()).await.unwrap_err();
    assert_eq!(field(&status), "accounts");
    let charges = vec![v1::Charge::default()];
    let status =
        grpc.report(v1::ReportRequest { charges, ..v1::ReportRequest::default() }).await.unwrap_err();
    assert_eq!(field(&status), "charges[0].accounts");
    let status = grpc.get_standing(v1::GetStandingRequest::default()).await.unwrap_err();
    assert_eq!(field(&status), "kind");
    let status = grpc.backoff(v1::BackoffRequest::default()).await.unwrap_err();
    assert_eq!(field(&status), "accounts");
}

#[tokio::test]
async fn units_are_part_of_the_names() {
    let server = TestServer::start(MEMORY, "").await;
    let much = u64::MAX;
    for (cost, name) in [
        (v1::Cost { cpu_micros: much, ..v1::Cost::default() }, "price.cpu_micros"),
        (v1::Cost { memory_byte_seconds: much, ..v1::Cost::default() }, "price.memory_byte_seconds"),
        (v1::Cost { network_bytes: much, ..v1::Cost::default() }, "price.network_bytes"),
    ] {
        let check =
            v1::CheckRequest { accounts: user("u"), price: Some(cost), ..v1::CheckRequest::default() };
        assert_eq!(field(&server.grpc.clone().check(check).await.unwrap_err()), name);
    }
}

#[tokio::test]
async fn durations_that_are_none_are_refused() {
    let server = TestServer::start(MEMORY, "").await;
    for (seconds, nanos) in [(0, -1), (-1, 0), (i64::MIN, i32::MIN), (0, 1_000_000_000), (1, i32::MAX)] {
        let age = Some(prost_types::Duration { seconds, nanos });
        let charge = v1::Charge { accounts: user("u"), age, ..v1::Charge::default() };
        let aged = v1::ReportRequest { charges: vec![charge], ..v1::ReportRequest::default() };
        assert_eq!(field(&server.grpc.clone().report(aged).await.unwrap_err()), "charges[0].age");
        let held = v1::ReportRequest { held: age, ..v1::ReportRequest::default() };
        assert_eq!(field(&server.grpc.clone().report(held).await.unwrap_err()), "held");
    }
}

#[tokio::test]
async fn kinds_that_are_none_are_refused() {
    let server = TestServer::start(MEMORY, "").await;
    for kind in [-1, 4, i32::MAX] {
        let request = v1::GetStandingRequest { kind, id: "u".into(), node: String::new() };
        assert_eq!(field(&server.grpc.clone().get_standing(request).await.unwrap_err()), "kind");
    }
}

#[tokio::test]
async fn an_account_that_cannot_be_read_is_data_loss() {
    let redis = RedisServer::start().await;
    let server = TestServer::start(&redis.url(), "").await;
    redis::cmd("LPUSH").arg("q1:{user:alice}").arg(1).exec_async(&mut redis.client().await).await.unwrap();
    let check = v1::CheckRequest { accounts: user("alice"), ..v1::CheckRequest::default() };
    let status = server.grpc.clone().check(check).await.unwrap_err();
    assert_eq!(status.code(), Code::DataLoss, "{status:?}");
    assert!(status.message().contains("user alice"), "{status:?}");
    let other = v1::CheckRequest { accounts: user("bob"), ..v1::CheckRequest::default() };
    assert!(server.grpc.clone().check(other).await.unwrap().into_inner().checked);

    // A report is to be sent again, and says that all but such an account have it.
    let charge = |name| v1::Charge {
        accounts: user(name),
        cost: Some(v1::Cost { network_bytes: 7, ..v1::Cost::default() }),
        ..v1::Charge::default()
    };
    let charges = vec![charge("alice"), charge("bob")];
    let report =
        v1::ReportRequest { source: "s".into(), sequence: 1, charges, ..v1::ReportRequest::default() };
    for _ in 0..2 {
        let status = server.grpc.clone().report(report.clone()).await.unwrap_err();
        assert_eq!(status.code(), Code::Unavailable, "{status:?}");
        assert_eq!(status.get_details_error_info().unwrap().reason, ACCOUNT_NOT_STORED);
    }
    let bob = server.http.account("user", "bob").await.json();
    assert_eq!(bob["resources"]["network"]["used"], 7);
    let refused = json!({ "charges": [{ "accounts": { "user": "alice" }, "cost": { "network": 7 } }] });
    let refused = server.http.post("/v1/report", &refused).await;
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")), "{}", refused.text());
}
