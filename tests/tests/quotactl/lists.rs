//! Who consumes most, what was denied, and what requests cost.

use quota_tests::process::Program;
use quota_tests::wait::{PATIENCE, until};
use serde_json::{Value, json};

use crate::{quotactl, server, url, words};

#[tokio::test]
async fn the_heaviest_come_first() {
    let server = server().await;
    let address = url(&server);
    assert_eq!(quotactl(&address, &["check", "--user", "alice"]).await.code, Some(1));
    let ended = quotactl(&address, &["top"]).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let lines: Vec<_> = ended.stdout.lines().map(words).collect();
    assert_eq!(lines[0], ["ACCOUNT", "USED", "LIMIT", "DENIED"]);
    assert_eq!(lines[1], ["user", "alice", "150.0", "s", "100.0", "s", "1"]);
    assert_eq!(lines[2], ["user", "bob", "5.0", "s", "100.0", "s", "0"]);
    let ended = quotactl(&address, &["--json", "top", "--node", "gitaly-01", "--limit", "5"]).await;
    let body: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(
        body,
        json!({ "kind": "user", "resource": "cpu", "node": "gitaly-01", "accounts": [] }),
        "it told of nobody"
    );
}

#[tokio::test]
async fn what_was_denied_is_counted_and_told_as_it_happens() {
    let server = server().await;
    let address = url(&server);
    let check = json!({ "accounts": { "user": "alice" }, "node": "gitaly-01", "rpc": "/svc/Fetch" });
    assert_eq!(server.http.post("/v1/check", &check).await.status, 429);
    let ended = quotactl(&address, &["would-deny", "--since", "10m", "--kind", "user"]).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let lines: Vec<_> = ended.stdout.lines().map(words).collect();
    assert_eq!(lines[0], ["ACCOUNT", "RESOURCE", "RPC", "MODE", "COUNT", "LAST"]);
    assert_eq!(lines[1][..6], ["user", "alice", "cpu", "/svc/Fetch", "enforce", "1"]);
    assert_eq!(lines.len(), 2, "{}", ended.stdout);

    let tail = Program::of_workspace("quotactl").args(["--address", &address, "tail"]).start();
    // It does not say from when on it follows.
    let line = until(PATIENCE, "a denial is told", async || {
        assert_eq!(server.http.post("/v1/check", &check).await.status, 429);
        tail.stdout().lines().next().map(str::to_owned)
    });
    assert_eq!(line.await, "enforce user alice cpu gitaly-01 /svc/Fetch");
}

#[tokio::test]
async fn what_requests_cost_is_a_table_of_prices() {
    let server = server().await;
    let charges = json!({ "charges": [{
        "accounts": { "user": "bob" }, "rpc": "/svc/Fetch", "cost": { "cpu": 2.0 }, "finished": true, "wall_seconds": 3.0
    }] });
    assert_eq!(server.http.post("/v1/report", &charges).await.status, 200);
    let ended = quotactl(&url(&server), &["prices"]).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let lines: Vec<_> = ended.stdout.lines().collect();
    assert_eq!(lines[..2], ["[prices]", "# 1 requests"]);
    assert!(lines[2].starts_with("\"/svc/Fetch\" = { cpu = \""), "{}", ended.stdout);
}

#[tokio::test]
async fn classes_are_told_with_their_slots() {
    let settings = "classes.ci = { slots = 50, quota = 0.5 }\n";
    let server = quota_tests::server::TestServer::start(quota_tests::server::MEMORY, settings).await;
    let ended = quotactl(&url(&server), &["classes"]).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let lines: Vec<_> = ended.stdout.lines().map(words).collect();
    assert_eq!(lines[0], ["CLASS", "SERVICE", "LEASED", "CAP", "LEASES", "QUOTA"]);
    assert_eq!(lines[3], ["ci", "patient", "0", "50", "0", "50.0", "%"]);
    assert_eq!(lines[4], ["interactive", "(default)", "immediate", "-", "-", "-", "100.0", "%"]);
}
