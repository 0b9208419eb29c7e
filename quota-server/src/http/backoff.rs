use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, RETRY_AFTER};
use axum::response::{IntoResponse, Response};
use quota_core::Ipv6Prefix;
use quota_proto::Invalid;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Http;
use super::amounts;
use super::bounded::Bounded;
use super::extract::{AccountsBody, Json, Params};
use super::object::Object;
use super::problem::Problem;
use crate::quota::{Backoff, BackoffRequest, Label, MAX_BACKOFFS, QuotaError, Retry};

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

impl BackoffParams {
    fn read(self, prefix: Ipv6Prefix) -> Result<BackoffRequest, Invalid> {
        let Self { repo, user, ip, node, attempt } = self;
        let accounts = AccountsBody { repo, user, ip }.read(prefix)?;
        Ok(BackoffRequest { accounts, node: Label::new("node", node.as_deref())?, attempt })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BackoffsBody {
    #[serde(default)]
    requests: Bounded<Object<BackoffParams>, MAX_BACKOFFS>,
}

impl BackoffsBody {
    fn read(self, prefix: Ipv6Prefix) -> Result<Vec<BackoffRequest>, Invalid> {
        let requests = self.requests.0.into_iter().enumerate();
        let read = |(at, Object(params)): (usize, Object<BackoffParams>)| {
            params.read(prefix).map_err(|invalid| at_its_place(invalid, at))
        };
        requests.map(read).collect()
    }
}

/// The accounts are members of the set itself, whose fault it is where there are none.
fn at_its_place(Invalid { field, reason }: Invalid, at: usize) -> Invalid {
    let set = format!("requests[{at}]");
    match field.strip_prefix("accounts") {
        Some(of_accounts) => Invalid { field: set + of_accounts, reason },
        None => Invalid { field, reason }.within(&set),
    }
}

pub(super) async fn backoff(
    State(http): State<Http>,
    Params(params): Params<BackoffParams>,
) -> Result<Response, Problem> {
    let request = params.read(http.quota.ipv6_prefix).map_err(QuotaError::Invalid)?;
    let backoff = http.quota.backoff(request).await?;
    let body = axum::Json(answer(&backoff));
    let retry = match backoff {
        Backoff::No => None,
        Backoff::Yes { retry, .. } => Some(retry),
    };
    let told = retry.map(|retry| [(RETRY_AFTER, retry.header_seconds().to_string())]);
    Ok(([(CACHE_CONTROL, cache_control(retry))], told, body).into_response())
}

pub(super) async fn backoffs(
    State(http): State<Http>,
    Json(body): Json<BackoffsBody>,
) -> Result<axum::Json<Value>, Problem> {
    let requests = body.read(http.quota.ipv6_prefix).map_err(QuotaError::Invalid)?;
    let backoffs = http.quota.backoff_each(requests).await?;
    let results: Vec<Value> = backoffs.iter().map(answer).collect();
    Ok(axum::Json(json!({ "results": results })))
}

fn answer(backoff: &Backoff) -> Value {
    match backoff {
        Backoff::No => json!({ "backoff": false, "action": backoff.action() }),
        Backoff::Yes { denied_by, retry } => json!({
            "backoff": true,
            "action": backoff.action(),
            "retry_after_seconds": retry.after.as_secs_f64(),
            "permanent": retry.permanent,
            "denied_by": amounts::denial(denied_by),
        }),
    }
}

/// For how long an answer may be kept: never for longer than it says to wait. Who may go on may not in a moment; and what
/// no wait helps against is an operator's to lift, which is in force everywhere within a second.
fn cache_control(retry: Option<Retry>) -> String {
    let seconds = match retry {
        None => 0,
        Some(Retry { after, permanent: true }) => after.as_secs().min(1),
        Some(Retry { after, permanent: false }) => after.as_secs(),
    };
    if seconds == 0 { "no-store".to_owned() } else { format!("private, max-age={seconds}") }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn an_answer_is_never_kept_for_longer_than_it_says_to_wait() {
        assert_eq!(cache_control(None), "no-store");
        for (millis, kept) in [
            (0, "no-store"),
            (999, "no-store"),
            (1000, "private, max-age=1"),
            (9999, "private, max-age=9"),
            (300_000, "private, max-age=300"),
        ] {
            let after = Duration::from_millis(millis);
            assert_eq!(cache_control(Some(Retry { after, permanent: false })), kept, "{millis} ms");
        }
        let blocked = Retry { after: Duration::from_secs(60), permanent: true };
        assert_eq!(cache_control(Some(blocked)), "private, max-age=1");
    }
}
