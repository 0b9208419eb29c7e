use std::borrow::Cow;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as STANDARD;

use super::problem::Problem;
use super::same_origin::{Site, site};
use crate::auth::{Access, Auth};
use crate::quota::Quota;
use crate::tls::Peer;

/// Who may ask for one route.
#[derive(Clone)]
pub(super) struct Guard {
    pub(super) access: Access,
    /// A browser shows the token as a password: it asks for one, and cannot show it otherwise. Nowhere else, since a browser
    /// shows it whatever page sends it here. So what changes something is taken from pages of this server alone; and of other
    /// routes, which take no password, from no page elsewhere, since a server without tokens asks nobody who he is.
    pub(super) is_page: bool,
    pub(super) auth: Arc<Auth>,
    pub(super) quota: Arc<Quota>,
}

/// Lets those through who may. What others send is not read.
pub(super) async fn authenticate(State(guard): State<Guard>, mut request: Request, next: Next) -> Response {
    let is_refused = match site(request.headers()) {
        Site::Same => false,
        Site::Other => true,
        // Who is no browser says nothing of it, and uses no page.
        Site::Unsaid => guard.is_page,
    };
    if is_refused && !request.method().is_safe() {
        return Problem::new(
            StatusCode::FORBIDDEN,
            "cross-origin",
            "This is taken from a page of this server alone",
        )
        .with("detail", "Sec-Fetch-Site or Origin must say that it comes from one")
        .into_response();
    }
    let names: &[String] = request.extensions().get().map_or(&[], |peer: &Peer| &peer.names);
    let authorization = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let authorization = match authorization {
        Some(basic) if guard.is_page => Some(as_bearer(basic)),
        other => other.map(Cow::Borrowed),
    };
    match guard.auth.authorize(guard.access, authorization.as_deref(), names) {
        Ok(caller) => {
            if let Some(caller) = caller {
                request.extensions_mut().insert(caller);
            }
            next.run(request).await
        }
        Err(refusal) => {
            let asks = guard.is_page && refusal.is_of_nobody();
            let mut response = Problem::from(guard.quota.refused(refusal)).into_response();
            if asks {
                response
                    .headers_mut()
                    .insert(WWW_AUTHENTICATE, HeaderValue::from_static("Basic realm=\"quota\""));
            }
            response
        }
    }
}

/// The password of `Basic` (RFC 7617) as a token; anything else as it is.
fn as_bearer(authorization: &str) -> Cow<'_, str> {
    let password = || {
        let (scheme, encoded) = authorization.split_once(' ')?;
        let decoded =
            STANDARD.decode(encoded.trim()).ok().filter(|_| scheme.eq_ignore_ascii_case("basic"))?;
        let (_, password) = std::str::from_utf8(&decoded).ok()?.split_once(':')?;
        Some(format!("Bearer {password}"))
    };
    password().map_or(Cow::Borrowed(authorization), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_a_token_and_what_is_none_stays_as_it_is() {
        assert_eq!(as_bearer(&format!("basic {}", STANDARD.encode("me:to:ken"))), "Bearer to:ken");
        for other in ["Bearer t", "Basic", "Basic !", &format!("Basic {}", STANDARD.encode("nothing"))] {
            assert_eq!(as_bearer(other), other);
        }
    }
}
