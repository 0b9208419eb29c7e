//! The dashboard in a real browser: it loads without a complaint, is live, and what is done on it is done.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests report by panicking")]

mod forms;
mod live;
mod reading;

use quota_tests::browser::Browser;
use quota_tests::server::{MEMORY, TestServer};
use serde_json::{Value, json};

/// A server on which nothing is known, and a browser on its overview.
async fn server_and_browser() -> (TestServer, Browser) {
    let server =
        TestServer::start(MEMORY, "adapt.memory.rule = \"blame\"\nlimits.user.memory.mode = \"enforce\"\n")
            .await;
    let browser = Browser::start().await;
    browser.open(&url(&server, "/")).await;
    (server, browser)
}

fn url(server: &TestServer, path: &str) -> String {
    format!("http://{}{path}", server.http.address())
}

/// What the fileserver `gitaly-01` tells when a user fills its memory, who is then cut.
async fn press(server: &TestServer) {
    let held = 60.0 * f64::from(1 << 30);
    let heaviest =
        json!([{ "kind": "user", "id": "mallory", "memory": held, "recent": { "memory": held / 6.0 } }]);
    let pressure = json!({
        "node": "gitaly-01", "cpu": 0.5, "memory": 0.95, "events": ["oom_kill"],
        "capacity": { "memory": 2_147_483_648_u64 }, "active": { "user": 10 }, "heaviest": heaviest,
    });
    let answer = server.http.post("/v1/pressure", &pressure).await;
    assert_eq!(answer.json()["accounts"].as_array().map(Vec::len), Some(1), "{}", answer.text());
}

/// The status of a check of a user.
async fn check(server: &TestServer, user: &str) -> u16 {
    server.http.post("/v1/check", &json!({ "accounts": { "user": user } })).await.status
}

async fn spend(server: &TestServer, user: &str, cpu: u32) {
    let charges: Value = json!([{ "accounts": { "user": user }, "cost": { "cpu": cpu } }]);
    assert_eq!(server.http.post("/v1/report", &json!({ "charges": charges })).await.status, 200);
}
