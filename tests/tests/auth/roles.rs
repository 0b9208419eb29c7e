//! A token of each role, one that nobody has, and none, on every route and every method.

use quota_tests::openapi::{DOCUMENT, judge};
use quota_tests::server::{MEMORY, TestServer};
use reqwest::Method;
use tonic::Code;

use crate::grpc::{call, methods};
use crate::tokens::{TOKENS, UNKNOWN, server, token};

/// What the public interface says: the role that each route takes beside `admin`; none where it is open to all.
fn needed_by_route(method: &str, path: &str) -> Option<&'static str> {
    match path {
        "/v1/overrides" | "/v1/overrides/{kind}/{id}" | "/v1/modes" => {
            Some(if method == "get" { "reader" } else { "admin" })
        }
        "/v1/check" | "/v1/report" | "/v1/pressure" | "/v1/slots" => Some("fileserver"),
        "/v1/accounts/{kind}/{id}" | "/v1/backoff" | "/v1/nodes" | "/v1/nodes/{node}" => Some("reader"),
        "/v1/top" | "/v1/denials" | "/v1/denials/stream" | "/v1/prices" | "/v1/classes" => Some("reader"),
        "/metrics" | "/healthz" | "/readyz" | "/openapi.json" => None,
        other => panic!("{other}: who may ask for it?"),
    }
}

fn needed_by_method(path: &str) -> Option<&'static str> {
    let (service, method) = path.trim_start_matches('/').split_once('/').unwrap();
    match (service, method) {
        ("quota.v1.QuotaService", "Check" | "Report" | "ReportPressure" | "Session") => Some("fileserver"),
        ("quota.v1.QuotaService", "AcquireSlots" | "RenewSlots") => Some("fileserver"),
        ("quota.v1.QuotaService", "ListClasses") => Some("reader"),
        ("quota.v1.QuotaService", "GetStanding" | "Backoff" | "BatchBackoff") => Some("reader"),
        ("quota.v1.QuotaService", "ListNodes" | "ListTop" | "ListDenials") => Some("reader"),
        ("quota.v1.OverrideService" | "quota.v1.ModeService", "Get" | "List") => Some("reader"),
        ("quota.v1.OverrideService" | "quota.v1.ModeService", "Put" | "Delete") => Some("admin"),
        ("grpc.reflection.v1.ServerReflection" | "grpc.reflection.v1alpha.ServerReflection", _) => {
            Some("reader")
        }
        ("grpc.health.v1.Health", _) => None,
        other => panic!("{other:?}: who may call it?"),
    }
}

/// What becomes of a request: the status over HTTP, the code over gRPC; none where it gets through.
fn expected(needed: Option<&str>, shown: Option<&str>) -> Option<(u16, Code)> {
    let role = TOKENS.iter().find(|(_, token)| Some(*token) == shown).map(|(role, _)| *role);
    match (needed, role) {
        (None, _) | (_, Some("admin")) => None,
        (Some(needed), Some(role)) if needed == role => None,
        (Some(_), Some(_)) => Some((403, Code::PermissionDenied)),
        (Some(_), None) => Some((401, Code::Unauthenticated)),
    }
}

fn shown() -> Vec<Option<&'static str>> {
    TOKENS.iter().map(|(_, token)| Some(*token)).chain([Some(UNKNOWN), None]).collect()
}

#[tokio::test]
async fn over_http_each_role_may_what_it_is_for() {
    let server = server().await;
    let mut tried = 0;
    for (path, operations) in DOCUMENT["paths"].as_object().unwrap() {
        for method in operations.as_object().unwrap().keys() {
            for shown in shown() {
                let http = shown.map_or_else(|| server.http.clone(), |token| server.http.with_token(token));
                let name = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
                // Names of parameters are values as good as any.
                let target = path.replace(['{', '}'], "");
                let answer = http.request(name, &target, "{}").await;
                let what = format!("{method} {path} with {shown:?}: {}", answer.text());
                match expected(needed_by_route(method, path), shown) {
                    Some((status, _)) => {
                        assert_eq!(answer.status, status, "{what}");
                        judge(method, path, None, &answer);
                        assert!(!answer.text().contains("t0ken"), "{what}");
                    }
                    None => assert!(!matches!(answer.status, 401 | 403), "{what}"),
                }
                tried += 1;
            }
        }
    }
    assert!(tried >= 11 * 5, "{tried}");
}

#[tokio::test]
async fn over_grpc_each_role_may_what_it_is_for() {
    let server = server().await;
    let methods = methods();
    assert!(methods.len() >= 10, "{methods:?}");
    for path in &methods {
        for shown in shown() {
            let answer = call(&server, path, shown).await;
            let refused = match &answer {
                Err(status) => Some(status.code()),
                Ok(()) => None,
            };
            let refused =
                refused.filter(|code| matches!(code, Code::Unauthenticated | Code::PermissionDenied));
            let expected = expected(needed_by_method(path), shown).map(|(_, code)| code);
            assert_eq!(refused, expected, "{path} with {shown:?}: {answer:?}");
            assert!(!format!("{answer:?}").contains("t0ken"), "{answer:?}");
        }
    }
}

#[tokio::test]
async fn a_method_that_is_not_there_is_told_from_one_that_is_refused() {
    let server = server().await;
    for shown in shown() {
        let status = call(&server, "/quota.v1.QuotaService/Novel", shown).await.unwrap_err();
        assert_eq!(status.code(), Code::Unimplemented, "{shown:?}");
    }
    assert_eq!(server.http.get("/v1/novel").await.status, 404);
}

/// The body is not read before: it may be large, and is nobody's.
#[tokio::test]
async fn who_is_not_known_is_not_told_what_is_wrong_with_his_request() {
    let server = server().await;
    for http in
        [server.http.clone(), server.http.with_token(UNKNOWN), server.http.with_token(token("reader"))]
    {
        assert!(matches!(http.post_bytes("/v1/check", "{").await.status, 401 | 403));
    }
    assert_eq!(server.http.with_token(token("admin")).post_bytes("/v1/check", "{").await.status, 400);
}

#[tokio::test]
async fn refusals_are_counted_by_their_reason() {
    let server = server().await;
    for http in
        [server.http.clone(), server.http.with_token(UNKNOWN), server.http.with_token(token("reader"))]
    {
        http.post_bytes("/v1/check", "{}").await;
    }
    let metrics = server.http.get("/metrics").await;
    for (reason, count) in [("no_token", 1), ("unknown_token", 1), ("role", 1), ("node", 0)] {
        let line = format!("quota_auth_refusals_total{{reason=\"{reason}\"}} {count}");
        assert!(metrics.text().lines().any(|shown| shown == line), "{line}\n{}", metrics.text());
    }
}

#[tokio::test]
async fn where_there_are_no_tokens_nobody_is_asked_for_one() {
    let server = TestServer::start(MEMORY, "").await;
    for shown in shown() {
        let http = shown.map_or_else(|| server.http.clone(), |token| server.http.with_token(token));
        assert_eq!(http.get("/v1/nodes").await.status, 200, "{shown:?}");
        assert!(call(&server, "/quota.v1.QuotaService/ListNodes", shown).await.is_ok(), "{shown:?}");
    }
}
