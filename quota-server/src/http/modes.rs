//! How far limits are enforced, over HTTP.

use axum::extract::State;
use axum::http::{Extensions, StatusCode};
use quota_core::{Kind, Mode, Place};
use quota_proto::Invalid;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Http;
use super::extract::{Json, Params};
use super::problem::Problem;
use crate::author::author;
use crate::quota::{ModeRequest, ModeStanding, PutMode, QuotaError};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ModeBody {
    pub(super) mode: String,
    pub(super) node: Option<String>,
    pub(super) kind: Option<String>,
    #[serde(default)]
    pub(super) reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ModeParams {
    node: Option<String>,
    kind: Option<String>,
}

impl ModeBody {
    pub(super) fn read(&self, of: &Extensions) -> Result<PutMode, Invalid> {
        let mode = Mode::ALL.into_iter().find(|mode| mode.as_str() == self.mode);
        let mode = mode.ok_or_else(|| Invalid::new("mode", "must be off, shadow or enforce"))?;
        PutMode::new(asked(self.node.as_deref(), self.kind.as_deref(), of)?, mode, &self.reason)
    }
}

pub(super) fn asked(node: Option<&str>, kind: Option<&str>, of: &Extensions) -> Result<ModeRequest, Invalid> {
    let kind: Option<Kind> = kind.map(str::parse).transpose().map_err(|error| Invalid::new("kind", error))?;
    ModeRequest::new(node, kind, author(of))
}

pub(super) async fn list(State(http): State<Http>) -> Result<axum::Json<Value>, Problem> {
    let modes = http.quota.list_modes().await?;
    Ok(axum::Json(json!({ "modes": modes.iter().map(mode_json).collect::<Vec<_>>() })))
}

pub(super) async fn put(
    State(http): State<Http>,
    extensions: Extensions,
    Json(body): Json<ModeBody>,
) -> Result<axum::Json<Value>, Problem> {
    let request = body.read(&extensions).map_err(QuotaError::from)?;
    Ok(axum::Json(mode_json(&http.quota.put_mode(request).await?)))
}

pub(super) async fn delete(
    State(http): State<Http>,
    Params(ModeParams { node, kind }): Params<ModeParams>,
    extensions: Extensions,
) -> Result<StatusCode, Problem> {
    let request = asked(node.as_deref(), kind.as_deref(), &extensions).map_err(QuotaError::from)?;
    http.quota.delete_mode(request).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn mode_json(ModeStanding { setting, since }: &ModeStanding) -> Value {
    let mut body = json!({
        "mode": setting.mode.as_str(),
        "reason": setting.reason,
        "author": setting.author,
        "since_seconds": since.as_secs_f64(),
    });
    match &setting.place {
        Place::System => {}
        Place::Kind(kind) => body["kind"] = kind.as_str().into(),
        Place::Node(node) => body["node"] = (&**node).into(),
    }
    body
}
