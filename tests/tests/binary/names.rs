//! Accounts in the log: every line that names one, and how it does.

use std::collections::BTreeSet;

use quota_tests::redis::RedisServer;
use quota_tests::server::ServerProcess;
use quota_tests::wait::{PATIENCE, until};
use reqwest::Method;
use serde_json::{Value, json};

const KEY: (&str, &str) = ("QUOTA__LOG__KEY", "0123456789abcdef");

/// That of `user:alice-plain` with this key, by openssl.
const ALICE: &str = "74ee7abce9c66894";

/// Every account that is named to the server.
const NAMES: [&str; 6] =
    ["alice-plain", "bob-plain", "carol-plain", "mallory-plain", "repo-plain", "203.0.113.77"];

/// The lines that name an account, by a part of each. Records of changes are none of them.
const LINES: [&str; 6] = [
    "finished",
    "account cut",
    "denied",
    "denied again within a second",
    "limit of an account forgotten",
    "the store cannot serve an account or a node",
];

/// A server that has said every line that names an account.
async fn spoken(settings: &[(&str, &str)]) -> ServerProcess {
    let redis = RedisServer::start().await;
    let url = redis.url();
    let always = [
        ("QUOTA__STORE__URL", url.as_str()),
        ("QUOTA__ADAPT__CPU__RULE", "blame"),
        ("QUOTA__ADAPT__CPU__INTERVAL", "1s"),
        ("QUOTA__ADAPT__CPU__STEP", "1"),
        ("QUOTA__LOG__REQUESTS", "1"),
    ];
    let settings: Vec<_> = always.iter().chain(settings).copied().collect();
    let server = ServerProcess::start(&settings).await;
    report(&server, &json!({ "user": "alice-plain", "repo": "repo-plain", "ip": "203.0.113.77" }), 60.0)
        .await;
    report(&server, &json!({ "user": "bob-plain" }), 9.0).await;
    says(&server, "account cut", async || tell_pressure(&server, 1.0, [60.0, 18.0]).await).await;
    says(&server, " denied ", async || check(&server, "alice-plain").await).await;
    says(&server, "limit of an account forgotten", async || tell_pressure(&server, 0.1, [0.0; 2]).await)
        .await;

    let blocked = json!({ "blocked": true, "reason": "mallory-plain runs wild" }).to_string();
    server.http.account_override(Method::PUT, "user", "mallory-plain", &blocked).await;
    says(&server, "is blocked", async || check(&server, "mallory-plain").await).await;
    says(&server, "denied again within a second", async || check(&server, "mallory-plain").await).await;

    redis.command("SET", &["q1:{user:carol-plain}", "garbage"]).await;
    assert_eq!(server.http.account("user", "carol-plain").await.status, 500);
    server
}

async fn report(server: &ServerProcess, accounts: &Value, cpu: f64) {
    let cost = json!({ "cpu": cpu });
    let charge =
        json!({ "accounts": accounts, "cost": cost, "rpc": "/svc/Clone", "finished": true, "total": cost });
    let report = json!({ "node": "gitaly-01", "charges": [charge] });
    assert_eq!(server.http.post("/v1/report", &report).await.status, 200);
}

async fn check(server: &ServerProcess, user: &str) {
    server.http.post("/v1/check", &json!({ "node": "gitaly-01", "accounts": { "user": user } })).await;
}

/// Two cores are 120 s a minute, of which a fair share of ten users is 10.8 s.
async fn tell_pressure(server: &ServerProcess, cpu: f64, [used, recent]: [f64; 2]) {
    let pressure = json!({
        "node": "gitaly-01", "cpu": cpu, "capacity": { "cpu": 2.0 }, "active": { "user": 10 },
        "heaviest": [
            { "kind": "user", "id": "alice-plain", "cpu": used, "recent": { "cpu": recent } },
            { "kind": "user", "id": "bob-plain", "cpu": 9.0, "recent": { "cpu": 1.5 } },
        ],
    });
    assert_eq!(server.http.post("/v1/pressure", &pressure).await.status, 200);
}

/// Does something until a line is in the log.
async fn says(server: &ServerProcess, line: &str, act: impl AsyncFn()) {
    until(PATIENCE, line, async || {
        act().await;
        (!server.log(line).is_empty()).then_some(())
    })
    .await;
}

/// All lines but records of changes, which name whom they concern whatever is set.
fn lines(server: &ServerProcess) -> Vec<String> {
    let (records, lines): (Vec<_>, Vec<_>) =
        server.log("").into_iter().partition(|line| line.contains(" audit: "));
    let [record] = &records[..] else { panic!("{records:?}") };
    assert!(
        record.contains(r#"id="mallory-plain""#) && record.contains("mallory-plain runs wild"),
        "{record}"
    );
    for line in LINES {
        assert!(lines.iter().any(|said| said.contains(line)), "no {line} in {lines:#?}");
    }
    lines
}

fn assert_no_name(lines: &[String]) {
    for line in lines {
        assert!(!NAMES.iter().any(|name| line.contains(name)), "{line}");
    }
}

/// The values of a field, where it is one.
fn values(lines: &[String], field: &str) -> BTreeSet<String> {
    let of = |line: &String| Some(line.split_once(&format!(" {field}=\""))?.1.split_once('"')?.0.to_owned());
    lines.iter().filter_map(of).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_are_as_they_are_unless_that_is_said() {
    let server = spoken(&[]).await;
    let lines = lines(&server);
    for name in NAMES {
        assert!(lines.iter().any(|line| line.contains(name)), "no {name} in {lines:#?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hashes_are_the_same_in_every_line_and_on_every_server_with_the_key() {
    let server = spoken(&[("QUOTA__LOG__ACCOUNTS", "hashed"), KEY]).await;
    let lines = lines(&server);
    assert_no_name(&lines);
    let about =
        |message: &str| lines.iter().filter(|line| line.contains(message)).cloned().collect::<Vec<_>>();
    for (message, field) in
        [("finished", "user"), ("account cut", "id"), ("account forgotten", "id"), (" denied ", "id")]
    {
        assert!(values(&about(message), field).contains(ALICE), "{:#?}", about(message));
    }
    for sentence in [about("account cut"), about("account forgotten")].concat() {
        assert!(sentence.contains(&format!("\"user {ALICE}: ")), "{sentence}");
    }
    assert_eq!(values(&lines, "id").len(), 2, "alice and mallory: {lines:#?}");
    let [broken] = &about("the store cannot serve an account")[..] else { panic!("{lines:#?}") };
    assert!(broken.contains("what is stored of user "), "{broken}");
    assert!(!server.process.stderr().contains(KEY.1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_are_left_out() {
    let server = spoken(&[("QUOTA__LOG__ACCOUNTS", "omitted")]).await;
    let lines = lines(&server);
    assert_no_name(&lines);
    for field in ["id", "user", "repo", "ip"] {
        assert!(values(&lines, field).is_empty(), "{lines:#?}");
    }
    assert!(lines.iter().any(|line| line.contains(r#"why="user is blocked""#)), "{lines:#?}");
}

#[tokio::test]
async fn a_key_of_the_process_is_told() {
    let server = ServerProcess::start(&[("QUOTA__LOG__ACCOUNTS", "hashed")]).await;
    assert_eq!(server.log("hashed with a key of this process alone").len(), 1);
    let keyed = ServerProcess::start(&[("QUOTA__LOG__ACCOUNTS", "hashed"), KEY]).await;
    assert_eq!(keyed.log("hashed with a key"), [""; 0]);
}

#[tokio::test]
async fn a_line_of_json_is_a_flat_object() {
    let settings = [("QUOTA__LOG__FORMAT", "json"), ("QUOTA__LIMITS__USER__CPU__INITIAL", "10s")];
    let server = ServerProcess::start(&settings).await;
    report(&server, &json!({ "user": "al\"ice" }), 12.34).await;
    check(&server, "al\"ice").await;
    let objects: Vec<Value> = server
        .log("")
        .iter()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}")))
        .collect();
    for object in &objects {
        let members = object.as_object().unwrap();
        assert!(members.values().all(|value| !value.is_object() && !value.is_array()), "{object}");
        for member in ["timestamp", "level", "target", "message"] {
            assert!(members[member].is_string(), "{object}");
        }
    }
    let denied: Vec<_> = objects.iter().filter(|object| object["message"] == "denied").collect();
    let [denied] = &denied[..] else { panic!("{objects:#?}") };
    let fields =
        [("level", "INFO"), ("kind", "user"), ("id", "al\"ice"), ("used", "12.3 s"), ("node", "gitaly-01")];
    for (field, value) in fields {
        assert_eq!(denied[field], value, "{denied}");
    }
}
