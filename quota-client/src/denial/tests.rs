use quota_proto::v1;
use serde_json::{Value, json};
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use quota_proto::{ERROR_DOMAIN, STORE_UNAVAILABLE};

use super::*;

/// A refusal of alice for CPU, on `gitaly-01`, as the service answers it.
pub(crate) fn deny(retry_after: Duration, permanent: bool) -> v1::CheckResponse {
    v1::CheckResponse {
        decision: v1::check_response::Decision::Deny.into(),
        checked: true,
        denied_by: Some(v1::Breach {
            kind: v1::Kind::User.into(),
            id: "alice".to_owned(),
            resource: v1::Resource::Cpu.into(),
            used: 104_200_000,
            limit: Some(v1::Limit { limit: Some(v1::limit::Limit::Amount(100_000_000)) }),
            scope: v1::Scope::Cluster.into(),
            ..v1::Breach::default()
        }),
        retry_after: prost_types::Duration::try_from(retry_after).ok(),
        permanent,
        ..v1::CheckResponse::default()
    }
}

fn denial(retry_after: Duration, permanent: bool) -> Denial {
    Denial::new(&deny(retry_after, permanent), "gitaly-01").unwrap()
}

#[test]
fn it_is_a_sentence() {
    let denial = denial(Duration::from_millis(11_001), false);
    assert_eq!(denial.to_string(), "user alice is over its CPU quota on gitaly-01; try again in 12 s");
    let permanent = self::denial(Duration::from_secs(60), true);
    assert_eq!(permanent.to_string(), "user alice is over its CPU quota on gitaly-01; waiting does not help");
}

#[test]
fn it_is_a_grpc_status_that_says_who_what_and_when() {
    let status = Status::from(denial(Duration::from_millis(7400), false));
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert_eq!(status.message(), "user alice is over its CPU quota on gitaly-01; try again in 8 s");
    let details = status.get_error_details();
    let retry = details.retry_info().unwrap().retry_delay;
    assert_eq!(retry, Some(Duration::from_millis(7400)));
    let violation = &details.quota_failure().unwrap().violations[0];
    assert_eq!(violation.subject, "user:alice");
    let info = details.error_info().unwrap();
    assert_eq!([&*info.domain, &*info.reason], [ERROR_DOMAIN, ERROR_REASON]);
    let metadata = ["kind", "id", "resource", "permanent"].map(|name| &*info.metadata[name]);
    assert_eq!(metadata, ["user", "alice", "cpu", "false"]);
    assert_eq!(info.metadata.get("why"), None);
}

#[test]
fn it_is_an_http_problem_document() {
    let response = ::http::Response::<String>::from(denial(Duration::from_millis(200), false));
    assert_eq!(response.status(), 429);
    assert_eq!(response.headers()["retry-after"], "1");
    assert_eq!(response.headers()["content-type"], "application/problem+json");
    let body: Value = serde_json::from_str(response.body()).unwrap();
    assert_eq!(
        body["denied_by"],
        json!({"kind": "user", "id": "alice", "resource": "cpu", "used": 104.2, "limit": 100.0})
    );
    assert_eq!(body["decision"], "deny");
    assert_eq!(body["status"], 429);
    assert_eq!(body["retry_after_seconds"], 0.2);
    assert_eq!(body["permanent"], false);
}

#[test]
fn why_an_account_has_a_limit_of_its_own_is_told() {
    let why = "user alice: CPU on gitaly-01 cut to 50 s";
    let mut deny = deny(Duration::from_secs(1), false);
    deny.denied_by.as_mut().unwrap().why = why.to_owned();
    let denial = Denial::new(&deny, "gitaly-01").unwrap();
    let details = Status::from(denial.clone()).get_error_details();
    assert_eq!(details.error_info().unwrap().metadata["why"], why);
    let response = ::http::Response::<String>::from(denial);
    let body: Value = serde_json::from_str(response.body()).unwrap();
    assert_eq!(body["denied_by"]["why"], why);
}

#[test]
fn that_the_service_cannot_check_is_told_apart() {
    let denial = Denial::unavailable(Duration::from_millis(700), "gitaly-01");
    let sentence = "the quota service cannot check requests on gitaly-01; try again in 1 s";
    assert_eq!(denial.to_string(), sentence);

    let status = Status::from(denial.clone());
    assert_eq!((status.code(), status.message()), (Code::Unavailable, sentence));
    let details = status.get_error_details();
    assert_eq!(details.retry_info().unwrap().retry_delay, Some(Duration::from_millis(700)));
    let info = details.error_info().unwrap();
    assert_eq!([&*info.domain, &*info.reason], [ERROR_DOMAIN, STORE_UNAVAILABLE]);
    assert!(details.quota_failure().is_none());

    let response = ::http::Response::<String>::from(denial);
    assert_eq!(
        (response.status().as_u16(), &response.headers()["retry-after"]),
        (503, &"1".parse().unwrap())
    );
    assert_eq!(response.headers()["content-type"], "application/problem+json");
    let body: Value = serde_json::from_str(response.body()).unwrap();
    assert_eq!(body["type"], format!("{}store-unavailable", quota_proto::PROBLEM_TYPES));
    assert_eq!((&body["status"], &body["detail"]), (&json!(503), &json!(sentence)));
    assert_eq!(body.get("denied_by"), None);
}

#[test]
fn f25_seconds_are_rounded_up_and_never_none() {
    for (millis, seconds) in [(0, 1), (200, 1), (1000, 1), (1010, 2), (59_900, 60)] {
        assert_eq!(
            denial(Duration::from_millis(millis), false).retry_after_seconds(),
            seconds,
            "{millis} ms"
        );
    }
}

#[test]
fn a_refusal_that_does_not_say_by_what_is_none() {
    let whole = deny(Duration::from_secs(1), false);
    let nobody = v1::CheckResponse { denied_by: None, ..whole.clone() };
    assert!(Denial::new(&nobody, "").is_err());
    let mut no_kind = whole.clone();
    no_kind.denied_by.as_mut().unwrap().kind = 0;
    assert!(Denial::new(&no_kind, "").is_err());
    let mut no_limit = whole;
    no_limit.denied_by.as_mut().unwrap().limit = None;
    assert!(Denial::new(&no_limit, "").is_err());
}

#[test]
fn f22_a_request_that_finds_no_room_is_told_so_and_not_that_it_timed_out() {
    let refusal = || Refusal {
        reason: crate::Reason::QueueFull,
        retry_after: Duration::from_millis(200),
        waited: Duration::ZERO,
        limit: 10,
        in_flight: 10,
        queued: 50,
    };
    let status = Status::from(Denial::from(refusal()));
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert_eq!(
        status.message(),
        "maximum queue size reached: not started; 10 in flight of 10, 50 queued; try again in 1 s"
    );
    let details = status.get_error_details();
    assert_eq!(details.retry_info().unwrap().retry_delay, Some(Duration::from_millis(200)));
    let info = details.error_info().unwrap();
    assert_eq!([&*info.reason, &*info.metadata["reason"]], [CONCURRENCY_LIMIT, "queue_full"]);
    let response = ::http::Response::<String>::from(Denial::from(refusal()));
    assert_eq!(
        (response.status().as_u16(), &response.headers()["retry-after"]),
        (429, &"1".parse().unwrap())
    );
}
