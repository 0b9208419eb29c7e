//! The service over HTTP and JSON: every handler extracts, delegates and converts.

mod amounts;
mod backoff;
mod bounded;
mod check;
mod extract;
mod nodes;
mod object;
mod operator;
mod pressure;
mod problem;
mod rate_limit;
mod report;
mod serve;
mod standing;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::routing::{get, post};
use tower_http::timeout::TimeoutLayer;

use self::problem::Problem;
pub(crate) use self::serve::serve;
use crate::quota::Quota;
use crate::readiness::Readiness;
use crate::{MAX_BODY_BYTES, REQUEST_TIMEOUT};

#[derive(Clone)]
struct Http {
    quota: Arc<Quota>,
    readiness: Arc<Readiness>,
}

/// Every route.
pub(crate) fn router(quota: Arc<Quota>, readiness: Arc<Readiness>) -> Router {
    Router::new()
        .route("/v1/check", post(check::check))
        .route("/v1/report", post(report::report))
        .route("/v1/pressure", post(pressure::pressure))
        .route("/v1/accounts/{kind}/{*id}", get(standing::standing))
        .route("/v1/backoff", get(backoff::backoff))
        .route("/v1/nodes", get(nodes::nodes))
        .route("/v1/nodes/{*node}", get(nodes::node))
        .route("/metrics", get(operator::metrics))
        .route("/healthz", get(operator::healthz))
        .route("/readyz", get(operator::readyz))
        .fallback(async || Problem::new(StatusCode::NOT_FOUND, "not-found", "There is nothing here."))
        .method_not_allowed_fallback(async || {
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", "This cannot be done here.")
        })
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .layer(TimeoutLayer::with_status_code(StatusCode::REQUEST_TIMEOUT, REQUEST_TIMEOUT))
        .with_state(Http { quota, readiness })
}
