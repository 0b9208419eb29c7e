//! A client of the earlier wire format, of the present server.

use quota_tests::redis::RedisServer;
use quota_tests::server::{MEMORY, TestServer};
use tonic::transport::Channel;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use crate::old::check_response::Decision;
use crate::old::quota_service_client::QuotaServiceClient;
use crate::old::{
    Accounts, BackoffRequest, Charge, CheckRequest, CheckResponse, Cost, GetStandingRequest, Kind, Limit,
    Mode, ReportRequest, ReportResponse, Resource, limit,
};

const SECOND: u64 = 1_000_000;

/// Long, so that nothing leaves it while a test runs.
const SETTINGS: &str = "window.length = \"10m\"\nlimits.user.cpu.initial = \"10s\"\n";

type Client = QuotaServiceClient<Channel>;

fn alice() -> Option<Accounts> {
    Some(Accounts { user: Some("alice".into()), ..Accounts::default() })
}

fn cpu(seconds: u64) -> Option<Cost> {
    Some(Cost { cpu_micros: seconds * SECOND, ..Cost::default() })
}

async fn check(client: &mut Client, node: &str) -> Result<CheckResponse, Status> {
    let (accounts, price) = (alice(), cpu(2));
    let check = CheckRequest { node: node.into(), accounts, price, ..CheckRequest::default() };
    client.check(check).await.map(tonic::Response::into_inner)
}

async fn report(client: &mut Client, sequence: u64, charge: Charge) -> Result<ReportResponse, Status> {
    let (source, charges) = ("gitaly-01/1".into(), vec![charge]);
    let report = ReportRequest { source, sequence, charges, ..ReportRequest::default() };
    client.report(report).await.map(tonic::Response::into_inner)
}

/// The whole of its day: allowed, settled, told twice, over, refused, and refused for what it asks.
async fn assert_works(client: &mut Client) {
    let allowed = check(client, "gitaly-01").await.unwrap();
    assert_eq!((allowed.decision(), allowed.checked, allowed.reserved), (Decision::Allow, true, cpu(2)));
    assert_eq!(allowed.standings[0].kind(), Kind::User);

    let reservation = allowed.reservation;
    let settling = Charge { accounts: alice(), cost: cpu(1), reservation, ..Charge::default() };
    let counted = report(client, 1, settling.clone()).await.unwrap();
    assert_eq!((counted.applied, counted.duplicate), (1, false));
    let again = report(client, 1, settling).await.unwrap();
    assert_eq!((again.applied, again.duplicate), (0, true));

    let question = GetStandingRequest { kind: Kind::User.into(), id: "alice".into(), node: String::new() };
    let standing = client.get_standing(question).await.unwrap().into_inner();
    let cpu_standing = standing.cpu.unwrap();
    assert_eq!((standing.over, cpu_standing.used, cpu_standing.mode()), (false, SECOND, Mode::Enforce));

    let heavy = Charge { accounts: alice(), cost: cpu(300), ..Charge::default() };
    report(client, 2, heavy).await.unwrap();
    let denied = check(client, "gitaly-01").await.unwrap();
    assert_eq!((denied.decision(), denied.reserved), (Decision::Deny, None));
    let breach = denied.denied_by.unwrap();
    assert_eq!((breach.kind(), &*breach.id, breach.resource()), (Kind::User, "alice", Resource::Cpu));
    assert_eq!(breach.used, 301 * SECOND);
    assert!(matches!(breach.limit, Some(Limit { limit: Some(limit::Limit::Amount(_)) })));
    assert!(denied.retry_after.unwrap().seconds > 0);

    let question = BackoffRequest { accounts: alice(), ..BackoffRequest::default() };
    let backoff = client.backoff(question).await.unwrap().into_inner();
    assert_eq!((backoff.backoff, backoff.denied_by.unwrap().used), (true, 301 * SECOND));

    let status = client.check(CheckRequest::default()).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
    assert_eq!(status.get_details_bad_request().unwrap().field_violations[0].field, "accounts");
}

#[tokio::test]
async fn it_works_on_each_store() {
    let redis = RedisServer::start().await;
    for store in [MEMORY, &redis.url()] {
        let server = TestServer::start(store, SETTINGS).await;
        assert_works(&mut Client::new(server.channel.clone())).await;
    }
}

/// It does not say what it used there, and is told which limit was reached without being told whose.
#[tokio::test]
async fn it_works_where_limits_are_adapted() {
    let redis = RedisServer::start().await;
    for store in [MEMORY, &redis.url()] {
        let settings = format!(
            "{SETTINGS}adapt.cpu.rule = \"aimd\"\nadapt.cpu.interval = \"60s\"\nlimits.user.cpu.max = \"200s\"\n"
        );
        let server = TestServer::start(store, &settings).await;
        assert_works(&mut Client::new(server.channel.clone())).await;
    }
}

#[tokio::test]
async fn a_store_that_is_lost_is_told_in_the_same_words() {
    let mut redis = RedisServer::start().await;
    let server = TestServer::start(&redis.url(), SETTINGS).await;
    let mut client = Client::new(server.channel.clone());
    redis.kill().await;
    let unchecked = check(&mut client, "gitaly-01").await.unwrap();
    assert_eq!(
        (unchecked.decision(), unchecked.checked, &*unchecked.reservation),
        (Decision::Allow, false, "")
    );
    let charge = Charge { accounts: alice(), cost: cpu(1), ..Charge::default() };
    let status = report(&mut client, 1, charge).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable, "{status:?}");
    assert!(status.get_details_retry_info().is_some(), "{status:?}");
}
