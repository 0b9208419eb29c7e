use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use quota_core::Resource;
use quota_proto::PROBLEM_TYPES;
use serde_json::json;

use super::Denial;

impl<B: From<String>> From<Denial> for Response<B> {
    /// 429 with `Retry-After` and a problem document (RFC 9457). The standings of the request's other accounts,
    /// which the service's own answer has, are none of the caller's business.
    fn from(denial: Denial) -> Self {
        let body = json!({
            "type": format!("{PROBLEM_TYPES}over-quota"),
            "title": "Over quota",
            "status": StatusCode::TOO_MANY_REQUESTS.as_u16(),
            "detail": denial.to_string(),
            "decision": "deny",
            "denied_by": {
                "kind": denial.kind.as_str(),
                "id": denial.id,
                "resource": denial.resource.as_str(),
                "used": amount(denial.resource, denial.used),
                "limit": amount(denial.resource, denial.limit),
            },
            "retry_after_seconds": denial.retry_after.as_secs_f64(),
            "permanent": denial.permanent,
        });
        let mut response = Response::new(B::from(body.to_string()));
        *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
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
