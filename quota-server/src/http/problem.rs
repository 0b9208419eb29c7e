use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use quota_proto::PROBLEM_TYPES;
use serde_json::{Map, Value, json};

use crate::quota::{QuotaError, Retry};

/// A problem document (RFC 9457): what every answer that is no success carries.
pub(super) struct Problem {
    status: StatusCode,
    retry_after_seconds: Option<u64>,
    body: Map<String, Value>,
}

impl Problem {
    /// A problem of a type named `name`, which the title says in words.
    pub(super) fn new(status: StatusCode, name: &str, title: &str) -> Self {
        let mut problem = Self { status, retry_after_seconds: None, body: Map::new() };
        problem.set("type", format!("{PROBLEM_TYPES}{name}"));
        problem.set("title", title);
        problem.set("status", status.as_u16());
        problem
    }

    /// The same, with a further member.
    pub(super) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.set(name, value);
        self
    }

    /// The same, saying in header and body when to come back.
    pub(super) fn retry(mut self, retry: Retry) -> Self {
        self.retry_after_seconds = Some(retry.header_seconds());
        self.with("retry_after_seconds", retry.after.as_secs_f64()).with("permanent", retry.permanent)
    }

    /// A request of which the field `field` is wrong.
    pub(super) fn invalid(field: &str, reason: &str) -> Self {
        let (field, reason) = (shorten(field), shorten(reason));
        Self::new(StatusCode::BAD_REQUEST, "invalid-request", "Invalid request")
            .with("detail", format!("{field}: {reason}"))
            .with("errors", json!([{ "field": field, "reason": reason }]))
    }

    /// What status it is answered with.
    pub(super) const fn status(&self) -> StatusCode {
        self.status
    }

    /// A member that is text; nothing where it has none of this name.
    pub(super) fn text(&self, name: &str) -> &str {
        self.body.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    fn unavailable(name: &str, title: &str, detail: String) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, name, title)
            .with("detail", detail)
            .retry(Retry { after: QuotaError::RETRY_AFTER, permanent: false })
    }

    fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.body.insert(name.to_owned(), value.into());
    }
}

/// What may repeat a part of the request, cut to a length that an answer bears.
fn shorten(text: &str) -> &str {
    const MOST: usize = 256;
    &text[..text.floor_char_boundary(MOST)]
}

impl From<QuotaError> for Problem {
    fn from(error: QuotaError) -> Self {
        let detail = error.to_string();
        match error {
            QuotaError::Invalid(invalid) => Self::invalid(&invalid.field, &invalid.reason),
            QuotaError::Refused(refusal) if refusal.is_of_nobody() => {
                Self::new(StatusCode::UNAUTHORIZED, "unauthenticated", "It is not known who asks")
                    .with("detail", detail)
            }
            QuotaError::Refused(_) => {
                Self::new(StatusCode::FORBIDDEN, "forbidden", "The caller may not ask this")
                    .with("detail", detail)
            }
            QuotaError::Unavailable(_) => {
                Self::unavailable("store-unavailable", "The store is unavailable", detail)
            }
            QuotaError::TooManyNodes(_) => {
                Self::unavailable("too-many-nodes", "There is no room for another node", detail)
            }
            QuotaError::NothingSaid => {
                Self::new(StatusCode::NOT_FOUND, "not-found", "There is nothing here.").with("detail", detail)
            }
            QuotaError::TooManyOverrides => {
                Self::new(StatusCode::CONFLICT, "too-many-overrides", "There is no room for another override")
                    .with("detail", detail)
            }
            QuotaError::AccountNotStored(_) => {
                Self::unavailable("account-not-stored", "An account cannot take the report", detail)
            }
            QuotaError::Corrupt(_) => {
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "corrupt-account", "An account cannot be read")
                    .with("detail", detail)
            }
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = Value::Object(self.body).to_string();
        let content_type = HeaderValue::from_static("application/problem+json");
        let mut response = (self.status, [(header::CONTENT_TYPE, content_type)], body).into_response();
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(seconds) = self.retry_after_seconds {
            response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        response
    }
}
