//! The service over HTTP and JSON: every handler extracts, delegates and converts.

mod amounts;
mod authenticate;
mod backoff;
mod bounded;
mod check;
mod classes;
mod dashboard;
mod denials;
mod events;
mod extract;
mod large;
mod modes;
mod nodes;
mod object;
mod openapi;
mod operator;
mod overrides;
mod pressure;
mod prices;
mod problem;
mod rate_limit;
mod report;
mod same_origin;
mod scrapes;
mod serve;
mod slots;
mod standing;
mod top;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::handler::Handler;
use axum::http::{Method, StatusCode};
use axum::middleware::from_fn_with_state;
use axum::routing::{self, MethodRouter};
use tokio::sync::Semaphore;
use tower_http::timeout::TimeoutLayer;

use self::authenticate::{Guard, authenticate};
use self::problem::Problem;
use self::scrapes::Scrapes;
pub(crate) use self::serve::serve;
use crate::auth::{Access, Auth};
use crate::history::History;
use crate::large::Large;
use crate::quota::Quota;
use crate::readiness::Readiness;
use crate::server::StartError;
use crate::trace::of_http;
use crate::{MAX_BODY_BYTES, REQUEST_TIMEOUT};

#[derive(Clone)]
struct Http {
    quota: Arc<Quota>,
    readiness: Arc<Readiness>,
    history: Arc<History>,
    auth: Arc<Auth>,
    /// Who may follow live pages at once.
    live: Arc<Semaphore>,
    scrapes: Arc<Scrapes>,
}

/// So many pages may be live at once: each asks the store up to seven times every other second.
const MOST_LIVE: usize = 32;

/// What answers to a method on a path.
struct Route {
    method: Method,
    path: &'static str,
    answer: MethodRouter<Http>,
    /// It is for people with a browser.
    is_page: bool,
}

fn get<T: 'static>(path: &'static str, answer: impl Handler<T, Http>) -> Route {
    Route { method: Method::GET, path, answer: routing::get(answer), is_page: false }
}

fn post<T: 'static>(path: &'static str, answer: impl Handler<T, Http>) -> Route {
    Route { method: Method::POST, path, answer: routing::post(answer), is_page: false }
}

fn put<T: 'static>(path: &'static str, answer: impl Handler<T, Http>) -> Route {
    Route { method: Method::PUT, path, answer: routing::put(answer), is_page: false }
}

fn delete<T: 'static>(path: &'static str, answer: impl Handler<T, Http>) -> Route {
    Route { method: Method::DELETE, path, answer: routing::delete(answer), is_page: false }
}

fn page<T: 'static>(path: &'static str, answer: impl Handler<T, Http>) -> Route {
    Route { is_page: true, ..get(path, answer) }
}

/// What a form on a page is sent to.
fn form<T: 'static>(path: &'static str, answer: impl Handler<T, Http>) -> Route {
    Route { is_page: true, ..post(path, answer) }
}

/// Every route of the API. `openapi.json` describes the same.
fn routes() -> [Route; 25] {
    [
        post("/v1/check", check::check),
        post("/v1/report", report::report),
        post("/v1/pressure", pressure::pressure),
        get("/v1/accounts/{kind}/{*id}", standing::standing),
        get("/v1/backoff", backoff::backoff),
        post("/v1/backoff", backoff::backoffs),
        get("/v1/nodes", nodes::nodes),
        get("/v1/nodes/{*node}", nodes::node),
        get("/v1/top", top::top),
        get("/v1/denials", denials::denials),
        get("/v1/denials/stream", denials::stream),
        get("/v1/prices", prices::prices),
        post("/v1/slots", slots::slots),
        get("/v1/classes", classes::classes),
        get("/v1/overrides", overrides::list),
        get("/v1/overrides/{kind}/{*id}", overrides::get),
        put("/v1/overrides/{kind}/{*id}", overrides::put),
        delete("/v1/overrides/{kind}/{*id}", overrides::delete),
        get("/v1/modes", modes::list),
        put("/v1/modes", modes::put),
        delete("/v1/modes", modes::delete),
        get("/metrics", operator::metrics),
        get("/healthz", operator::healthz),
        get("/readyz", operator::readyz),
        get("/openapi.json", openapi::openapi),
    ]
}

/// Refuses a route of which nobody has said who may ask for it. Where requests are traced, each has a span.
pub(crate) fn router(
    quota: Arc<Quota>,
    readiness: Arc<Readiness>,
    auth: Arc<Auth>,
    history: Arc<History>,
    large: Large,
    traced: bool,
) -> Result<Router, StartError> {
    let mut router = Router::new();
    for Route { method, path, answer, is_page } in routes().into_iter().chain(dashboard::routes()) {
        let access = Access::of_route(method.as_str(), path)
            .ok_or_else(|| StartError::Access(format!("{method} {path}")))?;
        let guard = Guard { access, is_page, auth: Arc::clone(&auth), quota: Arc::clone(&quota) };
        let answer = answer.route_layer(from_fn_with_state(large.clone(), self::large::large));
        let answer = answer.route_layer(from_fn_with_state(guard, authenticate));
        let answer = if traced { answer.route_layer(from_fn_with_state(path, of_http)) } else { answer };
        router = router.route(path, answer);
    }
    let router = router
        .fallback(async || Problem::new(StatusCode::NOT_FOUND, "not-found", "There is nothing here."))
        .method_not_allowed_fallback(async || {
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", "This cannot be done here.")
        })
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .layer(TimeoutLayer::with_status_code(StatusCode::REQUEST_TIMEOUT, REQUEST_TIMEOUT))
        .with_state(Http {
            quota,
            readiness,
            history,
            auth,
            live: Arc::new(Semaphore::new(MOST_LIVE)),
            scrapes: Arc::default(),
        });
    Ok(router)
}
