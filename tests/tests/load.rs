//! The load generator of `scripts/load` sends what it says, and the service takes it.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests report by panicking")]

use std::fs;
use std::time::Duration;

use quota_tests::process::Program;
use quota_tests::redis::RedisServer;
use quota_tests::server::TestServer;
use serde_json::Value;

#[tokio::test]
async fn every_check_that_was_due_is_accounted_for() {
    let redis = RedisServer::start().await;
    let servers = [TestServer::start(&redis.url(), "").await, TestServer::start(&redis.url(), "").await];
    let folder = tempfile::tempdir().unwrap();
    let (json, svg) = (folder.path().join("load.json"), folder.path().join("load.svg"));
    let mut load = Program::of_workspace("quota-load").args(["--quick", "--seed", "7"]);
    for server in &servers {
        load = load.args(["--endpoint", &format!("http://{}", server.grpc_address())]);
    }
    let mut load = load.arg("--json").arg(&json).arg("--svg").arg(&svg).start();
    let status = load.wait_for_exit().await;
    assert!(status.success(), "{status}\n{}", load.stderr());
    assert!(load.stdout().starts_with("seed 7\n"), "{}", load.stdout());

    let figures: Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    let count =
        |of: &str, name: &str| figures[of][name].as_u64().unwrap_or_else(|| panic!("{name}: {figures}"));
    let checks = ["allowed", "denied", "failed", "unsent"].map(|name| count("checks", name));
    let [allowed, denied, failed, unsent] = checks;
    // The schedule comes from the seed: 200 are due on average.
    let scheduled = count("checks", "scheduled");
    assert!((150..=250).contains(&scheduled), "{figures}");
    assert_eq!(checks.iter().sum::<u64>(), scheduled, "{figures}");
    assert_eq!((failed, unsent, count("checks", "unchecked")), (0, 0, 0), "{figures}");
    assert!(allowed > denied, "{figures}");
    // What was admitted was reported, each once.
    assert_eq!((count("reports", "charges"), count("reports", "failed")), (allowed, 0), "{figures}");
    assert!(fs::read_to_string(&svg).unwrap().contains("<svg"));

    // The most popular user has used something.
    let path = "/v1/accounts/user/user-1";
    let standing = servers[0].http.get(path).await;
    assert_eq!(standing.status, 200, "{path}");
    for server in servers {
        server.stop().await;
    }
}

#[tokio::test]
async fn too_much_is_told_beside_what_was_before_and_after() {
    let mut overload = Program::of_workspace("quota-overload").arg("--quick").start();
    let status = overload.wait_for_exit_within(Duration::from_secs(60)).await;
    let told = overload.stdout();
    assert!(status.success(), "{status}\n{told}{}", overload.stderr());
    let decided = |row: &str| -> u64 {
        let row =
            told.lines().find_map(|line| line.strip_prefix(row)).unwrap_or_else(|| panic!("{row}: {told}"));
        row.split_whitespace().next().unwrap().parse().unwrap()
    };
    assert!(decided("100 a second  ") > 100 && decided("1000 a second, 2 s") > 0, "{told}");
    assert!(decided("100 a second, after that") > 100, "{told}");
    assert!(told.contains("p99 after / before: "), "{told}");
}
