use quota_core::{Accounts, Breach, decide};
use quota_proto::UsedHere;

use super::{Label, Quota, QuotaError, Retry};
use crate::config::FailPolicy;

/// Who asks whether to back off.
#[derive(Clone, Debug)]
pub struct BackoffRequest {
    /// For whom.
    pub accounts: Accounts,
    /// The fileserver that would be asked.
    pub node: Label,
    /// The number of the try in a row, from 1; 0 where it is not counted.
    pub attempt: u32,
}

/// Whether to back off, and how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backoff {
    /// Go on.
    No,
    /// A check would be denied.
    Yes {
        /// By what.
        denied_by: Breach,
        /// How long.
        retry: Retry,
    },
}

impl Quota {
    /// Whether accounts should back off, and how long. Changes nothing.
    ///
    /// Without the store the fail policy answers.
    pub async fn backoff(&self, request: BackoffRequest) -> Result<Backoff, QuotaError> {
        let snapshots = match self.store.usage(request.accounts.as_slice()).await.map_err(QuotaError::from) {
            Err(QuotaError::Unavailable(_)) if self.fail == FailPolicy::Open => return Ok(Backoff::No),
            snapshots => snapshots?,
        };
        let now = snapshots.now;
        let compared = self.compare(request.accounts.as_slice(), &request.node, &UsedHere::default());
        let subjects = Self::subjects(compared, snapshots);
        Ok(match decide(&subjects, now, self.window).denied_by {
            None => Backoff::No,
            Some(denied_by) => {
                let retry = Retry::for_attempt(&denied_by, request.attempt, self.window, self.jitter);
                Backoff::Yes { denied_by, retry }
            }
        })
    }
}
