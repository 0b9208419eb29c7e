//! What operators say of accounts, over HTTP.

use std::time::Duration;

use axum::extract::State;
use axum::http::{Extensions, StatusCode};
use quota_core::{Kind, Override, PerResource, Resource, Weight};
use quota_proto::{Invalid, ONE_WORD};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use super::Http;
use super::extract::{Json, Segments};
use super::object::Object;
use super::problem::Problem;
use crate::author::author;
use crate::config::{read_limit, written_limit};
use crate::quota::{OverrideRequest, OverrideStanding, PutOverride, Quota, QuotaError};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OverrideBody {
    #[serde(default, deserialize_with = "given")]
    pub(super) weight: Option<f64>,
    #[serde(default, deserialize_with = "given")]
    pub(super) limits: Option<Object<LimitsBody>>,
    #[serde(default, deserialize_with = "given")]
    pub(super) exempt: Option<bool>,
    #[serde(default, deserialize_with = "given")]
    pub(super) blocked: Option<bool>,
    #[serde(default)]
    pub(super) reason: String,
    pub(super) expires_in_seconds: Option<f64>,
}

/// Limits as the configuration file has them.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LimitsBody {
    pub(super) cpu: Option<String>,
    pub(super) memory: Option<String>,
    pub(super) network: Option<String>,
}

/// One of several is said: a `null` beside another is no word, and not none.
fn given<'de, T: Deserialize<'de>, D: Deserializer<'de>>(json: D) -> Result<Option<T>, D::Error> {
    T::deserialize(json).map(Some)
}

impl OverrideBody {
    pub(super) fn read(self, asked: OverrideRequest, window: Duration) -> Result<PutOverride, Invalid> {
        let word = match (self.weight, self.limits, self.exempt, self.blocked) {
            (Some(weight), None, None, None) => Weight::try_from(weight)
                .map(Override::Weight)
                .map_err(|error| Invalid::new("weight", error))?,
            (None, Some(Object(limits)), None, None) => limits.read(window)?,
            (None, None, Some(true), None) => Override::Exempt,
            (None, None, Some(false), None) => return Err(Invalid::new("exempt", "must be true")),
            (None, None, None, Some(true)) => Override::Blocked,
            (None, None, None, Some(false)) => return Err(Invalid::new("blocked", "must be true")),
            _ => return Err(Invalid::new("override", ONE_WORD)),
        };
        let lasts = self.expires_in_seconds.map(seconds).transpose()?;
        PutOverride::new(asked, word, &self.reason, (EXPIRES, lasts))
    }
}

pub(super) const EXPIRES: &str = "expires_in_seconds";

/// What is beyond every bound is refused as such.
fn seconds(seconds: f64) -> Result<Duration, Invalid> {
    if seconds.is_sign_negative() {
        return Err(Invalid::new(EXPIRES, "must not be negative"));
    }
    Ok(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}

impl LimitsBody {
    fn read(self, window: Duration) -> Result<Override, Invalid> {
        let own = |resource: Resource, text: Option<String>| {
            text.map(|text| read_limit(resource, &text, window))
                .transpose()
                .map_err(|reason| Invalid::new(format!("limits.{resource}"), reason))
        };
        let limits = PerResource::new(
            own(Resource::Cpu, self.cpu)?,
            own(Resource::Memory, self.memory)?,
            own(Resource::Network, self.network)?,
        );
        if limits.iter().all(|(_, limit)| limit.is_none()) {
            return Err(Invalid::new("limits", "must have one of cpu, memory and network"));
        }
        Ok(Override::Limits(limits))
    }
}

pub(super) fn asked(
    quota: &Quota,
    kind: &str,
    id: &str,
    of: &Extensions,
) -> Result<OverrideRequest, Invalid> {
    let kind: Kind = kind.parse().map_err(|error| Invalid::new("kind", error))?;
    OverrideRequest::new(kind, id, quota.ipv6_prefix, author(of))
}

pub(super) async fn list(State(http): State<Http>) -> Result<axum::Json<Value>, Problem> {
    let overrides = http.quota.list_overrides().await?;
    let window = http.quota.window.length();
    let overrides: Vec<Value> = overrides.iter().map(|said| override_json(said, window)).collect();
    Ok(axum::Json(json!({ "overrides": overrides })))
}

pub(super) async fn get(
    State(http): State<Http>,
    Segments((kind, id)): Segments<(String, String)>,
    extensions: Extensions,
) -> Result<axum::Json<Value>, Problem> {
    let asked = asked(&http.quota, &kind, &id, &extensions).map_err(QuotaError::from)?;
    let said = http.quota.get_override(&asked.account).await?;
    Ok(axum::Json(override_json(&said, http.quota.window.length())))
}

pub(super) async fn put(
    State(http): State<Http>,
    Segments((kind, id)): Segments<(String, String)>,
    extensions: Extensions,
    Json(body): Json<OverrideBody>,
) -> Result<axum::Json<Value>, Problem> {
    let window = http.quota.window.length();
    let read = || body.read(asked(&http.quota, &kind, &id, &extensions)?, window);
    let said = http.quota.put_override(read().map_err(QuotaError::from)?).await?;
    Ok(axum::Json(override_json(&said, window)))
}

pub(super) async fn delete(
    State(http): State<Http>,
    Segments((kind, id)): Segments<(String, String)>,
    extensions: Extensions,
) -> Result<StatusCode, Problem> {
    let asked = asked(&http.quota, &kind, &id, &extensions).map_err(QuotaError::from)?;
    http.quota.delete_override(asked).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) fn override_json(said: &OverrideStanding, window: Duration) -> Value {
    let mut body = json!({
        "kind": said.account.kind().as_str(),
        "id": said.account.id(),
        "reason": said.reason,
        "author": said.author,
        "origin": said.origin.as_str(),
    });
    match &said.word {
        Override::Weight(weight) => body["weight"] = f64::from(*weight).into(),
        Override::Limits(limits) => {
            let own = limits.iter().filter_map(|(resource, limit)| {
                Some((resource.as_str(), written_limit(resource, (*limit)?, window)))
            });
            body["limits"] = own.map(|(name, limit)| (name.to_owned(), Value::from(limit))).collect();
        }
        Override::Exempt => body["exempt"] = true.into(),
        Override::Blocked => body["blocked"] = true.into(),
    }
    if let Some(left) = said.expires_in {
        body[EXPIRES] = left.as_secs_f64().into();
    }
    body
}
