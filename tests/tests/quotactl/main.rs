//! `quotactl` against a real server: what it prints, and its exit codes.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests report by panicking")]

mod lists;
mod operators;

use quota_tests::ports::Port;
use quota_tests::process::Program;
use quota_tests::server::{MEMORY, TestServer};
use serde_json::{Value, json};

const SETTINGS: &str = "adapt.cpu.rule = \"blame\"\n";

struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

async fn quotactl(address: &str, args: &[&str]) -> Ended {
    let mut process = Program::of_workspace("quotactl").args(["--address", address]).args(args).start();
    let code = process.wait_for_exit().await.code();
    Ended { code, stdout: process.stdout(), stderr: process.stderr() }
}

/// Alice is over her limit, and bob is not.
async fn server() -> TestServer {
    let server = TestServer::start(MEMORY, SETTINGS).await;
    let charge = |user: &str, cpu: f64| json!({ "accounts": { "user": user }, "cost": { "cpu": cpu } });
    let charges = json!({ "charges": [charge("alice", 150.0), charge("bob", 5.0)] });
    assert_eq!(server.http.post("/v1/report", &charges).await.status, 200);
    let pressure = json!({ "node": "gitaly-01", "cpu": 0.5, "memory": 0.25 });
    assert_eq!(server.http.post("/v1/pressure", &pressure).await.status, 200);
    server
}

fn url(server: &TestServer) -> String {
    format!("http://{}", server.http.address())
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

#[tokio::test]
async fn an_account_has_what_it_used_and_its_limits() {
    let server = server().await;
    let address = url(&server);
    let ended = quotactl(&address, &["account", "user", "alice", "--node", "gitaly-01"]).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let lines: Vec<_> = ended.stdout.lines().collect();
    assert!(lines[0].starts_with("user alice is over its limit for "), "{}", ended.stdout);
    assert_eq!(words(lines[1]), ["RESOURCE", "USED", "LIMIT", "MODE", "HERE", "LIMIT", "HERE"]);
    assert_eq!(words(lines[2])[..6], ["cpu", "150.0", "s", "100.0", "s", "enforce"]);

    let ended = quotactl(&address, &["--json", "account", "user", "bob"]).await;
    let body: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(body, server.http.account("user", "bob").await.json());
}

#[tokio::test]
async fn no_is_an_answer_with_an_exit_code_of_its_own() {
    let server = server().await;
    let address = url(&server);
    for (args, code, part) in [
        (&["check", "--user", "alice"][..], 1, "denied: user alice used 150.0 s of 100.0 s CPU"),
        (&["check", "--user", "bob"], 0, "allowed"),
        (&["backoff", "--user", "alice"], 1, "back off: the cpu limit of user alice; again in "),
        (&["backoff", "--user", "bob", "--ip", "192.0.2.1"], 0, "go on"),
        (&["health"], 0, "ready"),
    ] {
        let ended = quotactl(&address, args).await;
        assert_eq!(ended.code, Some(code), "{args:?}: {}{}", ended.stdout, ended.stderr);
        assert!(ended.stdout.starts_with(part), "{args:?}: {}", ended.stdout);
    }
    // Asking has reserved nothing.
    let used = &server.http.account("user", "bob").await.json()["resources"]["cpu"]["used"];
    assert_eq!(used, 5.0);
}

#[tokio::test]
async fn nodes_have_their_pressure_and_limits() {
    let server = server().await;
    let address = url(&server);
    let ended = quotactl(&address, &["nodes"]).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let lines: Vec<_> = ended.stdout.lines().map(words).collect();
    assert_eq!(lines[0], ["NODE", "SEEN", "CPU", "MEMORY", "NETWORK", "CUT"]);
    assert_eq!((lines[1][0], &lines[1][3..]), ("gitaly-01", &["50", "%", "25", "%", "?", "0"][..]));
    let ended = quotactl(&address, &["limits", "gitaly-01"]).await;
    let user = ended.stdout.lines().map(words).find(|line| line[1] == "user").unwrap();
    assert_eq!(user[..6], ["gitaly-01", "user", "100.0", "s", "8.0", "GiB"]);
}

#[tokio::test]
async fn what_the_server_refuses_is_told_in_its_words() {
    let server = server().await;
    let ended = quotactl(&url(&server), &["account", "ip", "nonsense"]).await;
    assert_eq!(ended.code, Some(4));
    assert!(ended.stderr.starts_with("quotactl: the server refuses (400): "), "{}", ended.stderr);
    let ended = quotactl(&url(&server), &["nodes", "nobody"]).await;
    assert_eq!(ended.code, Some(4));
    assert!(ended.stderr.contains("(404)"), "{}", ended.stderr);
}

#[tokio::test]
async fn a_server_that_is_away_and_wrong_usage_have_codes_of_their_own() {
    let port = Port::free();
    let address = format!("http://127.0.0.1:{}", port.number());
    let ended = quotactl(&address, &["health"]).await;
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    assert!(ended.stderr.starts_with(&format!("quotactl: {address} does not answer: ")), "{}", ended.stderr);
    for args in [&["helth"][..], &["check"], &["override", "set", "user", "u", "--blocked"]] {
        let ended = quotactl(&address, args).await;
        assert_eq!(ended.code, Some(2), "{args:?}: {}", ended.stderr);
    }
    let ended = quotactl(&address, &["--token-file", "/nonexistent", "health"]).await;
    assert_eq!((ended.code, ended.stderr.as_str().contains("/nonexistent cannot be read")), (Some(2), true));
}

#[tokio::test]
async fn shells_complete_its_commands() {
    for shell in ["bash", "fish", "zsh"] {
        let ended = quotactl("http://127.0.0.1:1", &["completions", shell]).await;
        assert_eq!(ended.code, Some(0));
        assert!(ended.stdout.contains("would-deny"), "{shell}");
    }
}
