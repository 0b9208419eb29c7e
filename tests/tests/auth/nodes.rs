//! A fileserver speaks for its nodes, and for itself.

use quota_proto::v1;
use quota_tests::server::{Clients, MEMORY, TestServer};
use serde_json::{Value, json};
use tonic::{Code, Status};

use crate::grpc::with_token;
use crate::tokens::{NODE, TOKENS, configured, server, sha256, token};

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

/// To name no node, or to make up leases while the store is opening, is no way round what a node may have.
#[tokio::test]
async fn slots_are_of_the_callers_node_whether_it_names_it_or_not() {
    let settings = "classes.ci = { slots = 100, node_slots = 10, lease = \"60s\" }\n";
    let tokens =
        TOKENS.map(|(role, token)| configured(role, role, &format!("sha256 = \"{}\"", sha256(token))));
    let server = TestServer::start(MEMORY, &format!("{settings}{}", tokens.concat())).await;
    let renew = async |role: &str, lease: &str, node: Option<&str>| {
        let mut body = json!({ "action": "renew", "class": "ci", "holder": "a", "count": 100, "lease": lease.repeat(16) });
        if let Some(node) = node {
            body["node"] = node.into();
        }
        let answer = server.http.with_token(token(role)).post("/v1/slots", &body).await;
        (answer.status, answer.json()["count"].as_u64())
    };
    assert_eq!(renew("fileserver", "01", None).await, (200, Some(10)));
    assert_eq!(renew("fileserver", "02", Some(NODE)).await, (404, None));
    assert_eq!(renew("fileserver", "01", Some(NODE)).await, (200, Some(10)), "it is the same lease");
    assert_eq!(renew("fileserver", "03", Some(OTHER)).await, (403, None));
    let mut grpc = server.grpc.clone();
    let message = v1::RenewSlotsRequest {
        class: "ci".to_owned(),
        holder: "a".to_owned(),
        lease: vec![4; 16],
        count: 100,
        ..v1::RenewSlotsRequest::default()
    };
    let kept = grpc.renew_slots(with_token(message, Some(token("fileserver")))).await.unwrap().into_inner();
    assert_eq!(kept.count, 0);
    assert_eq!(renew("admin", "05", None).await, (200, Some(90)), "who is bound to no node need name none");
}

/// A source is a name that its caller made up: it must not hide the reports of another.
#[tokio::test]
async fn the_same_source_of_two_callers_is_two() {
    let tokens = [("gitaly-a", "t0ken-of-gitaly-a"), ("gitaly-b", "t0ken-of-gitaly-b")];
    let configured = tokens
        .map(|(name, token)| configured(name, "fileserver", &format!("sha256 = \"{}\"", sha256(token))))
        .concat();
    let server = TestServer::start(MEMORY, &configured).await;
    let mut report = bodies(Some(NODE))[1].1.clone();
    (report["source"], report["sequence"]) = (json!("one"), json!(1));
    for expected in [[false, false], [true, true]] {
        for ((_, token), duplicate) in tokens.iter().zip(expected) {
            let answer = server.http.with_token(token).post("/v1/report", &report).await;
            assert_eq!(answer.json()["duplicate"], duplicate, "{}", answer.text());
        }
    }
}
