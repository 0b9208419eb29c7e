//! Bodies that are no request: broken, doubled, nested, in another shape or encoding.

use crate::victim::{ACCOUNTS, Victim};

fn check(accounts: &str) -> String {
    format!(r#"{{"accounts":{accounts},"price":{{"cpu":1}}}}"#)
}

#[tokio::test]
async fn broken_json_is_refused() {
    let mut victim = Victim::in_memory().await;
    let whole = check(ACCOUNTS);
    let broken = [
        String::new(),
        " ".to_owned(),
        "\u{feff}".to_owned() + &whole,
        whole.clone() + "x",
        whole.clone() + &whole,
        whole.clone() + ",",
        whole.clone() + "\0",
        "null".to_owned(),
        "1".to_owned(),
        "\"accounts\"".to_owned(),
        "[]".to_owned(),
        format!("[{whole}]"),
        format!("{{'accounts':{ACCOUNTS}}}"),
        format!("{{accounts:{ACCOUNTS}}}"),
    ];
    for body in broken {
        victim.refuses("/v1/check", body, "body").await;
    }
    // Every beginning of a good body: none of it may count.
    for end in 1..whole.len() {
        let answer = victim.server.http.post_bytes("/v1/check", whole[..end].to_owned()).await;
        assert_eq!(answer.status, 400, "{}", &whole[..end]);
        assert!(answer.field().is_some());
    }
    victim.assert_untouched("beginnings").await;
    victim.assert_sound().await;
}

#[tokio::test]
async fn every_object_is_an_object_with_known_keys_each_once() {
    let mut victim = Victim::in_memory().await;
    for (body, field) in [
        (format!(r#"{{"accounts":{ACCOUNTS},"accounts":{ACCOUNTS}}}"#), "body"),
        (check(r#"{"user":"u","user":"v"}"#), "accounts"),
        (format!(r#"{{"accounts":{ACCOUNTS},"price":{{"cpu":1,"cpu":2}}}}"#), "price"),
        (check(r#"{"user":"u","group":"g"}"#), "accounts.group"),
        (format!(r#"{{"accounts":{ACCOUNTS},"prices":{{}}}}"#), "prices"),
        (format!(r#"{{"accounts":{ACCOUNTS},"price":{{"disk":1}}}}"#), "price.disk"),
        (check(r#"["r","u","192.0.2.1"]"#), "accounts"),
        (check("[]"), "accounts"),
        (check("\"u\""), "accounts"),
        (check("null"), "accounts"),
        (check("{}"), "accounts"),
        ("{}".to_owned(), "accounts"),
        (check(r#"{"user":["u"]}"#), "accounts.user"),
        (check(r#"{"user":7}"#), "accounts.user"),
        (format!(r#"{{"accounts":{ACCOUNTS},"price":[1,1,1]}}"#), "price"),
        (format!(r#"{{"accounts":{ACCOUNTS},"price":1}}"#), "price"),
        (format!(r#"{{"accounts":{ACCOUNTS},"used_here":[]}}"#), "used_here"),
        (format!(r#"{{"accounts":{ACCOUNTS},"used_here":{{"user":{{"cpu":-1}}}}}}"#), "used_here.user.cpu"),
    ] {
        victim.refuses("/v1/check", body, field).await;
    }
    for (body, field) in [
        (r#"["s",1,0,"n",[]]"#.to_owned(), "body"),
        (format!(r#"{{"charges":{{"accounts":{ACCOUNTS}}}}}"#), "charges"),
        (format!(r#"{{"charges":[[{ACCOUNTS},{{"cpu":1}},0,"",null]]}}"#), "charges[0]"),
        (format!(r#"{{"charges":[{{"accounts":{ACCOUNTS},"cost":[1,1,1]}}]}}"#), "charges[0].cost"),
        (r#"{"charges":[{"cost":{"cpu":1}}]}"#.to_owned(), "charges[0].accounts"),
    ] {
        victim.refuses("/v1/report", body, field).await;
    }
    for (body, field) in [
        (r#"{"requests":[["r","u"]]}"#, "requests[0]"),
        (r#"{"requests":{"user":"u"}}"#, "requests"),
        (r#"{"requests":[{"user":"u"},{"user":"u","users":"v"}]}"#, "requests[1].users"),
        (r#"{"requests":[{"user":"u","attempt":-1}]}"#, "requests[0].attempt"),
        (r#"{"requests":[{"user":"u","node":"\n"}]}"#, "requests[0].node"),
        (r#"{"requests":[{"node":"n"}]}"#, "requests[0]"),
    ] {
        victim.refuses("/v1/backoff", body, field).await;
    }
    for query in ["user=u&user=v", "user=u&group=g", "user=u&attempt=1&attempt=2"] {
        let answer = victim.server.http.get(&format!("/v1/backoff?{query}")).await;
        assert_eq!(answer.status, 400, "{query}: {answer:?}");
    }
    victim.assert_sound().await;
}

/// Far deeper than any stack would bear.
#[tokio::test]
async fn deep_nesting_is_refused() {
    const DEPTH: usize = 10_000;
    let mut victim = Victim::in_memory().await;
    let arrays = "[".repeat(DEPTH);
    let closed = "[".repeat(DEPTH) + &"]".repeat(DEPTH);
    let objects = r#"{"accounts":"#.repeat(DEPTH) + "1" + &"}".repeat(DEPTH);
    victim.refuses("/v1/check", arrays, "body").await;
    victim.refuses("/v1/check", check(&closed), "accounts").await;
    victim.refuses("/v1/check", format!(r#"{{"x":{closed}}}"#), "x").await;
    victim.refuses("/v1/check", objects, "accounts.accounts").await;
    victim.refuses("/v1/report", format!(r#"{{"charges":{closed}}}"#), "charges[0]").await;
    victim.assert_sound().await;
}

#[tokio::test]
async fn what_is_not_utf8_is_refused() {
    let mut victim = Victim::in_memory().await;
    for bytes in [&b"\xff"[..], b"\xc0\xaf", b"\xed\xa0\x80", b"caf\xe9", b"\xf5\x80\x80\x80"] {
        let body = [br#"{"accounts":{"user":""#, bytes, br#""}}"#].concat();
        victim.refuses("/v1/check", body, "accounts.user").await;
    }
    victim.refuses("/v1/check", check(r#"{"user":"\ud800"}"#), "accounts.user").await;
    for path in [
        "/v1/accounts/user/%ff",
        "/v1/accounts/repo/a%c0%afb",
        "/v1/accounts/%ff/u",
        "/v1/accounts/user/u?node=%ff",
    ] {
        let answer = victim.server.http.get(path).await;
        assert_eq!(answer.status, 400, "{path}: {}", answer.text());
        assert!(answer.field().is_some(), "{path}");
    }
    for (query, field) in
        [("user=%ff", "user"), ("repo=r&user=a%c0%af", "user"), ("user=u&node=%ed%a0%80", "node")]
    {
        let answer = victim.server.http.get(&format!("/v1/backoff?{query}")).await;
        crate::victim::assert_refused(&answer, field, query);
    }
    victim.assert_sound().await;
}
