//! A web process: its requests take slots of their class and are asked about, as the layer of `quota-client` does it, then they wait
//! for a worker.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use axum::Router;
use axum::extract::{Path, State};
use axum::routing::{get, post};
use clap::Parser;
use http::request::Parts;
use quota_client::{Classification, Client, QuotaLayer, Request};
use quota_tests::http::Http;
use quota_tests::outage::{CLASSES, WORK, WORKERS};
use quota_tests::process::Process;
use quota_tests::wait::{PATIENCE, until};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::sleep;

use crate::PROCESSES;

/// How it is started.
#[derive(Parser)]
pub(crate) struct WebArgs {
    /// The quota service, over gRPC.
    #[arg(long)]
    endpoint: String,
    /// How it names itself.
    #[arg(long)]
    node: String,
}

/// One that runs.
pub(crate) struct Web {
    _process: Process,
    http: Http,
    pub(crate) address: SocketAddr,
}

impl Web {
    /// Waits until it listens.
    pub(crate) async fn listening(mut process: Process) -> Self {
        let line = process.wait_for_line("listening on ").await;
        let address = line.trim_start_matches("listening on ").parse().expect("an address");
        Self { _process: process, http: Http::new(address), address }
    }

    /// Waits until a request of a class is served.
    pub(crate) async fn has_slots(&self, class: &str) {
        until(PATIENCE, "a request is served", async || {
            (self.http.get(&format!("/work/{class}")).await.status == 200).then_some(())
        })
        .await;
    }

    /// Lets each call take long, or no more.
    pub(crate) async fn is_slow(&self, slow: bool) {
        let answer = self.http.post_bytes(&format!("/slow/{slow}"), "").await;
        assert_eq!(answer.status, 200, "{answer:?}");
    }

    /// The most CI calls that were in progress at a time.
    pub(crate) async fn most_ci(&self) -> u32 {
        self.http.get("/most").await.text().parse().expect("a number")
    }
}

/// What its requests share.
struct Workers {
    free: Semaphore,
    /// Which of [`WORK`] a call takes.
    slow: AtomicU32,
    ci: AtomicU32,
    most_ci: AtomicU32,
}

/// What that process does, until it is killed.
pub(crate) async fn serve(args: WebArgs) {
    let client = Client::builder().endpoints([args.endpoint]).node(args.node).build().expect("a client");
    let workers = Arc::new(Workers {
        free: Semaphore::new(WORKERS / PROCESSES as usize),
        slow: AtomicU32::new(0),
        ci: AtomicU32::new(0),
        most_ci: AtomicU32::new(0),
    });
    let app = Router::new()
        .route("/work/{class}", get(work))
        .layer(QuotaLayer::new(client, classify))
        .route("/slow/{slow}", post(slow))
        .route("/most", get(most))
        .with_state(workers);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    println!("listening on {}", listener.local_addr().expect("an address"));
    axum::serve(listener, app).await.expect("a server that goes on");
}

/// One of a hundred users, so that none comes near a limit: this is about workers.
fn classify(parts: &Parts) -> Classification {
    let user = format!("user-{}", fastrand::u32(..100));
    let class = CLASSES.into_iter().find(|class| parts.uri.path().ends_with(class));
    let request = Request::rpc("/web.Api/Call").user(user);
    Classification::Check(match class {
        Some(class) => request.class(class),
        None => request,
    })
}

/// Answers how long it worked, in microseconds.
async fn work(State(workers): State<Arc<Workers>>, Path(class): Path<String>) -> String {
    let _worker = workers.free.acquire().await.expect("never closed");
    let _ci = (class == CLASSES[1]).then(|| Ci::begin(&workers));
    let work = WORK[workers.slow.load(Ordering::Relaxed) as usize];
    sleep(work).await;
    work.as_micros().to_string()
}

async fn slow(State(workers): State<Arc<Workers>>, Path(slow): Path<bool>) {
    workers.slow.store(u32::from(slow), Ordering::Relaxed);
}

async fn most(State(workers): State<Arc<Workers>>) -> String {
    workers.most_ci.load(Ordering::Relaxed).to_string()
}

/// A CI call that is in progress.
struct Ci<'a>(&'a Workers);

impl<'a> Ci<'a> {
    fn begin(workers: &'a Workers) -> Self {
        let in_progress = workers.ci.fetch_add(1, Ordering::Relaxed) + 1;
        workers.most_ci.fetch_max(in_progress, Ordering::Relaxed);
        Self(workers)
    }
}

impl Drop for Ci<'_> {
    fn drop(&mut self) {
        self.0.ci.fetch_sub(1, Ordering::Relaxed);
    }
}
