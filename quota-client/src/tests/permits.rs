//! Limits of concurrency in front of a service: who waits, who is refused and how that is answered, and when a permit is
//! free again.

use std::convert::Infallible;
use std::future::pending;
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use parking_lot::Mutex;
use quota_core::Cost;
use tokio::task::JoinHandle;
use tonic_types::StatusExt as _;
use tower::{Layer as _, ServiceExt as _, service_fn};

use super::fake::{Check, Heard};
use super::machine::Log;
use super::*;
use crate::{
    CONCURRENCY_LIMIT, Classification, ERROR_DOMAIN, Meter, MeteredBody, QuotaLayer, ResponseBody, Settings,
};

type Answer = Response<ResponseBody<Full<Bytes>>>;
type Result<T> = std::result::Result<T, Infallible>;

/// One at a time of each repository; what is above that is refused at once.
const ONE: &str = "per = \"repo\"\nlimit = 1\nmax_queue = 0\nmax_wait = \"1h\"";

/// One at a time, and one that waits.
const ONE_WAITS: &str = "per = \"repo\"\nlimit = 1\nmax_queue = 1\nmax_wait = \"1h\"";

/// A client that limits fetches so.
fn limited(fake: &Fake, limits: &str) -> Client {
    let settings = Settings::from_toml(&format!("[[concurrency]]\nrpc = {FETCH:?}\n{limits}\n")).unwrap();
    builder([fake]).rpcs([FETCH]).settings(settings).endpoints([fake.endpoint()]).build().unwrap()
}

/// A fetch as its path says.
fn classify(request: &Parts) -> Classification {
    let address = |address: &str| address.parse::<IpAddr>().unwrap();
    match request.uri.path() {
        "/meter" => Classification::MeterOnly(fetch()),
        "/skip" => Classification::Skip,
        "/other" => Classification::Check(Request::rpc("/g.S/Other").repo("project-42")),
        "/anonymous" => Classification::Check(Request::rpc(FETCH).repo("project-42")),
        "/nameless" => Classification::Check(Request::rpc(FETCH).repo("project-42").user("")),
        "/loopback" => Classification::Check(fetch().ip(address("::ffff:127.0.0.1"))),
        "/remote" => Classification::Check(fetch().ip(address("192.0.2.1"))),
        _ => Classification::Check(fetch()),
    }
}

fn request(path: &str) -> http::Request<Full<Bytes>> {
    http::Request::post(path).body(Full::default()).unwrap()
}

fn grpc(path: &str, timeout: &str) -> http::Request<Full<Bytes>> {
    let request = http::Request::post(path).header("content-type", "application/grpc");
    request.header("grpc-timeout", timeout).body(Full::default()).unwrap()
}

/// Sends it through the layer to a service that answers at once; the permit is held while the body is.
async fn send(client: &Client, request: http::Request<Full<Bytes>>) -> Answer {
    let service = service_fn(|_: http::Request<MeteredBody<Full<Bytes>>>| async {
        Result::Ok(Response::new(Full::from("seventy")))
    });
    QuotaLayer::new(client.clone(), classify).layer(service).oneshot(request).await.unwrap()
}

/// How many are in flight, and wait.
fn figures(client: &Client) -> (usize, usize) {
    let figures: Vec<_> = client.shared().limits.figures().map(|(_, _, figures)| figures).collect();
    (figures.iter().map(|set| set.in_flight).sum(), figures.iter().map(|set| set.queued).sum())
}

async fn until(client: &Client, expected: (usize, usize)) {
    let is_so = async {
        while figures(client) != expected {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(LONG, is_so).await.unwrap_or_else(|_| panic!("{:?}", figures(client)));
}

/// One that waits.
async fn waiting(client: &Client) -> JoinHandle<Answer> {
    let client_of_waiter = client.clone();
    let waiter = tokio::spawn(async move { send(&client_of_waiter, request("/")).await });
    until(client, (1, 1)).await;
    waiter
}

fn released(heard: &Heard) -> u64 {
    let charges = heard.reports.iter().flat_map(|report| &report.charges);
    charges.filter_map(|charge| charge.release).map(|release| release.cpu_micros).sum()
}

fn assert_is_refused(response: &Answer, reason: &str) {
    let status = tonic::Status::from_header_map(response.headers()).unwrap();
    assert_eq!(status.code(), tonic::Code::ResourceExhausted);
    assert!(status.message().contains("not started"), "{}", status.message());
    let details = status.get_error_details();
    let info = details.error_info().unwrap();
    assert_eq!((info.reason.as_str(), info.domain.as_str()), (CONCURRENCY_LIMIT, ERROR_DOMAIN));
    assert_eq!(info.metadata["reason"], reason);
    assert!(details.retry_info().unwrap().retry_delay.unwrap() > Duration::ZERO);
}

#[tokio::test]
async fn f22_who_finds_no_room_is_told_in_its_protocol_and_costs_nothing() {
    let fake = Fake::start().await;
    fake.answers([Check::allow_reserving(Cost::ZERO.with_cpu_micros(50).unwrap())]);
    let client = limited(&fake, ONE);
    let held = send(&client, request("/")).await;
    assert_eq!((held.status(), figures(&client)), (StatusCode::OK, (1, 0)));

    let refused = send(&client, request("/")).await;
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    let wait: u64 = refused.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!(wait >= 1);
    let body = refused.into_body().collect().await.unwrap().to_bytes();
    let problem: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert!(problem["type"].as_str().unwrap().ends_with("concurrency-limit"), "{problem}");
    assert_is_refused(&send(&client, grpc("/", "1H")).await, "queue_full");

    assert!(client.shutdown(LONG).await);
    let heard = fake.heard();
    assert_eq!((heard.checks.len(), released(&heard)), (3, 100), "what was reserved for the two");
    assert_eq!(figures(&client), (1, 0));
    drop(held);
    assert_eq!(figures(&client), (0, 0));
}

#[tokio::test]
async fn a_permit_is_held_until_the_body_has_ended_or_is_dropped() {
    let fake = Fake::start().await;
    let client = limited(&fake, ONE_WAITS);
    let mut first = send(&client, request("/")).await.into_body();
    let second = waiting(&client).await;
    assert_eq!(first.frame().await.unwrap().unwrap().into_data().unwrap(), "seventy");
    assert_eq!(figures(&client), (1, 1), "its end is not read");
    assert!(first.frame().await.is_none());
    let second = second.await.unwrap();
    assert_eq!((second.status(), figures(&client)), (StatusCode::OK, (1, 0)), "it ended, though not dropped");

    let third = waiting(&client).await;
    drop(second);
    drop(third.await.unwrap());
    assert_eq!(figures(&client), (0, 0));
}

#[tokio::test]
async fn f21_a_handler_that_panics_fails_or_is_cancelled_frees_its_permit() {
    let fake = Fake::start().await;
    let client = limited(&fake, ONE);
    let layer = QuotaLayer::new(client.clone(), classify);
    let panics = service_fn(|_: http::Request<MeteredBody<Full<Bytes>>>| async {
        if true {
            panic!("as it should");
        }
        Result::Ok(Response::<Full<Bytes>>::default())
    });
    assert!(tokio::spawn(layer.layer(panics).oneshot(request("/"))).await.unwrap_err().is_panic());
    assert_eq!(figures(&client), (0, 0));

    let fails = service_fn(|_: http::Request<MeteredBody<Full<Bytes>>>| async {
        Err::<Response<Full<Bytes>>, _>("as it should")
    });
    assert_eq!(layer.layer(fails).oneshot(request("/")).await.unwrap_err(), "as it should");
    assert_eq!(figures(&client), (0, 0));

    let never =
        service_fn(|_: http::Request<MeteredBody<Full<Bytes>>>| pending::<Result<Response<Full<Bytes>>>>());
    let call = tokio::spawn(layer.layer(never).oneshot(request("/")));
    until(&client, (1, 0)).await;
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    assert_eq!(figures(&client), (0, 0));
}

#[tokio::test]
async fn f22_one_that_waits_and_is_cancelled_leaves_the_queue_and_gives_its_price_back() {
    let fake = Fake::start().await;
    fake.answers([Check::allow_reserving(Cost::ZERO.with_cpu_micros(50).unwrap())]);
    let client = limited(&fake, ONE_WAITS);
    let held = send(&client, request("/")).await;
    let waiter = waiting(&client).await;
    waiter.abort();
    assert!(waiter.await.unwrap_err().is_cancelled());
    assert_eq!(figures(&client), (1, 0));
    fake.hears(|heard| released(heard) == 50).await;
    drop(held);
}

/// The caller gives up long before the settings do.
#[tokio::test]
async fn the_deadline_of_grpc_ends_the_wait() {
    let fake = Fake::start().await;
    let client = limited(&fake, ONE_WAITS);
    let held = send(&client, request("/")).await;
    assert_is_refused(&send(&client, grpc("/", "1m")).await, "deadline_passed");
    assert_eq!(figures(&client), (1, 0));
    drop(held);
}

#[tokio::test]
async fn the_longest_wait_of_the_settings_ends_it_too() {
    let fake = Fake::start().await;
    let client = limited(&fake, "per = \"repo\"\nlimit = 1\nmax_queue = 1\nmax_wait = \"1ms\"");
    let held = send(&client, request("/")).await;
    assert_is_refused(&send(&client, grpc("/", "1H")).await, "waited_too_long");
    drop(held);
}

#[tokio::test]
async fn what_is_only_metered_or_skipped_or_not_limited_takes_no_permit() {
    let fake = Fake::start().await;
    let client = limited(&fake, ONE);
    let _held = send(&client, request("/")).await;
    for path in ["/meter", "/meter", "/skip", "/other"] {
        let response = send(&client, request(path)).await;
        assert_eq!((response.status(), figures(&client)), (StatusCode::OK, (1, 0)), "{path}");
    }
}

#[tokio::test]
async fn this_very_machine_is_exempt_where_the_settings_say_so() {
    let fake = Fake::start().await;
    let limits = "per = \"ip\"\nlimit = 1\nmax_queue = 0\nmax_wait = \"1h\"\nexempt_loopback = ";
    for (exempt, expected) in [(true, StatusCode::OK), (false, StatusCode::TOO_MANY_REQUESTS)] {
        let client = limited(&fake, &format!("{limits}{exempt}"));
        let _held = [send(&client, request("/remote")).await, send(&client, request("/loopback")).await];
        assert_eq!(send(&client, request("/loopback")).await.status(), expected);
        assert_eq!(send(&client, request("/remote")).await.status(), StatusCode::TOO_MANY_REQUESTS);
    }
}

/// An empty name is no user's.
#[tokio::test]
async fn requests_without_a_user_have_a_set_of_their_own() {
    let fake = Fake::start().await;
    let limits =
        "per = \"repo\"\nlimit = 2\nmax_queue = 0\nmax_wait = \"1h\"\nunauthenticated = { limit = 1 }";
    let client = limited(&fake, limits);
    let mut held = vec![send(&client, request("/anonymous")).await];
    for path in ["/anonymous", "/nameless"] {
        let response = send(&client, request(path)).await;
        assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS, "{path}");
    }
    for _ in 0..2 {
        held.push(send(&client, request("/")).await);
    }
    assert!(held.iter().all(|response| response.status() == StatusCode::OK));
    assert_eq!(send(&client, request("/")).await.status(), StatusCode::TOO_MANY_REQUESTS);
}

/// As pack-objects does on a miss of its cache.
#[tokio::test]
async fn a_handler_may_ask_for_a_permit_within() {
    let fake = Fake::start().await;
    let client = limited(&fake, ONE);
    let permit = client.acquire(&fetch(), None).await.unwrap();
    assert!(permit.is_some_and(|permit| permit.waited().is_zero()), "and is dropped");
    let _held = client.acquire(&fetch(), None).await.unwrap();
    let denial = client.acquire(&fetch(), None).await.unwrap_err();
    assert!(matches!(denial.cause(), crate::Cause::Concurrency(refusal) if refusal.limit == 1));
    assert!(client.acquire(&Request::rpc("/g.S/Other").repo("project-42"), None).await.unwrap().is_none());
}

#[tokio::test]
async fn a_refusal_is_one_line_with_the_fields_that_operators_know() {
    let (fake, log) = (Fake::start().await, Log::start());
    let client = limited(&fake, ONE);
    let _held = send(&client, request("/remote")).await;
    for _ in 0..3 {
        send(&client, request("/remote")).await;
    }
    let lines = log.take("a request got no permit, and was not started");
    let [line, ..] = &lines[..] else { panic!("none") };
    for field in [
        "limit.concurrency_type=\"/gitaly.SSHService/SSHUploadPack\"",
        "limit.repo=\"project-42\"",
        "limit.ip=\"192.0.2.1\"",
        "limit.concurrency_queue_length=0",
        "limit.concurrency_queue_ms=0",
        "limit.concurrency_in_progress=1",
        "limit.concurrency_dropped=\"queue_full\"",
        "limit.authenticated=true",
        "limit.retry_after=",
        "others=0",
    ] {
        assert!(line.contains(field), "{field} in {line}");
    }
}

#[tokio::test]
async fn after_a_101_the_permit_is_free_and_the_meter_counts_what_its_handler_tells() {
    let fake = Fake::start().await;
    let client = limited(&fake, ONE);
    let (keep, kept) = tokio::sync::oneshot::channel();
    let keep = Arc::new(Mutex::new(Some(keep)));
    let upgrades = service_fn(move |request: http::Request<MeteredBody<Full<Bytes>>>| {
        let meter = request.extensions().get::<Meter>().unwrap().clone();
        let _ = keep.lock().take().unwrap().send(meter);
        let switching = Response::builder().status(StatusCode::SWITCHING_PROTOCOLS);
        std::future::ready(Result::Ok(switching.body(Full::<Bytes>::default()).unwrap()))
    });
    let service = QuotaLayer::new(client.clone(), classify).layer(upgrades);
    let response = service.oneshot(request("/")).await.unwrap();
    assert_eq!((response.status(), figures(&client)), (StatusCode::SWITCHING_PROTOCOLS, (1, 0)));
    drop(response);
    assert_eq!(figures(&client), (0, 0));
    let meter = kept.await.unwrap();
    let own = client.acquire(&fetch(), None).await.unwrap().unwrap();
    meter.sent(100);
    meter.received(20);
    assert_eq!(figures(&client), (1, 0));
    drop((meter, own));
    assert!(client.shutdown(LONG).await);
    assert_eq!(fake::costs(&fake.heard()).map(|(_, cost)| cost.network_bytes).sum::<u64>(), 120);
}
