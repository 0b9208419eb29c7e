//! The client as a [tower] layer, for HTTP services such as those of tonic and axum.

mod body;

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::header::CONTENT_TYPE;
use http::request::Parts;
use tonic::Status;
use tower::{Layer, Service};

pub use body::{MeteredBody, ResponseBody};

use crate::{Client, Decision, Denial, Meter, Request};

/// What is to be done with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Classification {
    /// Ask whether it may be executed, and meter it.
    Check(Request),
    /// Meter it, as a part of work that was admitted before: it must not be refused half-way.
    MeterOnly(Request),
    /// Neither, as for a health check.
    Skip,
}

/// Checks and meters the requests of the services within.
///
/// A refused request does not reach the service: a gRPC request is answered with the [`Status`] of the [`Denial`],
/// any other with its 429 or 503. Of the others the bytes of both bodies are counted, until the body of the response has
/// ended or is dropped; the [`Meter`] is among the request's extensions, so that the service can add its children.
#[derive(Clone, Debug)]
pub struct QuotaLayer<F> {
    client: Client,
    classify: F,
}

impl<F: Fn(&Parts) -> Classification> QuotaLayer<F> {
    /// A layer that asks `classify` what each request is.
    pub const fn new(client: Client, classify: F) -> Self {
        Self { client, classify }
    }
}

impl<S, F: Clone> Layer<S> for QuotaLayer<F> {
    type Service = Quota<S, F>;

    fn layer(&self, inner: S) -> Self::Service {
        Quota { inner, client: self.client.clone(), classify: self.classify.clone() }
    }
}

/// A service whose requests are checked and metered; [`QuotaLayer`] makes it.
#[derive(Clone, Debug)]
pub struct Quota<S, F> {
    inner: S,
    client: Client,
    classify: F,
}

impl<S, F, B, R> Service<http::Request<B>> for Quota<S, F>
where
    S: Service<http::Request<MeteredBody<B>>, Response = http::Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    F: Fn(&Parts) -> Classification,
    B: Send + 'static,
{
    type Response = http::Response<ResponseBody<R>>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        // It is this instance that is ready; its clone need not be.
        let clone = self.inner.clone();
        let mut inner = mem::replace(&mut self.inner, clone);
        let client = self.client.clone();
        let (mut parts, body) = request.into_parts();
        let classification = (self.classify)(&parts);
        Box::pin(async move {
            // Held until there is a response, since the service may drop the request before.
            let meter = match meter(&client, &classification).await {
                Ok(meter) => meter,
                Err(denial) => return Ok(refusal(denial, &parts)),
            };
            if let Some(meter) = &meter {
                parts.extensions.insert(meter.clone());
            }
            let body = MeteredBody::received(body, meter.clone());
            let response = inner.call(http::Request::from_parts(parts, body)).await?;
            Ok(response.map(|body| ResponseBody::metered(MeteredBody::sent(body, meter))))
        })
    }
}

async fn meter(client: &Client, classification: &Classification) -> Result<Option<Meter>, Denial> {
    match classification {
        Classification::Check(request) => match client.admit(request).await {
            Decision::Allow(admission) => Ok(Some(admission.meter())),
            Decision::Deny(denial) => Err(denial),
        },
        Classification::MeterOnly(request) => Ok(Some(client.meter(request))),
        Classification::Skip => Ok(None),
    }
}

fn refusal<R>(denial: Denial, request: &Parts) -> http::Response<ResponseBody<R>> {
    let content_type = request.headers.get(CONTENT_TYPE).map_or(&[][..], |value| value.as_bytes());
    if content_type.starts_with(b"application/grpc") {
        Status::from(denial).into_http::<String>().map(ResponseBody::from)
    } else {
        denial.into()
    }
}
