use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use axum::response::sse::Event;
use quota_proto::Invalid;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Http;
use super::amounts;
use super::events::{self, Events};
use super::extract::Params;
use super::problem::Problem;
use crate::quota::{DenialCount, DenialEvent, DenialsRequest, Listening, QuotaError, Told};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DenialsParams {
    #[serde(default, deserialize_with = "amounts::some_seconds")]
    pub(super) since_seconds: Option<Duration>,
    pub(super) kind: Option<String>,
    pub(super) limit: Option<u32>,
}

impl DenialsParams {
    pub(super) fn read(self) -> Result<DenialsRequest, Invalid> {
        let kind = self.kind.map(|kind| kind.parse().map_err(|error| Invalid::new("kind", error)));
        Ok(DenialsRequest {
            since: DenialsRequest::since("since_seconds", self.since_seconds)?,
            kind: kind.transpose()?,
            limit: DenialsRequest::limit(self.limit)?,
        })
    }
}

pub(super) async fn denials(
    State(http): State<Http>,
    Params(params): Params<DenialsParams>,
) -> Result<axum::Json<Value>, Problem> {
    let report = http.quota.list_denials(params.read().map_err(QuotaError::from)?).await?;
    Ok(axum::Json(json!({
        "since_seconds": report.since.as_secs_f64(),
        "denials": report.denials.iter().map(count_json).collect::<Vec<_>>(),
        "missed": report.missed,
    })))
}

fn count_json(denial: &DenialCount) -> Value {
    let mut body = json!({
        "kind": denial.account.kind().as_str(),
        "id": denial.account.id(),
        "resource": denial.resource.as_str(),
        "mode": denial.mode.as_str(),
        "count": denial.count,
        "last_seconds_ago": denial.last.as_secs_f64(),
    });
    if let Some(rpc) = &denial.rpc {
        body["rpc"] = (**rpc).into();
    }
    body
}

/// Denials as they happen on this server, as server-sent events, until the caller goes or the server stops.
pub(super) async fn stream(State(http): State<Http>) -> Result<Response, Problem> {
    let listening = http.quota.denial_events.listen();
    let listening = listening.ok_or_else(|| events::full("as many follow as may"))?;
    events::stream(&http, |events| forward(listening, events)).await
}

/// Hands on what is told, one at a time: what a slow reader makes wait is dropped where it comes from, and counted.
async fn forward(mut listening: Listening, events: Events) {
    while let Some(told) = listening.next().await {
        if events.send(Ok(event(&told))).await.is_err() {
            return;
        }
    }
}

fn event(told: &Told) -> Event {
    match told {
        Told::Denial(denial) => Event::default().event("denial").data(denial_json(denial).to_string()),
        Told::Missed(missed) => {
            Event::default().event("missed").data(json!({ "missed": missed }).to_string())
        }
    }
}

fn denial_json(DenialEvent { node, rpc, mode, breach }: &DenialEvent) -> Value {
    let mut body = json!({
        "kind": breach.account.kind().as_str(),
        "id": breach.account.id(),
        "resource": breach.resource.as_str(),
        "used": amounts::amount(breach.resource, breach.used),
        "limit": amounts::limit(breach.resource, breach.limit),
        "scope": breach.scope.as_str(),
        "mode": mode.as_str(),
    });
    for (name, label) in [("node", node), ("rpc", rpc)] {
        if let Some(label) = label.as_deref() {
            body[name] = label.into();
        }
    }
    body
}
