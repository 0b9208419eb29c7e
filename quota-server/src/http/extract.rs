use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::IntoResponse as _;
use quota_core::{Accounts, Ipv6Prefix};
use quota_proto::{Invalid, v1};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::problem::Problem;
use crate::MAX_BODY_BYTES;

/// A JSON body; what is wrong with it is said by the path of the field.
pub(super) struct Json<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let body = Bytes::from_request(request, state).await.map_err(unread)?;
        let mut json = serde_json::Deserializer::from_slice(&body);
        let value = serde_path_to_error::deserialize(&mut json).map_err(|error| {
            let path = error.path().to_string();
            Problem::invalid(if path == "." { "body" } else { &path }, &error.inner().to_string())
        })?;
        json.end().map_err(|error| Problem::invalid("body", &error.to_string()))?;
        Ok(Self(value))
    }
}

fn unread(rejection: BytesRejection) -> Problem {
    match rejection.into_response().status() {
        StatusCode::PAYLOAD_TOO_LARGE => {
            Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", "The request is too large")
                .with("detail", format!("body: must be at most {MAX_BODY_BYTES} bytes"))
        }
        _ => Problem::invalid("body", "could not be read"),
    }
}

/// The parameters behind the question mark.
pub(super) struct Params<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let query = Query::from_request_parts(parts, state).await;
        query.map(|Query(params)| Self(params)).map_err(|error| Problem::invalid("query", &error.body_text()))
    }
}

/// The parts of the path.
pub(super) struct Segments<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Segments<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = Path::from_request_parts(parts, state).await;
        path.map(|Path(segments)| Self(segments))
            .map_err(|error| Problem::invalid("path", &error.body_text()))
    }
}

/// Accounts as they travel: each optional.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AccountsBody {
    pub(super) repo: Option<String>,
    pub(super) user: Option<String>,
    pub(super) ip: Option<String>,
}

impl AccountsBody {
    pub(super) fn read(self, prefix: Ipv6Prefix) -> Result<Accounts, Invalid> {
        let Self { repo, user, ip } = self;
        quota_proto::accounts(Some(&v1::Accounts { repo, user, ip }), prefix)
    }
}
