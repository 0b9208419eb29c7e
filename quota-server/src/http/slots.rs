use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use quota_core::{LeaseId, NoSlot, Progress};
use quota_proto::Invalid;
use serde::Deserialize;
use serde_json::Value;

use super::Http;
use super::amounts;
use super::classes::{policy, standing};
use super::extract::Json;
use super::problem::Problem;
use crate::auth::Caller;
use crate::quota::{AcquireRequest, Label, QuotaError, RenewRequest, SlotAnswer, slot_owner};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SlotsBody {
    action: Action,
    class: Option<String>,
    holder: String,
    node: Option<String>,
    lease: Option<String>,
    #[serde(default = "one")]
    count: u32,
    #[serde(default)]
    spare: u32,
    #[serde(default)]
    pooled: bool,
    #[serde(default)]
    overrun: u32,
    #[serde(default)]
    finished: u32,
    #[serde(default, deserialize_with = "amounts::seconds")]
    took_seconds: Duration,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    Acquire,
    Renew,
    Release,
}

const fn one() -> u32 {
    1
}

/// What is asked of slots.
enum Asked {
    Acquire(AcquireRequest),
    Renew(RenewRequest),
}

impl SlotsBody {
    fn read(self, node: &Label) -> Result<Asked, Invalid> {
        let class = Label::new("class", self.class.as_deref())?;
        let owner = slot_owner(Some(&self.holder), node)?;
        let (count, progress) = (self.count, Progress { finished: self.finished, took: self.took_seconds });
        let count = match self.action {
            Action::Acquire => {
                let Self { spare, pooled, overrun, .. } = self;
                return Ok(Asked::Acquire(AcquireRequest { class, owner, count, spare, overrun, pooled }));
            }
            Action::Renew => count,
            Action::Release => 0,
        };
        let lease = lease(self.lease.as_deref().unwrap_or_default())?;
        Ok(Asked::Renew(RenewRequest { class, owner, lease, count, progress }))
    }
}

pub(super) async fn slots(
    State(http): State<Http>,
    Extension(caller): Extension<Caller>,
    Json(body): Json<SlotsBody>,
) -> Result<axum::Json<Value>, Problem> {
    let node = Label::new("node", body.node.as_deref()).map_err(QuotaError::from)?;
    let node = http.quota.node_of_slots(&caller, node)?;
    match body.read(&node).map_err(QuotaError::from)? {
        Asked::Acquire(request) => {
            let answer = http.quota.acquire_slots(request).await?;
            match answer.refused {
                Some((why, retry)) => {
                    let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "no-slot", "No slot is free")
                        .with("detail", format!("class {}: {}", answer.class, in_words(why)))
                        .with("class", &*answer.class)
                        .with("reason", reason(why))
                        .with("slots", answer.standing.map(standing).unwrap_or_default())
                        .retry(retry);
                    Err(problem)
                }
                None => Ok(axum::Json(answer_json(&answer))),
            }
        }
        Asked::Renew(request) => {
            let wanted = request.count;
            let answer = http.quota.renew_slots(request).await?;
            if wanted > 0 && answer.count == 0 {
                return Err(Problem::new(StatusCode::NOT_FOUND, "lease-ended", "The lease has ended")
                    .with("detail", "its slots may be another's: begin no further request by it"));
            }
            Ok(axum::Json(answer_json(&answer)))
        }
    }
}

fn answer_json(answer: &SlotAnswer) -> Value {
    let mut body = policy(&answer.class, &answer.policy);
    if let Some(lease) = answer.lease {
        body["lease"] = hex(&lease).into();
    }
    body["count"] = answer.count.into();
    body["lasts_seconds"] = answer.lasts.as_secs_f64().into();
    if let Some(of_class) = answer.standing {
        body["slots"] = standing(of_class);
    }
    body
}

fn reason(why: NoSlot) -> &'static str {
    match why {
        NoSlot::AtCap => "at_cap",
        NoSlot::AtNodeCap => "at_node_cap",
        NoSlot::Opening(_) => "opening",
        NoSlot::TooManyLeases => "too_many_leases",
    }
}

fn in_words(why: NoSlot) -> &'static str {
    match why {
        NoSlot::AtCap => "all its slots are leased",
        NoSlot::AtNodeCap => "all its slots are leased that the node may have",
        NoSlot::Opening(_) => "the store has been started, and does not know yet who holds its slots",
        NoSlot::TooManyLeases => "it has as many leases as are kept",
    }
}

fn hex(lease: &LeaseId) -> String {
    lease.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn lease(text: &str) -> Result<LeaseId, Invalid> {
    let read = |text: &str| {
        let mut lease = LeaseId::default();
        let is_hex = text.len() == 2 * lease.len() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        for (byte, digits) in lease.iter_mut().zip(text.as_bytes().chunks(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        }
        is_hex.then_some(lease)
    };
    read(text).ok_or_else(|| Invalid::new("lease", "must be the 32 hex digits that acquiring answered"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_read_as_it_was_written_and_nothing_else_is() {
        let id: LeaseId = [0, 1, 2, 250, 251, 252, 253, 254, 255, 9, 10, 11, 12, 13, 14, 15];
        assert_eq!(lease(&hex(&id)).unwrap(), id);
        for wrong in [
            "",
            "00",
            &hex(&id)[1..],
            &format!("{}0", hex(&id)),
            "+0010203040506070809fafbfcfdfeff",
            "ü".repeat(16).as_str(),
        ] {
            assert!(lease(wrong).is_err(), "{wrong}");
        }
    }
}
