//! What the layer adds to a request that is admitted, the network aside: the same service with and without it. No quota
//! service answers, so that every decision is made here, as it is in an outage; one that is asked costs a round trip more.
#![allow(missing_docs, clippy::expect_used, reason = "a measurement that fails is none")]

use std::convert::Infallible;
use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use http::{Request, Response};
use http_body::Body;
use http_body_util::{BodyExt as _, Full};
use quota_client::{Classification, Client, QuotaLayer, Settings};
use tokio::runtime::{Builder, Runtime};
use tower::{Layer, Service, ServiceExt as _, service_fn};

const RPC: &str = "/gitaly.CommitService/GetTreeEntries";

/// Nobody listens there.
const SETTINGS: &str = r#"
    node = "gitaly-01"
    endpoints = ["http://127.0.0.1:1"]
    [[concurrency]]
    rpc = "/gitaly.CommitService/GetTreeEntries"
    per = "repo"
    adaptive = { min = 5, initial = 10, max = 20 }
    max_queue = 50
    max_wait = "30s"
    latency = true
"#;

type BytesBody = Full<bytes::Bytes>;

async fn answer<B>(request: Request<B>) -> Result<Response<BytesBody>, Infallible> {
    black_box(request);
    Ok(Response::new(Full::from("tree")))
}

fn request() -> Request<BytesBody> {
    Request::builder()
        .uri(RPC)
        .header("content-type", "application/grpc")
        .body(Full::from("name"))
        .expect("a request")
}

fn quota(runtime: &Runtime) -> Client {
    let _within = runtime.enter();
    let settings = Settings::from_toml(SETTINGS).expect("settings");
    Client::builder().settings(settings).rpcs([RPC]).build().expect("a client")
}

/// So many requests, one after the other.
async fn run<S, B>(service: &mut S, requests: u64) -> Duration
where
    S: Service<Request<BytesBody>, Response = Response<B>, Error = Infallible>,
    B: Body,
{
    let begun = Instant::now();
    for _ in 0..requests {
        let service = service.ready().await.expect("never fails");
        let response = service.call(request()).await.expect("never fails");
        black_box(response.into_body().collect().await.ok());
    }
    begun.elapsed()
}

fn layer(criterion: &mut Criterion) {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    let classify = |_: &http::request::Parts| {
        let request = quota_client::Request::rpc(RPC).repo("project-42").user("user-7");
        Classification::Check(request.ip([203, 0, 113, 7].into()))
    };
    let mut guarded = QuotaLayer::new(quota(&runtime), classify).layer(service_fn(answer));
    let mut bare = service_fn(answer);

    let mut group = criterion.benchmark_group("request");
    group.bench_function("without the layer", |bencher| {
        bencher.iter_custom(|requests| runtime.block_on(run(&mut bare, requests)));
    });
    group.bench_function("with the layer", |bencher| {
        bencher.iter_custom(|requests| runtime.block_on(run(&mut guarded, requests)));
    });
    group.finish();
}

criterion_group!(benches, layer);
criterion_main!(benches);
