//! What the log tells of denials.

use quota_tests::server::ServerProcess;
use quota_tests::wait::{PATIENCE, until};
use serde_json::{Value, json};

/// The window is long, so that nothing leaves it while a test runs.
const LIMIT: [(&str, &str); 2] =
    [("QUOTA__LIMITS__USER__CPU__INITIAL", "10s"), ("QUOTA__WINDOW__LENGTH", "10m")];

async fn spend(server: &ServerProcess, accounts: Value, cpu: f64) {
    let report = json!({ "charges": [{ "accounts": accounts, "cost": { "cpu": cpu } }] });
    assert_eq!(server.http.post("/v1/report", &report).await.status, 200);
}

#[tokio::test]
async fn a_denial_is_told_with_account_usage_limit_node_and_rpc() {
    let server = ServerProcess::start(&LIMIT).await;
    spend(&server, json!({ "user": "al\"ice" }), 12.34).await;
    let check = json!({ "node": "gitaly-01", "rpc": "/svc/Clone", "accounts": { "user": "al\"ice" } });
    assert_eq!(server.http.post("/v1/check", &check).await.status, 429);
    let lines = server.log("denied");
    let [line] = lines.as_slice() else { panic!("{lines:?}") };
    for field in [
        " INFO ",
        r#" kind="user" id="al\"ice" resource="cpu" used="12.3 s" limit="10.0 s""#,
        r#" node="gitaly-01" rpc="/svc/Clone""#,
    ] {
        assert!(line.contains(field), "no {field} in {line}");
    }
}

/// A line a second and account, however often it was denied, and no denial untold.
#[tokio::test]
async fn a_flood_of_denials_is_summed_up() {
    const DENIALS: u64 = 300;
    let server = ServerProcess::start(&LIMIT).await;
    spend(&server, json!({ "user": "alice" }), 10.0).await;
    let check = json!({ "accounts": { "user": "alice" } });
    let begun = std::time::Instant::now();
    for _ in 0..DENIALS {
        assert_eq!(server.http.post("/v1/check", &check).await.status, 429);
    }
    let told = until(PATIENCE, "every denial is told", async || {
        let lines = server.log("denied");
        let counts = lines.iter().map(|line| match line.split_once("count=") {
            Some((_, count)) => count.split(' ').next().and_then(|count| count.parse().ok()).unwrap(),
            None => 1,
        });
        let sum: u64 = counts.sum();
        assert!(sum <= DENIALS, "{lines:#?}");
        (sum == DENIALS).then_some(lines)
    })
    .await;
    let seconds = begun.elapsed().as_secs() as usize + 2;
    assert!(told.len() <= 2 * seconds, "{told:#?}");
    assert!(told.iter().all(|line| line.contains(r#"kind="user" id="alice""#)), "{told:#?}");
    assert!(told.iter().any(|line| line.contains("denied again within a second")), "{told:#?}");
}

#[tokio::test]
async fn allows_errors_and_shadows_are_no_lines() {
    let mut settings = LIMIT.to_vec();
    settings.push(("QUOTA__LIMITS__USER__CPU__MODE", "shadow"));
    let server = ServerProcess::start(&settings).await;
    spend(&server, json!({ "user": "alice" }), 50.0).await;
    let before = server.process.stderr();
    for check in [json!({ "accounts": { "user": "alice" } }), json!({ "accounts": {} }), json!({})] {
        server.http.post("/v1/check", &check).await;
    }
    assert_eq!(server.process.stderr(), before);
}

#[tokio::test]
async fn what_a_request_cost_is_told_where_that_is_wanted() {
    let finished = |id: &str| {
        json!({ "node": "gitaly-01", "charges": [{
            "accounts": { "user": id, "repo": "r" }, "cost": { "cpu": 0.25 }, "rpc": "/svc/Clone", "finished": true,
            "wall_seconds": 1.5, "total": { "cpu": 0.75, "network": 9 },
        }] })
    };
    let quiet = ServerProcess::start(&[]).await;
    assert_eq!(quiet.http.post("/v1/report", &finished("alice")).await.status, 200);
    assert_eq!(quiet.log("request: "), [""; 0]);

    let server = ServerProcess::start(&[("QUOTA__LOG__REQUESTS", "1")]).await;
    assert_eq!(server.http.post("/v1/report", &finished("alice")).await.status, 200);
    let lines = server.log("request: finished");
    let [line] = lines.as_slice() else { panic!("{lines:?}") };
    let fields = r#"rpc="/svc/Clone" node="gitaly-01" repo="r" user="alice" cpu_seconds=0.75 memory_byte_seconds=0 network_bytes=9 wall_seconds=1.5"#;
    assert!(line.contains(fields), "{line}");
}
