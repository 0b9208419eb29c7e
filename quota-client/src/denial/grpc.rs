use std::collections::HashMap;

use quota_proto::{ERROR_DOMAIN, STORE_UNAVAILABLE};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, QuotaViolation, StatusExt as _};

use super::{Cause, Denial};

/// The reason in the `google.rpc.ErrorInfo` of a refusal of an account over its limit.
pub const ERROR_REASON: &str = "OVER_QUOTA";

/// The reason in the `google.rpc.ErrorInfo` of a refusal since too many requests run at once.
pub const CONCURRENCY_LIMIT: &str = "CONCURRENCY_LIMIT";

/// The reason in the `google.rpc.ErrorInfo` of a refusal since the class of the request has no slot for it.
pub const NO_SLOT: &str = "NO_SLOT";

/// The reason in the `google.rpc.ErrorInfo` of a request that was ended while it ran.
pub const SHED: &str = "SHED";

impl From<Denial> for Status {
    /// With `google.rpc.RetryInfo` and `ErrorInfo`. Over quota: `RESOURCE_EXHAUSTED`, with `QuotaFailure` too, and
    /// `kind`, `id`, `resource` and `permanent` in the `ErrorInfo`, and `why` where the account has a limit of its own. Where the service cannot check: `UNAVAILABLE`.
    /// Where too many requests run at once: `RESOURCE_EXHAUSTED`, with `reason` in the `ErrorInfo`. Where there is
    /// no slot of its class: `UNAVAILABLE`, with `class` and `reason` in the `ErrorInfo`. Of one that was ended while it ran: `RESOURCE_EXHAUSTED`.
    fn from(denial: Denial) -> Self {
        let message = denial.to_string();
        let mut details = ErrorDetails::with_retry_info(Some(denial.retry_after));
        let code = match denial.cause {
            Cause::OverQuota(over) => {
                let subject = format!("{}:{}", over.kind, over.id);
                details.set_quota_failure([QuotaViolation::new(subject, message.clone())]);
                let metadata = [
                    ("kind".to_owned(), over.kind.to_string()),
                    ("resource".to_owned(), over.resource.to_string()),
                    ("permanent".to_owned(), denial.permanent.to_string()),
                    ("id".to_owned(), over.id),
                ];
                let why = over.why.map(|why| ("why".to_owned(), why));
                let metadata: HashMap<_, _> = metadata.into_iter().chain(why).collect();
                details.set_error_info(ERROR_REASON, ERROR_DOMAIN, metadata);
                Code::ResourceExhausted
            }
            Cause::Unavailable => {
                details.set_error_info(STORE_UNAVAILABLE, ERROR_DOMAIN, []);
                Code::Unavailable
            }
            Cause::Concurrency(refusal) => {
                let metadata = [("reason".to_owned(), refusal.reason.as_str().to_owned())];
                details.set_error_info(CONCURRENCY_LIMIT, ERROR_DOMAIN, metadata);
                Code::ResourceExhausted
            }
            Cause::NoSlot(no_slot) => {
                let metadata = [
                    ("class".to_owned(), no_slot.class.to_string()),
                    ("reason".to_owned(), no_slot.reason.as_str().to_owned()),
                ];
                details.set_error_info(NO_SLOT, ERROR_DOMAIN, metadata);
                Code::Unavailable
            }
            Cause::Shed => {
                details.set_error_info(SHED, ERROR_DOMAIN, []);
                Code::ResourceExhausted
            }
        };
        Status::with_error_details(code, message, details)
    }
}
