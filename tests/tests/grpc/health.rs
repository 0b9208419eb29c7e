//! Health over gRPC is what `/readyz` says.

use quota_tests::redis::RedisServer;
use quota_tests::server::{Clients, MEMORY, TestServer};
use quota_tests::wait::{PATIENCE, until};
use tonic::{Code, Status, Streaming};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

/// The server as a whole, and its service.
const NAMES: [&str; 2] = ["", "quota.v1.QuotaService"];

async fn health(clients: &Clients, service: &str) -> Result<ServingStatus, Status> {
    let request = HealthCheckRequest { service: service.to_owned() };
    let response = HealthClient::new(clients.channel.clone()).check(request).await?;
    Ok(response.into_inner().status())
}

/// Whether it is ready, as both protocols say it.
async fn is_ready(clients: &Clients) -> bool {
    until(PATIENCE, "an answer that does not change meanwhile", async || {
        let before = clients.http.get("/readyz").await.status;
        let mut told = Vec::new();
        for name in NAMES {
            told.push(health(clients, name).await.unwrap());
        }
        let after = clients.http.get("/readyz").await.status;
        let serving = if before == 200 { ServingStatus::Serving } else { ServingStatus::NotServing };
        (before == after).then(|| assert_eq!(told, [serving; 2], "/readyz says {before}"))?;
        Some(before == 200)
    })
    .await
}

/// What it says from now on, of each name.
struct Watched(Vec<Streaming<HealthCheckResponse>>);

impl Watched {
    async fn of(clients: &Clients) -> Self {
        let mut streams = Vec::new();
        for name in NAMES {
            streams.push(watch(clients, name).await);
        }
        Self(streams)
    }

    async fn tells(&mut self, status: ServingStatus) {
        for stream in &mut self.0 {
            assert_eq!(next(stream).await.expect("a status").status(), status);
        }
    }

    async fn end(mut self) {
        for stream in &mut self.0 {
            assert_eq!(next(stream).await, None);
        }
    }
}

async fn watch(clients: &Clients, service: &str) -> Streaming<HealthCheckResponse> {
    let request = HealthCheckRequest { service: service.to_owned() };
    HealthClient::new(clients.channel.clone()).watch(request).await.unwrap().into_inner()
}

async fn next(stream: &mut Streaming<HealthCheckResponse>) -> Option<HealthCheckResponse> {
    tokio::time::timeout(PATIENCE, stream.message()).await.expect("a message, or the end").unwrap()
}

#[tokio::test]
async fn a_lost_store_and_its_return_are_told_by_both_protocols() {
    let mut redis = RedisServer::start().await;
    let server = TestServer::start(&redis.url(), "").await;
    assert!(is_ready(&server).await);
    let mut watched = Watched::of(&server).await;
    watched.tells(ServingStatus::Serving).await;

    redis.kill().await;
    watched.tells(ServingStatus::NotServing).await;
    assert!(!is_ready(&server).await);
    // Who comes now is told so at once.
    Watched::of(&server).await.tells(ServingStatus::NotServing).await;

    redis.restart().await;
    watched.tells(ServingStatus::Serving).await;
    until(PATIENCE, "it is ready again", async || is_ready(&server).await.then_some(())).await;
}

#[tokio::test]
async fn draining_is_told_by_both_protocols_while_requests_are_still_taken() {
    let server = TestServer::start(MEMORY, "shutdown.drain = \"10m\"\n").await;
    let clients = Clients::clone(&server);
    assert!(is_ready(&clients).await);
    let mut watched = Watched::of(&clients).await;
    watched.tells(ServingStatus::Serving).await;

    let stopping = tokio::spawn(server.stop());
    watched.tells(ServingStatus::NotServing).await;
    assert!(!is_ready(&clients).await);
    assert!(clients.http.get("/readyz").await.text().contains("draining"));
    assert_eq!(clients.http.get("/v1/backoff?user=alice").await.status, 200);
    stopping.abort();
}

#[tokio::test]
async fn those_who_watch_are_told_of_a_stop_and_do_not_hold_it_up() {
    let server = TestServer::start(MEMORY, "shutdown.grace = \"10m\"\n").await;
    let mut watched = Watched::of(&server).await;
    watched.tells(ServingStatus::Serving).await;
    tokio::time::timeout(PATIENCE, server.stop()).await.expect("it stops");
    watched.tells(ServingStatus::NotServing).await;
    watched.end().await;
}

#[tokio::test]
async fn a_service_that_is_not_there_is_not_known() {
    let server = TestServer::start(MEMORY, "").await;
    assert_eq!(health(&server, "quota.v1.Other").await.unwrap_err().code(), Code::NotFound);
    let mut stream = watch(&server, "quota.v1.Other").await;
    assert_eq!(next(&mut stream).await.unwrap().status(), ServingStatus::ServiceUnknown);
}
