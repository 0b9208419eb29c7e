//! A collector of traces: takes OTLP over gRPC, and keeps what it is told.

use std::net::SocketAddr;

use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};

use crate::wait::PATIENCE;

/// A collector in this process.
pub struct Collector {
    address: SocketAddr,
    told: watch::Sender<Vec<ExportTraceServiceRequest>>,
    server: JoinHandle<()>,
}

impl Collector {
    /// Starts one on a free port.
    pub async fn start() -> Self {
        Self::on(0).await
    }

    /// Starts one on a port.
    pub async fn on(port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).await.expect("the port is free");
        let address = listener.local_addr().expect("it listens");
        let told = watch::Sender::default();
        let service = TraceServiceServer::new(Takes(told.clone()));
        let serving = tonic::transport::Server::builder()
            .add_service(service)
            .serve_with_incoming(TcpListenerStream::new(listener));
        Self { address, told, server: tokio::spawn(async move { serving.await.expect("it serves") }) }
    }

    /// Where it takes spans.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// All that it was told.
    pub fn told(&self) -> Vec<ExportTraceServiceRequest> {
        self.told.borrow().clone()
    }

    /// The spans that it was told of.
    pub fn spans(&self) -> Vec<Span> {
        spans(&self.told.borrow())
    }

    /// Waits until it has been told of so many spans of this name.
    pub async fn hears(&self, name: &str, count: usize) -> Vec<Span> {
        let named = |told: &Vec<_>| -> Vec<Span> {
            spans(told).into_iter().filter(|span| span.name == name).collect()
        };
        let mut told = self.told.subscribe();
        let heard = tokio::time::timeout(PATIENCE, told.wait_for(|told| named(told).len() >= count)).await;
        named(
            &heard.unwrap_or_else(|_| panic!("no {count} of {name}: {:#?}", self.spans())).expect("it lives"),
        )
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.server.abort();
    }
}

fn spans(told: &[ExportTraceServiceRequest]) -> Vec<Span> {
    let scopes = told.iter().flat_map(|told| &told.resource_spans).flat_map(|resource| &resource.scope_spans);
    scopes.flat_map(|scope| scope.spans.iter().cloned()).collect()
}

/// An attribute of a span, as text.
pub fn attribute(span: &Span, key: &str) -> Option<String> {
    let found = span.attributes.iter().find(|attribute| attribute.key == key)?;
    match found.value.as_ref()?.value.as_ref()? {
        Value::StringValue(text) => Some(text.clone()),
        Value::IntValue(number) => Some(number.to_string()),
        other => panic!("{key} is {other:?}"),
    }
}

struct Takes(watch::Sender<Vec<ExportTraceServiceRequest>>);

#[tonic::async_trait]
impl TraceService for Takes {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        self.0.send_modify(|told| told.push(request.into_inner()));
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}
