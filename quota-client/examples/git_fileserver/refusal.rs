use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::response::{IntoResponse, Response};
use quota_client::{Cause, Denial};

/// Why a request is not executed. Git shows what is `text/plain` to its user, after `remote:`.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("no such repository")]
    NotFound,
    #[error("say who you are: any password will do")]
    Unauthenticated,
    #[error("{0}")]
    Denied(Denial),
    #[error("content encoding {0:?} is not understood")]
    Encoding(String),
    #[error("too many git processes run; try again in a second")]
    Busy,
    #[error("git cannot be started")]
    Broken(#[source] std::io::Error),
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = match &self {
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::Unauthenticated => StatusCode::UNAUTHORIZED,
            Self::Denied(denial) => match denial.cause() {
                Cause::OverQuota(_) => StatusCode::TOO_MANY_REQUESTS,
                _ => StatusCode::SERVICE_UNAVAILABLE,
            },
            Self::Encoding(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
            Self::Broken(error) => {
                tracing::error!(%error, "git cannot be started");
                StatusCode::INTERNAL_SERVER_ERROR
            }
        };
        let mut response =
            (status, [(CONTENT_TYPE, "text/plain; charset=utf-8")], format!("{self}\n")).into_response();
        let headers = response.headers_mut();
        match self {
            Self::Unauthenticated => {
                headers.insert(WWW_AUTHENTICATE, axum::http::HeaderValue::from_static("Basic realm=\"git\""));
            }
            Self::Denied(denial) => {
                headers.insert(RETRY_AFTER, denial.retry_after_seconds().into());
            }
            Self::Busy => {
                headers.insert(RETRY_AFTER, 1.into());
            }
            Self::NotFound | Self::Encoding(_) | Self::Broken(_) => {}
        }
        response
    }
}
