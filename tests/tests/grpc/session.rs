//! Sessions: a fileserver's line to a server.

use std::time::Duration;

use quota_proto::v1;
use quota_proto::v1::override_service_client::OverrideServiceClient;
use quota_proto::v1::quota_service_client::QuotaServiceClient;
use quota_proto::v1::session_request::Message as Said;
use quota_proto::v1::session_response::Message as Told;
use quota_proto::v1::{pressure_outcome, report_outcome};
use quota_tests::redis::RedisServer;
use quota_tests::server::{Clients, MEMORY, TestServer};
use quota_tests::wait::{PATIENCE, until};
use reqwest::Method;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status, Streaming};

/// Nothing is taken any more for so long.
const STALLED: Duration = Duration::from_secs(1);

struct Session {
    up: mpsc::Sender<v1::SessionRequest>,
    down: Streaming<v1::SessionResponse>,
}

impl Session {
    async fn begin(clients: &Clients, first: Said) -> Self {
        let (up, said) = mpsc::channel(64);
        up.try_send(request(first)).unwrap();
        let mut client = QuotaServiceClient::new(clients.channel.clone());
        let down = client.session(ReceiverStream::new(said)).await.unwrap().into_inner();
        Self { up, down }
    }

    /// Of the node `gitaly-01`, which wants to be told standings.
    async fn open(clients: &Clients) -> Self {
        Self::begin(clients, Said::Hello(hello("gitaly-01"))).await
    }

    async fn next(&mut self) -> Result<Option<Told>, Status> {
        let told = timeout(PATIENCE, self.down.message()).await.expect("a message, or the end")?;
        Ok(told.map(|told| told.message.expect("a message that says something")))
    }

    async fn ask(&mut self, said: Said) -> Told {
        self.up.send(request(said)).await.unwrap();
        self.next().await.unwrap().expect("an answer")
    }

    async fn report(&mut self, sequence: u64, charges: Vec<v1::Charge>) -> v1::ReportOutcome {
        let report = v1::ReportRequest {
            source: "gitaly-01/7".to_owned(),
            sequence,
            node: "gitaly-01".to_owned(),
            charges,
            ..v1::ReportRequest::default()
        };
        match self.ask(Said::Report(report)).await {
            Told::Report(outcome) => outcome,
            other => panic!("{other:?}"),
        }
    }
}

fn request(said: Said) -> v1::SessionRequest {
    v1::SessionRequest { message: Some(said) }
}

fn hello(node: &str) -> v1::Hello {
    v1::Hello { node: node.to_owned(), version: "test/1".to_owned(), standings: true }
}

fn charge(user: &str, micros: u64) -> v1::Charge {
    v1::Charge {
        accounts: Some(v1::Accounts { user: Some(user.to_owned()), ..v1::Accounts::default() }),
        cost: Some(v1::Cost { cpu_micros: micros, ..v1::Cost::default() }),
        ..v1::Charge::default()
    }
}

fn acknowledged(outcome: &v1::ReportOutcome) -> v1::ReportResponse {
    match outcome.outcome {
        Some(report_outcome::Outcome::Acknowledged(response)) => response,
        ref other => panic!("{other:?}"),
    }
}

fn failed(outcome: &v1::ReportOutcome) -> Status {
    match &outcome.outcome {
        Some(report_outcome::Outcome::Failure(failure)) => {
            Status::with_details(Code::from(failure.code), &failure.message, failure.details.clone().into())
        }
        other => panic!("{other:?}"),
    }
}

fn changed(told: Option<Told>) -> (Vec<(v1::Kind, String)>, bool) {
    match told {
        Some(Told::Changed(changed)) => {
            let accounts = changed.accounts.into_iter().map(|account| (account.kind(), account.id));
            (accounts.collect(), changed.all)
        }
        other => panic!("{other:?}"),
    }
}

fn alice() -> Vec<(v1::Kind, String)> {
    vec![(v1::Kind::User, "alice".to_owned())]
}

#[tokio::test]
async fn reports_count_once_and_are_answered_with_standings() {
    let server = TestServer::start(MEMORY, "").await;
    let mut session = Session::open(&server).await;
    let charges = vec![charge("alice", 7), charge("bob", 200_000_000), charge("alice", 5)];
    let outcome = session.report(1, charges.clone()).await;
    assert_eq!(acknowledged(&outcome).applied, 3);
    let told = |outcome: &v1::ReportOutcome| -> Vec<(String, u64, bool)> {
        let told = outcome.standings.iter();
        told.map(|told| (told.id.clone(), told.cpu.as_ref().unwrap().used, told.over)).collect()
    };
    let standings = [("alice".to_owned(), 12, false), ("bob".to_owned(), 200_000_000, true)];
    assert_eq!(told(&outcome), standings);

    // The same again, by the same session and by another.
    for _ in 0..2 {
        let outcome = session.report(1, charges.clone()).await;
        assert!(acknowledged(&outcome).duplicate, "{outcome:?}");
        assert_eq!(told(&outcome), standings);
        session = Session::open(&server).await;
    }
}

#[tokio::test]
async fn at_most_64_standings_are_told_and_none_where_none_are_wanted() {
    let server = TestServer::start(MEMORY, "").await;
    let charges: Vec<_> = (0..100).map(|number| charge(&format!("user-{number}"), 1)).collect();
    let outcome = Session::open(&server).await.report(1, charges.clone()).await;
    assert_eq!((acknowledged(&outcome).applied, outcome.standings.len()), (100, 64));
    let silent = Said::Hello(v1::Hello { standings: false, ..hello("gitaly-01") });
    let outcome = Session::begin(&server, silent).await.report(2, charges).await;
    assert_eq!((acknowledged(&outcome).applied, outcome.standings.len()), (100, 0));
}

#[tokio::test]
async fn what_is_wrong_with_a_report_ends_no_session() {
    let server = TestServer::start(MEMORY, "").await;
    let mut session = Session::open(&server).await;
    let outcome = session.report(1, vec![charge("alice", 1), charge("", 1)]).await;
    let status = failed(&outcome);
    assert_eq!(status.code(), Code::InvalidArgument);
    let details = tonic_types::StatusExt::get_error_details(&status);
    let violation = &details.bad_request().expect("the field").field_violations[0];
    assert_eq!(violation.field, "charges[1].accounts.user");
    assert_eq!(acknowledged(&session.report(1, vec![charge("alice", 1)]).await).applied, 1);
}

#[tokio::test]
async fn a_lost_store_is_told_and_the_report_counts_when_it_is_back() {
    let mut redis = RedisServer::start().await;
    let server = TestServer::start(&redis.url(), "").await;
    let mut session = Session::open(&server).await;
    redis.kill().await;
    assert_eq!(failed(&session.report(1, vec![charge("alice", 1)]).await).code(), Code::Unavailable);
    redis.restart().await;
    until(PATIENCE, "the report is taken", async || {
        let outcome = session.report(1, vec![charge("alice", 1)]).await;
        matches!(outcome.outcome, Some(report_outcome::Outcome::Acknowledged(_))).then_some(())
    })
    .await;
}

#[tokio::test]
async fn the_pressure_is_answered_with_the_limits_of_the_node() {
    let server = TestServer::start(MEMORY, "").await;
    let mut session = Session::open(&server).await;
    let tell = |node: &str| {
        Said::Pressure(v1::ReportPressureRequest {
            node: node.to_owned(),
            pressure: Some(v1::Pressure { cpu: Some(0.5), ..v1::Pressure::default() }),
            ..v1::ReportPressureRequest::default()
        })
    };
    for (node, code) in [("gitaly-01", None), ("", Some(Code::InvalidArgument))] {
        let Told::Pressure(outcome) = session.ask(tell(node)).await else { panic!("another answer") };
        match (outcome.outcome.unwrap(), code) {
            (pressure_outcome::Outcome::Response(response), None) => {
                assert!(response.node == node && response.limits.is_some(), "{response:?}");
            }
            (pressure_outcome::Outcome::Failure(failure), Some(code)) => {
                assert_eq!(Code::from(failure.code), code);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn what_operators_say_on_any_server_is_told_on_all() {
    let redis = RedisServer::start().await;
    let (first, second) =
        (TestServer::start(&redis.url(), "").await, TestServer::start(&redis.url(), "").await);
    let mut session = Session::open(&first).await;
    // It has begun when something is answered.
    session.report(1, vec![charge("alice", 1)]).await;
    let said = json!({ "blocked": true, "reason": "a test" });
    assert_eq!(
        second.http.account_override(Method::PUT, "user", "alice", &said.to_string()).await.status,
        200
    );
    assert_eq!(changed(session.next().await.unwrap()), (alice(), false));
    let mut operators = OverrideServiceClient::new(second.channel.clone());
    operators
        .delete(v1::DeleteOverrideRequest { kind: v1::Kind::User.into(), id: "alice".to_owned() })
        .await
        .unwrap();
    assert_eq!(changed(session.next().await.unwrap()), (alice(), false));
    let mode = json!({ "mode": "shadow", "reason": "a test" });
    assert_eq!(second.http.request(Method::PUT, "/v1/modes", mode.to_string()).await.status, 200);
    assert_eq!(changed(session.next().await.unwrap()), (Vec::new(), true));
}

#[tokio::test]
async fn a_session_begins_with_one_hello() {
    let server = TestServer::start(MEMORY, "").await;
    let report = || Said::Report(v1::ReportRequest::default());
    let mut session = Session::begin(&server, report()).await;
    assert_eq!(session.next().await.unwrap_err().code(), Code::InvalidArgument);

    let mut session = Session::open(&server).await;
    session.up.send(request(Said::Hello(hello("gitaly-01")))).await.unwrap();
    assert_eq!(session.next().await.unwrap_err().code(), Code::InvalidArgument);

    let long = v1::Hello { version: "x".repeat(65), ..hello("gitaly-01") };
    let mut session = Session::begin(&server, Said::Hello(long)).await;
    let status = session.next().await.unwrap_err();
    assert!(status.code() == Code::InvalidArgument && status.message().contains("hello.version"), "{status}");
}

#[tokio::test]
async fn open_sessions_are_counted_and_end_with_their_caller() {
    let server = TestServer::start(MEMORY, "").await;
    let shows = async |count: usize| {
        let line = format!("quota_sessions {count}");
        until(PATIENCE, &line, async || {
            server.http.get("/metrics").await.text().lines().any(|shown| shown == line).then_some(())
        })
        .await;
    };
    let mut sessions = [Session::open(&server).await, Session::open(&server).await];
    for (number, session) in sessions.iter_mut().enumerate() {
        session.report(number as u64 + 1, vec![charge("alice", 1)]).await;
    }
    shows(2).await;
    let [first, mut second] = sessions;
    // One goes without a word, one says that nothing more comes.
    drop(first);
    shows(1).await;
    second.up = mpsc::channel(1).0;
    assert_eq!(second.next().await.unwrap(), None);
    shows(0).await;
}

#[tokio::test]
async fn a_server_that_stops_says_so_and_is_held_up_by_nobody() {
    let server = TestServer::start(MEMORY, "shutdown.grace = \"10m\"\n").await;
    let clients = Clients::clone(&server);
    let mut session = Session::open(&clients).await;
    session.report(1, vec![charge("alice", 1)]).await;
    timeout(PATIENCE, server.stop()).await.expect("it stops");
    assert!(matches!(session.next().await.unwrap(), Some(Told::Drain(_))));
    assert_eq!(session.next().await.unwrap(), None);
}

/// Who sends and does not read is not read: nothing is piled up for it.
#[tokio::test]
async fn who_does_not_read_is_not_read() {
    let server = TestServer::start(MEMORY, "").await;
    let mut session = Session::open(&server).await;
    // Answers of some kilobytes each.
    let charges: Vec<_> = (0..64).map(|number| charge(&format!("user-{number}"), 1)).collect();
    let report = |sequence| {
        let source = "gitaly-01/7".to_owned();
        Said::Report(v1::ReportRequest {
            source,
            sequence,
            charges: charges.clone(),
            ..v1::ReportRequest::default()
        })
    };
    let mut sent = 0;
    while timeout(STALLED, session.up.send(request(report(sent + 1)))).await.is_ok() {
        sent += 1;
        assert!(sent < 100_000, "it reads on");
    }
    // And who reads again is answered all.
    for _ in 0..sent {
        assert!(matches!(session.next().await.unwrap(), Some(Told::Report(_))));
    }
}
