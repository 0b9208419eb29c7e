use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use quota_core::{Cost, Ipv6Prefix, PerKind};
use quota_proto::Invalid;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Http;
use super::amounts::{self, CostBody, UsedBody};
use super::extract::{AccountsBody, Json};
use super::object::Object;
use super::problem::Problem;
use super::rate_limit;
use super::standing::standing_json;
use crate::auth::Caller;
use crate::quota::{CheckRequest, Decision, Label, QuotaError, Remaining, Share, denial_in_words};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CheckBody {
    node: Option<String>,
    rpc: Option<String>,
    #[serde(default)]
    accounts: Object<AccountsBody>,
    class: Option<String>,
    price: Option<Object<CostBody>>,
    #[serde(default)]
    used_here: Object<UsedHereBody>,
    share_wanted: Option<Object<CostBody>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct UsedHereBody {
    repo: Object<UsedBody>,
    user: Object<UsedBody>,
    ip: Object<UsedBody>,
}

impl CheckBody {
    fn read(self, prefix: Ipv6Prefix) -> Result<CheckRequest, Invalid> {
        let UsedHereBody { repo, user, ip } = self.used_here.0;
        Ok(CheckRequest {
            node: Label::new("node", self.node.as_deref())?,
            rpc: Label::new("rpc", self.rpc.as_deref())?,
            accounts: self.accounts.0.read(prefix)?,
            class: Label::new("class", self.class.as_deref())?,
            price: self.price.map(|Object(price)| price.into()),
            used_here: PerKind::new(repo.0.into(), user.0.into(), ip.0.into()),
            share_wanted: self.share_wanted.map_or(Cost::ZERO, |Object(wanted)| wanted.into()),
        })
    }
}

pub(super) async fn check(
    State(http): State<Http>,
    Extension(caller): Extension<Caller>,
    Json(body): Json<CheckBody>,
) -> Result<Response, Problem> {
    let request = body.read(http.quota.ipv6_prefix).map_err(QuotaError::from)?;
    http.quota.speaks_for(&caller, request.node.as_deref())?;
    let node = request.node.clone();
    let response = http.quota.check(&caller, request).await?;
    let window = http.quota.window.length();
    let standings: Vec<Value> =
        response.standings.iter().map(|standing| standing_json(standing, window)).collect();
    Ok(match response.decision {
        Decision::Allow { reservation, checked, shadow } => {
            let reserved = reservation.map_or(Cost::ZERO, |reservation| reservation.amounts);
            let mut body = json!({
                "decision": "allow",
                "reserved": amounts::cost(reserved),
                "checked": checked,
                "standings": standings,
            });
            if let Some(reservation) = reservation {
                body["reservation"] = reservation.to_string().into();
            }
            if let Some(Share { reservation, lasts }) = response.share {
                body["share"] = json!({
                    "reservation": reservation.to_string(),
                    "amounts": amounts::cost(reservation.amounts),
                    "lasts_seconds": lasts.as_secs_f64(),
                });
            }
            if let Some(shadow) = shadow {
                body["shadow"] = amounts::denial(&shadow);
            }
            let remaining = Remaining::least(&response.standings, reserved);
            let headers = remaining.map(|remaining| rate_limit::allowed(&remaining, window));
            (headers, axum::Json(body)).into_response()
        }
        Decision::Deny { denied_by, retry } => {
            let problem = Problem::new(StatusCode::TOO_MANY_REQUESTS, "over-quota", "Over quota")
                .with("detail", denial_in_words(&denied_by, &node, window))
                .with("decision", "deny")
                .with("denied_by", amounts::denial(&denied_by))
                .with("standings", standings)
                .retry(retry);
            (rate_limit::denied(&denied_by.breach, window, retry), problem).into_response()
        }
    })
}
