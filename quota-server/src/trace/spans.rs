//! What is said in spans. Where nobody takes spans, none is made: the filter of the log, which is all there is then, has
//! nothing to do with them, and that is known at each place from then on.

use opentelemetry::trace::Status;
use tracing::{Metadata, Span};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use crate::metrics::{Operation, Outcome};
use crate::quota::CheckRequest;

/// The target of spans that are for traces, and of nothing else.
pub(crate) const TARGET: &str = "otlp";

/// The name, within the process, of the span of a request.
pub(super) const REQUEST: &str = "request";

pub(super) fn is_ours(metadata: &Metadata<'_>) -> bool {
    metadata.is_span() && metadata.target() == TARGET
}

/// A request to this server, under a name such as `POST /v1/check`.
pub(super) fn of_request(name: &str) -> Span {
    tracing::info_span!(target: TARGET, REQUEST, otel.name = name, otel.kind = "server")
}

/// A call to the store, within the request that it is made for.
pub(crate) fn of_store(operation: Operation) -> Span {
    let name = operation.as_str();
    tracing::info_span!(target: TARGET, "store", otel.name = format!("store {name}"), db.operation.name = name)
}

/// That what a span is of has failed, by the label of the cause: its text may name an account.
pub(crate) fn failed(span: &Span, cause: &'static str) {
    span.set_attribute("error.type", cause);
    span.set_status(Status::error(""));
}

/// What a check is about, in the span of its request.
pub(crate) fn of_check(request: &CheckRequest) {
    let span = Span::current();
    if span.is_none() {
        return;
    }
    for (name, label) in [("quota.node", &request.node), ("quota.rpc", &request.rpc)] {
        if let Some(label) = label.as_deref() {
            span.set_attribute(name, label.to_owned());
        }
    }
}

/// What a check came to, in the span of its request.
pub(crate) fn outcome(outcome: Outcome) {
    Span::current().set_attribute("quota.outcome", outcome.as_str());
}
