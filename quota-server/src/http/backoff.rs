use axum::extract::State;
use axum::http::header::RETRY_AFTER;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::json;

use super::Http;
use super::amounts;
use super::extract::{AccountsBody, Params};
use super::problem::Problem;
use crate::quota::{Backoff, BackoffRequest, Label, QuotaError};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BackoffParams {
    repo: Option<String>,
    user: Option<String>,
    ip: Option<String>,
    node: Option<String>,
    #[serde(default)]
    attempt: u32,
}

pub(super) async fn backoff(
    State(http): State<Http>,
    Params(BackoffParams { repo, user, ip, node, attempt }): Params<BackoffParams>,
) -> Result<Response, Problem> {
    let read = || {
        let accounts = AccountsBody { repo, user, ip }.read(http.quota.ipv6_prefix)?;
        Ok(BackoffRequest { accounts, node: Label::new("node", node.as_deref())?, attempt })
    };
    let request = read().map_err(QuotaError::Invalid)?;
    Ok(match http.quota.backoff(request).await? {
        Backoff::No => axum::Json(json!({ "backoff": false })).into_response(),
        Backoff::Yes { denied_by, retry } => {
            let body = axum::Json(json!({
                "backoff": true,
                "retry_after_seconds": retry.after.as_secs_f64(),
                "permanent": retry.permanent,
                "denied_by": amounts::denial(&denied_by),
            }));
            ([(RETRY_AFTER, retry.header_seconds().to_string())], body).into_response()
        }
    })
}
