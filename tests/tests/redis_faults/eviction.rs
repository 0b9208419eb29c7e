//! F04: a Redis that is full, and evicts what is still needed.

use std::fs;

use quota_tests::redis::RedisServer;
use quota_tests::server::ServerProcess;
use quota_tests::wait::{PATIENCE, until};
use reqwest::Method;
use serde_json::{Value, json};

use crate::raw::Raw;

const BOOK: &str = "q1:overrides";
const NODE: &str = "q1:{node:gitaly-01}";

/// What is filled in at once: 2,000 keys of a kilobyte each, of which there is room for about half.
const FILL: &str =
    "for number = 1, 2000 do redis.call('SET', ARGV[1] .. ':' .. number, string.rep('x', 1024)) end";

/// CPU-seconds that a repository may use, whatever is read.
async fn limit(server: &ServerProcess, repo: &str) -> Value {
    let standing = server.http.account("repo", repo).await;
    assert_eq!(standing.status, 200, "{}", standing.text());
    standing.json()["resources"]["cpu"]["limit"].clone()
}

/// A user who used more on the node than any limit there is.
async fn denied(server: &ServerProcess) -> Value {
    let check = json!({
        "node": "gitaly-01", "accounts": { "user": "u1" }, "price": {}, "used_here": { "user": { "cpu": 60.0 } },
    });
    let answer = server.http.post("/v1/check", &check).await;
    assert_eq!(answer.status, 429, "{}", answer.text());
    answer.json()["denied_by"].clone()
}

/// By the file, over the API, and by AIMD.
#[tokio::test]
async fn f04_of_what_is_evicted_overrides_come_back_and_limits_are_the_default_and_never_none() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("quota.toml");
    let text = r#"
        overrides = [{ kind = "repo", id = "acme/app", limits = { cpu = "5s" }, reason = "in the file" }]
        limits.user.cpu = { min = "5s", initial = "50s", max = "100s" }
        adapt.cpu = { rule = "aimd", interval = "1s", backoff_factor = 0.1 }
    "#;
    fs::write(&file, text).unwrap();
    let redis = RedisServer::start().await;
    let raw = Raw::new(&redis).await;
    let url = redis.url();
    let program = ServerProcess::program().env("QUOTA__STORE__URL", &url).arg("--config").arg(&file);
    let server = ServerProcess::listening(program.env("QUOTA__ADAPT__CPU__RULE", "aimd").start()).await;
    let five = json!({ "limits": { "cpu": "5s" }, "reason": "over the API" }).to_string();
    assert_eq!(server.http.account_override(Method::PUT, "repo", "acme/api", &five).await.status, 200);
    let hot = json!({ "node": "gitaly-01", "cpu": 0.99 });
    until(PATIENCE, "users are at their floor", async || {
        let told = server.http.post("/v1/pressure", &hot).await.json();
        (told["limits"]["user"]["cpu"] == 5.0).then_some(())
    })
    .await;
    until(PATIENCE, "that is in force", async || (denied(&server).await["limit"] == 5.0).then_some(())).await;

    redis.command("CONFIG", &["SET", "maxmemory-policy", "allkeys-lru"]).await;
    let memory: String = raw.run(&["INFO", "memory"]).await;
    let used = memory.lines().find_map(|line| line.strip_prefix("used_memory:")).unwrap();
    let most = used.trim().parse::<u64>().unwrap() + (1 << 20);
    redis.command("CONFIG", &["SET", "maxmemory", &most.to_string()]).await;
    let (mut round, mut evicted) = (0, [false; 2]);
    until(PATIENCE, "both are evicted", async || {
        round += 1;
        raw.run::<()>(&["EVAL", FILL, "0", &format!("fill-{round}")]).await;
        for (evicted, key) in evicted.iter_mut().zip([BOOK, NODE]) {
            *evicted |= raw.run::<u64>(&["EXISTS", key]).await == 0;
        }
        for repo in ["acme/app", "acme/api"] {
            assert_eq!(limit(&server, repo).await, 5.0, "{repo}");
        }
        // Of a node that has grown silent it returns by steps.
        let limit = denied(&server).await["limit"].as_f64().unwrap();
        assert!((5.0..=50.0).contains(&limit), "{limit}");
        (evicted == [true; 2]).then_some(())
    })
    .await;
    println!("both were evicted after {round} times 2,000 keys");

    until(PATIENCE, "the override is put back", async || {
        (raw.run::<u64>(&["EXISTS", BOOK]).await == 1).then_some(())
    })
    .await;
    until(PATIENCE, "the node has the limits of the configuration", async || {
        (denied(&server).await["limit"] == 50.0).then_some(())
    })
    .await;
    for repo in ["acme/app", "acme/api"] {
        let charge = json!({ "accounts": { "repo": repo }, "cost": { "cpu": 5.0 } });
        assert_eq!(server.http.post("/v1/report", &json!({ "charges": [charge] })).await.status, 200);
        let answer = server.http.post("/v1/check", &json!({ "accounts": { "repo": repo } })).await;
        assert_eq!((answer.status, &answer.json()["denied_by"]["limit"]), (429, &json!(5.0)), "{repo}");
    }
    let other = ServerProcess::start(&[("QUOTA__STORE__URL", &url)]).await;
    let metrics = other.http.get("/metrics").await;
    assert!(metrics.text().contains("quota_store_unsafe{reason=\"eviction\"} 1\n"));
    let warnings = other.log("the store may lose what it holds");
    assert!(warnings.iter().any(|line| line.contains("reason=\"eviction\"")), "{warnings:?}");
}
