//! The shipped rules in a real Prometheus, which scrapes two real servers on a real Redis: they fire, and they clear.

use quota_tests::prometheus::Prometheus;
use quota_tests::redis::RedisServer;
use quota_tests::server::ServerProcess;
use quota_tests::wait::{PATIENCE, until};
use serde_json::{Value, json};

use super::{board, text};

/// Rules for which time passes sixty times as fast: what they say of a minute is so of a second.
fn hastened(rules: &str) -> String {
    let is_end = |c: char| !c.is_ascii_alphanumeric();
    let words = rules.split_inclusive(is_end).map(|word| {
        let duration = word.trim_end_matches(is_end);
        match minutes(duration) {
            Some(minutes) => word.replacen(duration, &format!("{minutes}s"), 1),
            None => word.to_owned(),
        }
    });
    words.collect()
}

fn minutes(duration: &str) -> Option<u64> {
    let of = |(unit, minutes)| Some(duration.strip_suffix(unit)?.parse::<u64>().ok()? * minutes);
    [("m", 1), ("h", 60), ("d", 24 * 60)].into_iter().find_map(of)
}

#[test]
fn hastened_rules_are_the_shipped_ones_but_for_their_durations() {
    let rule = "expr: rate(a_total[10m] offset 1d) > 0.8\nfor: 1h\nsummary: \"5 s, 50 ms\"";
    let expected = "expr: rate(a_total[10s] offset 1440s) > 0.8\nfor: 60s\nsummary: \"5 s, 50 ms\"";
    assert_eq!(hastened(rule), expected);
}

/// A node of two cores, of which ten users have about the same: nobody can be cut.
fn pressure(cpu: f64) -> Value {
    json!({
        "node": "gitaly-01", "cpu": cpu, "capacity": { "cpu": 2.0 }, "active": { "user": 10 },
        "heaviest": [{ "kind": "user", "id": "alice", "cpu": 11.0, "recent": { "cpu": 1.9 } }],
    })
}

async fn until_firing(prometheus: &Prometheus, alert: &str, count: usize) {
    until(PATIENCE, &format!("{count} of {alert} fire"), async || {
        (prometheus.firing(alert).await.len() == count).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn alerts_fire_and_clear_and_the_board_can_be_drawn() {
    let mut redis = RedisServer::start().await;
    let url = redis.url();
    let settings = [
        ("QUOTA__STORE__URL", url.as_str()),
        ("QUOTA__ADAPT__CPU__RULE", "blame"),
        ("QUOTA__ADAPT__CPU__INTERVAL", "1s"),
    ];
    let servers = [ServerProcess::start(&settings).await, ServerProcess::start(&settings).await];
    let addresses = servers.each_ref().map(|server| server.http.address());
    let prometheus = Prometheus::start(&hastened(&text("deploy/alerts.yml")), &addresses).await;
    until(PATIENCE, "both are scraped", async || {
        let up = prometheus.query("up{job=\"quota-server\"} == 1").await;
        (up.len() == servers.len()).then_some(())
    })
    .await;

    // Told to both by turns, as a client does that fails over.
    let mut turn = 0;
    let mut tell = async |cpu| {
        turn += 1;
        let answer = servers[turn % 2].http.post("/v1/pressure", &pressure(cpu)).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    };
    let fired = until(PATIENCE, "QuotaNodeAtMin fires", async || {
        tell(1.0).await;
        prometheus.firing("QuotaNodeAtMin").await.pop()
    })
    .await;
    assert_eq!((&fired["node"], &fired["resource"]), (&json!("gitaly-01"), &json!("cpu")));
    until(PATIENCE, "QuotaNodeAtMin clears", async || {
        tell(0.1).await;
        prometheus.firing("QuotaNodeAtMin").await.is_empty().then_some(())
    })
    .await;

    for query in board::queries() {
        prometheus.query(&query).await;
    }
    let pressures = prometheus.query("quota_node_pressure{node=\"gitaly-01\", resource=\"cpu\"}").await;
    assert_eq!(pressures.len(), servers.len(), "both know it: {pressures:?}");

    until_firing(&prometheus, "QuotaStoreLost", 0).await;
    redis.stop().await;
    until_firing(&prometheus, "QuotaStoreLost", servers.len()).await;
    redis.restart().await;
    until_firing(&prometheus, "QuotaStoreLost", 0).await;
}
