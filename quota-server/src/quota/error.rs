use std::time::Duration;

use quota_core::Book;
use quota_proto::Invalid;

use crate::auth::Refusal;
use crate::store::StoreError;

/// Why a request has no answer of its own. Each protocol has its words for these.
#[derive(Debug, thiserror::Error)]
pub enum QuotaError {
    /// The request is wrong, and stays so.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The caller may not ask this.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The store is lost, or has no room; to be tried again after a while.
    #[error("{0}")]
    Unavailable(StoreError),
    /// As many nodes are remembered as may be.
    #[error("{0}")]
    TooManyNodes(StoreError),
    /// Nothing is said that could be told or taken back.
    #[error("no operator says anything of this")]
    NothingSaid,
    /// As much is said as may be.
    #[error(
        "as many overrides and modes are kept as may be ({}, those of the last day included that have ended)",
        Book::MOST
    )]
    TooManyOverrides,
    /// What is stored of an account that is asked about cannot be read; within two windows it starts anew.
    #[error("{0}")]
    Corrupt(StoreError),
    /// A report is stored, but for an account that cannot take it; the others skip it when it is sent again.
    #[error("{0}")]
    AccountNotStored(StoreError),
}

impl QuotaError {
    /// When to try again, if the store is lost.
    pub const RETRY_AFTER: Duration = Duration::from_secs(1);
}

impl QuotaError {
    /// What an error of the store means for a report.
    pub(super) fn of_report(error: StoreError) -> Self {
        match error {
            StoreError::Corrupt(_) | StoreError::TooManySources(_) | StoreError::Full => {
                Self::AccountNotStored(error)
            }
            _ => Self::Unavailable(error),
        }
    }
}

impl From<StoreError> for QuotaError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Corrupt(_) => Self::Corrupt(error),
            StoreError::TooManyNodes => Self::TooManyNodes(error),
            _ => Self::Unavailable(error),
        }
    }
}
