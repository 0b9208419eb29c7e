use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use async_compression::tokio::bufread::GzipDecoder;
use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Path as UrlPath, RawQuery, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE};
use axum::http::{HeaderMap, Method};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, get};
use metrics_exporter_prometheus::PrometheusHandle;
use parking_lot::Mutex;
use quota_client::{Client, Decision, Meter, Request};
use tokio::io::AsyncRead;
use tokio_stream::StreamExt as _;
use tokio_util::io::StreamReader;

use crate::caller::Caller;
use crate::child::{Children, Git, IDLE};
use crate::conversations::{Conversation, Conversations};
use crate::git::{self, Step};
use crate::refusal::Refusal;
use crate::repositories::Repositories;

/// The fileserver.
#[derive(Clone)]
pub(crate) struct Server(Arc<Inner>);

struct Inner {
    quota: Client,
    repositories: Repositories,
    conversations: Mutex<Conversations>,
    children: Children,
    metrics: PrometheusHandle,
}

impl Server {
    pub(crate) fn new(quota: Client, root: &Path, metrics: PrometheusHandle) -> io::Result<Self> {
        Ok(Self(Arc::new(Inner {
            quota,
            metrics,
            repositories: Repositories::below(root)?,
            conversations: Mutex::default(),
            children: Children::new(IDLE),
        })))
    }

    pub(crate) fn children(&self) -> Children {
        self.0.children.clone()
    }

    pub(crate) fn router(self) -> Router {
        Router::new().route("/-/metrics", get(metrics)).route("/{*path}", any(answer)).with_state(self)
    }
}

async fn metrics(State(Server(server)): State<Server>) -> String {
    server.metrics.render()
}

async fn answer(
    State(Server(server)): State<Server>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    method: Method,
    UrlPath(path): UrlPath<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refusal> {
    let (name, service, step) = git::route(&method, &path, query.as_deref()).ok_or(Refusal::NotFound)?;
    let caller = Caller::of(&headers, peer.ip()).ok_or(Refusal::Unauthenticated)?;
    let repository = server.repositories.find(name).ok_or(Refusal::NotFound)?;
    let request = Request::rpc(service.rpc(step))
        .repo(&repository.id)
        .user(&caller.user)
        .ip(caller.ip)
        .class("interactive");
    let conversation = Conversation { caller, repo: repository.id.clone(), service };
    let meter = server.admit(&request, conversation, step).await?;
    // Also of a conversation that was admitted: to wait, or to be told to come back, is not to be refused half-way.
    let permit = server.quota.acquire(&request, None).await.map_err(Refusal::Denied)?;

    let protocol = git::protocol(headers.get("git-protocol").and_then(|value| value.to_str().ok()));
    let preamble = match step {
        Step::InfoRefs => git::preamble(service, protocol),
        Step::Post => String::new(),
    };
    let input = input(body, &headers, meter.clone())?;
    let git = Git::new(&server.quota, meter, permit).await;
    let command = git::answering(git.command(), service, step, &repository.path, protocol);
    let output = server.children.run(git, command, input, preamble)?;
    let kind = match step {
        Step::InfoRefs => "advertisement",
        Step::Post => "result",
    };
    let headers = [
        (CONTENT_TYPE, format!("application/x-{}-{kind}", service.name())),
        (CACHE_CONTROL, "no-cache, max-age=0, must-revalidate".to_owned()),
    ];
    Ok((headers, Body::from_stream(output)).into_response())
}

impl Inner {
    /// Leave to answer a request, and what meters it. Asks where a conversation begins, where one is continued
    /// that did not begin here, and now and then in one that is long.
    async fn admit(
        &self,
        request: &Request,
        conversation: Conversation,
        step: Step,
    ) -> Result<Meter, Refusal> {
        if step == Step::Post && self.conversations.lock().goes_on(&conversation, Instant::now()) {
            return Ok(self.quota.meter(request));
        }
        match self.quota.admit(request).await {
            Decision::Allow(admission) => {
                self.conversations.lock().admit(conversation, Instant::now());
                Ok(admission.meter())
            }
            Decision::Deny(denial) => Err(Refusal::Denied(denial)),
        }
    }
}

/// The request as git wants to read it. Its bytes are counted as they came over the network.
fn input(
    body: Body,
    headers: &HeaderMap,
    meter: Meter,
) -> Result<Box<dyn AsyncRead + Send + Unpin>, Refusal> {
    let encoding = headers.get(CONTENT_ENCODING).map_or("identity", |value| value.to_str().unwrap_or("?"));
    let chunks = body.into_data_stream().map(move |chunk| {
        let chunk = chunk.map_err(io::Error::other)?;
        meter.received(chunk.len() as u64);
        io::Result::Ok(chunk)
    });
    let reader = StreamReader::new(chunks);
    match encoding {
        "identity" => Ok(Box::new(reader)),
        "gzip" | "x-gzip" => Ok(Box::new(GzipDecoder::new(reader))),
        other => Err(Refusal::Encoding(other.to_owned())),
    }
}
