use quota_proto::{
    ACCOUNT_NOT_STORED, ACCOUNT_UNREADABLE, ERROR_DOMAIN, STORE_UNAVAILABLE, TOO_MANY_NODES,
    TOO_MANY_OVERRIDES,
};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

use crate::quota::QuotaError;

/// An error in the words of gRPC.
pub(super) fn status(error: impl Into<QuotaError>) -> Status {
    let error = error.into();
    let message = error.to_string();
    let (code, details) = match error {
        QuotaError::Invalid(invalid) => {
            (Code::InvalidArgument, ErrorDetails::with_bad_request_violation(invalid.field, invalid.reason))
        }
        QuotaError::Refused(refusal) if refusal.is_of_nobody() => {
            (Code::Unauthenticated, ErrorDetails::new())
        }
        QuotaError::Refused(_) => (Code::PermissionDenied, ErrorDetails::new()),
        QuotaError::Unavailable(_) => (Code::Unavailable, retry(STORE_UNAVAILABLE)),
        QuotaError::TooManyNodes(_) => (Code::ResourceExhausted, retry(TOO_MANY_NODES)),
        QuotaError::NothingSaid => (Code::NotFound, ErrorDetails::new()),
        QuotaError::TooManyOverrides => {
            (Code::ResourceExhausted, ErrorDetails::with_error_info(TOO_MANY_OVERRIDES, ERROR_DOMAIN, []))
        }
        QuotaError::AccountNotStored(_) => (Code::Unavailable, retry(ACCOUNT_NOT_STORED)),
        QuotaError::Corrupt(_) => (Code::DataLoss, retry(ACCOUNT_UNREADABLE)),
    };
    Status::with_error_details(code, message, details)
}

fn retry(reason: &str) -> ErrorDetails {
    let mut details = ErrorDetails::with_retry_info(Some(QuotaError::RETRY_AFTER));
    details.set_error_info(reason, ERROR_DOMAIN, []);
    details
}
