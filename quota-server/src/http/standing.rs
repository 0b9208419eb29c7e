use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderName;
use axum::http::header::CACHE_CONTROL;
use quota_core::{Account, Comparison, Kind};
use quota_proto::Invalid;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Http;
use super::amounts;
use super::extract::{Params, Segments};
use super::overrides::override_json;
use super::problem::Problem;
use crate::quota::{Label, Quota, QuotaError, Standing, StandingRequest};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StandingParams {
    node: Option<String>,
}

pub(super) async fn standing(
    State(http): State<Http>,
    Segments((kind, id)): Segments<(String, String)>,
    Params(params): Params<StandingParams>,
) -> Result<([(HeaderName, &'static str); 1], axum::Json<Value>), Problem> {
    let request = read(&http.quota, &kind, &id, params).map_err(QuotaError::from)?;
    let standing = http.quota.standing(request).await?;
    // Usage moves with each request.
    let body = standing_json(&standing, http.quota.window.length());
    Ok(([(CACHE_CONTROL, "no-store")], axum::Json(body)))
}

/// The account that a path names.
pub(super) fn read(
    quota: &Quota,
    kind: &str,
    id: &str,
    StandingParams { node }: StandingParams,
) -> Result<StandingRequest, Invalid> {
    let kind: Kind = kind.parse().map_err(|error| Invalid::new("kind", error))?;
    let account = Account::new(kind, id, quota.ipv6_prefix).map_err(|error| Invalid::new("id", error))?;
    Ok(StandingRequest { account, node: Label::new("node", node.as_deref())? })
}

pub(super) fn standing_json(standing: &Standing, window: Duration) -> Value {
    let mut body = json!({
        "kind": standing.account.kind().as_str(),
        "id": standing.account.id(),
        "over": standing.over,
        "retry_after_seconds": standing.retry_after.as_secs_f64(),
        "resources": amounts::each(|resource| {
            let (used, Comparison { ceiling, here }) = standing.resources[resource];
            let mut body = json!({
                "used": amounts::amount(resource, used),
                "limit": amounts::limit(resource, ceiling.limit),
                "mode": ceiling.mode.as_str(),
            });
            if let Some(here) = here {
                let here = json!({
                    "used": amounts::amount(resource, here.used.of(used)),
                    "limit": amounts::limit(resource, here.limit),
                });
                body["here"] = amounts::explained(here, standing.own[resource].as_ref());
            }
            body
        }),
    });
    if let Some(said) = &standing.overriding {
        body["override"] = override_json(said, window);
    }
    body
}
