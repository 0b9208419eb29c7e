//! Who may, from where, to which database.

use std::time::Duration;

use futures::FutureExt as _;
use quota_core::{Adaptations, Book, NodeReport, Said};
use quota_server::store::{Board, Cause, RedisStore, Saying, Store, StoreError};
use quota_tests::redis::RedisServer;
use quota_tests::server::ServerProcess;
use quota_tests::stores::Opening;
use quota_tests::values::{cpu, enforced, mark, spending, user};

use crate::raw::{Raw, key};
use crate::{admit, report, used};

/// What the server needs of an ACL user, and nothing beside it: its keys are `q1:*`; the scripts on accounts call TIME,
/// GETRANGE, SET, SETRANGE, PTTL and PEXPIRE, those on nodes HMGET, HSET, DEL and ZREVRANGE too; posts what both do;
/// those on words of operators HGET, HGETALL, HLEN, HEXISTS and HDEL; the probe SET; and PING where a
/// connection may have broken.
const COMMANDS: [&str; 23] = [
    "evalsha",
    "script|load",
    "time",
    "getrange",
    "set",
    "setrange",
    "pttl",
    "pexpire",
    "hset",
    "hget",
    "hgetall",
    "hlen",
    "hexists",
    "hdel",
    "hmget",
    "del",
    "expire",
    "zadd",
    "zcard",
    "zremrangebyscore",
    "zrevrange",
    "zscore",
    "ping",
];

fn rules() -> String {
    COMMANDS
        .iter()
        .fold("resetchannels ~q1:* -@all".to_owned(), |rules, command| format!("{rules} +{command}"))
}

/// Everything that the store does.
async fn everything(store: &RedisStore, raw: &Raw) -> Result<(), StoreError> {
    let (alice, broken) = (user("alice"), user("broken"));
    raw.run::<()>(&["DEL", &key(&alice), "q1:nodes"]).await;
    raw.run::<()>(&["SET", &key(&broken), "nan"]).await;
    raw.run::<()>(&["SCRIPT", "FLUSH"]).await;
    store.connect().await?;
    // Twice in a second, so that the head alone is written, and in vain.
    for _ in 0..20 {
        admit(store, &alice, enforced(1000), cpu(1)).await?;
    }
    admit(store, &alice, enforced(1), cpu(1)).await?;
    store.settle(&report(mark("r", 1), [spending(&alice, &[(0, 1)])])).await?;
    used(store, &alice).await?;
    store.probe().await?;
    raw.run::<()>(&["SET", "q1:{node:broken}", "garbage"]).await;
    for node in ["a", "broken"] {
        store.calibrate(node, &NodeReport::default(), &Adaptations::default()).await?;
    }
    assert_eq!(store.nodes().await?.nodes.len(), 2);
    store.post(Board::Top, 0, b"posted").await?;
    store.posts(Board::Top, Duration::from_secs(60)).await?;
    operators(store, raw).await?;
    // What came of this call is not known, so the connection is asked before the next.
    assert!(store.probe().now_or_never().is_none(), "it is given up before its answer");
    store.probe().await?;
    match used(store, &broken).await {
        Err(StoreError::Corrupt(_)) if raw.pttl(&broken).await > 0 => Ok(()),
        Err(error) => Err(error),
        Ok(_) => panic!("what cannot be read was read"),
    }
}

/// The same of what operators say, of which as much is said as may be, and ended long ago.
async fn operators(store: &RedisStore, raw: &Raw) -> Result<(), StoreError> {
    let ended = (0..Book::MOST).flat_map(|number| [format!("user:{number}"), "\0".repeat(14)]);
    let full: Vec<String> = ["HSET", "q1:overrides"].map(str::to_owned).into_iter().chain(ended).collect();
    raw.run::<()>(&["DEL", "q1:overrides"]).await;
    raw.run::<()>(&full.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let heard = store.say(Saying { name: "user:alice", text: Some(b"text"), lasts: None }).await?;
    assert_eq!(heard.said, Said::Done { before: None });
    let book = store.words(0).await?.book.expect("a word");
    let words: Vec<_> = book.iter().map(|(name, word)| (name.into(), word.clone())).collect();
    assert_eq!((words.len(), store.restore(&words).await?), (1, 0));
    Ok(())
}

/// What Redis has refused.
async fn denials(raw: &Raw) -> Vec<redis::Value> {
    raw.run(&["ACL", "LOG"]).await
}

#[tokio::test]
async fn f06_a_wrong_password_is_told_at_the_start() {
    let server = RedisServer::options().password("secret").start().await;
    for credentials in [":wrong@", "", "nobody:secret@"] {
        let url = format!("redis://{credentials}127.0.0.1:{}", server.port());
        let error = Opening::default().connect(&url).await.err().expect("a refusal");
        assert_eq!(error.cause(), Cause::Denied, "{error}");
        assert!(!error.to_string().contains("wrong") && !error.to_string().contains("secret"), "{error}");
    }
    let store = Opening::default().connect(&server.url()).await.expect("the right password");
    store.probe().await.unwrap();
}

#[tokio::test]
async fn a_user_with_these_commands_and_keys_can_do_everything() {
    let server = RedisServer::options().acl_user("quota", "secret", &rules()).start().await;
    let raw = Raw::new(&server).await;
    let store = Opening { pool_size: 1, ..Opening::default() }.open(&server.url());
    everything(&store, &raw).await.unwrap();

    assert_eq!(denials(&raw).await, []);
}

#[tokio::test]
async fn a_user_without_one_of_them_cannot() {
    let server = RedisServer::options().acl_user("quota", "secret", &rules()).start().await;
    let raw = Raw::new(&server).await;
    let store = Opening { pool_size: 1, ..Opening::default() }.open(&server.url());
    for command in COMMANDS {
        raw.run::<()>(&["ACL", "SETUSER", "quota", &format!("-{command}")]).await;
        raw.run::<()>(&["ACL", "LOG", "RESET"]).await;
        let outcome = everything(&store, &raw).await;
        assert!(!denials(&raw).await.is_empty(), "{command} is not used");
        // Without these, a connection that may have broken is made anew.
        if command != "ping" {
            let error = outcome.expect_err(command);
            // Redis 7.0 gives no code to what a script may not do.
            assert!(matches!(error.cause(), Cause::Denied | Cause::Malformed), "{command}: {error}");
        }
        raw.run::<()>(&["ACL", "SETUSER", "quota", &format!("+{command}")]).await;
    }
    raw.run::<()>(&["ACL", "SETUSER", "quota", "resetkeys", "~q2:*"]).await;
    let error = everything(&store, &raw).await.expect_err("keys of somebody else");
    assert_eq!(error.cause(), Cause::Denied, "{error}");
}

#[tokio::test]
async fn the_database_of_the_address_is_used() {
    let server = RedisServer::start().await;
    let raw = Raw::new(&server).await;
    let alice = user("alice");
    let third = Opening::default().connect(&format!("{}/3", server.url())).await.unwrap();
    admit(&third, &alice, enforced(100), cpu(10)).await.unwrap();
    assert_eq!(used(&Opening::default().open(&server.url()), &alice).await.unwrap(), 0);
    assert_eq!(used(&third, &alice).await.unwrap(), 10);
    let keyspace: String = raw.run(&["INFO", "keyspace"]).await;
    assert!(keyspace.contains("db3:") && !keyspace.contains("db0"), "{keyspace}");
}

#[tokio::test]
async fn a_password_of_any_characters_goes_into_the_address_encoded() {
    let server = RedisServer::start().await;
    Raw::new(&server).await.run::<()>(&["CONFIG", "SET", "requirepass", "p@ss/w:o?r#d %41é"]).await;
    let url = format!("redis://:p%40ss%2Fw%3Ao%3Fr%23d%20%2541%C3%A9@127.0.0.1:{}", server.port());
    let store = Opening::default().connect(&url).await.unwrap();
    store.probe().await.unwrap();
}

#[tokio::test]
async fn tls_trusts_the_authorities_that_the_system_names() {
    let server = RedisServer::options().tls().password("secret").start().await;
    let (url, ca_file) = (server.url(), server.ca_file().display().to_string());
    assert!(url.starts_with("rediss://"));
    let quota = ServerProcess::start(&[("QUOTA__STORE__URL", &url), ("SSL_CERT_FILE", &ca_file)]).await;
    let body = serde_json::json!({"accounts": {"user": "alice"}, "price": {"cpu": 1.5}});
    let answer = quota.http.post("/v1/check", &body).await;
    assert_eq!((answer.status, &answer.json()["checked"]), (200, &true.into()), "{}", answer.text());
    assert!(Raw::new(&server).await.pttl(&user("alice")).await > 0, "it is in Redis");
}

#[tokio::test]
async fn f06_tls_to_a_server_that_nobody_vouches_for_is_refused() {
    let server = RedisServer::options().tls().start().await;
    let error = Opening::default().connect(&server.url()).await.err().expect("a refusal");
    assert_eq!(error.cause(), Cause::Denied, "{error}");
    assert!(error.to_string().to_lowercase().contains("certificate"), "{error}");
}

#[tokio::test]
async fn f06_tls_to_a_port_without_is_refused() {
    let server = RedisServer::start().await;
    let url = server.url().replace("redis://", "rediss://");
    let error = Opening::default().connect(&url).await.err().expect("a refusal");
    assert_eq!(error.cause(), Cause::Denied, "{error}");
}
