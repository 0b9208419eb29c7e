//! A server of gRPC that decides nothing: it reads a check, and gives each the same answer, which was a real server's. What
//! a check takes longer than that is the decision.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::future::BoxFuture;
use prost::Message as _;
use quota_proto::{BoundedCodec, v1};
use quota_tests::process::{Process, Program};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::body::Body;
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic::transport::Server;
use tonic::{Request, Response, Status};
use tower::Service;

/// The server in a process of its own.
pub(crate) struct Echo {
    _process: Process,
    pub(crate) address: SocketAddr,
}

impl Echo {
    /// Starts one that gives this answer.
    pub(crate) async fn start(answer: &v1::CheckResponse) -> Self {
        let answer = STANDARD.encode(answer.encode_to_vec());
        let mut process = Program::of_workspace("quota-bench").args(["--echo", &answer]).start();
        let line = process.wait_for_line("listening on ").await;
        let address = line.trim_start_matches("listening on ").parse().expect("an address");
        Self { _process: process, address }
    }
}

/// What that process does, until it is killed.
pub(crate) async fn serve(answer: &str) {
    let answer = STANDARD.decode(answer).expect("an answer in base64");
    let answer = v1::CheckResponse::decode(answer.as_slice()).expect("an answer");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    println!("listening on {}", listener.local_addr().expect("an address"));
    let incoming = tokio_stream::StreamExt::map(TcpListenerStream::new(listener), |accepted| {
        accepted.inspect(|stream| stream.set_nodelay(true).expect("a socket"))
    });
    let serving = Server::builder().add_service(Answering(Arc::new(answer))).serve_with_incoming(incoming);
    serving.await.expect("a server that goes on");
}

#[derive(Clone)]
struct Answering(Arc<v1::CheckResponse>);

impl NamedService for Answering {
    const NAME: &'static str = "quota.v1.QuotaService";
}

impl Service<http::Request<Body>> for Answering {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let this = self.clone();
        Box::pin(async move { Ok(Grpc::new(BoundedCodec::default()).unary(this, request).await) })
    }
}

impl UnaryService<v1::CheckRequest> for Answering {
    type Response = v1::CheckResponse;
    type Future = Ready<Result<Response<v1::CheckResponse>, Status>>;

    fn call(&mut self, _: Request<v1::CheckRequest>) -> Self::Future {
        ready(Ok(Response::new((*self.0).clone())))
    }
}
