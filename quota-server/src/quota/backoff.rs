use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use quota_core::{Accounts, Ratio};
use quota_proto::{Invalid, UsedHere};

use super::{Denial, Label, Quota, QuotaError, Retry};
use crate::config::FailPolicy;

/// The most sets of accounts in one question about several.
pub const MAX_BACKOFFS: usize = 100;

/// So many of them are asked of the store at once.
const AT_ONCE: usize = 16;

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
        denied_by: Denial,
        /// How long.
        retry: Retry,
    },
}

impl BackoffRequest {
    /// Refuses more of them than one question may have, before they are looked at.
    pub fn bound(requests: usize) -> Result<(), Invalid> {
        if requests > MAX_BACKOFFS {
            return Err(Invalid::new("requests", format!("must be at most {MAX_BACKOFFS}")));
        }
        Ok(())
    }
}

impl Backoff {
    /// What to do, in a word: `retry` after the wait; at `fail`, no wait helps.
    pub const fn action(&self) -> &'static str {
        match self {
            Self::No => "proceed",
            Self::Yes { retry, .. } if retry.permanent => "fail",
            Self::Yes { .. } => "retry",
        }
    }
}

impl Quota {
    /// The same of each of several, in their order: all, or the first error.
    pub async fn backoff_each(&self, requests: Vec<BackoffRequest>) -> Result<Vec<Backoff>, QuotaError> {
        let answers = requests.into_iter().map(|request| self.backoff(request));
        stream::iter(answers).buffered(AT_ONCE).try_collect().await
    }

    /// Whether accounts should back off, and how long. Changes nothing.
    ///
    /// Without the store, who is blocked is told so, and to others the fail policy answers.
    pub async fn backoff(&self, request: BackoffRequest) -> Result<Backoff, QuotaError> {
        let compared =
            self.compare(request.accounts.as_slice(), &request.node, &UsedHere::default(), Ratio::ONE);
        let snapshots = self.store.usage(request.accounts.as_slice()).await.map_err(QuotaError::from);
        let (judged, now, without_the_store) = match snapshots {
            Ok(snapshots) => {
                let now = snapshots.now;
                (Self::judged(compared, snapshots), now, None)
            }
            Err(error @ QuotaError::Unavailable(_)) => {
                let (blocked, now) = self.blocked(compared);
                (blocked, now, Some(error))
            }
            Err(error) => return Err(error),
        };
        Ok(match self.verdict(&judged, now).denied_by {
            None => match without_the_store {
                Some(error) if self.settings().fail == FailPolicy::Closed => return Err(error),
                _ => Backoff::No,
            },
            Some(breach) => {
                let retry = Retry::for_attempt(&breach, request.attempt, self.window, self.jitter);
                let denied_by = Denial::new(breach, &judged, &request.node, now, self.window);
                Backoff::Yes { denied_by, retry }
            }
        })
    }
}
