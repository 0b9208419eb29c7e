use std::time::Duration;

use axum::extract::State;
use quota_core::{Histogram, Resource};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Http;
use super::amounts;
use super::extract::Params;
use super::problem::Problem;
use crate::quota::{PricesRequest, QuotaError, RpcCosts};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PricesParams {
    #[serde(default, deserialize_with = "amounts::some_seconds")]
    since_seconds: Option<Duration>,
}

pub(super) async fn prices(
    State(http): State<Http>,
    Params(params): Params<PricesParams>,
) -> Result<axum::Json<Value>, Problem> {
    let since = PricesRequest::since("since_seconds", params.since_seconds).map_err(QuotaError::from)?;
    let costs = http.quota.list_prices(PricesRequest { since });
    Ok(axum::Json(json!({
        "since_seconds": since.as_secs_f64(),
        "rpcs": costs.iter().map(costs_json).collect::<Vec<_>>(),
    })))
}

fn costs_json(costs: &RpcCosts) -> Value {
    let mut body = json!({ "rpc": &*costs.rpc, "count": costs.count });
    for resource in Resource::ALL {
        body[resource.as_str()] = figures(&costs.cost[resource], |amount| amounts::amount(resource, amount));
    }
    if costs.wall.count() > 0 {
        body["wall_seconds"] = figures(&costs.wall, |micros| json!(micros as f64 / 1e6));
    }
    body
}

fn figures(histogram: &Histogram, amount: impl Fn(u64) -> Value) -> Value {
    json!({
        "mean": amount(histogram.mean()),
        "p50": amount(histogram.percentile(50)),
        "p95": amount(histogram.percentile(95)),
    })
}
