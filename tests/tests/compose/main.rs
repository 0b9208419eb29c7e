//! `docker-compose.yml` as it is, on a real engine.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod compose;
mod stack;

use std::collections::BTreeSet;

use quota_tests::http::{Answer, Http};
use quota_tests::wait::{PATIENCE, until};
use serde_json::json;

use stack::{Fileserver, Stack};

#[tokio::test]
#[ignore = "needs a Docker engine: scripts/with-engine scripts/test"]
async fn the_whole_works_and_goes_on_when_either_replica_is_killed() {
    let stack = Stack::up().await;
    let [one, two] = &stack.replicas;
    check(&one.http).await;
    let targets = ["quota-1:8080 up", "quota-2:8080 up", "gitaly-01:8000 up", "gitaly-02:8000 up"];
    until_prometheus_sees(&stack.prometheus, &targets).await;
    for fileserver in &stack.fileservers {
        serves_and_refuses(fileserver, &two.http, "with-both").await;
    }

    for (lost, left) in [(one, two), (two, one)] {
        let known = format!("known-before-{}-was-lost", lost.name);
        report(&lost.http, &known, 12.5).await;
        assert_eq!(used(&lost.http, &known).await, 12.5);
        assert_eq!(used(&left.http, &known).await, 12.5);

        stack.kill(lost).await;
        assert_eq!(used(&left.http, &known).await, 12.5);
        for fileserver in &stack.fileservers {
            serves_and_refuses(fileserver, &left.http, &format!("without-{}", lost.name)).await;
        }

        stack.start(lost).await;
        assert_eq!(used(&lost.http, &known).await, used(&left.http, &known).await);
    }
}

/// A light user clones, and what it cost is known to `replica`; a heavy one is refused. `when` makes them new users.
async fn serves_and_refuses(fileserver: &Fileserver, replica: &Http, when: &str) {
    let [light, heavy] = ["light", "heavy"].map(|user| format!("{user}-{when}-of-{}", fileserver.node));
    let clone = fileserver.clone_as(&light).await;
    assert!(clone.succeeded, "{light}: {}", clone.terminal);
    let cost_known = format!("the clone of {light} is charged");
    until(PATIENCE, &cost_known, async || (used(replica, &light).await > 0.0).then_some(())).await;

    report(replica, &heavy, 200.0).await;
    let words = format!("remote: user {heavy} is over its CPU quota on {}; try again in ", fileserver.node);
    // Where the fileserver has just lost its server, it may let one pass.
    until(PATIENCE, &format!("{heavy} is refused"), async || {
        let clone = fileserver.clone_as(&heavy).await;
        assert!(clone.succeeded || clone.terminal.contains(&words), "{heavy}: {}", clone.terminal);
        (!clone.succeeded).then_some(())
    })
    .await;
}

/// A user never seen is allowed, by the store's word.
async fn check(replica: &Http) {
    let request = json!({ "accounts": { "user": "new" } });
    until(PATIENCE, "a check is answered by the store", async || {
        let answer = replica.post("/v1/check", &request).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        (answer.json()["checked"] == true).then_some(())
    })
    .await;
}

/// Counts once, however often it has to be sent.
async fn report(replica: &Http, user: &str, cpu: f64) {
    let charge = json!({ "accounts": { "user": user }, "cost": { "cpu": cpu } });
    let report = json!({ "source": user, "sequence": 1, "charges": [charge] });
    stored(async || replica.post("/v1/report", &report).await).await;
}

/// A user's CPU-seconds, as a replica knows them.
async fn used(replica: &Http, user: &str) -> f64 {
    let standing = stored(async || replica.account("user", user).await).await;
    standing.json()["resources"]["cpu"]["used"].as_f64().unwrap()
}

/// Asks until the store has answered in time: `store.deadline` is short for a busy machine.
async fn stored(ask: impl AsyncFn() -> Answer) -> Answer {
    let answer = until(PATIENCE, "the store answers in time", async || {
        let answer = ask().await;
        (answer.status != 503).then_some(answer)
    })
    .await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer
}

/// Waits until Prometheus has scraped exactly these targets, each with its health.
async fn until_prometheus_sees(prometheus: &Http, targets: &[&str]) {
    let expected: BTreeSet<_> = targets.iter().map(ToString::to_string).collect();
    until(PATIENCE, &format!("Prometheus sees {targets:?}"), async || {
        let answer = prometheus.get("/api/v1/targets").await.json();
        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        let active = answer["data"]["activeTargets"].as_array().unwrap();
        let seen =
            active.iter().map(|it| format!("{} {}", text(&it["labels"]["instance"]), text(&it["health"])));
        (seen.collect::<BTreeSet<_>>() == expected).then_some(())
    })
    .await;
}
