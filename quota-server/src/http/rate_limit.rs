use std::time::Duration;

use axum::http::HeaderName;
use quota_core::{Breach, Limit, Resource};

use crate::quota::Retry;

/// The headers `RateLimit-Policy` and `RateLimit` of a denial, as draft-ietf-httpapi-ratelimit-headers-10 has them: the
/// limit that was reached, named `<kind>-<resource>`, of which nothing remains until the retry.
pub(super) fn rate_limit(denied_by: &Breach, window: Duration, retry: Retry) -> [(HeaderName, String); 2] {
    let Breach { account, resource, limit, .. } = denied_by;
    let name = format!("\"{}-{resource}\"", account.kind());
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
        (HeaderName::from_static("ratelimit"), format!("{name};r=0;t={}", retry.header_seconds())),
    ]
}
