//! What a fileserver may charge, and whoever has its token: no more than its nodes can have spent.

use quota_proto::v1;
use quota_tests::http::Http;
use quota_tests::redis::RedisServer;
use quota_tests::server::{MEMORY, TestServer};
use quota_tests::wait::{PATIENCE, until};
use serde_json::{Value, json};
use tonic::Code;
use tonic_types::StatusExt as _;

use crate::grpc::with_token;
use crate::tokens::{TOKENS, configured, sha256, token};

/// Each role, and another fileserver; one may charge 10 s of CPU for each of its nodes, of which it has one.
async fn server() -> TestServer {
    let of = |name: &str, role: &str, token: &str| {
        configured(name, role, &format!("sha256 = \"{}\"", sha256(token)))
    };
    let tokens = TOKENS.map(|(role, token)| of(role, role, token)).concat();
    let other = of("other", "fileserver", OTHER);
    TestServer::start(MEMORY, &format!("charges.cpu = \"10s\"\n{tokens}{other}")).await
}

const OTHER: &str = "t0ken-of-another-fileserver";

fn report(sequence: u64, user: &str, seconds: f64) -> Value {
    let charge = json!({ "accounts": { "user": user }, "cost": { "cpu": seconds } });
    json!({ "source": "s", "sequence": sequence, "charges": [charge] })
}

async fn used(server: &TestServer, user: &str) -> f64 {
    let standing = server.http.with_token(token("admin")).account("user", user).await.json();
    standing["resources"]["cpu"]["used"].as_f64().unwrap()
}

fn counted(metrics: &str, what: &str) -> bool {
    metrics.lines().any(|line| line == format!("quota_beyond_charges_total{{what=\"{what}\"}} 1"))
}

#[tokio::test]
async fn who_steals_its_token_locks_out_few() {
    let server = server().await;
    let stolen = server.http.with_token(token("fileserver"));
    assert_eq!(stolen.post("/v1/report", &report(1, "alice", 4.0)).await.status, 200);
    assert_eq!(stolen.post("/v1/report", &report(1, "alice", 4.0)).await.json()["duplicate"], true);
    assert_eq!(
        stolen.post("/v1/report", &report(2, "alice", 5.0)).await.status,
        200,
        "it was not taken twice"
    );
    let refused = stolen.post("/v1/report", &report(3, "bob", 9.0)).await;
    assert_eq!((refused.status, refused.field().as_deref()), (400, Some("charges")), "{}", refused.text());
    assert_eq!((used(&server, "alice").await, used(&server, "bob").await), (9.0, 0.0));
    assert!(counted(server.http.get("/metrics").await.text(), "report"));

    // What did not count has taken nothing; and what is too old does not count.
    assert_eq!(stolen.post("/v1/report", &report(4, "bob", 0.5)).await.status, 200);
    let mut old = report(5, "bob", 1000.0);
    old["held_seconds"] = 60.into();
    assert_eq!(stolen.post("/v1/report", &old).await.json()["dropped_old"], 1);
    // Another is not bound by it, and an admin by nothing.
    let other = server.http.with_token(OTHER);
    assert_eq!(other.post("/v1/report", &report(1, "carol", 9.0)).await.status, 200);
    let admin = server.http.with_token(token("admin"));
    assert_eq!(admin.post("/v1/report", &report(1, "dave", 1000.0)).await.status, 200);
}

#[tokio::test]
async fn what_is_denied_or_given_back_takes_nothing() {
    let server = server().await;
    let fileserver = server.http.with_token(token("fileserver"));
    let admin = server.http.with_token(token("admin"));
    assert_eq!(admin.post("/v1/report", &report(1, "heavy", 1000.0)).await.status, 200);
    let check = async |user: &str| {
        let body = json!({ "accounts": { "user": user }, "price": { "cpu": 4.0 } });
        fileserver.post("/v1/check", &body).await
    };
    for _ in 0..10 {
        assert_eq!(check("heavy").await.status, 429);
    }
    for number in 0..10 {
        let answer = check("light").await.json();
        assert_eq!(answer["reserved"]["cpu"].as_f64(), Some(4.0), "{number}: {answer}");
        let charge = json!({ "accounts": { "user": "light" }, "reservation": answer["reservation"] });
        let report = json!({ "source": "s", "sequence": number + 1, "charges": [charge] });
        assert_eq!(fileserver.post("/v1/report", &report).await.status, 200);
    }
    assert_eq!(used(&server, "light").await, 0.0);
    // What was reserved by nobody gives nothing back.
    let [first, second] = [check("light").await.json(), check("light").await.json()];
    assert_eq!(second["reserved"]["cpu"].as_f64(), Some(4.0));
    for sequence in 11..15 {
        let charge = json!({ "accounts": { "user": "light" }, "reservation": first["reservation"] });
        let report = json!({ "source": "s", "sequence": sequence, "charges": [charge] });
        assert_eq!(fileserver.post("/v1/report", &report).await.status, 200);
    }
    let reserved: f64 = [check("light").await, check("light").await, check("light").await]
        .iter()
        .map(|answer| answer.json()["reserved"]["cpu"].as_f64().unwrap())
        .sum();
    assert_eq!(reserved, 8.0, "10 s, of which two were given back, whoever took them");
}

/// A report that its account cannot take is sent again, and counts in the end: it is paid for once.
#[tokio::test]
async fn a_report_that_fails_is_paid_for_once_however_often_it_is_sent() {
    let tokens =
        TOKENS.map(|(role, token)| configured(role, role, &format!("sha256 = \"{}\"", sha256(token))));
    let settings = format!("charges.cpu = \"10s\"\nstore.max_accounts = 1000\n{}", tokens.concat());
    let server = TestServer::start(MEMORY, &settings).await;
    let admin = server.http.with_token(token("admin"));
    // The store is full, for the first time, for this one.
    let mut users = (0..).map(|number| format!("user-{number}"));
    let full = loop {
        let user = users.next().unwrap();
        let mut report = report(1, &user, 0.001);
        report["source"] = user.as_str().into();
        match admin.post("/v1/report", &report).await.status {
            200 => {}
            status => break (status == 503).then_some(user).unwrap(),
        }
    };
    let fileserver = server.http.with_token(token("fileserver"));
    for _ in 0..5 {
        assert_eq!(fileserver.post("/v1/report", &report(1, &full, 6.0)).await.status, 503);
    }
    for other in [report(1, "user-0", 6.0), report(1, &full, 9.0)] {
        let answer = fileserver.post("/v1/report", &other).await;
        assert_eq!(answer.status, 400, "another under the same mark is not paid for: {}", answer.text());
    }
    assert_eq!(fileserver.post("/v1/report", &report(2, "user-0", 4.0)).await.status, 200);
    assert_eq!(
        fileserver.post("/v1/report", &report(3, "user-0", 2.0)).await.status,
        400,
        "it has charged 10 s"
    );
}

#[tokio::test]
async fn no_more_of_its_reports_are_on_their_way_than_leave_room_for_others() {
    let mut redis = RedisServer::start().await;
    let of =
        |role: &str, token: &str| configured(role, "fileserver", &format!("sha256 = \"{}\"", sha256(token)));
    let tokens = [of("one", token("fileserver")), of("other", OTHER)].concat();
    let server = TestServer::start(&redis.url(), &tokens).await;
    let one = server.http.with_token(token("fileserver"));
    assert_eq!(one.post("/v1/report", &report(1, "alice", 0.1)).await.status, 200);
    redis.pause().await;
    let says = async |http: &Http| http.post("/v1/report", &report(2, "alice", 0.1)).await.text().to_owned();
    let said = futures::future::join_all((0..8).map(|_| says(&one))).await;
    let refused = said.iter().filter(|said| said.contains("4 reports of one are on their way")).count();
    assert_eq!(refused, 4, "{said:?}");
    assert!(!says(&server.http.with_token(OTHER)).await.contains("on their way"));
    redis.resume().await;
    until(PATIENCE, "there is room again", async || {
        let answer = one.post("/v1/report", &report(2, "alice", 0.1)).await;
        (answer.status == 200).then_some(())
    })
    .await;
}

#[tokio::test]
async fn the_same_is_said_over_grpc() {
    let server = server().await;
    let charge = v1::Charge {
        accounts: Some(v1::Accounts { user: Some("alice".to_owned()), ..v1::Accounts::default() }),
        cost: Some(v1::Cost { cpu_micros: 11_000_000, ..v1::Cost::default() }),
        ..v1::Charge::default()
    };
    let report = v1::ReportRequest { charges: vec![charge], ..v1::ReportRequest::default() };
    let report = with_token(report, Some(token("fileserver")));
    let status = server.grpc.clone().report(report).await.unwrap_err();
    let violations = status.get_details_bad_request().unwrap().field_violations;
    assert_eq!((status.code(), violations[0].field.as_str()), (Code::InvalidArgument, "charges"));
    assert_eq!(used(&server, "alice").await, 0.0);
}

#[tokio::test]
async fn a_check_beyond_it_is_decided_on_and_reserves_nothing() {
    let server = server().await;
    let stolen = server.http.with_token(token("fileserver"));
    let check = async |user: &str| {
        let body = json!({ "accounts": { "user": user }, "price": { "cpu": 8.0 } });
        let answer = stolen.post("/v1/check", &body).await;
        assert_eq!((answer.status, &answer.json()["checked"]), (200, &json!(true)));
        answer.json()["reserved"]["cpu"].as_f64().unwrap()
    };
    assert_eq!((check("alice").await, check("bob").await), (8.0, 0.0));
    assert_eq!((used(&server, "alice").await, used(&server, "bob").await), (8.0, 0.0));
    assert!(counted(server.http.get("/metrics").await.text(), "check"));
    // Who is over the limit is refused all the same.
    let admin = server.http.with_token(token("admin"));
    assert_eq!(admin.post("/v1/report", &report(1, "bob", 1000.0)).await.status, 200);
    let body = json!({ "accounts": { "user": "bob" }, "price": { "cpu": 8.0 } });
    assert_eq!(stolen.post("/v1/check", &body).await.status, 429);
}
