//! A fileserver speaks for its nodes, and for itself.

use quota_proto::v1;
use quota_tests::server::Clients;
use serde_json::{Value, json};
use tonic::{Code, Status};

use crate::grpc::with_token;
use crate::tokens::{NODE, configured, server, sha256, token};

const OTHER: &str = "gitaly-02";

fn bodies(node: Option<&str>) -> [(&'static str, Value); 2] {
    let accounts = json!({ "user": "alice" });
    let mut bodies = [
        ("/v1/check", json!({ "accounts": accounts })),
        ("/v1/report", json!({ "charges": [{ "accounts": accounts, "cost": { "cpu": 1.0 } }] })),
    ];
    if let Some(node) = node {
        for (_, body) in &mut bodies {
            body["node"] = node.into();
        }
    }
    bodies
}

/// What becomes of a check, a report and pressure in the name of a node.
async fn over_grpc(clients: &Clients, node: &str, token: &str) -> [Result<(), Status>; 3] {
    let mut grpc = clients.grpc.clone();
    let accounts = Some(v1::Accounts { user: Some("alice".to_owned()), ..v1::Accounts::default() });
    let check = v1::CheckRequest { node: node.to_owned(), accounts, ..v1::CheckRequest::default() };
    let report = v1::ReportRequest { node: node.to_owned(), ..v1::ReportRequest::default() };
    let pressure =
        v1::ReportPressureRequest { node: node.to_owned(), ..v1::ReportPressureRequest::default() };
    [
        grpc.check(with_token(check, Some(token))).await.map(drop),
        grpc.report(with_token(report, Some(token))).await.map(drop),
        grpc.report_pressure(with_token(pressure, Some(token))).await.map(drop),
    ]
}

#[tokio::test]
async fn another_fileservers_node_is_refused_over_both_protocols() {
    let server = server().await;
    for (role, node, allowed) in [
        ("fileserver", NODE, true),
        ("fileserver", OTHER, false),
        ("fileserver", "Gitaly-01", false),
        ("admin", OTHER, true),
    ] {
        let http = server.http.with_token(token(role));
        for (path, body) in bodies(Some(node)).into_iter().chain([("/v1/pressure", json!({ "node": node }))])
        {
            let answer = http.post(path, &body).await;
            assert_eq!(
                answer.status,
                if allowed { 200 } else { 403 },
                "{role} {path} {node}: {}",
                answer.text()
            );
        }
        for answer in over_grpc(&server, node, token(role)).await {
            let code = answer.map_or_else(|status| status.code(), |()| Code::Ok);
            assert_eq!(code, if allowed { Code::Ok } else { Code::PermissionDenied }, "{role} {node}");
        }
    }
    let nodes = server.http.with_token(token("admin")).get("/v1/nodes/Gitaly-01").await;
    assert_eq!(nodes.status, 404, "what was refused has left no trace");
    for (path, body) in bodies(None) {
        let answer = server.http.with_token(token("fileserver")).post(path, &body).await;
        assert_eq!(answer.status, 200, "{path}: who names no node speaks for no other");
    }
}

/// A source is a name that its caller made up: it must not hide the reports of another.
#[tokio::test]
async fn the_same_source_of_two_callers_is_two() {
    let tokens = [("gitaly-a", "t0ken-of-gitaly-a"), ("gitaly-b", "t0ken-of-gitaly-b")];
    let configured = tokens
        .map(|(name, token)| configured(name, "fileserver", &format!("sha256 = \"{}\"", sha256(token))))
        .concat();
    let server = quota_tests::server::TestServer::start(quota_tests::server::MEMORY, &configured).await;
    let mut report = bodies(Some(NODE))[1].1.clone();
    (report["source"], report["sequence"]) = (json!("one"), json!(1));
    for expected in [[false, false], [true, true]] {
        for ((_, token), duplicate) in tokens.iter().zip(expected) {
            let answer = server.http.with_token(token).post("/v1/report", &report).await;
            assert_eq!(answer.json()["duplicate"], duplicate, "{}", answer.text());
        }
    }
}
