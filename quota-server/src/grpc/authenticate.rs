use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use quota_core::Account;
use tonic::Status;
use tonic::codegen::http::header::AUTHORIZATION;

use super::status::status;
use crate::auth::{Access, Auth, Caller, Refusal};
use crate::places::{Place, Places};
use crate::quota::Quota;
use crate::tls::Peer;

/// Who may call which method.
#[derive(Clone)]
pub(super) struct Guard {
    pub(super) auth: Arc<Auth>,
    pub(super) quota: Arc<Quota>,
    /// Calls that take no token, by the address that they are from.
    pub(super) open: Places<Account>,
}

/// The most calls of an address at a time that take no token: each may wait for its message, and be followed.
const MOST_OPEN: usize = 64;

/// The place of a call that takes no token, until what it is answered has ended.
#[derive(Clone)]
pub(super) struct OpenCall {
    _place: Arc<Place<Account>>,
}

/// Lets those through who may. What others send is not read.
pub(super) async fn authenticate(State(guard): State<Guard>, mut request: Request, next: Next) -> Response {
    let Some(access) = Access::of_method(request.uri().path()) else {
        return Status::unimplemented("there is no such method").into_http();
    };
    let names: &[String] = request.extensions().get().map_or(&[], |peer: &Peer| &peer.names);
    let authorization = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    match guard.auth.authorize(access, authorization, names) {
        Ok(caller) => {
            let peer = request.extensions().get::<Peer>().filter(|_| access == Access::Open);
            if let Some(peer) = peer {
                let Some(place) = guard.open.take(peer.address.clone(), MOST_OPEN) else {
                    return Status::resource_exhausted("as many calls without a token are open as may be")
                        .into_http();
                };
                request.extensions_mut().insert(OpenCall { _place: Arc::new(place) });
            }
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
