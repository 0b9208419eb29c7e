use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::IntoResponse as _;
use percent_encoding::percent_decode_str;
use quota_core::{Accounts, Ipv6Prefix};
use quota_proto::{Invalid, v1};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::object::Object;
use super::problem::Problem;
use crate::MAX_BODY_BYTES;

/// A JSON body; what is wrong with it is said by the path of the field.
pub(super) struct Json<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let body = Bytes::from_request(request, state).await.map_err(unread)?;
        let mut json = serde_json::Deserializer::from_slice(&body);
        let Object(value) =
            serde_path_to_error::deserialize(&mut json).map_err(|error| wrong("body", &error))?;
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

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        pairs("query", parts.uri.query().unwrap_or_default()).map(Self)
    }
}

/// The fields of a form that a browser posts.
pub(super) struct Form<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Form<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let body = Bytes::from_request(request, state).await.map_err(unread)?;
        let body = std::str::from_utf8(&body).map_err(|_| Problem::invalid("body", "must be UTF-8"))?;
        pairs("body", body).map(Self)
    }
}

/// From names and values, in the encoding of queries and forms.
fn pairs<T: DeserializeOwned>(whole: &str, text: &str) -> Result<T, Problem> {
    if let Some(name) = not_utf8(text) {
        return Err(Problem::invalid(name, "must be UTF-8"));
    }
    let params = serde_urlencoded::Deserializer::new(form_urlencoded::parse(text.as_bytes()));
    serde_path_to_error::deserialize(params).map_err(|error| wrong(whole, &error))
}

/// The parameter that is no text when it is decoded: replacing what is wrong with it would name another account.
fn not_utf8(query: &str) -> Option<&str> {
    let pair = query.split('&').find(|pair| percent_decode_str(pair).decode_utf8().is_err())?;
    Some(pair.split_once('=').map_or(pair, |(name, _)| name))
}

/// What is wrong with the field that the error is about, or with the `whole`.
fn wrong<E: std::fmt::Display>(whole: &str, error: &serde_path_to_error::Error<E>) -> Problem {
    let path = error.path().to_string();
    // The whole is `.`, and a key that could not be read `?`.
    let field = path.trim_end_matches(['.', '?']);
    Problem::invalid(if field.is_empty() { whole } else { field }, &error.inner().to_string())
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
#[derive(Default, Deserialize)]
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
