//! Slots and permits together, as the layer takes them.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::Path;
use axum::routing::get;
use http::request::Parts;
use quota_client::{Classification, Client, QuotaLayer, Request, Settings};
use quota_tests::server::{MEMORY, TestServer};
use quota_tests::wait::PATIENCE;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tower::ServiceExt as _;

use super::until_so;

const RPC: &str = "/gitaly.SSHService/SSHUploadPack";

fn classify(parts: &Parts) -> Classification {
    let repo = parts.uri.path().trim_start_matches('/').to_owned();
    Classification::Check(Request::rpc(RPC).repo(repo).user("alice").class("ci"))
}

/// Asks for a repository, and answers the status.
fn ask(router: &Router, repo: &str) -> tokio::task::JoinHandle<u16> {
    let (router, request) = (router.clone(), http::Request::get(format!("/{repo}")));
    let request = request.body(Body::empty()).unwrap();
    tokio::spawn(async move { router.oneshot(request).await.unwrap().status().as_u16() })
}

#[tokio::test]
async fn a_busy_repository_keeps_no_class_from_others() {
    let settings = "classes.default.lease = \"1s\"\nclasses.ci = { slots = 2, service = \"patient\", max_wait = \"60s\" }\n";
    let server = TestServer::start(MEMORY, settings).await;
    let limit = format!(
        "[[concurrency]]\nrpc = {RPC:?}\nper = \"repo\"\nlimit = 1\nmax_queue = 10\nmax_wait = \"1h\"\n"
    );
    let client = Client::builder()
        .endpoints([format!("http://{}", server.grpc_address())])
        .node("gitaly-01")
        .deadline(PATIENCE)
        .rpcs([RPC])
        .settings(Settings::from_toml(&limit).unwrap())
        .endpoints([format!("http://{}", server.grpc_address())])
        .build()
        .unwrap();
    until_so("the store leases", async || client.slot(&Request::rpc(RPC).class("ci"), None).await.is_ok())
        .await;

    // Of `busy` one runs until it may end, and three queue behind it.
    let may_end = Arc::new(Semaphore::new(0));
    let handler = {
        let may_end = Arc::clone(&may_end);
        move |Path(repo): Path<String>| async move {
            if repo == "busy" {
                may_end.acquire().await.unwrap().forget();
            }
        }
    };
    let router =
        Router::new().route("/{repo}", get(handler)).layer(QuotaLayer::new(client.clone(), classify));
    let busy: Vec<_> = (0..4).map(|_| ask(&router, "busy")).collect();
    until_so("three queue", async || client.stats().allowed >= 4).await;
    for _ in 0..10 {
        let other = timeout(PATIENCE, ask(&router, "other")).await.expect("nothing holds it up");
        assert_eq!(other.unwrap(), 200, "one slot is free, whoever queues for the busy repository");
    }
    may_end.add_permits(4);
    for ended in busy {
        assert_eq!(timeout(PATIENCE, ended).await.expect("it goes on").unwrap(), 200);
    }
}
