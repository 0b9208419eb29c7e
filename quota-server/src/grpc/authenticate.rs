use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use tonic::Status;
use tonic::codegen::http::header::AUTHORIZATION;

use super::status::status;
use crate::auth::{Access, Auth, Caller, Refusal};
use crate::quota::Quota;
use crate::tls::Peer;

/// Who may call which method.
#[derive(Clone)]
pub(super) struct Guard {
    pub(super) auth: Arc<Auth>,
    pub(super) quota: Arc<Quota>,
}

/// Lets those through who may. What others send is not read.
pub(super) async fn authenticate(State(guard): State<Guard>, mut request: Request, next: Next) -> Response {
    let Some(access) = Access::of_method(request.uri().path()) else {
        return Status::unimplemented("there is no such method").into_http();
    };
    let names: &[String] = request.extensions().get().map_or(&[], |Peer(names)| names);
    let authorization = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    match guard.auth.authorize(access, authorization, names) {
        Ok(caller) => {
            if let Some(caller) = caller {
                request.extensions_mut().insert(caller);
            }
            next.run(request).await
        }
        Err(refusal) => status(guard.quota.refused(refusal)).into_http(),
    }
}

/// Who calls a method that is not open to all.
pub(super) fn caller<T>(request: &tonic::Request<T>) -> Result<Caller, Status> {
    request.extensions().get().cloned().ok_or_else(|| status(Refusal::NoToken))
}
