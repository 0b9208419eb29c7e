//! The service over HTTP and JSON: every handler extracts, delegates and converts.

mod amounts;
mod backoff;
mod bounded;
mod check;
mod extract;
mod modes;
mod nodes;
mod object;
mod openapi;
mod operator;
mod overrides;
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
use axum::routing::{MethodRouter, get, post};
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

/// Every path, and what answers there. `openapi.json` describes the same.
fn routes() -> [(&'static str, MethodRouter<Http>); 14] {
    [
        ("/v1/check", post(check::check)),
        ("/v1/report", post(report::report)),
        ("/v1/pressure", post(pressure::pressure)),
        ("/v1/accounts/{kind}/{*id}", get(standing::standing)),
        ("/v1/backoff", get(backoff::backoff)),
        ("/v1/nodes", get(nodes::nodes)),
        ("/v1/nodes/{*node}", get(nodes::node)),
        ("/v1/overrides", get(overrides::list)),
        ("/v1/overrides/{kind}/{*id}", get(overrides::get).put(overrides::put).delete(overrides::delete)),
        ("/v1/modes", get(modes::list).put(modes::put).delete(modes::delete)),
        ("/metrics", get(operator::metrics)),
        ("/healthz", get(operator::healthz)),
        ("/readyz", get(operator::readyz)),
        ("/openapi.json", get(openapi::openapi)),
    ]
}

pub(crate) fn router(quota: Arc<Quota>, readiness: Arc<Readiness>) -> Router {
    let routed =
        routes().into_iter().fold(Router::new(), |router, (path, answer)| router.route(path, answer));
    routed
        .fallback(async || Problem::new(StatusCode::NOT_FOUND, "not-found", "There is nothing here."))
        .method_not_allowed_fallback(async || {
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", "This cannot be done here.")
        })
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .layer(TimeoutLayer::with_status_code(StatusCode::REQUEST_TIMEOUT, REQUEST_TIMEOUT))
        .with_state(Http { quota, readiness })
}
