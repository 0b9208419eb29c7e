//! What is said to one server holds on all of them within a second, and outlives Redis.

use std::time::{Duration, Instant};

use quota_tests::redis::RedisServer;
use quota_tests::server::{Clients, ServerProcess};
use quota_tests::wait::{PATIENCE, until};
use reqwest::Method;
use serde_json::{Value, json};

const KEY: &str = "q1:overrides";

struct Two {
    servers: [ServerProcess; 2],
    redis: RedisServer,
}

impl Two {
    async fn on(redis: RedisServer) -> Self {
        let url = redis.url();
        let settings = [("QUOTA__STORE__URL", url.as_str())];
        Self {
            servers: [ServerProcess::start(&settings).await, ServerProcess::start(&settings).await],
            redis,
        }
    }

    async fn ids(&self) -> [Vec<String>; 2] {
        [ids(&self.servers[0]).await, ids(&self.servers[1]).await]
    }
}

async fn put(server: &Clients, id: &str, body: &Value) {
    let answer = server.http.account_override(Method::PUT, "user", id, &body.to_string()).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
}

async fn delete(server: &Clients, id: &str) {
    let answer = server.http.account_override(Method::DELETE, "user", id, "").await;
    assert_eq!(answer.status, 204, "{}", answer.text());
}

fn block() -> Value {
    json!({ "blocked": true, "reason": "it scans everything" })
}

async fn check(server: &Clients, id: &str) -> (u16, Value) {
    let answer = server.http.post("/v1/check", &json!({ "accounts": { "user": id } })).await;
    (answer.status, answer.json())
}

async fn ids(server: &Clients) -> Vec<String> {
    let answer = server.http.get("/v1/overrides").await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let overrides = answer.json()["overrides"].clone();
    overrides.as_array().unwrap().iter().map(|said| said["id"].as_str().unwrap().to_owned()).collect()
}

/// How long a server takes to answer a check of this user with a status.
async fn until_answered(server: &Clients, id: &str, status: u16) -> Duration {
    let begun = Instant::now();
    until(PATIENCE, "what was said to be in force", async || {
        (check(server, id).await.0 == status).then_some(())
    })
    .await;
    begun.elapsed()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_put_on_one_is_in_force_on_the_other_within_a_second() {
    let two = Two::on(RedisServer::start().await).await;
    let [one, other] = &two.servers;
    put(one, "u", &block()).await;
    assert_eq!(check(one, "u").await.0, 429, "at once where it was said");
    let blocked = until_answered(other, "u", 429).await;
    let (_, denied) = check(other, "u").await;
    assert_eq!((&denied["permanent"], &denied["denied_by"]["scope"]), (&json!(true), &json!("cluster")));
    assert_eq!(denied["detail"], "user u is blocked: it scans everything");
    assert_eq!(denied["denied_by"]["why"], denied["detail"]);
    delete(other, "u").await;
    assert_eq!(check(other, "u").await.0, 200);
    let freed = until_answered(one, "u", 200).await;
    assert!(blocked.max(freed) < Duration::from_secs(1), "blocked after {blocked:?}, freed after {freed:?}");

    let lines = [one.log(" audit: "), other.log(" audit: ")];
    assert!(lines.iter().all(|lines| lines.len() == 1), "{lines:?}");
    for field in ["who=\"anonymous\"", "what=\"override\"", "kind=\"user\"", "id=\"u\""] {
        assert!(lines.iter().all(|lines| lines[0].contains(field)), "{field} in {lines:?}");
    }
    assert!(lines[0][0].contains("old=\"none\" new=\"blocked\""), "{lines:?}");
    assert!(lines[0][0].contains("why=\"it scans everything\""), "{lines:?}");
    assert!(lines[1][0].contains("old=\"blocked\" new=\"none\""), "{lines:?}");
    for server in &two.servers {
        let metrics = server.http.get("/metrics").await;
        assert!(metrics.text().contains("quota_changes_total{what=\"override\"} 1\n"));
        assert!(metrics.text().contains("quota_overrides{origin=\"api\"} 0\n"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_switch_is_in_force_on_the_other_within_a_second_and_undone_as_fast() {
    let two = Two::on(RedisServer::start().await).await;
    let [one, other] = &two.servers;
    let charge = json!({ "accounts": { "user": "u" }, "cost": { "cpu": 1000.0 } });
    one.http.post("/v1/report", &json!({ "charges": [charge] })).await;
    assert_eq!(check(other, "u").await.0, 429);
    let shadow = json!({ "mode": "shadow", "reason": "incident 9" }).to_string();
    assert_eq!(one.http.request(Method::PUT, "/v1/modes", shadow).await.status, 200);
    let shadowed = until_answered(other, "u", 200).await;
    assert!(check(other, "u").await.1.get("shadow").is_some());
    assert_eq!(other.http.request(Method::DELETE, "/v1/modes", "").await.status, 204);
    assert_eq!(check(other, "u").await.0, 429, "at once where it was said");
    let undone = until_answered(one, "u", 429).await;
    assert!(shadowed.max(undone) < Duration::from_secs(1), "after {shadowed:?}, undone after {undone:?}");
    let lines = [one.log(" audit: "), other.log(" audit: ")].concat();
    let [set, unset] = &lines[..] else { panic!("{lines:?}") };
    assert!(set.contains("what=\"mode\" old=\"none\" new=\"shadow\" why=\"incident 9\""), "{set}");
    assert!(unset.contains("old=\"shadow\" new=\"none\""), "{unset}");
}

#[tokio::test]
async fn they_outlive_redis_and_who_is_blocked_is_refused_without_it() {
    let mut two = Two::on(RedisServer::options().appendonly().start().await).await;
    put(&two.servers[0], "u", &block()).await;
    until_answered(&two.servers[1], "u", 429).await;
    two.redis.stop().await;
    for server in &two.servers {
        assert_eq!(check(server, "u").await.0, 429, "without the store");
        let (status, answer) = check(server, "v").await;
        assert_eq!((status, &answer["checked"]), (200, &json!(false)));
        let backoff = server.http.get("/v1/backoff?user=u").await.json();
        assert_eq!((&backoff["backoff"], &backoff["permanent"]), (&json!(true), &json!(true)));
        assert_eq!(server.http.get("/v1/backoff?user=v").await.json()["backoff"], false);
    }
    two.redis.restart().await;
    let url = two.redis.url();
    let new = ServerProcess::start(&[("QUOTA__STORE__URL", url.as_str())]).await;
    assert_eq!(check(&new, "u").await.0, 429, "who starts now has it from Redis");
    assert_eq!(ids(&new).await, ["u"]);
}

#[tokio::test]
async fn f04_what_redis_loses_is_put_back_and_reported_and_what_was_deleted_stays_so() {
    let two = Two::on(RedisServer::start().await).await;
    let [one, other] = &two.servers;
    put(one, "kept", &block()).await;
    put(one, "deleted", &block()).await;
    until_answered(other, "deleted", 429).await;
    delete(one, "deleted").await;
    until_answered(other, "deleted", 200).await;
    let reported =
        |text: &'static str| two.servers.iter().map(|server| server.log(text).len()).sum::<usize>();
    let lost = "the store had lost what operators said";
    assert_eq!(reported(lost), 0);
    for (number, loss) in
        [["DEL", KEY].as_slice(), &["FLUSHALL"], &["SET", KEY, "something else"]].iter().enumerate()
    {
        two.redis.command(loss[0], &loss[1..]).await;
        if loss[0] == "FLUSHALL" {
            // Before anybody has noticed.
            put(other, "new", &block()).await;
        }
        let expected = if number == 0 { vec!["kept"] } else { vec!["kept", "new"] };
        until(PATIENCE, "it to be put back and reported", async || {
            let exists: i64 =
                redis::cmd("HLEN").arg(KEY).query_async(&mut two.redis.client().await).await.ok()?;
            let is_back = exists > 1 && two.ids().await.iter().all(|ids| *ids == expected);
            (is_back && reported(lost) > number).then_some(())
        })
        .await;
        assert_eq!(check(one, "deleted").await.0, 200);
    }
    let metrics = [one.http.get("/metrics").await, other.http.get("/metrics").await];
    assert!(metrics.iter().any(|metrics| {
        metrics.text().lines().any(|line| {
            line.strip_prefix("quota_overrides_restored_total ").is_some_and(|count| count != "0")
        })
    }));
}
