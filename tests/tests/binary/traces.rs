//! Spans of requests, as a collector is told of them, and what becomes of requests when none listens.

use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use quota_proto::v1;
use quota_tests::collector::{Collector, attribute};
use quota_tests::ports::Port;
use quota_tests::process::Signal;
use quota_tests::server::ServerProcess;
use quota_tests::wait::{PATIENCE, until};
use serde_json::{Value, json};
use tokio::net::TcpListener;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";
/// However many are asked, each is let in.
const UNLIMITED: (&str, &str) = ("QUOTA__LIMITS__USER__CPU__MODE", "off");

const LOST: &str = "spans cannot be sent, and are dropped";

fn caller(is_sampled: bool) -> String {
    format!("00-{TRACE}-{CALLER}-0{}", u8::from(is_sampled))
}

fn hex(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

async fn start(collector: &str, settings: &[(&str, &str)]) -> ServerProcess {
    let settings: Vec<_> = [("QUOTA__TRACE__OTLP", collector)].iter().chain(settings).copied().collect();
    ServerProcess::start(&settings).await
}

async fn stop(mut server: ServerProcess) -> ServerProcess {
    server.process.signal(Signal::TERM);
    assert_eq!(server.process.wait_for_exit().await.code(), Some(0));
    server
}

fn body() -> Value {
    json!({ "node": "gitaly-01", "rpc": "/svc/Clone", "accounts": { "user": "alice-plain" }, "price": { "cpu": 5.0 } })
}

/// A check over HTTP, by a caller who is at this place in a trace.
async fn check_http(server: &ServerProcess, traceparent: Option<&str>) -> u16 {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let request = client.post(format!("http://{}/v1/check", server.http.address())).json(&body());
    let request =
        traceparent.into_iter().fold(request, |request, place| request.header("traceparent", place));
    request.send().await.unwrap().status().as_u16()
}

async fn check_grpc(server: &ServerProcess) {
    let accounts = Some(v1::Accounts { user: Some("alice-plain".into()), ..v1::Accounts::default() });
    let (node, rpc) = ("gitaly-01".into(), "/svc/Clone".into());
    let mut request =
        tonic::Request::new(v1::CheckRequest { node, rpc, accounts, ..v1::CheckRequest::default() });
    request.metadata_mut().insert("traceparent", caller(true).parse().unwrap());
    server.grpc.clone().check(request).await.unwrap();
}

#[track_caller]
fn assert_attributes(span: &Span, expected: &[(&str, &str)]) {
    for (key, value) in expected {
        assert_eq!(attribute(span, key).as_deref(), Some(*value), "{key} of {span:#?}");
    }
}

/// The spans of a request and of the one call to the store that it makes.
async fn pair(collector: &Collector, name: &str) -> (Span, Span) {
    let request = collector.hears(name, 1).await.remove(0);
    assert_eq!((hex(&request.trace_id), hex(&request.parent_span_id)), (TRACE.into(), CALLER.into()));
    assert_eq!(request.kind(), SpanKind::Server);
    assert_attributes(&request, &[("quota.node", "gitaly-01"), ("quota.rpc", "/svc/Clone")]);
    let calls = collector.hears("store admit", 1).await;
    let call = calls.into_iter().find(|call| call.parent_span_id == request.span_id).unwrap();
    assert_eq!(call.trace_id, request.trace_id);
    assert_attributes(&call, &[("db.operation.name", "admit")]);
    (request, call)
}

#[tokio::test]
async fn a_check_is_within_the_trace_of_its_caller_over_http() {
    let collector = Collector::start().await;
    let server = start(&collector.url(), &[("QUOTA__LIMITS__USER__CPU__INITIAL", "10s")]).await;
    assert_eq!(check_http(&server, Some(&caller(true))).await, 200);
    let (request, call) = pair(&collector, "POST /v1/check").await;
    assert_attributes(
        &request,
        &[
            ("http.request.method", "POST"),
            ("http.route", "/v1/check"),
            ("http.response.status_code", "200"),
            ("quota.outcome", "allow"),
        ],
    );
    assert!(call.status.is_none_or(|status| status.code() == StatusCode::Unset));

    assert_eq!(check_http(&server, None).await, 200);
    assert_eq!(check_http(&server, None).await, 429);
    let spans = collector.hears("POST /v1/check", 3).await;
    let [second, denied] = &spans[1..] else { panic!("{spans:#?}") };
    assert_ne!(hex(&denied.trace_id), TRACE, "a trace of its own");
    assert_ne!(denied.trace_id, second.trace_id);
    assert_eq!(denied.parent_span_id, [0; 0]);
    assert_attributes(denied, &[("http.response.status_code", "429"), ("quota.outcome", "deny")]);

    server.http.account("user", "alice-plain").await;
    collector.hears("GET /v1/accounts/{kind}/{*id}", 1).await;
    stop(server).await;
    for span in collector.spans().iter().filter(|span| span.name.starts_with("store")) {
        assert_eq!(span.parent_span_id.len(), 8, "what no request asks is no span: {span:#?}");
    }
    let told = format!("{:?}", collector.told());
    assert!(told.contains("quota-server") && !told.contains("alice-plain"), "{told}");
}

#[tokio::test]
async fn a_check_is_within_the_trace_of_its_caller_over_grpc() {
    let collector = Collector::start().await;
    let server = start(&collector.url(), &[]).await;
    check_grpc(&server).await;
    let (request, _) = pair(&collector, "quota.v1.QuotaService/Check").await;
    assert_attributes(
        &request,
        &[
            ("rpc.system", "grpc"),
            ("rpc.service", "quota.v1.QuotaService"),
            ("rpc.method", "Check"),
            ("rpc.grpc.status_code", "0"),
            ("quota.outcome", "allow"),
        ],
    );
    server.grpc.clone().check(v1::CheckRequest::default()).await.unwrap_err();
    let invalid = collector.hears("quota.v1.QuotaService/Check", 2).await.remove(1);
    assert_attributes(&invalid, &[("rpc.grpc.status_code", "3")]);
    assert_eq!(attribute(&invalid, "quota.outcome"), None);
}

#[tokio::test]
async fn a_store_that_is_lost_is_seen_in_the_span_of_its_call() {
    let (collector, nobody) = (Collector::start().await, Port::free());
    let url = format!("redis://127.0.0.1:{}", nobody.number());
    let server = start(&collector.url(), &[("QUOTA__STORE__URL", &url)]).await;
    assert_eq!(check_http(&server, Some(&caller(true))).await, 200);
    let (request, call) = pair(&collector, "POST /v1/check").await;
    assert_attributes(&request, &[("quota.outcome", "unchecked")]);
    assert_attributes(&call, &[("error.type", "connection")]);
    assert_eq!(call.status.unwrap().code(), StatusCode::Error);
}

#[tokio::test]
async fn callers_decide_whether_they_are_traced_and_the_share_is_of_the_others() {
    let collector = Collector::start().await;
    let server = start(&collector.url(), &[("QUOTA__TRACE__SAMPLE", "0")]).await;
    for place in [None, Some(caller(false)), Some("no place".to_owned()), Some(caller(true))] {
        assert_eq!(check_http(&server, place.as_deref()).await, 200);
    }
    stop(server).await;
    let spans = collector.spans();
    let names: Vec<_> = spans.iter().map(|span| &*span.name).collect();
    assert_eq!(names, ["store admit", "POST /v1/check"], "{spans:#?}");
    assert!(spans.iter().all(|span| hex(&span.trace_id) == TRACE));
}

#[tokio::test]
async fn a_collector_that_is_away_changes_nothing_and_is_told_once() {
    let port = Port::free();
    let server = start(&format!("http://127.0.0.1:{}", port.number()), &[UNLIMITED]).await;
    let mut asked = 0;
    until(PATIENCE, "it is told", async || {
        asked += 1;
        assert_eq!(check_http(&server, None).await, 200);
        // Several messages are lost after the first.
        (asked > 50 && !server.log(LOST).is_empty()).then_some(())
    })
    .await;
    let collector = Collector::on(port.number()).await;
    until(PATIENCE, "it is told that it is over", async || {
        assert_eq!(check_http(&server, None).await, 200);
        (!server.log("spans are sent again").is_empty()).then_some(())
    })
    .await;
    collector.hears("POST /v1/check", 1).await;
    let server = stop(server).await;
    assert_eq!(server.log(LOST).len(), 1, "{}", server.process.stderr());
}

#[tokio::test]
async fn a_collector_that_hangs_holds_up_neither_requests_nor_the_end() {
    let hanging = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = start(&format!("http://{}", hanging.local_addr().unwrap()), &[UNLIMITED]).await;
    assert_eq!(check_http(&server, None).await, 200);
    // Its message is on its way from here on.
    let (_held, _) = hanging.accept().await.unwrap();
    for _ in 0..20 {
        assert_eq!(check_http(&server, None).await, 200);
    }
    let server = stop(server).await;
    // Which of the two depends on how long the requests took.
    let told = [server.log("the last spans were not sent"), server.log(LOST)].concat();
    assert!(!told.is_empty(), "{}", server.process.stderr());
}
