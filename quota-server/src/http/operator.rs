//! For those who run the server: metrics, health, readiness.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::Http;
use super::problem::Problem;

pub(super) async fn metrics(State(http): State<Http>) -> Result<Response, Problem> {
    let text = http.scrapes.text(Arc::clone(&http.quota.metrics)).await.map_err(|error| {
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "metrics", "The metrics cannot be written")
            .with("detail", error.to_string())
    })?;
    Ok(([(CONTENT_TYPE, prometheus::TEXT_FORMAT)], text).into_response())
}

/// The process lives, and answers.
pub(super) async fn healthz() -> &'static str {
    "ok\n"
}

/// The server takes requests, and its store takes writes.
pub(super) async fn readyz(State(http): State<Http>) -> Response {
    let store = http.readiness.store();
    match http.readiness.probe().await {
        Ok(()) => {
            axum::Json(json!({ "ready": true, "store": store.name(), "detail": http.readiness.detail() }))
                .into_response()
        }
        Err(reason) => Problem::new(StatusCode::SERVICE_UNAVAILABLE, "not-ready", "Not ready")
            .with("detail", reason.to_string())
            .into_response(),
    }
}
