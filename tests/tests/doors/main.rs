//! What callers that are no fileservers begin with: the Ruby, the shell and the Python of the documentation, run against a real server.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests report by panicking")]

mod curl;
mod page;
mod python;
mod ruby;

use std::fs;
use std::ops::Deref;
use std::path::PathBuf;

use quota_tests::server::ServerProcess;
use quota_tests::wait::{PATIENCE, until};
use reqwest::Method;
use serde_json::json;
use tempfile::TempDir;

fn root() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), ".."].iter().collect()
}

/// A server on which `alice` and the repository `hot` are over their limits, and `mallory` is blocked.
struct World {
    server: ServerProcess,
    _folder: TempDir,
}

impl World {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("quota.toml");
        fs::write(&file, "[classes]\nci = { slots = 2, lease = \"1s\", service = \"immediate\" }\n").unwrap();
        let program = ServerProcess::program().env("QUOTA__STORE__URL", "memory://");
        let server = ServerProcess::listening(program.arg("--config").arg(file).start()).await;
        let charge = |accounts| json!({ "accounts": accounts, "cost": { "cpu": 200 } });
        let charges = [charge(json!({ "user": "alice" })), charge(json!({ "repo": "hot" }))];
        assert_eq!(server.http.post("/v1/report", &json!({ "charges": charges })).await.status, 200);
        let blocked = json!({ "blocked": true, "reason": "mines coins" }).to_string();
        let path = "/v1/overrides/user/mallory";
        assert_eq!(server.http.request(Method::PUT, path, blocked).await.status, 200);
        until(PATIENCE, "mallory is blocked", async || {
            let answer = server.http.get("/v1/backoff?user=mallory").await.json();
            (answer["action"] == "fail").then_some(())
        })
        .await;
        Self { server, _folder: folder }
    }
}

impl Deref for World {
    type Target = ServerProcess;

    fn deref(&self) -> &ServerProcess {
        &self.server
    }
}
