use std::time::Duration;

use quota_core::{
    Account, Comparison, PerResource, Ratio, Snapshot, Timestamp, Window, WindowLength, decide,
};
use quota_proto::{Invalid, UsedHere};

use super::{Explanation, Judged, Label, OverrideStanding, Quota, QuotaError};

/// Whose standing.
#[derive(Clone, Debug)]
pub struct StandingRequest {
    /// The account.
    pub account: Account,
    /// The fileserver.
    pub node: Label,
}

/// What an account used, may use, and when it may again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Who.
    pub account: Account,
    /// How much of each resource was used, in internal units, and what is compared with it.
    pub resources: PerResource<(u64, Comparison)>,
    /// Of each resource of which it has a limit of its own on the node, why.
    pub own: PerResource<Option<Explanation>>,
    /// What an operator says of it.
    pub overriding: Option<OverrideStanding>,
    /// Whether an enforced limit is reached.
    pub over: bool,
    /// When none is any more, if nothing is spent; exact.
    pub retry_after: Duration,
}

impl Standing {
    pub(super) fn new(judged: &Judged, node: &Label, now: Timestamp, window: WindowLength) -> Self {
        let subject = &judged.subject;
        let breach = decide([subject], now, window).denied_by;
        let usage = subject.snapshot.usage();
        Self {
            account: subject.account.clone(),
            resources: PerResource::from_fn(|resource| (usage[resource], subject.comparisons[resource])),
            own: Explanation::of(judged, node, now, window),
            overriding: judged.overriding.as_ref().map(|said| said.at(now)),
            over: breach.is_some(),
            retry_after: breach.map_or(Duration::ZERO, |breach| breach.retry_after),
        }
    }
}

impl Quota {
    /// What an account used, may use, and when it may again. Changes nothing.
    pub async fn standing(&self, request: StandingRequest) -> Result<Standing, QuotaError> {
        Ok(self.standing_in_time(request).await?.0)
    }

    /// The same of several accounts. Changes nothing.
    pub async fn standings(&self, accounts: &[Account], node: &Label) -> Result<Vec<Standing>, QuotaError> {
        if accounts.is_empty() {
            return Ok(Vec::new());
        }
        let snapshots = self.store.usage(accounts).await?;
        let now = snapshots.now;
        let judged = Self::judged(self.compare(accounts, node, &UsedHere::default(), Ratio::ONE), snapshots);
        Ok(judged.iter().map(|judged| Standing::new(judged, node, now, self.window)).collect())
    }

    /// The same of one, with when within the window it was used. Changes nothing.
    pub async fn standing_in_time(&self, request: StandingRequest) -> Result<(Standing, Window), QuotaError> {
        let account = std::slice::from_ref(&request.account);
        let snapshots = self.store.usage(account).await?;
        let now = snapshots.now;
        let judged =
            Self::judged(self.compare(account, &request.node, &UsedHere::default(), Ratio::ONE), snapshots)
                .pop();
        let judged = judged.ok_or_else(|| Invalid::new("id", "must name an account"))?;
        let standing = Standing::new(&judged, &request.node, now, self.window);
        let window = match judged.subject.snapshot {
            Snapshot::Full(window) => window,
            // No store tells less of whom it is asked for.
            Snapshot::Below(_) => Window::default(),
        };
        Ok((standing, window))
    }
}
