//! A Redis that may lose what it holds is known before it does.

use quota_server::store::{Danger, Safety, Store};
use quota_tests::redis::RedisServer;
use quota_tests::server::{MEMORY, ServerProcess};
use quota_tests::stores::Opening;
use serde_json::Value;

async fn seen(store: &impl Store) -> (Danger, Danger) {
    let Safety { eviction, persistence } = store.safety().await.unwrap();
    (eviction, persistence)
}

#[tokio::test]
async fn f04_settings_are_judged_as_they_are_at_the_moment() {
    let server = RedisServer::start().await;
    let store = Opening::default().open(&server.url());
    assert_eq!(seen(&store).await, (Danger::No, Danger::Yes), "without persistence, as tests are");
    for (setting, value, expected) in [
        ("save", "3600 1", (Danger::No, Danger::No)),
        ("maxmemory-policy", "allkeys-lru", (Danger::Yes, Danger::No)),
        ("save", "", (Danger::Yes, Danger::Yes)),
        ("maxmemory-policy", "volatile-ttl", (Danger::Yes, Danger::Yes)),
        ("appendonly", "yes", (Danger::Yes, Danger::No)),
        ("maxmemory-policy", "noeviction", (Danger::No, Danger::No)),
    ] {
        server.command("CONFIG", &["SET", setting, value]).await;
        assert_eq!(seen(&store).await, expected, "{setting} {value}");
    }
}

#[tokio::test]
async fn who_may_not_ask_does_not_know() {
    let rules = "~* +@all -info -config";
    let server = RedisServer::options().acl_user("quota", "secret", rules).start().await;
    let store = Opening::default().open(&server.url());
    assert_eq!(seen(&store).await, (Danger::Unknown, Danger::Unknown));
    let url = server.url();
    let process = ServerProcess::start(&[("QUOTA__STORE__URL", url.as_str())]).await;
    assert_eq!(process.log("whether the store may lose what it holds is not known").len(), 2);
    assert!(!process.http.get("/metrics").await.text().contains("quota_store_unsafe{"));
}

#[tokio::test]
async fn f04_a_server_warns_in_log_readiness_and_metrics_and_is_ready_nevertheless() {
    let detail = async |process: &ServerProcess| -> String {
        let answer = process.http.get("/readyz").await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let Value::String(detail) = answer.json()["detail"].clone() else { panic!("{answer:?}") };
        detail
    };
    let server =
        RedisServer::options().appendonly().args(&["--maxmemory-policy", "allkeys-lru"]).start().await;
    let url = server.url();
    let process = ServerProcess::start(&[("QUOTA__STORE__URL", url.as_str())]).await;
    let told = detail(&process).await;
    assert!(told.contains("maxmemory-policy may evict") && !told.contains("appendonly"), "{told}");
    let metrics = process.http.get("/metrics").await;
    assert!(metrics.text().contains("quota_store_unsafe{reason=\"eviction\"} 1\n"));
    assert!(metrics.text().contains("quota_store_unsafe{reason=\"persistence\"} 0\n"));
    let lines = process.log("the store may lose what it holds");
    assert!(lines.len() == 1 && lines[0].contains("reason=\"eviction\""), "{lines:?}");

    let process = ServerProcess::start(&[("QUOTA__STORE__URL", MEMORY)]).await;
    assert!(!detail(&process).await.contains("may be lost"));
    assert_eq!(process.log("the store may lose").len(), 0);
}
