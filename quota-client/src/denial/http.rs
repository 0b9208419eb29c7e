use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use quota_core::Resource;
use quota_proto::PROBLEM_TYPES;
use serde_json::json;

use super::{Cause, Denial};

impl<B: From<String>> From<Denial> for Response<B> {
    /// With `Retry-After` and a problem document (RFC 9457): 503 where the service cannot check or the class has no slot, else 429. The standings of
    /// the request's other accounts, which the service's own answer has, are none of the caller's business.
    fn from(denial: Denial) -> Self {
        let (status, name, title) = match &denial.cause {
            Cause::OverQuota(_) => (StatusCode::TOO_MANY_REQUESTS, "over-quota", "Over quota"),
            Cause::Unavailable => {
                (StatusCode::SERVICE_UNAVAILABLE, "store-unavailable", "The store is unavailable")
            }
            Cause::Concurrency(_) => {
                (StatusCode::TOO_MANY_REQUESTS, "concurrency-limit", "Too many requests at once")
            }
            Cause::NoSlot(_) => (StatusCode::SERVICE_UNAVAILABLE, "no-slot", "No slot is free"),
            Cause::Shed => (StatusCode::TOO_MANY_REQUESTS, "shed", "The machine is overloaded"),
        };
        let mut body = json!({
            "type": format!("{PROBLEM_TYPES}{name}"),
            "title": title,
            "status": status.as_u16(),
            "detail": denial.to_string(),
            "decision": "deny",
            "retry_after_seconds": denial.retry_after.as_secs_f64(),
            "permanent": denial.permanent,
        });
        if let Cause::OverQuota(over) = &denial.cause {
            body["denied_by"] = json!({
                "kind": over.kind.as_str(),
                "id": over.id,
                "resource": over.resource.as_str(),
                "used": amount(over.resource, over.used),
                "limit": amount(over.resource, over.limit),
            });
            if let Some(why) = &over.why {
                body["denied_by"]["why"] = why.as_str().into();
            }
        }
        if let Cause::NoSlot(no_slot) = &denial.cause {
            body["class"] = (&*no_slot.class).into();
            body["reason"] = no_slot.reason.as_str().into();
        }
        let mut response = Response::new(B::from(body.to_string()));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(RETRY_AFTER, denial.retry_after_seconds().into());
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        response
    }
}

/// As JSON has it: CPU in decimal seconds.
fn amount(resource: Resource, amount: u64) -> serde_json::Value {
    match resource {
        Resource::Cpu => json!(amount as f64 / 1e6),
        Resource::Memory | Resource::Network => json!(amount),
    }
}
