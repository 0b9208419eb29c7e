//! The client crate with a fileserver's token, which speaks for one node.

use std::fs;
use std::path::Path;
use std::time::Duration;

use quota_client::{Admission, Client, Decision, Request, Settings};
use quota_tests::server::{MEMORY, TestServer};
use quota_tests::wait::{PATIENCE, until};
use serde_json::json;

use crate::tokens::{NODE, configured, server, token};

const NEW: &str = "t0ken-that-comes-next";

/// One of a node, with further settings in lines.
pub(crate) fn client_of(server: &TestServer, scheme: &str, node: &str, settings: &str) -> Client {
    let endpoint = format!("{scheme}://localhost:{}", server.grpc_address().port());
    let toml = format!("node = \"{node}\"\nendpoints = [\"{endpoint}\"]\n{settings}");
    Client::builder()
        .settings(Settings::from_toml(&toml).unwrap())
        .deadline(PATIENCE)
        .report_interval(Duration::from_millis(10))
        .build()
        .unwrap()
}

fn client(server: &TestServer, node: &str, token_file: &Path) -> Client {
    client_of(server, "http", node, &format!("token_file = {token_file:?}"))
}

/// A request that the service allows, or is not asked about.
pub(crate) async fn allowed(client: &Client) -> Admission {
    match client.admit(&Request::rpc("/g.S/M").user("alice")).await {
        Decision::Allow(admission) => admission,
        Decision::Deny(denial) => panic!("{denial}"),
    }
}

/// Whether the service was asked, and took what the request cost.
pub(crate) async fn works(client: &Client) -> (bool, bool) {
    let before = client.stats();
    let admission = allowed(client).await;
    let checked = admission.checked();
    admission.meter().sent(1000);
    drop(admission);
    let reported = until(PATIENCE, "what it cost is reported", async || {
        let stats = client.stats();
        let is_lost = stats.charges_lost > before.charges_lost;
        (is_lost || stats.reports_sent > before.reports_sent).then_some(!is_lost)
    })
    .await;
    (checked, reported)
}

#[tokio::test]
async fn it_checks_and_reports_for_its_own_node_alone() {
    let server = server().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    fs::write(&file, format!("{}\n", token("fileserver"))).unwrap();
    assert_eq!(works(&client(&server, NODE, &file)).await, (true, true));
    assert_eq!(works(&client(&server, "gitaly-02", &file)).await, (false, false));
    let used = server.http.with_token(token("admin")).account("user", "alice").await.json();
    assert_eq!(used["resources"]["network"]["used"], 1000, "{used}");
}

#[tokio::test]
async fn a_token_that_both_sides_read_from_a_file_is_replaced_for_both() {
    let folder = tempfile::tempdir().unwrap();
    let (file, next) = (folder.path().join("token"), folder.path().join("next"));
    fs::write(&file, token("fileserver")).unwrap();
    let configured = configured("gitaly-01", "fileserver", &format!("file = {file:?}"));
    let server = TestServer::start(MEMORY, &configured).await;
    let client = client(&server, NODE, &file);
    assert_eq!(works(&client).await, (true, true));

    fs::write(&next, NEW).unwrap();
    fs::rename(&next, &file).unwrap();
    let old = server.http.with_token(token("fileserver"));
    until(PATIENCE, "the server has the new token", async || {
        (old.post("/v1/check", &json!({})).await.status == 401).then_some(())
    })
    .await;
    until(PATIENCE, "the client shows the new token", async || works(&client).await.0.then_some(())).await;
    assert_eq!(works(&client).await, (true, true));
}
