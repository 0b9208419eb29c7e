use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::AUTHORIZATION;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use super::problem::Problem;
use crate::auth::{Access, Auth};
use crate::quota::Quota;
use crate::tls::Peer;

/// Who may ask for one route.
#[derive(Clone)]
pub(super) struct Guard {
    pub(super) access: Access,
    pub(super) auth: Arc<Auth>,
    pub(super) quota: Arc<Quota>,
}

/// Lets those through who may. What others send is not read.
pub(super) async fn authenticate(State(guard): State<Guard>, mut request: Request, next: Next) -> Response {
    let named = request.extensions().get().and_then(|Peer(named)| named.as_ref());
    let authorization = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    match guard.auth.authorize(guard.access, authorization, named) {
        Ok(caller) => {
            if let Some(caller) = caller {
                request.extensions_mut().insert(caller);
            }
            next.run(request).await
        }
        Err(refusal) => Problem::from(guard.quota.refused(refusal)).into_response(),
    }
}
