//! The headers `RateLimit-Policy` and `RateLimit`, as draft-ietf-httpapi-ratelimit-headers-11 has them, of the limit that
//! decides.

use std::time::Duration;

use axum::http::HeaderName;
use quota_core::{Breach, Kind, Limit, Resource, Scope};

use crate::quota::{Remaining, Retry};

/// What both headers say.
pub(super) type RateLimit = [(HeaderName, String); 2];

/// Of a denial: the limit that was reached, of which nothing is left until the retry.
pub(super) fn denied(denied_by: &Breach, window: Duration, retry: Retry) -> RateLimit {
    let Breach { account, resource, scope, limit, .. } = denied_by;
    let left = format!(";r=0;t={}", retry.header_seconds());
    headers(account.kind(), *resource, *scope, *limit, window, &left)
}

/// Of an allow: what is left of the limit that is nearest to being reached. When more will be, is not known.
pub(super) fn allowed(remaining: &Remaining, window: Duration) -> RateLimit {
    let Remaining { kind, resource, scope, limit, left } = *remaining;
    headers(kind, resource, scope, Limit::At(limit), window, &format!(";r={left}"))
}

fn headers(
    kind: Kind,
    resource: Resource,
    scope: Scope,
    limit: Limit,
    window: Duration,
    left: &str,
) -> RateLimit {
    // A policy is one quota: the node's limit is another than the account's own.
    let name = match scope {
        Scope::Cluster => format!("\"{kind}-{resource}\""),
        Scope::Node => format!("\"{kind}-{resource}-node\""),
    };
    // In the internal units, since these headers have room for whole numbers alone.
    let unit = match resource {
        Resource::Cpu => "cpu-microseconds",
        Resource::Memory => "memory-kibibyte-seconds",
        Resource::Network => "content-bytes",
    };
    let quota = match limit {
        Limit::At(amount) => format!(";q={amount};qu=\"{unit}\""),
        Limit::Unlimited => String::new(),
    };
    let seconds = window.as_secs().max(1);
    [
        (HeaderName::from_static("ratelimit-policy"), format!("{name}{quota};w={seconds}")),
        (HeaderName::from_static("ratelimit"), format!("{name}{left}")),
    ]
}
