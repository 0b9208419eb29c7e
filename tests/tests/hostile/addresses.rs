//! Who asks is who the body names (F27): headers that name addresses change nothing, and nobody is an account of his own.

use std::collections::BTreeSet;

use quota_core::{Account, Kind};
use quota_proto::v1;
use quota_tests::redis::RedisServer;
use quota_tests::server::ServerProcess;
use redis::AsyncCommands as _;
use reqwest::Client;
use serde_json::{Value, json};

/// What a proxy says, and a caller who is none may.
const HEADERS: [(&str, &str); 10] = [
    ("x-forwarded-for", "127.0.0.1, 198.51.100.9"),
    ("x-forwarded-for", "198.51.100.9:5123"),
    ("x-forwarded-for", "[2001:db8::1]:443"),
    ("x-forwarded-for", ""),
    ("x-forwarded-for", "unknown"),
    ("forwarded", "for=127.0.0.1;proto=https, for=\"[2001:db8::1]:443\""),
    ("client-ip", "127.0.0.1"),
    ("x-client-ip", "10.0.0.1"),
    ("x-real-ip", "198.51.100.9"),
    ("true-client-ip", "198.51.100.9"),
];

async fn check(server: &ServerProcess, accounts: &Value, headers: &[(&str, &str)]) -> Value {
    let url = format!("http://{}/v1/check", server.http.address());
    let body = json!({ "accounts": accounts, "price": { "cpu": 1.0 } }).to_string();
    let request = Client::builder().no_proxy().build().unwrap().post(url);
    let request = request.header("content-type", "application/json").body(body);
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    let answer = request.send().await.unwrap();
    assert_eq!(answer.status().as_u16(), 200);
    let answer: Value = serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
    assert_eq!(answer["checked"], true);
    answer
}

async fn check_by_grpc(server: &ServerProcess, accounts: v1::Accounts) {
    let price = Some(v1::Cost { cpu_micros: 1_000_000, ..v1::Cost::default() });
    let check = v1::CheckRequest { accounts: Some(accounts), price, ..v1::CheckRequest::default() };
    let mut request = tonic::Request::new(check);
    for (name, value) in HEADERS {
        request.metadata_mut().append(name, value.parse().unwrap());
    }
    assert!(server.grpc.clone().check(request).await.unwrap().into_inner().checked);
}

/// The accounts that anything is kept of.
async fn kept(redis: &RedisServer) -> BTreeSet<String> {
    let keys: Vec<String> = redis.client().await.keys("q1:{*:*}").await.unwrap();
    keys.into_iter().filter(|key| !key.starts_with("q1:{node:")).collect()
}

fn keys(accounts: &[(Kind, &str)]) -> BTreeSet<String> {
    let key =
        |(kind, id): &(Kind, &str)| format!("q1:{{{}}}", Account::from_spelling(*kind, id).unwrap().key());
    accounts.iter().map(key).collect()
}

#[tokio::test]
async fn f27_headers_that_name_an_address_change_nothing() {
    let redis = RedisServer::start().await;
    let server = ServerProcess::start(&[("QUOTA__STORE__URL", &redis.url())]).await;
    let end_user = json!({ "repo": "r", "user": "u", "ip": "203.0.113.7" });
    for number in 0..HEADERS.len() {
        check(&server, &end_user, &HEADERS[number..=number]).await;
    }
    check(&server, &end_user, &HEADERS).await;
    let wire = |ip: Option<&str>| v1::Accounts {
        repo: Some("r".into()),
        user: Some("u".into()),
        ip: ip.map(str::to_owned),
    };
    check_by_grpc(&server, wire(Some("203.0.113.7"))).await;
    // Without an address none is charged: not the one of a header, and not the one that asks.
    check(&server, &json!({ "repo": "r", "user": "u" }), &HEADERS).await;
    check_by_grpc(&server, wire(None)).await;

    let all = [(Kind::Repo, "r"), (Kind::User, "u"), (Kind::Ip, "203.0.113.7")];
    assert_eq!(kept(&redis).await, keys(&all));
    let used = server.http.account("ip", "203.0.113.7").await.json()["resources"]["cpu"]["used"].clone();
    assert_eq!(used, (HEADERS.len() + 2) as f64);
}

/// An anonymous request is limited by its address and its repository, and nobody shares an account with all who are.
#[tokio::test]
async fn f27_who_has_no_name_is_charged_by_address_and_repository_alone() {
    let redis = RedisServer::start().await;
    let server = ServerProcess::start(&[("QUOTA__STORE__URL", &redis.url())]).await;
    let answer = check(&server, &json!({ "repo": "r", "ip": "203.0.113.7" }), &[]).await;
    let kinds: Vec<_> = answer["standings"].as_array().unwrap().iter().map(|of| of["kind"].clone()).collect();
    assert_eq!(kinds, ["repo", "ip"]);
    check(&server, &json!({ "repo": "r" }), &[]).await;
    assert_eq!(kept(&redis).await, keys(&[(Kind::Repo, "r"), (Kind::Ip, "203.0.113.7")]));
}
