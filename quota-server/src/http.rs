//! The service over HTTP and JSON: every handler extracts, delegates and converts.

mod amounts;
mod authenticate;
mod backoff;
mod bounded;
mod check;
mod extract;
mod nodes;
mod object;
mod openapi;
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
use axum::handler::Handler;
use axum::http::{Method, StatusCode};
use axum::middleware::from_fn_with_state;
use axum::routing::{self, MethodRouter};
use tower_http::timeout::TimeoutLayer;

use self::authenticate::{Guard, authenticate};
use self::problem::Problem;
pub(crate) use self::serve::serve;
use crate::auth::{Access, Auth};
use crate::quota::Quota;
use crate::readiness::Readiness;
use crate::server::StartError;
use crate::{MAX_BODY_BYTES, REQUEST_TIMEOUT};

#[derive(Clone)]
struct Http {
    quota: Arc<Quota>,
    readiness: Arc<Readiness>,
}

/// What answers to a method on a path.
struct Route {
    method: Method,
    path: &'static str,
    answer: MethodRouter<Http>,
}

fn get<T: 'static>(path: &'static str, answer: impl Handler<T, Http>) -> Route {
    Route { method: Method::GET, path, answer: routing::get(answer) }
}

fn post<T: 'static>(path: &'static str, answer: impl Handler<T, Http>) -> Route {
    Route { method: Method::POST, path, answer: routing::post(answer) }
}

/// Every route. `openapi.json` describes the same.
fn routes() -> [Route; 11] {
    [
        post("/v1/check", check::check),
        post("/v1/report", report::report),
        post("/v1/pressure", pressure::pressure),
        get("/v1/accounts/{kind}/{*id}", standing::standing),
        get("/v1/backoff", backoff::backoff),
        get("/v1/nodes", nodes::nodes),
        get("/v1/nodes/{*node}", nodes::node),
        get("/metrics", operator::metrics),
        get("/healthz", operator::healthz),
        get("/readyz", operator::readyz),
        get("/openapi.json", openapi::openapi),
    ]
}

/// Refuses a route of which nobody has said who may ask for it.
pub(crate) fn router(
    quota: Arc<Quota>,
    readiness: Arc<Readiness>,
    auth: Arc<Auth>,
) -> Result<Router, StartError> {
    let mut router = Router::new();
    for Route { method, path, answer } in routes() {
        let access = Access::of_route(method.as_str(), path)
            .ok_or_else(|| StartError::Access(format!("{method} {path}")))?;
        let guard = Guard { access, auth: Arc::clone(&auth), quota: Arc::clone(&quota) };
        router = router.route(path, answer.route_layer(from_fn_with_state(guard, authenticate)));
    }
    let router = router
        .fallback(async || Problem::new(StatusCode::NOT_FOUND, "not-found", "There is nothing here."))
        .method_not_allowed_fallback(async || {
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", "This cannot be done here.")
        })
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .layer(TimeoutLayer::with_status_code(StatusCode::REQUEST_TIMEOUT, REQUEST_TIMEOUT))
        .with_state(Http { quota, readiness });
    Ok(router)
}
