//! How a request in flight ends that is chosen, as its caller sees it.

use std::convert::Infallible;
use std::future::pending;

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode};
use http_body::{Body, Frame};
use http_body_util::{BodyExt as _, Full, StreamBody};
use tokio::time::error::Elapsed;
use tokio::time::timeout;
use tokio_stream::{Stream, StreamExt as _};
use tonic_types::StatusExt as _;
use tower::{BoxError, Layer as _, ServiceExt as _, service_fn};

use super::machine::{Log, Machine, calm, hot};
use super::*;
use crate::{Cause, Denial, ERROR_DOMAIN, MeteredBody, ResponseBody, SHED};

type Request = http::Request<MeteredBody<Full<Bytes>>>;

/// Ended at the first hot interval.
const ENFORCE: &str = "[shedding]\nmode = \"enforce\"\nafter = 1\n";
const SHADOW: &str = "[shedding]\nmode = \"shadow\"\nafter = 1\n";

fn request(content_type: &str) -> http::Request<Full<Bytes>> {
    http::Request::post("/").header("content-type", content_type).body(Full::default()).unwrap()
}

/// Sends seven bytes, and then nothing more for ever.
fn stuck() -> impl Stream<Item = Result<Frame<Bytes>, Infallible>> {
    tokio_stream::once(Ok(Frame::data(Bytes::from("seventy")))).chain(tokio_stream::pending())
}

/// The response to a request whose body has been read so far as it comes.
async fn responds(
    machine: &Machine,
    content_type: &str,
    length: Option<u64>,
) -> ResponseBody<StreamBody<impl Stream<Item = Result<Frame<Bytes>, Infallible>> + use<>>> {
    let service = service_fn(move |_: Request| async move {
        let mut response = Response::new(StreamBody::new(Box::pin(stuck())));
        if let Some(length) = length {
            response.headers_mut().insert("content-length", length.into());
        }
        Ok::<_, Infallible>(response)
    });
    let response = machine.layer().layer(service).oneshot(request(content_type)).await.unwrap();
    let mut body = response.into_body();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "seventy");
    body
}

/// What comes next; an error where nothing does, since the body goes on.
async fn next<B>(body: &mut ResponseBody<B>) -> Result<Option<Result<Frame<Bytes>, BoxError>>, Elapsed>
where
    B: Body<Data = Bytes, Error = Infallible> + Unpin,
{
    timeout(Duration::from_secs(1), body.frame()).await
}

fn assert_is_shed(status: &tonic::Status) {
    assert_eq!(status.code(), tonic::Code::ResourceExhausted);
    assert!(status.message().starts_with("the request was ended, since the machine is overloaded"));
    let details = status.get_error_details();
    let info = details.error_info().unwrap();
    assert_eq!((info.reason.as_str(), info.domain.as_str()), (SHED, ERROR_DOMAIN));
    let wait = details.retry_info().unwrap().retry_delay.unwrap();
    assert!(wait >= Duration::from_secs(30), "{wait:?}");
}

/// The answer to a request whose handler would never answer.
async fn answer(settings: &str, content_type: &str) -> Response<ResponseBody<Full<Bytes>>> {
    let machine = Machine::new(settings);
    let never = service_fn(|request: Request| async move {
        let _held = request;
        pending::<Result<Response<Full<Bytes>>, Infallible>>().await
    });
    let call = tokio::spawn(machine.layer().layer(never).oneshot(request(content_type)));
    machine.is_for(&hot(), 1).await;
    assert_eq!(machine.client.stats().shed, 1);
    let response = call.await.unwrap().unwrap();
    assert_eq!(machine.client.shared().live().len(), 0, "its handler is dropped, and its meter");
    response
}

#[tokio::test(start_paused = true)]
async fn a_handler_of_grpc_is_ended_and_its_caller_told() {
    let response = answer(ENFORCE, "application/grpc").await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_is_shed(&tonic::Status::from_header_map(response.headers()).unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_handler_of_http_is_ended_and_its_caller_told() {
    let response = answer(ENFORCE, "text/plain").await;
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    let wait: u64 = response.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((30..=36).contains(&wait), "{wait}");
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let problem: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert!(problem["type"].as_str().unwrap().ends_with("shed"), "{problem}");
}

#[tokio::test(start_paused = true)]
async fn a_body_of_grpc_ends_with_the_status_in_its_trailers() {
    let machine = Machine::new(ENFORCE);
    let mut body = responds(&machine, "application/grpc+proto", None).await;
    machine.is_for(&hot(), 1).await;
    let trailers: HeaderMap = next(&mut body).await.unwrap().unwrap().unwrap().into_trailers().unwrap();
    assert_eq!(trailers["grpc-status"], "8");
    assert!(!trailers.contains_key("content-type"));
    assert_is_shed(&tonic::Status::from_header_map(&trailers).unwrap());
    assert!(next(&mut body).await.unwrap().is_none() && body.is_end_stream());
    assert_eq!(machine.client.shared().live().len(), 0, "though it is not dropped");
}

#[tokio::test(start_paused = true)]
async fn a_body_of_http_ends_with_an_error_so_that_it_does_not_look_whole() {
    let machine = Machine::new(ENFORCE);
    let mut body = responds(&machine, "text/plain", None).await;
    machine.is_for(&hot(), 1).await;
    let error = next(&mut body).await.unwrap().unwrap().unwrap_err();
    assert!(error.to_string().contains("the machine is overloaded"), "{error}");
    assert_eq!(error.downcast_ref::<Denial>().unwrap().cause(), &Cause::Shed);
    assert!(next(&mut body).await.unwrap().is_none());
}

/// As of a client that does not read: its connection asks for nothing more.
#[tokio::test(start_paused = true)]
async fn a_body_that_nobody_polls_gives_up_what_it_holds() {
    let machine = Machine::new(ENFORCE);
    let mut body = responds(&machine, "text/plain", None).await;
    assert_eq!(machine.client.shared().live().len(), 1);
    machine.is_for(&hot(), 1).await;
    tokio::task::yield_now().await;
    assert_eq!(machine.client.shared().live().len(), 0);
    assert!(next(&mut body).await.unwrap().unwrap().is_err(), "who polls it later is told");
}

/// Such as a process that a push has left behind: its work lives on, and there is nobody who could end it.
#[tokio::test(start_paused = true)]
async fn what_is_over_is_not_chosen() {
    let machine = Machine::new(ENFORCE);
    let body = responds(&machine, "text/plain", None).await;
    machine.is(&calm(), 1).await;
    let [work] = &machine.client.shared().live()[..] else { panic!("one") };
    assert!(work.can_be_ended());
    drop(body);
    machine.is_for(&hot(), 1).await;
    assert!(!work.can_be_ended());
    assert_eq!(machine.client.stats().shed, 0);
}

/// Seven bytes are more than nine tenths of seven, and less than that of eight.
#[tokio::test(start_paused = true)]
async fn what_has_sent_nine_tenths_of_what_it_announced_is_spared() {
    let machine = Machine::new(ENFORCE);
    let mut spared = responds(&machine, "text/plain", Some(7)).await;
    let mut ended = responds(&machine, "text/plain", Some(8)).await;
    machine.is_for(&hot(), 2).await;
    assert!(next(&mut ended).await.unwrap().unwrap().is_err());
    assert!(next(&mut spared).await.is_err(), "it goes on");
    assert_eq!(machine.client.stats().shed, 1);
}

/// Hyper writes the header by what the body knows, after the layer has seen the response.
#[tokio::test(start_paused = true)]
async fn what_a_body_knows_of_its_length_is_announced_without_a_header() {
    let machine = Machine::new(ENFORCE);
    let whole =
        service_fn(|_: Request| async { Ok::<_, Infallible>(Response::new(Full::<Bytes>::from("seventy"))) });
    let response = machine.layer().layer(whole).oneshot(request("text/plain")).await.unwrap();
    let [work] = &machine.client.shared().live()[..] else { panic!("one") };
    assert_eq!(work.in_flight().announced, Some(7));
    drop(response);
}

#[tokio::test(start_paused = true)]
async fn a_shadow_tells_whom_it_would_have_ended_and_ends_nobody() {
    let (machine, log) = (Machine::new(SHADOW), Log::start());
    let mut body = responds(&machine, "text/plain", None).await;
    let [work] = &machine.client.shared().live()[..] else { panic!("one") };
    work.add_cpu(Duration::from_millis(1500));
    machine.is_for(&hot(), 1).await;
    let told = log.take("a request would be ended, since the machine is overloaded");
    assert_eq!(told.len(), 1, "{told:?}");
    for field in [
        "rpc=\"/gitaly.SSHService/SSHUploadPack\"",
        "repo=\"project-42\"",
        "user=\"user-7\"",
        "memory_bytes=0",
        "cpu_seconds=1.5",
        "sent_bytes=7",
    ] {
        assert!(told[0].contains(field), "{field} in {}", told[0]);
    }
    assert!(next(&mut body).await.is_err(), "it goes on");
    assert_eq!(machine.client.stats().shed, 0);
}

#[tokio::test(start_paused = true)]
async fn unless_set_nobody_is_ended_and_nothing_said() {
    let (machine, log) = (Machine::new(""), Log::start());
    let mut body = responds(&machine, "text/plain", None).await;
    machine.is_for(&hot(), 5).await;
    assert_eq!(log.take(" ended"), [] as [String; 0]);
    assert!(next(&mut body).await.is_err(), "it goes on");
}
