//! Who consumes most: the heaviest accounts of the last minute, over all servers.

mod consumers;
#[cfg(any(fuzzing, test))]
pub(super) mod fuzzing;
mod summary;

use std::sync::Arc;
use std::time::Duration;

use quota_core::{Account, Heaviest, Kind, Limit, Ratio, Resource, Snapshot};
use quota_proto::{Invalid, UsedHere};

pub(crate) use self::consumers::Consumers;
use self::summary::Summary;
use super::{Label, Quota, QuotaError};
use crate::store::{Board, MAX_ACCOUNTS, StoreError};

/// A post is told for so long at the least, however short the window: it is written anew each second.
const LEAST_AGE: Duration = Duration::from_secs(2);

/// Which accounts.
#[derive(Clone, Debug)]
pub struct TopRequest {
    /// Of which kind.
    pub kind: Kind,
    /// By their usage of which resource.
    pub resource: Resource,
    /// On one fileserver, by its last report, instead of on all.
    pub node: Label,
    /// How many at the most.
    pub limit: usize,
}

/// The heaviest accounts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Top {
    /// Of which kind.
    pub kind: Kind,
    /// By their usage of which resource.
    pub resource: Resource,
    /// The fileserver that was asked about.
    pub node: Label,
    /// Heaviest first.
    pub accounts: Vec<Consumer>,
}

/// An account among the heaviest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consumer {
    /// Who.
    pub account: Account,
    /// What it used within a window, in the resource's internal unit; on a fileserver, by its last report.
    pub used: u64,
    /// What it may use; on a fileserver, the limit there.
    pub limit: Limit,
    /// How often it was denied within a window, on whatever fileserver and for whatever resource.
    pub denied: u64,
}

impl TopRequest {
    /// The most accounts that can be asked for.
    pub const MOST: u32 = 100;

    /// How many there are where nothing is said.
    pub const DEFAULT: u32 = 20;

    /// The number of accounts, from the field `limit`.
    pub fn limit(limit: Option<u32>) -> Result<usize, Invalid> {
        match limit.unwrap_or(Self::DEFAULT) {
            limit @ 1..=Self::MOST => Ok(limit as usize),
            _ => Err(Invalid::new("limit", format!("must be 1 to {}", Self::MOST))),
        }
    }

    /// As many as may turn out to be among those that are asked for, once the store says what they used.
    const fn candidates(&self) -> usize {
        2 * self.limit + 56
    }
}

impl Quota {
    /// The heaviest accounts of the last minute. Changes nothing.
    pub async fn top(&self, request: TopRequest) -> Result<Top, QuotaError> {
        let told = self.told_by_others(&request).await?;
        let mut used = match request.node.as_deref() {
            Some(node) => self.used_on(node, &request),
            None => self.used_everywhere(self.candidates(&request, &told), request.resource).await?,
        };
        used.retain(|(_, used)| *used > 0);
        used.sort_unstable_by(|(one, most), (other, more)| more.cmp(most).then_with(|| one.cmp(other)));
        used.truncate(request.limit);

        let mut denied = self.consumers.denials();
        told.iter().for_each(|summary| denied.absorb(summary.denied(request.kind), 0));
        let names: Vec<Account> = used.iter().map(|(account, _)| account.clone()).collect();
        let compared = self.compare(&names, &request.node, &UsedHere::default(), Ratio::ONE);
        let accounts = used.into_iter().zip(compared).map(|((account, used), compared)| {
            let comparison = &compared.comparisons[request.resource];
            let here = comparison.here.filter(|_| request.node.as_deref().is_some());
            let limit = here.map_or(comparison.ceiling.limit, |here| here.limit);
            Consumer { used, limit, denied: denied.get(&account).map_or(0, |kept| kept.amount), account }
        });
        let accounts = accounts.collect();
        Ok(Top { kind: request.kind, resource: request.resource, node: request.node, accounts })
    }

    /// Tells other servers who is heaviest here. To be called once a second.
    pub async fn post_top(&self) {
        let summary = self.consumers.summary();
        if summary.is_empty() {
            return;
        }
        match serde_json::to_vec(&summary) {
            // An error is counted and said where the store is asked, and the next second tells more.
            Ok(content) => drop(self.store.post(Board::Top, 0, &content).await),
            Err(error) => tracing::error!(%error, "who is heaviest cannot be written"),
        }
    }

    async fn told_by_others(&self, request: &TopRequest) -> Result<Vec<Summary>, QuotaError> {
        let posts = self.store.posts(Board::Top, self.window.length().max(LEAST_AGE)).await?;
        let told = posts.contents.iter().filter_map(|content| {
            serde_json::from_slice(content)
                .inspect_err(|error| {
                    // Its text may repeat what is there, such as the name of an account.
                    let (fault, column) = (error.classify(), error.column());
                    tracing::warn!(?fault, column, kind = %request.kind, "a post cannot be read");
                })
                .ok()
        });
        Ok(told.collect())
    }

    /// Who may be among the heaviest.
    fn candidates(&self, request: &TopRequest, told: &[Summary]) -> Vec<Account> {
        let mut heaviest: Heaviest<Arc<Account>> = self.consumers.heaviest(request.kind, request.resource);
        told.iter().for_each(|summary| heaviest.absorb(summary.used(request.kind, request.resource), 0));
        let candidates = heaviest.heaviest(request.candidates());
        candidates.into_iter().map(|(account, _)| Account::clone(account)).collect()
    }

    /// What accounts used, by the store. One that it cannot read is left out.
    async fn used_everywhere(
        &self,
        mut accounts: Vec<Account>,
        resource: Resource,
    ) -> Result<Vec<(Account, u64)>, QuotaError> {
        let mut used = Vec::with_capacity(accounts.len());
        while !accounts.is_empty() {
            let asked = &accounts[..accounts.len().min(MAX_ACCOUNTS)];
            match self.store.usage(asked).await {
                Ok(snapshots) => {
                    let amounts =
                        snapshots.accounts.iter().map(|snapshot: &Snapshot| snapshot.usage()[resource]);
                    let asked = asked.len();
                    used.extend(accounts.drain(..asked).zip(amounts));
                }
                Err(StoreError::Corrupt(broken)) if accounts.contains(&broken) => {
                    accounts.retain(|account| *account != broken);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(used)
    }

    /// What the heaviest accounts of a node used on it, by its last report, while that is no older than a window.
    fn used_on(&self, node: &str, request: &TopRequest) -> Vec<(Account, u64)> {
        let Some(node) = self.nodes.get(Some(node)) else { return Vec::new() };
        let of_kind = node.heaviest(self.window).filter(|(account, _)| account.kind() == request.kind);
        of_kind.filter_map(|(account, used)| Some((account.clone(), used[request.resource]?))).collect()
    }
}

#[cfg(test)]
mod tests;
