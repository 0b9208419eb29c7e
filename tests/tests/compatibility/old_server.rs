//! The present client of a server of the earlier wire format, which knows no pressure.

use std::time::Duration;

use quota_client::{Cause, Client, Decision, Kind, Request};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tonic::transport::server::TcpIncoming;
use tonic::{Response, Status};
use tower::util::MapRequestLayer;

use crate::old;
use crate::old::check_response;
use crate::old::quota_service_server::{QuotaService, QuotaServiceServer};

/// Far longer than anything here takes.
const LONG: Duration = Duration::from_secs(60);

/// A server that denies bob, allows everybody else, and remembers what it was asked.
#[derive(Clone, Default)]
struct OldServer(watch::Sender<Heard>);

#[derive(Debug, Default)]
struct Heard {
    /// The paths of all calls, of those that it does not know too.
    paths: Vec<String>,
    reports: Vec<old::ReportRequest>,
}

fn price() -> old::Cost {
    old::Cost { cpu_micros: 10_000, ..old::Cost::default() }
}

#[tonic::async_trait]
impl QuotaService for OldServer {
    async fn check(
        &self,
        request: tonic::Request<old::CheckRequest>,
    ) -> Result<Response<old::CheckResponse>, Status> {
        let accounts = request.into_inner().accounts.unwrap_or_default();
        if accounts.user.as_deref() == Some("bob") {
            let limit = old::Limit { limit: Some(old::limit::Limit::Amount(100_000_000)) };
            let denied_by = old::Breach {
                kind: old::Kind::User.into(),
                id: "bob".into(),
                resource: old::Resource::Cpu.into(),
                used: 200_000_000,
                limit: Some(limit),
            };
            return Ok(Response::new(old::CheckResponse {
                decision: check_response::Decision::Deny.into(),
                checked: true,
                denied_by: Some(denied_by),
                retry_after: Some(prost_types::Duration { seconds: 7, nanos: 0 }),
                ..old::CheckResponse::default()
            }));
        }
        Ok(Response::new(old::CheckResponse {
            decision: check_response::Decision::Allow.into(),
            reserved: Some(price()),
            reservation: "r1.7".into(),
            checked: true,
            ..old::CheckResponse::default()
        }))
    }

    async fn report(
        &self,
        request: tonic::Request<old::ReportRequest>,
    ) -> Result<Response<old::ReportResponse>, Status> {
        let report = request.into_inner();
        let applied = u32::try_from(report.charges.len()).unwrap();
        self.0.send_modify(|heard| heard.reports.push(report));
        Ok(Response::new(old::ReportResponse { applied, ..old::ReportResponse::default() }))
    }

    async fn get_standing(
        &self,
        _: tonic::Request<old::GetStandingRequest>,
    ) -> Result<Response<old::Standing>, Status> {
        Err(Status::unimplemented("not for fileservers"))
    }

    async fn backoff(
        &self,
        _: tonic::Request<old::BackoffRequest>,
    ) -> Result<Response<old::BackoffResponse>, Status> {
        Err(Status::unimplemented("not for fileservers"))
    }
}

impl OldServer {
    /// Serves it until the set is dropped. Returns its address.
    async fn serve(&self, serving: &mut JoinSet<()>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let heard = self.0.clone();
        let hear = MapRequestLayer::new(move |request: http::Request<tonic::body::Body>| {
            heard.send_modify(|heard| heard.paths.push(request.uri().path().to_owned()));
            request
        });
        let service = QuotaServiceServer::new(self.clone());
        let server = tonic::transport::Server::builder().layer(hear).add_service(service);
        serving.spawn(async move { server.serve_with_incoming(TcpIncoming::from(listener)).await.unwrap() });
        format!("http://{address}")
    }

    async fn hears(&self, what: &str, condition: impl FnMut(&Heard) -> bool) {
        let mut heard = self.0.subscribe();
        let waited = tokio::time::timeout(LONG, heard.wait_for(condition)).await;
        waited.unwrap_or_else(|_| panic!("not heard: {what}: {:?}", self.0.borrow())).unwrap();
    }
}

#[tokio::test]
async fn it_admits_refuses_and_reports_and_pressure_is_no_fault_of_the_server() {
    let (server, mut serving) = (OldServer::default(), JoinSet::new());
    let address = server.serve(&mut serving).await;
    let client = Client::builder().endpoints([address]).node("gitaly-01").deadline(LONG).build().unwrap();
    // Were it counted as a fault, three in a row would set the only server aside.
    server
        .hears("pressure, four times", |heard| {
            heard.paths.iter().filter(|path| path.ends_with("/ReportPressure")).count() >= 4
        })
        .await;

    let Decision::Allow(admission) = client.admit(&Request::rpc("/svc/Fetch").user("alice")).await else {
        panic!("denied")
    };
    assert!(admission.checked());
    admission.meter().cpu(Duration::from_micros(2500));
    drop(admission);
    server.hears("a report", |heard| !heard.reports.is_empty()).await;
    assert!(client.shutdown(LONG).await, "all is reported");
    let charges: Vec<_> =
        server.0.borrow().reports.iter().flat_map(|report| report.charges.clone()).collect();
    let charged: u64 = charges.iter().filter_map(|charge| charge.cost).map(|cost| cost.cpu_micros).sum();
    let released: u64 = charges.iter().filter_map(|charge| charge.release).map(|cost| cost.cpu_micros).sum();
    assert_eq!((charged, released), (2500, price().cpu_micros));
    assert!(charges.iter().any(|charge| charge.reservation == "r1.7"));

    let Decision::Deny(denial) = client.admit(&Request::rpc("/svc/Fetch").user("bob")).await else {
        panic!("allowed")
    };
    let Cause::OverQuota(over) = denial.cause() else { panic!("{denial:?}") };
    assert_eq!((over.kind, &*over.id, denial.retry_after()), (Kind::User, "bob", Duration::from_secs(7)));
    let stats = client.stats();
    assert_eq!((stats.allowed, stats.denied, stats.allowed_unchecked, stats.charges_lost), (1, 1, 0, 0));
}
