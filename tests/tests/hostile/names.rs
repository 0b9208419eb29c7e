//! Names of accounts that try to be something else: valid ones are accounts of their own, the rest is refused.

use quota_proto::v1;
use serde_json::{Value, json};

use crate::victim::{Victim, assert_refused};

/// Quotes, braces, separators, escapes and what a key or a label could trip over: valid, and of nobody else.
const ODD: [&str; 20] = [
    "{u}",
    "u}",
    "{u",
    "}{",
    "user:u",
    "q1:{user:u}",
    "#u",
    "%75",
    "\"u\"",
    "'u'",
    "\\u",
    "\\n",
    "u ",
    " u",
    "U",
    "ü",
    "u\u{308}",
    "💥",
    "*",
    "?[u]",
];

#[tokio::test]
async fn f12_odd_names_are_accounts_of_their_own() {
    for mut victim in Victim::each().await {
        let long = "x".repeat(1024);
        let almost = "x".repeat(1023);
        let names: Vec<&str> = ODD.into_iter().chain([long.as_str(), almost.as_str()]).collect();
        let charges: Vec<Value> =
            names.iter().map(|name| json!({ "accounts": { "user": name }, "cost": { "cpu": 1 } })).collect();
        assert_eq!(victim.server.http.post("/v1/report", &json!({ "charges": charges })).await.status, 200);
        for name in names {
            let body = victim.server.http.account("user", name).await.json();
            assert_eq!((&body["id"], &body["resources"]["cpu"]["used"]), (&json!(name), &json!(1.0)));
            let request =
                v1::GetStandingRequest { kind: v1::Kind::User.into(), id: name.into(), node: String::new() };
            let standing = victim.server.grpc.clone().get_standing(request).await.unwrap().into_inner();
            assert_eq!((standing.id.as_str(), standing.cpu.unwrap().used), (name, 1_000_000));
        }
        victim.assert_untouched("odd names").await;
        victim.assert_sound().await;
    }
}

#[tokio::test]
async fn names_that_are_none_are_refused() {
    let mut victim = Victim::in_memory().await;
    let mebibyte = "x".repeat(1 << 20);
    let over = "x".repeat(1025);
    for name in ["", "a\0b", "\0", "u\n", "u\r\nX: y", "\u{1b}[31m", "\u{7f}", "\u{85}", &over, &mebibyte] {
        for kind in ["repo", "user", "ip"] {
            let accounts = json!({ kind: name });
            let check = json!({ "accounts": accounts, "price": { "cpu": 1 } }).to_string();
            victim.refuses("/v1/check", check, &format!("accounts.{kind}")).await;
            let charge = json!({ "accounts": accounts, "cost": { "cpu": 1 } });
            let report = json!({ "charges": [charge] }).to_string();
            victim.refuses("/v1/report", report, &format!("charges[0].accounts.{kind}")).await;
        }
    }
    for (field, name) in
        [("node", "n\n"), ("rpc", "\0"), ("class", "c\u{7f}"), ("rpc", &mebibyte), ("node", &over)]
    {
        let check = json!({ "accounts": { "user": "u" }, field: name }).to_string();
        victim.refuses("/v1/check", check, field).await;
    }
    victim.assert_sound().await;
}

#[tokio::test]
async fn names_in_paths_and_queries_are_held_to_the_same() {
    let mut victim = Victim::in_memory().await;
    let long = "x".repeat(1025);
    for (path, field) in [
        ("/v1/accounts/group/g", "kind"),
        ("/v1/accounts/USER/u", "kind"),
        ("/v1/accounts/%75ser%20/u", "kind"),
        ("/v1/accounts/user/a%00b", "id"),
        ("/v1/accounts/user/a%0ab", "id"),
        ("/v1/accounts/repo/a%2F..%2Fb", "id"),
        ("/v1/accounts/ip/unknown", "id"),
        ("/v1/accounts/user/u?node=a%0ab", "node"),
        ("/v1/backoff", "accounts"),
        ("/v1/backoff?user=", "accounts.user"),
        ("/v1/backoff?user=a%00b", "accounts.user"),
        ("/v1/backoff?ip=127.0.0.1,%20198.51.100.9", "accounts.ip"),
        (&format!("/v1/backoff?user={long}"), "accounts.user"),
        (&format!("/v1/accounts/user/{long}"), "id"),
    ] {
        assert_refused(&victim.server.http.get(path).await, field, path);
    }
    victim.assert_sound().await;
}

#[tokio::test]
async fn nodes_beyond_a_thousand_are_refused_and_those_that_are_known_go_on() {
    let mut victim = Victim::in_memory().await;
    let http = victim.server.http.clone();
    let tell = async |node: String| http.post("/v1/pressure", &json!({ "node": node, "cpu": 0.5 })).await;
    for number in 0..1000 {
        assert_eq!(tell(format!("node-{number}")).await.status, 200);
    }
    let refused = tell("one more".to_owned()).await;
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")), "{}", refused.text());
    assert!(refused.text().contains("problems/too-many-nodes"), "{}", refused.text());
    let request =
        v1::ReportPressureRequest { node: "one more".into(), ..v1::ReportPressureRequest::default() };
    let status = victim.server.grpc.clone().report_pressure(request).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::ResourceExhausted);
    assert_eq!(tell("node-7".to_owned()).await.status, 200);
    assert_eq!(http.get("/v1/nodes").await.json()["nodes"].as_array().unwrap().len(), 1000);
    victim.assert_untouched("nodes").await;
    victim.assert_sound().await;
}
