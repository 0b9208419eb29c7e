use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use quota_core::{Cost, Ipv6Prefix};
use quota_proto::Invalid;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Http;
use super::amounts::{CostBody, seconds, some_seconds};
use super::bounded::Bounded;
use super::extract::{AccountsBody, Json};
use super::object::Object;
use super::problem::Problem;
use crate::auth::Caller;
use crate::quota::{ChargeRequest, Finished, Label, QuotaError, ReportRequest};
use crate::store::MAX_CHARGES;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReportBody {
    #[serde(default)]
    source: String,
    #[serde(default)]
    sequence: u64,
    #[serde(default, deserialize_with = "seconds")]
    held_seconds: Duration,
    node: Option<String>,
    #[serde(default)]
    charges: Bounded<Object<ChargeBody>, MAX_CHARGES>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChargeBody {
    #[serde(default)]
    accounts: Object<AccountsBody>,
    #[serde(default)]
    cost: Object<CostBody>,
    #[serde(default, deserialize_with = "seconds")]
    age_seconds: Duration,
    #[serde(default)]
    reservation: String,
    release: Option<Object<CostBody>>,
    rpc: Option<String>,
    #[serde(default)]
    finished: bool,
    #[serde(default, deserialize_with = "some_seconds")]
    wall_seconds: Option<Duration>,
    total: Option<Object<CostBody>>,
}

impl ReportBody {
    fn read(self, prefix: Ipv6Prefix, caller: &Caller) -> Result<ReportRequest, Invalid> {
        let charges = self.charges.0.into_iter().enumerate().map(|(at, Object(charge))| {
            charge.read(prefix).map_err(|invalid| invalid.within(&format!("charges[{at}]")))
        });
        Ok(ReportRequest {
            mark: ReportRequest::mark(caller, &self.source, self.sequence)?,
            held: self.held_seconds,
            node: Label::new("node", self.node.as_deref())?,
            charges: charges.collect::<Result<_, _>>()?,
        })
    }
}

impl ChargeBody {
    fn read(self, prefix: Ipv6Prefix) -> Result<ChargeRequest, Invalid> {
        let cost: Cost = self.cost.0.into();
        let total = self.total.map_or(cost, |Object(total)| total.into());
        Ok(ChargeRequest {
            accounts: self.accounts.0.read(prefix)?,
            cost,
            age: self.age_seconds,
            release: ChargeRequest::release(
                &self.reservation,
                self.release.map(|Object(release)| release.into()),
            )?,
            finished: Finished::read(self.rpc.as_deref(), self.finished, total, self.wall_seconds)?,
        })
    }
}

pub(super) async fn report(
    State(http): State<Http>,
    Extension(caller): Extension<Caller>,
    Json(body): Json<ReportBody>,
) -> Result<axum::Json<Value>, Problem> {
    let request = body.read(http.quota.ipv6_prefix, &caller).map_err(QuotaError::from)?;
    http.quota.speaks_for(&caller, request.node.as_deref())?;
    let reported = http.quota.report(&caller, request).await?;
    Ok(axum::Json(json!({
        "applied": reported.applied,
        "dropped_old": reported.dropped_old,
        "duplicate": reported.duplicate,
    })))
}
