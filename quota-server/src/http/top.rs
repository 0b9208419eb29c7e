use axum::extract::State;
use quota_core::Resource;
use quota_proto::Invalid;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Http;
use super::amounts;
use super::extract::Params;
use super::problem::Problem;
use crate::quota::{Consumer, Label, QuotaError, TopRequest};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TopParams {
    pub(super) kind: Option<String>,
    pub(super) resource: Option<String>,
    pub(super) node: Option<String>,
    pub(super) limit: Option<u32>,
}

impl TopParams {
    pub(super) fn read(self) -> Result<TopRequest, Invalid> {
        let missing = |field| Invalid::new(field, "must be given");
        let kind = self.kind.ok_or_else(|| missing("kind"))?;
        let resource = self.resource.ok_or_else(|| missing("resource"))?;
        Ok(TopRequest {
            kind: kind.parse().map_err(|error| Invalid::new("kind", error))?,
            resource: resource_named(&resource)?,
            node: Label::new("node", self.node.as_deref())?,
            limit: TopRequest::limit(self.limit)?,
        })
    }
}

fn resource_named(name: &str) -> Result<Resource, Invalid> {
    let found = Resource::ALL.into_iter().find(|resource| resource.as_str() == name);
    found.ok_or_else(|| Invalid::new("resource", "must be cpu, memory or network"))
}

pub(super) async fn top(
    State(http): State<Http>,
    Params(params): Params<TopParams>,
) -> Result<axum::Json<Value>, Problem> {
    let top = http.quota.top(params.read().map_err(QuotaError::from)?).await?;
    let accounts = top.accounts.iter().map(|consumer| consumer_json(top.resource, consumer));
    let mut body = json!({
        "kind": top.kind.as_str(),
        "resource": top.resource.as_str(),
        "accounts": accounts.collect::<Vec<_>>(),
    });
    if let Some(node) = top.node.as_deref() {
        body["node"] = node.into();
    }
    Ok(axum::Json(body))
}

fn consumer_json(resource: Resource, consumer: &Consumer) -> Value {
    json!({
        "kind": consumer.account.kind().as_str(),
        "id": consumer.account.id(),
        "used": amounts::amount(resource, consumer.used),
        "limit": amounts::limit(resource, consumer.limit),
        "denied": consumer.denied,
    })
}
