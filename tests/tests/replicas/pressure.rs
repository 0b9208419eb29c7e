//! Limits of nodes follow pressure once an interval, however many servers it is told to, and every server knows them.

use std::time::{Duration, Instant};

use quota_tests::proxy::Proxy;
use quota_tests::redis::RedisServer;
use quota_tests::server::ServerProcess;
use quota_tests::wait::{PATIENCE, until};
use serde_json::{Value, json};

/// From 100 s, hot intervals of a second halve the limit of users to 25 s at least; calm ones add 50 s, to 100 s at most.
const AIMD: [(&str, &str); 5] = [
    ("QUOTA__ADAPT__CPU__RULE", "aimd"),
    ("QUOTA__ADAPT__CPU__INTERVAL", "1s"),
    ("QUOTA__ADAPT__CPU__BACKOFF_FACTOR", "0.5"),
    ("QUOTA__ADAPT__CPU__STEP", "0.5"),
    ("QUOTA__LIMITS__USER__CPU__MIN", "25s"),
];

struct Two {
    servers: [ServerProcess; 2],
    _redis: RedisServer,
}

impl Two {
    async fn start() -> Self {
        let redis = RedisServer::start().await;
        let url = redis.url();
        let settings: Vec<_> = AIMD.into_iter().chain([("QUOTA__STORE__URL", url.as_str())]).collect();
        let servers = [ServerProcess::start(&settings).await, ServerProcess::start(&settings).await];
        Self { servers, _redis: redis }
    }

    /// Tells the same pressure to both by turns, as fast as they answer, until the limit of users is so many seconds.
    /// Returns how often limits were calibrated.
    async fn hold(&self, pressure: f64, limit: f64) -> usize {
        let (mut calibrated, mut number) = (0, 0);
        let body = json!({ "node": "gitaly-01", "cpu": pressure });
        until(PATIENCE, "the limit", async || {
            number += 1;
            let answer = self.servers[number % 2].http.post("/v1/pressure", &body).await.json();
            calibrated += usize::from(answer["calibrated"] == true);
            (answer["limits"]["user"]["cpu"] == limit).then_some(())
        })
        .await;
        calibrated
    }

    /// Each change of the users' limit in the logs of both: old, new and reason, by time.
    fn changes(&self) -> Vec<(String, String, String)> {
        let lines = self.servers.iter().flat_map(|server| server.log("limit changed"));
        let mut lines: Vec<_> = lines.filter(|line| line.contains("kind=\"user\"")).collect();
        // They begin with the time.
        lines.sort();
        let field = |line: &str, name: &str| {
            let (_, rest) =
                line.split_once(&format!(" {name}=\"")).unwrap_or_else(|| panic!("no {name} in {line}"));
            rest.split('"').next().unwrap().to_owned()
        };
        lines.iter().map(|line| (field(line, "old"), field(line, "new"), field(line, "reason"))).collect()
    }

    /// Over both servers, how often the limits of CPU were calibrated for this reason.
    async fn counted(&self, reason: &str) -> u64 {
        let [one, other] = &self.servers;
        counted(one, "cpu", reason).await + counted(other, "cpu", reason).await
    }
}

async fn counted(server: &ServerProcess, resource: &str, reason: &str) -> u64 {
    let series = format!(
        "quota_calibrations_total{{node=\"gitaly-01\",reason=\"{reason}\",resource=\"{resource}\"}} "
    );
    let metrics = server.http.get("/metrics").await;
    let value = metrics.text().lines().find_map(|line| line.strip_prefix(&series)).map(str::to_owned);
    value.map_or(0, |value| value.parse().unwrap())
}

fn change(old: &str, new: &str, reason: &str) -> (String, String, String) {
    (format!("{old} s"), format!("{new} s"), reason.to_owned())
}

/// What a server shows of the node's limit for users.
async fn shown(server: &ServerProcess) -> (Value, String) {
    let node = server.http.get("/v1/nodes/gitaly-01").await.json();
    let metrics = server.http.get("/metrics").await;
    let series = "quota_node_limit{kind=\"user\",node=\"gitaly-01\",resource=\"cpu\"} ";
    let gauge =
        metrics.text().lines().find_map(|line| line.strip_prefix(series)).unwrap_or_default().to_owned();
    (node["limits"]["user"]["cpu"].clone(), gauge)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f13_there_is_one_step_an_interval_and_every_server_shows_it() {
    let two = Two::start().await;
    let begun = Instant::now();
    let hot = two.hold(0.95, 50.0).await + two.hold(0.95, 25.0).await;
    assert_eq!(hot, 2);
    let calm = two.hold(0.1, 75.0).await;
    let calm = calm + two.hold(0.1, 100.0).await;
    let elapsed = begun.elapsed();
    // An interval that was partly hot may have ended between, and left the limit at its least.
    let steps = hot + calm;
    assert!(elapsed > Duration::from_secs(1) * (steps as u32 - 1), "{steps} steps within {elapsed:?}");
    for server in &two.servers {
        until(PATIENCE, "every server to know it", async || {
            (shown(server).await == (json!(100.0), "100".to_owned())).then_some(())
        })
        .await;
        let last = &server.http.get("/v1/nodes/gitaly-01").await.json()["last_calibrations"]["cpu"];
        assert_eq!(
            (&last["reason"], &last["limits"]["user"]),
            (&json!("calm"), &json!({ "old": 75.0, "new": 100.0 }))
        );
    }
    let expected = [
        change("100.0", "50.0", "hot"),
        change("50.0", "25.0", "hot"),
        change("25.0", "75.0", "calm"),
        change("75.0", "100.0", "calm"),
    ];
    assert_eq!(two.changes(), expected);
    assert_eq!(two.counted("hot").await + two.counted("calm").await, steps as u64);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_check_on_one_server_is_compared_with_the_limit_that_another_set() {
    let two = Two::start().await;
    let [one, other] = &two.servers;
    let charge = json!({ "accounts": { "user": "u" }, "cost": { "cpu": 60.0 } });
    one.http.post("/v1/report", &json!({ "charges": [charge] })).await;
    let check =
        json!({ "node": "gitaly-01", "accounts": { "user": "u" }, "used_here": { "user": { "cpu": 60.0 } } });
    assert_eq!(other.http.post("/v1/check", &check).await.status, 200);
    let body = json!({ "node": "gitaly-01", "cpu": 0.95 });
    until(PATIENCE, "a cut", async || {
        let answer = one.http.post("/v1/pressure", &body).await.json();
        (answer["limits"]["user"]["cpu"] == 50.0).then_some(())
    })
    .await;
    let denied = until(Duration::from_secs(5), "the other to know it", async || {
        let answer = other.http.post("/v1/check", &check).await;
        (answer.status == 429).then(|| answer.json())
    })
    .await;
    let expected = json!({
        "kind": "user", "id": "u", "resource": "cpu", "used": 60.0, "limit": 50.0, "scope": "node",
    });
    assert_eq!(denied["denied_by"], expected);
    let elsewhere = json!({ "node": "gitaly-02", "accounts": { "user": "u" } });
    assert_eq!(other.http.post("/v1/check", &elsewhere).await.status, 200);
}

/// The step is made; that nobody was told of it at once is no reason that nobody ever is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_whose_reply_is_lost_is_told_once_by_the_server_that_asked_for_it() {
    let redis = RedisServer::start().await;
    let proxy = Proxy::to(redis.port()).await;
    let (behind, beside) = (proxy.redis_url(), redis.url());
    let start = async |url: &str| {
        let settings = [("QUOTA__ADAPT__MEMORY__RULE", "aimd"), ("QUOTA__STORE__URL", url)];
        ServerProcess::start(&settings).await
    };
    let (asked, other) = (start(&behind).await, start(&beside).await);
    let first = asked.http.post("/v1/pressure", &json!({ "node": "gitaly-01", "memory": 0.5 })).await;
    assert_eq!(first.status, 200, "{}", first.text());

    proxy.drop_reply_to("the-lost-step");
    let heaviest = json!([{ "kind": "user", "id": "the-lost-step", "memory": 1.0 }]);
    let killed = json!({ "node": "gitaly-01", "memory": 0.99, "events": ["oom_kill"], "heaviest": heaviest });
    let lost = asked.http.post("/v1/pressure", &killed).await;
    assert_eq!((lost.status, proxy.dropped()), (503, 1), "{}", lost.text());

    for server in [&asked, &other] {
        until(PATIENCE, "both to know the step", async || {
            let metrics = server.http.get("/metrics").await;
            let pressure = "quota_node_pressure{node=\"gitaly-01\",resource=\"memory\"} 0.99";
            metrics.text().contains(pressure).then_some(())
        })
        .await;
    }
    let told = async |server: &ServerProcess| {
        let lines = server.log("limit changed");
        let of_user = lines.iter().filter(|line| line.contains("kind=\"user\"")).count();
        (of_user, counted(server, "memory", "oom_kill").await)
    };
    assert_eq!((told(&asked).await, told(&other).await), ((1, 1), (0, 0)));
    let again = asked.http.post("/v1/pressure", &json!({ "node": "gitaly-01", "memory": 0.5 })).await;
    assert_eq!((again.status, &again.json()["calibrated"]), (200, &json!(false)));
    assert_eq!((told(&asked).await, told(&other).await), ((1, 1), (0, 0)));
}
