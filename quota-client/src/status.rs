//! What an error of the service says.

use std::collections::BTreeSet;
use std::time::Duration;

use quota_proto::{ACCOUNT_NOT_STORED, ACCOUNT_UNREADABLE, ERROR_DOMAIN, STORE_UNAVAILABLE};
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

/// The wait of a refusal that names none.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// What is told beyond a day is taken for a day.
const LONGEST: Duration = Duration::from_secs(86_400);

/// Whether the same request may well succeed a little later or elsewhere.
pub(crate) fn is_transient(status: &Status) -> bool {
    matches!(
        status.code(),
        Code::Aborted
            | Code::Cancelled
            | Code::DeadlineExceeded
            | Code::Internal
            | Code::ResourceExhausted
            | Code::Unavailable
            | Code::Unknown
    )
}

/// Whether the service, which is well itself, says that it has lost its store.
pub(crate) fn has_no_store(status: &Status) -> bool {
    has_reason(status, STORE_UNAVAILABLE)
}

/// After how long a check may be tried again, where its error is the service's word that the request is refused: it
/// cannot check, and is set to refuse then. Any other error is no answer.
pub(crate) fn refusal(status: &Status) -> Option<Duration> {
    if !has_no_store(status) && !has_reason(status, ACCOUNT_UNREADABLE) {
        return None;
    }
    let retry_after = status.get_details_retry_info().and_then(|info| info.retry_delay);
    Some(retry_after.unwrap_or(RETRY_AFTER).min(LONGEST))
}

/// Whether all accounts have a report, but for some that cannot take it at the moment: the reports after it must not
/// wait for those.
pub(crate) fn is_partly_stored(status: &Status) -> bool {
    has_reason(status, ACCOUNT_NOT_STORED)
}

/// Which charges of a report were refused, by their index: those that the error names, such as `charges[3].cost`.
pub(crate) fn refused_charges(status: &Status) -> BTreeSet<usize> {
    let violations = status.get_details_bad_request().map(|bad| bad.field_violations);
    let index = |field: &str| field.strip_prefix("charges[")?.split_once(']')?.0.parse().ok();
    violations.unwrap_or_default().iter().filter_map(|violation| index(&violation.field)).collect()
}

/// Whether it is this field of a request that the service does not take.
pub(crate) fn names(status: &Status, field: &str) -> bool {
    let violations = status.get_details_bad_request().map(|bad| bad.field_violations);
    violations.unwrap_or_default().iter().any(|violation| violation.field == field)
}

fn has_reason(status: &Status, reason: &str) -> bool {
    status.get_details_error_info().is_some_and(|info| info.domain == ERROR_DOMAIN && info.reason == reason)
}

#[cfg(test)]
mod tests {
    use tonic_types::{ErrorDetails, FieldViolation};

    use super::*;

    #[test]
    fn refused_charges_are_read_from_the_fields_at_fault() {
        let fields =
            ["charges[3].cost.cpu_micros", "charges[0]", "charges[x]", "charges[-1]", "charges", "source"];
        let violations: Vec<_> = fields.map(|field| FieldViolation::new(field, "is wrong")).into();
        let details = ErrorDetails::with_bad_request(violations);
        let status = Status::with_error_details(Code::InvalidArgument, "", details);
        assert_eq!(refused_charges(&status), BTreeSet::from([0, 3]));
        assert!(refused_charges(&Status::invalid_argument("charges[3]")).is_empty());
    }
}
