//! Metrics under hostile names: the scrape stays whole, and as small as it was (F28).

use std::collections::BTreeSet;

use quota_tests::process::Program;
use serde_json::{Value, json};

use crate::victim::Victim;

const NAMES: usize = 2000;

/// The series of a scrape: what comes before the value on each line that is no comment.
fn series(text: &str) -> BTreeSet<String> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.rsplit_once(' ').expect("a value").0.to_owned()).collect()
}

/// With `promtool`, which `scripts/test` installs.
async fn assert_well_formed(text: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("metrics");
    std::fs::write(&file, text).unwrap();
    drop(Program::new("promtool"));
    let shell = Program::new("sh").args(["-c", "exec promtool check metrics <\"$0\""]).arg(&file);
    let mut promtool = shell.start();
    let status = promtool.wait_for_exit().await;
    assert!(status.success(), "{}{}", promtool.stdout(), promtool.stderr());
}

fn name(number: usize) -> String {
    let odd =
        ["MacBook 14\" r/w", "a\\\\b", "é", "{}", "le=\"+Inf\"", "# HELP", "\\n", "💥", "\u{2028}", "x"];
    format!("{} {number}", odd[number % odd.len()])
}

fn accounts(number: usize) -> Value {
    let ip = format!("198.51.{}.{}", number / 250, number % 250);
    json!({ "repo": name(number), "user": name(number), "ip": ip })
}

/// One of everything that is counted, so that what comes later is only more of it.
async fn everything_once(victim: &Victim) {
    let http = &victim.server.http;
    let lots = json!({ "cpu": 1000, "memory": 1_u64 << 50, "network": 1_u64 << 50 });
    for kind in ["repo", "user", "ip"] {
        let accounts = json!({ kind: "192.0.2.99" });
        for check in
            [json!({ "accounts": accounts }), json!({ "accounts": accounts, "price": { "cpu": 1000 } })]
        {
            assert_eq!(http.post("/v1/check", &check).await.status, 200);
        }
        assert_eq!(http.post("/v1/check", &json!({ "accounts": accounts })).await.status, 429);
    }
    let shadowed = json!({ "accounts": { "user": "shadowed" }, "cost": { "network": lots["network"] } });
    assert_eq!(http.post("/v1/report", &json!({ "charges": [shadowed] })).await.status, 200);
    let check = json!({ "accounts": { "user": "shadowed" } });
    assert!(http.post("/v1/check", &check).await.json()["shadow"].is_object());
    assert_eq!(http.get("/v1/backoff?user=u").await.status, 200);
    // A name with a space is no label.
    assert_eq!(http.post("/v1/pressure", &json!({ "node": "a b", "cpu": 0.5 })).await.status, 200);
    assert_eq!(http.get("/readyz").await.status, 200);
    assert_eq!(http.get("/nothing").await.status, 404);
}

#[tokio::test]
async fn f28_names_and_paths_make_no_series() {
    let mut victim = Victim::in_memory().await;
    everything_once(&victim).await;
    let http = victim.server.http.clone();
    let before = http.get("/metrics").await;
    assert_well_formed(before.text()).await;

    let charges: Vec<Value> =
        (0..NAMES).map(|number| json!({ "accounts": accounts(number), "cost": { "cpu": 150 } })).collect();
    for charges in charges.chunks(1000) {
        assert_eq!(http.post("/v1/report", &json!({ "charges": charges })).await.status, 200);
    }
    for number in 0..NAMES {
        let check = json!({
            "node": format!("node-{number} {}", name(number)), "rpc": format!("/svc/{}", name(number)),
            "accounts": accounts(number),
        });
        assert_eq!(http.post("/v1/check", &check).await.status, 429);
        if number % 10 == 0 {
            let check = json!({ "class": name(number), "accounts": accounts(number) });
            assert_eq!(http.post("/v1/check", &check).await.status, 400);
            let check = json!({ "accounts": { "user": format!("line\n{number}") } });
            assert_eq!(http.post("/v1/check", &check).await.status, 400);
            assert_eq!(http.get(&format!("/random-{number}/\"{number}%0a")).await.status, 404);
            assert_eq!(http.account("user", &name(number)).await.status, 200);
        }
    }

    // Nodes are labels where they have a plain name, and no more of them than 256.
    let plain = (0..300).map(|number| format!("gitaly-{number}"));
    for node in (0..100).map(name).chain(plain) {
        assert_eq!(http.post("/v1/pressure", &json!({ "node": node, "cpu": 0.5 })).await.status, 200);
    }
    let after = http.get("/metrics").await;
    assert_well_formed(after.text()).await;
    let (of_nodes, others): (BTreeSet<_>, BTreeSet<_>) =
        series(after.text()).into_iter().partition(|series| series.contains("node=\""));
    // Limits, and accounts that are cut, by kind and resource; what these make up, and whether limits are at their least, by
    // resource; the pressure that was told.
    assert_eq!(of_nodes.len(), 256 * (9 + 9 + 3 + 3 + 1));
    assert!(of_nodes.iter().all(|series| series.contains("node=\"gitaly-")));
    assert_eq!(others, series(before.text()));
    assert!(after.body.len() < 1 << 20, "{} bytes", after.body.len());
    victim.assert_sound().await;
}
