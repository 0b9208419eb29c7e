use quota_proto::{ACCOUNT_NOT_STORED, ERROR_DOMAIN};
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
        QuotaError::Unavailable(_) => {
            (Code::Unavailable, ErrorDetails::with_retry_info(Some(QuotaError::RETRY_AFTER)))
        }
        QuotaError::AccountNotStored(_) => {
            let mut details = ErrorDetails::with_retry_info(Some(QuotaError::RETRY_AFTER));
            details.set_error_info(ACCOUNT_NOT_STORED, ERROR_DOMAIN, []);
            (Code::Unavailable, details)
        }
        QuotaError::Corrupt(_) => (Code::DataLoss, ErrorDetails::new()),
    };
    Status::with_error_details(code, message, details)
}
