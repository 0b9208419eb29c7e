use axum::extract::State;
use axum::http::StatusCode;
use quota_core::{Kind, Limit, Resource};
use serde_json::{Map, Value, json};

use super::Http;
use super::amounts;
use super::extract::Segments;
use super::problem::Problem;
use crate::quota::{Label, NodeCalibration, NodeStanding, QuotaError};

pub(super) async fn nodes(State(http): State<Http>) -> Result<axum::Json<Value>, Problem> {
    let nodes = http.quota.list_nodes(&Label::default()).await?;
    Ok(axum::Json(json!({ "nodes": nodes.iter().map(node_json).collect::<Vec<_>>() })))
}

pub(super) async fn node(
    State(http): State<Http>,
    Segments(name): Segments<String>,
) -> Result<axum::Json<Value>, Problem> {
    let name = Label::new("node", Some(&name)).map_err(QuotaError::from)?;
    let nodes = http.quota.list_nodes(&name).await?;
    let not_found = || {
        Problem::new(StatusCode::NOT_FOUND, "not-found", "There is nothing here.")
            .with("detail", "no node of this name has told its pressure, or not for long")
    };
    nodes.first().map(|node| axum::Json(node_json(node))).ok_or_else(not_found)
}

fn node_json(node: &NodeStanding) -> Value {
    let report = &node.report;
    let active = report.active.iter().filter_map(|(kind, active)| Some((kind.as_str(), (*active)?)));
    let accounts = node
        .accounts
        .iter()
        .map(|(limit, explanation)| amounts::explained(amounts::account_limit(limit), Some(explanation)));
    json!({
        "node": node.name,
        "seen_ago_seconds": node.seen_ago.as_secs_f64(),
        "pressure": told(|resource| report.pressure[resource].map(|share| json!(f64::from(share)))),
        "limits": amounts::limits(&node.limits),
        "accounts": accounts.collect::<Vec<_>>(),
        "last_calibrations": told(|resource| {
            node.calibrations[resource].as_ref().map(|calibration| calibration_json(resource, calibration))
        }),
        "capacity": told(|resource| report.capacity[resource].map(|amount| match resource {
            Resource::Cpu => json!(amount as f64 / 1000.0),
            Resource::Memory | Resource::Network => json!(amount),
        })),
        "active": active.map(|(kind, active)| (kind.to_owned(), json!(active))).collect::<Map<_, _>>(),
    })
}

fn calibration_json(resource: Resource, calibration: &NodeCalibration) -> Value {
    let limit = |amount| amounts::limit(resource, Limit::At(amount));
    let change = |kind: Kind| {
        let change = json!({ "old": limit(calibration.old[kind]), "new": limit(calibration.new[kind]) });
        (kind.as_str().to_owned(), change)
    };
    json!({
        "ago_seconds": calibration.ago.as_secs_f64(),
        "reason": calibration.reason.as_str(),
        "pressure": f64::from(calibration.pressure),
        "limits": Kind::ALL.map(change).into_iter().collect::<Map<_, _>>(),
    })
}

/// An object with a member for each resource of which something is told.
fn told(value: impl Fn(Resource) -> Option<Value>) -> Map<String, Value> {
    let told = |resource: Resource| Some((resource.as_str().to_owned(), value(resource)?));
    Resource::ALL.into_iter().filter_map(told).collect()
}
