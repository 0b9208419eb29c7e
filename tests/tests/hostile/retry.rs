//! When a denied caller may come back (F25): rounded up, spread, never too early, and true.

use std::time::{Duration, Instant};

use quota_tests::server::{MEMORY, TestServer};
use quota_tests::wait::{PATIENCE, until};
use reqwest::Method;
use serde_json::{Value, json};

const LIMIT: &str = "limits.user.cpu.initial = \"10s\"\n";

/// Seconds, as the answer to a deny says them: with jitter, and exactly.
fn waits(body: &Value) -> (f64, f64) {
    (
        body["retry_after_seconds"].as_f64().unwrap(),
        body["standings"][0]["retry_after_seconds"].as_f64().unwrap(),
    )
}

async fn spend_all(server: &TestServer) {
    let report = json!({ "charges": [{ "accounts": { "user": "u" }, "cost": { "cpu": 10 } }] });
    assert_eq!(server.http.post("/v1/report", &report).await.status, 200);
}

#[tokio::test]
async fn f25_two_hundred_denied_callers_are_spread_and_none_is_early() {
    let server = TestServer::start(MEMORY, LIMIT).await;
    spend_all(&server).await;
    let ask = json!({ "accounts": { "user": "u" }, "price": {} });
    let mut factors = Vec::new();
    for _ in 0..200 {
        let answer = server.http.post("/v1/check", &ask).await;
        assert_eq!(answer.status, 429);
        let (wait, exact) = waits(&answer.json());
        let header: u64 = answer.header("retry-after").unwrap().parse().unwrap();
        assert_eq!(header, (wait.ceil() as u64).max(1));
        assert!((1..=72).contains(&header), "{header}");
        factors.push(wait / exact);
    }
    let (least, most) =
        factors.iter().fold((f64::MAX, f64::MIN), |(least, most), f| (least.min(*f), most.max(*f)));
    assert!(least >= 1.0 && most <= 1.2 + 1e-9, "{least} to {most}");
    // Of 200 even draws, all in one half is a matter of 1 in 10^57.
    assert!(most - least >= 0.1, "{least} to {most}");
}

/// A client asks again and again. It is told no until the moment that it was named, and yes from then on.
#[tokio::test]
async fn f25_who_waits_as_long_as_told_is_allowed_and_not_before() {
    let server = TestServer::start(MEMORY, &format!("{LIMIT}window.length = \"3s\"\n")).await;
    spend_all(&server).await;
    // Nothing is reserved, so that asking does not put the moment off.
    let ask = json!({ "accounts": { "user": "u" }, "price": {} });
    let sent = Instant::now();
    let denied = server.http.post("/v1/check", &ask).await;
    let answered = Instant::now();
    assert_eq!(denied.status, 429);
    let (wait, exact) = waits(&denied.json());
    assert!(exact > 1.0 && exact <= 3.0, "{exact}");

    until(PATIENCE, "the check is allowed", async || {
        let asked = answered.elapsed().as_secs_f64();
        let answer = server.http.post("/v1/check", &ask).await;
        match answer.status {
            429 => {
                assert!(asked < wait, "denied {asked} s after it was told to wait {wait} s");
                assert!(answer.header("retry-after").unwrap().parse::<u64>().unwrap() >= 1);
                None
            }
            200 => {
                // The clocks of the machine may differ by a few milliseconds over seconds.
                let passed = sent.elapsed() + Duration::from_millis(10);
                assert!(passed.as_secs_f64() >= exact, "allowed after {passed:?}, not {exact} s");
                Some(())
            }
            _ => panic!("{answer:?}"),
        }
    })
    .await;
}

#[tokio::test]
async fn f25_who_is_over_a_limit_that_was_lowered_is_told_when_to_come_back() {
    let server = TestServer::start(MEMORY, LIMIT).await;
    let spent = json!({ "charges": [{ "accounts": { "user": "u" }, "cost": { "cpu": 5 } }] });
    assert_eq!(server.http.post("/v1/report", &spent).await.status, 200);
    let ask = json!({ "accounts": { "user": "u" }, "price": {} });
    assert_eq!(server.http.post("/v1/check", &ask).await.status, 200);

    let lower = json!({ "limits": { "cpu": "1s" }, "reason": "an incident" }).to_string();
    assert_eq!(server.http.account_override(Method::PUT, "user", "u", &lower).await.status, 200);
    let denied = server.http.post("/v1/check", &ask).await;
    assert_eq!(denied.status, 429);
    let (wait, exact) = waits(&denied.json());
    assert!(exact > 0.0 && exact <= 60.0 && wait >= exact, "{wait} of {exact}");
    let header: u64 = denied.header("retry-after").unwrap().parse().unwrap();
    assert_eq!(header, (wait.ceil() as u64).max(1));
    let backoff = server.http.get("/v1/backoff?user=u").await;
    let told: u64 = backoff.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=72).contains(&told), "{told}");
}
