//! Metrics under hostile names: the scrape stays whole, and as small as it was (F28).

use std::collections::BTreeSet;
use std::net::SocketAddr;

use fastrand::Rng;
use quota_tests::process::Program;
use quota_tests::server::{MEMORY, TestServer};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use crate::victim::Victim;

const NAMES: usize = 2000;

/// KiB that the memory of a server may be larger for many names that it has heard once.
const MOST_GROWN: u64 = 8 << 10;

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

fn odd(number: usize) -> String {
    let names =
        ["MacBook 14\" r/w", "a\\\\b", "é", "{}", "le=\"+Inf\"", "# HELP", "\\n", "💥", "\u{2028}", "x"];
    format!("{} {number}", names[number % names.len()])
}

fn accounts(number: usize) -> Value {
    let ip = format!("198.51.{}.{}", number / 250, number % 250);
    json!({ "repo": odd(number), "user": odd(number), "ip": ip })
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
            "node": format!("node-{number} {}", odd(number)), "rpc": format!("/svc/{}", odd(number)),
            "accounts": accounts(number),
        });
        assert_eq!(http.post("/v1/check", &check).await.status, 429);
        if number % 10 == 0 {
            let check = json!({ "class": odd(number), "accounts": accounts(number) });
            assert_eq!(http.post("/v1/check", &check).await.status, 400);
            let check = json!({ "accounts": { "user": format!("line\n{number}") } });
            assert_eq!(http.post("/v1/check", &check).await.status, 400);
            assert_eq!(http.get(&format!("/random-{number}/\"{number}%0a")).await.status, 404);
            assert_eq!(http.account("user", &odd(number)).await.status, 200);
        }
    }

    // Nodes are labels where they have a plain name, and no more of them than 256.
    let plain = (0..300).map(|number| format!("gitaly-{number}"));
    for node in (0..100).map(odd).chain(plain) {
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

/// Reports of as many repositories, users and addresses as there are numbers, and asks for paths that nobody serves.
async fn name(victim: &Victim, numbers: std::ops::Range<usize>, paths: usize) {
    let http = &victim.server.http;
    let charges: Vec<Value> = numbers
        .map(|number| {
            let [high, low] = [number / 250, number % 250];
            let ip = format!("198.{}.{}.{low}", high / 250, high % 250);
            json!({ "accounts": { "repo": odd(number), "user": odd(number), "ip": ip }, "cost": { "cpu": 0.1 } })
        })
        .collect();
    for charges in charges.chunks(1000) {
        let answer = http.post("/v1/report", &json!({ "charges": charges })).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    ask_for_nothing(http.address(), paths).await;
}

/// One behind the other on a connection, without waiting for answers.
async fn ask_for_nothing(address: SocketAddr, paths: usize) {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = Rng::with_seed(seed);
    let (reader, mut writer) = TcpStream::connect(address).await.unwrap().into_split();
    let asking = async {
        for path in 1..=paths {
            let last = if path == paths { "connection: close\r\n" } else { "" };
            let [one, other, query] = [random.u64(..), random.u64(..), random.u64(..)];
            let request = format!("GET /{one:x}/{other:x}?{query:x} HTTP/1.1\r\nhost: quota\r\n{last}\r\n");
            writer.write_all(request.as_bytes()).await.unwrap();
        }
    };
    let hearing = async {
        let mut lines = BufReader::new(reader).lines();
        let mut answers = 0;
        while let Some(line) = lines.next_line().await.unwrap() {
            // A body without a line break stands before the next answer.
            answers += line.matches("HTTP/1.1 404 ").count();
        }
        answers
    };
    assert_eq!(tokio::join!(asking, hearing).1, paths);
}

/// What is kept of accounts is in Redis.
#[tokio::test]
async fn f28_fifty_thousand_names_and_ten_thousand_paths_take_no_series_and_no_memory() {
    let [_, mut victim] = Victim::each().await;
    everything_once(&victim).await;
    let before = victim.server.http.get("/metrics").await;
    // What is bounded is full.
    name(&victim, 0..10_000, 2_000).await;
    let memory = victim.server.process.resident();
    name(&victim, 10_000..50_000, 8_000).await;
    let grown = victim.server.process.resident().saturating_sub(memory);
    println!("{grown} KiB more than {memory} KiB");
    assert!(grown < MOST_GROWN, "{grown} KiB more than {memory} KiB");
    let after = victim.server.http.get("/metrics").await;
    assert_well_formed(after.text()).await;
    // An operation on Redis is shown from when it is first done, which some are in the background.
    let [before, after_it] = [before.text(), after.text()].map(|text| {
        series(text).into_iter().filter(|series| !series.contains("operation=\"")).collect::<BTreeSet<_>>()
    });
    assert_eq!(after_it, before);
    assert!(after.body.len() < 1 << 20, "{} bytes", after.body.len());
    victim.assert_sound().await;
}

/// Of all that is a label, an RPC that has a price may have the oddest name.
#[tokio::test]
async fn f28_a_quote_a_backslash_and_what_is_no_ascii_are_escaped_and_nothing_else() {
    let settings = r#"
        prices."MacBook 14\" r/w" = { cpu = "1ms" }
        prices.'a\\b\n' = { cpu = "1ms" }
        prices."é {} # HELP" = { cpu = "1ms" }
    "#;
    let server = TestServer::start(MEMORY, settings).await;
    let of = |rpc: &str| json!({ "accounts": { "user": "u" }, "cost": { "cpu": 1 }, "rpc": rpc, "finished": true, "wall_seconds": 1 });
    let report = json!({ "charges": [of("MacBook 14\" r/w"), of(r"a\\b\n"), of("é {} # HELP")] });
    let answer = server.http.post("/v1/report", &report).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let metrics = server.http.get("/metrics").await;
    assert_well_formed(metrics.text()).await;
    for rpc in [r#"MacBook 14\" r/w"#, r"a\\\\b\\n", "é {} # HELP"] {
        let line = format!("quota_request_cpu_seconds_count{{rpc=\"{rpc}\"}} 1\n");
        assert!(metrics.text().contains(&line), "{line}{}", metrics.text());
    }
}
