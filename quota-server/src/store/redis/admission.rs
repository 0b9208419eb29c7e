//! All accounts of a request or none, where they may be on several nodes of a Cluster: peek at all, then reserve, which
//! compares again; if one refuses then, what was reserved on the others is given back. Decision 18 says what it bounds.
//!
//! Two accounts that happen to be in one slot have a call each, too: while the slot moves, no node has both, and each would say so.

use std::slice;

use futures::future::join_all;
use quota_core::{Account, Cost, Release, Timestamp};
use tokio::time::Instant;

use super::pool::{Lane, Terms};
use super::{RedisStore, codec, keys, parts};
use crate::store::{Admitted, Entry, Limited, Report, Snapshots, StoreError};

impl RedisStore {
    pub(super) async fn admit_all_or_none(
        &self,
        accounts: &[Limited],
        price: Cost,
    ) -> Result<Admitted, StoreError> {
        let end = self.connections.deadline();
        if !self.connections.are_many() || accounts.len() == 1 {
            return self.admit_together(end, accounts, price).await;
        }
        let peeked = self.admit_each(end, accounts, Cost::ZERO).await;
        let peeked = whole(peeked.into_iter().collect::<Result<_, _>>()?);
        if !peeked.allowed || price.is_zero() {
            return Ok(peeked);
        }
        let reserved = self.admit_each(end, accounts, price).await;
        if reserved.iter().any(|part| !matches!(part, Ok(Admitted { allowed: true, .. }))) {
            self.give_back(end, accounts, &reserved, price).await;
        }
        let mut reserved = whole(reserved.into_iter().collect::<Result<_, _>>()?);
        reserved.snapshots.rebased += peeked.snapshots.rebased;
        Ok(reserved)
    }

    pub(super) async fn usage_of_all(&self, accounts: &[Account]) -> Result<Snapshots, StoreError> {
        let end = self.connections.deadline();
        if !self.connections.are_many() || accounts.len() == 1 {
            return self.usage_together(end, accounts).await;
        }
        let parts = accounts.iter().map(|account| self.usage_together(end, slice::from_ref(account)));
        let parts = join_all(parts).await.into_iter().collect::<Result<_, _>>()?;
        Ok(all_snapshots(parts))
    }

    /// Of accounts on a single server, or of one.
    async fn usage_together(&self, end: Instant, accounts: &[Account]) -> Result<Snapshots, StoreError> {
        let reply = self.run(end, &self.scripts.standing, &keys(accounts), Vec::new()).await?;
        codec::snapshots(&reply, accounts)
    }

    async fn admit_each(
        &self,
        end: Instant,
        accounts: &[Limited],
        price: Cost,
    ) -> Vec<Result<Admitted, StoreError>> {
        join_all(accounts.iter().map(|limited| self.admit_together(end, slice::from_ref(limited), price)))
            .await
    }

    /// On accounts on a single server, or on one.
    async fn admit_together(
        &self,
        end: Instant,
        accounts: &[Limited],
        price: Cost,
    ) -> Result<Admitted, StoreError> {
        let keys = keys(accounts.iter().map(|limited| &limited.account));
        let args = vec![codec::price(price), codec::bounds(accounts)];
        let reply = self.run(end, &self.scripts.admit, &keys, args).await?;
        codec::admitted(&reply, accounts.iter().map(|limited| &limited.account))
    }

    /// Gives back what is known to be reserved. What cannot be given back in time, and what was reserved without an answer,
    /// ages out with its bucket.
    async fn give_back(
        &self,
        end: Instant,
        accounts: &[Limited],
        reserved: &[Result<Admitted, StoreError>],
        amounts: Cost,
    ) {
        let mut report = Report::default();
        for (limited, reserved) in accounts.iter().zip(reserved) {
            let Ok(Admitted { allowed: true, ticks, .. }) = reserved else { continue };
            let releases = ticks.iter().map(|&tick| Release { tick, amounts }).collect();
            report.entries.push(Entry { releases, ..Entry::new(limited.account.clone()) });
        }
        self.settling.alone(Terms::new(Lane::Decisions, end), parts(&report)).await;
    }
}

/// What each account was answered, in the order of the request, is the answer of the whole.
fn whole(parts: Vec<Admitted>) -> Admitted {
    let allowed = parts.iter().all(|part| part.allowed);
    let (ticks, snapshots): (Vec<_>, Vec<_>) =
        parts.into_iter().map(|part| (part.ticks, part.snapshots)).unzip();
    Admitted { allowed, ticks: ticks.concat(), snapshots: all_snapshots(snapshots) }
}

/// The snapshots of parts, as of the earliest of their servers' clocks, so that nobody is told to come back too early.
fn all_snapshots(parts: Vec<Snapshots>) -> Snapshots {
    let now = parts.iter().map(|part| part.now).min().unwrap_or(Timestamp::from_micros(0));
    let rebased = parts.iter().map(|part| part.rebased).sum();
    Snapshots { now, accounts: parts.into_iter().flat_map(|part| part.accounts).collect(), rebased }
}
