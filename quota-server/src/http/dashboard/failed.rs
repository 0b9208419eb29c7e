use axum::response::{IntoResponse, Response};

use super::super::problem::Problem;
use super::html;
use crate::quota::QuotaError;

/// A problem, told on a page.
pub(super) struct Failed(Problem);

impl From<Problem> for Failed {
    fn from(problem: Problem) -> Self {
        Self(problem)
    }
}

impl From<QuotaError> for Failed {
    fn from(error: QuotaError) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        let detail = format!("<p>{}</p>\n", html::escape(self.0.text("detail")));
        let mut response = super::shell(self.0.text("title"), "", &detail);
        *response.status_mut() = self.0.status();
        response
    }
}
