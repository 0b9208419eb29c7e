use axum::body::HttpBody as _;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;

use crate::large::Large;

/// Reads few large bodies at a time; one that does not say how large it is may be.
pub(super) async fn large(State(large): State<Large>, request: Request, next: Next) -> Response {
    let most = request.body().size_hint().upper();
    let is_small = most.is_some_and(|most| most <= Large::BYTES as u64);
    let _place = if is_small { None } else { large.enter().await };
    next.run(request).await
}
