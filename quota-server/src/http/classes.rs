use axum::extract::State;
use quota_core::SlotStanding;
use serde_json::{Value, json};

use super::Http;
use super::problem::Problem;
use crate::config::{Class, Service};
use crate::quota::ClassStanding;

pub(super) async fn classes(State(http): State<Http>) -> Result<axum::Json<Value>, Problem> {
    let classes = http.quota.list_classes().await?;
    Ok(axum::Json(json!({ "classes": classes.iter().map(class_json).collect::<Vec<_>>() })))
}

fn class_json(class: &ClassStanding) -> Value {
    let mut body = policy(&class.class, &class.policy);
    body["default"] = class.is_default.into();
    body["quota"] = f64::from(class.policy.part).into();
    if let Some(of_class) = class.standing {
        body["slots"] = standing(of_class);
    }
    body
}

/// How a class is served.
pub(super) fn policy(name: &str, class: &Class) -> Value {
    let mut body = json!({ "class": name, "service": class.service_name() });
    if let Service::Patient { max_wait, max_queue } = class.service {
        body["max_wait_seconds"] = max_wait.as_secs_f64().into();
        body["max_queue"] = max_queue.into();
    }
    if let Some(max_run) = class.max_run {
        body["max_run_seconds"] = max_run.as_secs_f64().into();
    }
    body
}

pub(super) fn standing(SlotStanding { leased, leases, cap }: SlotStanding) -> Value {
    json!({ "leased": leased, "leases": leases, "cap": cap })
}
