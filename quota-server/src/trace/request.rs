use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName};
use axum::middleware::Next;
use axum::response::Response;
use opentelemetry::propagation::{Extractor, TextMapPropagator as _};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tonic::{Code, Status};
use tracing::{Instrument as _, Span};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use super::spans::{failed, of_request};
use crate::auth::Access;

/// The longest header of a trace's context that is taken, in bytes, which is as much as others must pass on (W3C Trace Context, 3.3.1.5):
/// each span keeps it until it is sent.
const MOST_OF_CONTEXT: usize = 512;

/// Answers within a span, under the name of the route.
pub(crate) async fn of_http(State(route): State<&'static str>, request: Request, next: Next) -> Response {
    let method = request.method().clone();
    let span = begin(&format!("{method} {route}"), request.headers());
    span.set_attribute("http.request.method", method.to_string());
    span.set_attribute("http.route", route);
    let response = next.run(request).instrument(span.clone()).await;
    let status = response.status();
    span.set_attribute("http.response.status_code", i64::from(status.as_u16()));
    if status.is_server_error() {
        failed(&span, status.canonical_reason().unwrap_or("5xx"));
    }
    response
}

/// Answers within a span, under the name of the method. One that there is not would be a name of the caller's making.
pub(crate) async fn of_grpc(request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let method = path.strip_prefix('/').filter(|_| Access::of_method(path).is_some());
    let Some((name, (service, method))) = method.and_then(|name| Some((name, name.split_once('/')?))) else {
        return next.run(request).await;
    };
    let span = begin(name, request.headers());
    span.set_attribute("rpc.system", "grpc");
    span.set_attribute("rpc.service", service.to_owned());
    span.set_attribute("rpc.method", method.to_owned());
    let response = next.run(request).instrument(span.clone()).await;
    // An answer that has begun well tells its status at its end, which is not waited for.
    let code = Status::from_header_map(response.headers()).map_or(Code::Ok, |status| status.code());
    span.set_attribute("rpc.grpc.status_code", i64::from(i32::from(code)));
    if is_of_the_server(code) {
        failed(&span, code.description());
    }
    response
}

/// A span of a request, within that of the caller where he tells of one (W3C Trace Context).
fn begin(name: &str, headers: &HeaderMap) -> Span {
    let span = of_request(name);
    let parent = TraceContextPropagator::new().extract(&Headers(headers));
    // It has not begun; where nobody takes spans, there is none.
    let _ = span.set_parent(parent);
    span
}

/// Whether it is the server that failed, by the conventions of OpenTelemetry.
const fn is_of_the_server(code: Code) -> bool {
    matches!(
        code,
        Code::Unknown
            | Code::DeadlineExceeded
            | Code::Unimplemented
            | Code::Internal
            | Code::Unavailable
            | Code::DataLoss
    )
}

struct Headers<'a>(&'a HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.to_str().ok().filter(|value| value.len() <= MOST_OF_CONTEXT)
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(HeaderName::as_str).collect()
    }
}
