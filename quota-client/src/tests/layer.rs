use std::convert::Infallible;
use std::future::{Ready, pending, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use quota_core::Cost;
use quota_proto::v1::{self, quota_service_client::QuotaServiceClient};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic_types::StatusExt as _;
use tower::{Layer as _, Service, ServiceExt as _, service_fn};

use super::fake::{Check, Heard};
use super::*;
use crate::denial::tests::deny;
use crate::{Classification, Meter, MeteredBody, QuotaLayer};

type Body = Full<Bytes>;

/// `/check`, `/meter` and the rest.
fn classify(request: &Parts) -> Classification {
    match request.uri.path() {
        "/check" => Classification::Check(fetch()),
        "/meter" => Classification::MeterOnly(fetch()),
        _ => Classification::Skip,
    }
}

fn request(path: &str, content_type: &str) -> http::Request<Body> {
    let request = http::Request::post(path).header("content-type", content_type);
    request.body(Body::from("four")).unwrap()
}

/// Reads the request, and answers with seven bytes.
async fn answer(request: http::Request<MeteredBody<Body>>) -> Result<Response<Body>, Infallible> {
    let has_meter = request.extensions().get::<Meter>().is_some();
    let skipped = request.uri().path() == "/skip";
    assert_eq!(has_meter, !skipped);
    assert_eq!(request.into_body().collect().await.unwrap().to_bytes(), "four");
    Ok(Response::new(Body::from("seventy")))
}

fn bytes(heard: &Heard) -> u64 {
    let charges = heard.reports.iter().flat_map(|report| &report.charges);
    charges.map(|charge| charge.cost.unwrap().network_bytes).sum()
}

fn released(heard: &Heard) -> u64 {
    let charges = heard.reports.iter().flat_map(|report| &report.charges);
    charges.filter_map(|charge| charge.release).map(|release| release.network_bytes).sum()
}

#[tokio::test]
async fn both_bodies_count_until_the_response_has_ended() {
    let fake = Fake::start().await;
    fake.answers([Check::allow_reserving(Cost::ZERO.with_network_bytes(1000).unwrap())]);
    let client = builder([&fake]).report_interval(LONG).build().unwrap();
    let service = QuotaLayer::new(client.clone(), classify).layer(service_fn(answer));
    let response = service.oneshot(request("/check", "text/plain")).await.unwrap();
    assert!(client.shutdown(LONG).await);
    assert_eq!((bytes(&fake.heard()), released(&fake.heard())), (4, 4), "the response is not read yet");
    let mut body = response.into_body();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "seventy");
    assert!(body.frame().await.is_none());
    assert!(client.shutdown(LONG).await);
    assert_eq!(
        (bytes(&fake.heard()), released(&fake.heard())),
        (11, 1000),
        "it has ended, though not dropped"
    );
    assert_eq!(fake.heard().checks.len(), 1);
    drop(body);
}

#[tokio::test]
async fn what_is_metered_only_is_not_asked_about_and_the_rest_not_even_metered() {
    let fake = Fake::start().await;
    let client = builder([&fake]).build().unwrap();
    let service = QuotaLayer::new(client.clone(), classify).layer(service_fn(answer));
    for path in ["/meter", "/skip"] {
        let response = service.clone().oneshot(request(path, "text/plain")).await.unwrap();
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "seventy");
    }
    assert!(client.shutdown(LONG).await);
    assert_eq!((bytes(&fake.heard()), fake.heard().checks.len()), (11, 0));
}

#[tokio::test]
async fn a_question_is_in_the_trace_of_its_request() {
    const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    const OWN: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000001-01";
    let fake = Fake::start().await;
    let client = builder([&fake]).build().unwrap();
    let own = |request: &Parts| match request.headers.get("own-span") {
        Some(span) => {
            let span = HeaderMap::from_iter([("traceparent".parse().unwrap(), span.clone())]);
            Classification::Check(fetch().trace(&span))
        }
        None => classify(request),
    };
    let service = QuotaLayer::new(client, own).layer(service_fn(answer));
    let traced = [("traceparent", CALLER), ("own-span", OWN)];
    for headers in [&traced[..0], &traced[..1], &traced[..]] {
        let mut request = request("/check", "application/grpc");
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        service.clone().oneshot(request).await.unwrap();
    }
    let told = [None, Some(CALLER), Some(OWN)].map(|trace| trace.map(str::to_owned));
    assert_eq!(fake.heard().traces, told);
}

#[tokio::test]
async fn a_refused_request_does_not_reach_the_service() {
    let fake = Fake::start().await;
    fake.answers([Check::answer(deny(Duration::from_secs(12), false))]);
    let client = builder([&fake]).build().unwrap();
    let unreached = service_fn(|_: http::Request<MeteredBody<Body>>| async {
        Err::<Response<Body>, _>("it was reached")
    });
    let service = QuotaLayer::new(client.clone(), classify).layer(unreached);

    let plain = service.clone().oneshot(request("/check", "text/plain")).await.unwrap();
    assert_eq!(plain.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(plain.headers()["retry-after"], "12");
    let body = plain.into_body().collect().await.unwrap().to_bytes();
    let problem: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(problem["denied_by"]["id"], "alice");

    for content_type in ["application/grpc", "application/grpc+proto"] {
        let grpc = service.clone().oneshot(request("/check", content_type)).await.unwrap();
        assert_eq!(
            (grpc.status(), &grpc.headers()["content-type"]),
            (StatusCode::OK, &"application/grpc".parse().unwrap())
        );
        let status = tonic::Status::from_header_map(grpc.headers()).unwrap();
        assert_eq!(status.code(), tonic::Code::ResourceExhausted);
        assert!(status.message().starts_with("user alice is over its CPU quota"));
        assert!(grpc.into_body().collect().await.unwrap().to_bytes().is_empty(), "trailers only");
    }
    assert!(client.shutdown(LONG).await);
    assert!(fake.heard().reports.is_empty());
}

#[tokio::test]
async fn a_request_that_is_cancelled_or_panics_is_settled() {
    let fake = Fake::start().await;
    fake.answers([Check::allow_reserving(Cost::ZERO.with_network_bytes(50).unwrap())]);
    let client = builder([&fake]).build().unwrap();
    let reached = Arc::new(AtomicBool::new(false));
    let never = service_fn({
        let reached = Arc::clone(&reached);
        move |_: http::Request<MeteredBody<Body>>| {
            reached.store(true, SeqCst);
            pending::<Result<Response<Body>, Infallible>>()
        }
    });
    let mut call = Box::pin(
        QuotaLayer::new(client.clone(), classify).layer(never).oneshot(request("/check", "text/plain")),
    );
    let cancel = async {
        while !reached.load(SeqCst) {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! { _ = &mut call => unreachable!(), () = cancel => drop(call) }
    fake.hears(|heard| released(heard) == 50).await;

    let panics = service_fn(|_: http::Request<MeteredBody<Body>>| async {
        if true {
            panic!("as it should");
        }
        Ok::<Response<Body>, Infallible>(Response::default())
    });
    let service = QuotaLayer::new(client.clone(), classify).layer(panics);
    assert!(tokio::spawn(service.oneshot(request("/check", "text/plain"))).await.is_err());
    fake.hears(|heard| released(heard) == 100).await;
}

/// Insists that what is called was ready, which a clone is not.
#[derive(Default)]
struct Strict {
    ready: bool,
    called: Arc<AtomicUsize>,
}

impl Clone for Strict {
    fn clone(&self) -> Self {
        Self { ready: false, called: Arc::clone(&self.called) }
    }
}

impl Service<http::Request<MeteredBody<Body>>> for Strict {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: http::Request<MeteredBody<Body>>) -> Self::Future {
        assert!(std::mem::take(&mut self.ready), "called before it was ready");
        self.called.fetch_add(1, SeqCst);
        ready(Ok(Response::default()))
    }
}

#[tokio::test]
async fn the_service_that_is_called_is_the_one_that_was_ready() {
    let fake = Fake::start().await;
    let client = builder([&fake]).build().unwrap();
    let strict = Strict::default();
    let called = Arc::clone(&strict.called);
    let mut service = QuotaLayer::new(client, classify).layer(strict);
    for _ in 0..3 {
        service.ready().await.unwrap().call(request("/check", "text/plain")).await.unwrap();
    }
    assert_eq!(called.load(SeqCst), 3);
}

/// Of the service that is fenced in, any RPC will do.
#[tokio::test]
async fn a_tonic_server_is_fenced_in_as_it_is() {
    let (fake, fenced) = (Fake::start().await, Fake::start().await);
    fake.answers([Check::allow(), Check::answer(deny(Duration::from_secs(12), false))]);
    let client = builder([&fake]).build().unwrap();
    let layer = QuotaLayer::new(client, |_: &Parts| Classification::Check(fetch()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let server = tonic::transport::Server::builder().layer(layer).add_service(fenced.service());
    let serving = tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));

    let channel = tonic::transport::Endpoint::from_shared(address).unwrap().connect().await.unwrap();
    let mut caller = QuotaServiceClient::new(channel);
    let report = || v1::ReportRequest::default();
    assert!(caller.report(report()).await.is_ok());
    let refused = caller.report(report()).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::ResourceExhausted);
    let retry = refused.get_error_details().retry_info().unwrap().retry_delay;
    assert_eq!(retry, Some(Duration::from_secs(12)));
    assert_eq!(fenced.heard().reports.len(), 1);
    serving.abort();
}

#[tokio::test]
async fn an_axum_router_is_fenced_in_as_it_is() {
    let fake = Fake::start().await;
    let client = builder([&fake]).build().unwrap();
    let layer = QuotaLayer::new(client.clone(), |_: &Parts| Classification::Check(fetch()));
    let router = axum::Router::new().route("/", axum::routing::get(|| async { "seventy" })).layer(layer);
    let response = router.oneshot(http::Request::<axum::body::Body>::default()).await.unwrap();
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "seventy");
    fake.hears(|heard| bytes(heard) == 7).await;
}
