use quota_proto::ERROR_DOMAIN;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, QuotaViolation, StatusExt as _};

use super::Denial;

/// The reason in the `google.rpc.ErrorInfo` of a refusal.
pub const ERROR_REASON: &str = "OVER_QUOTA";

impl From<Denial> for Status {
    /// `RESOURCE_EXHAUSTED`, with `google.rpc.RetryInfo`, `QuotaFailure` and `ErrorInfo`; the last has the members
    /// `kind`, `id`, `resource` and `permanent`.
    fn from(denial: Denial) -> Self {
        let message = denial.to_string();
        let subject = format!("{}:{}", denial.kind, denial.id);
        let mut details = ErrorDetails::with_retry_info(Some(denial.retry_after));
        details.set_quota_failure([QuotaViolation::new(subject, message.clone())]);
        details.set_error_info(
            ERROR_REASON,
            ERROR_DOMAIN,
            [
                ("kind".to_owned(), denial.kind.to_string()),
                ("resource".to_owned(), denial.resource.to_string()),
                ("permanent".to_owned(), denial.permanent.to_string()),
                ("id".to_owned(), denial.id),
            ],
        );
        Status::with_error_details(Code::ResourceExhausted, message, details)
    }
}
