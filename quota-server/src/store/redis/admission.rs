//! All accounts of a request or none, where they are in several slots of a Cluster: peek at all, then reserve, which
//! compares again; if one refuses then, what was reserved on the others is given back. Decision 18 says what it bounds.

use futures::future::join_all;
use quota_core::{Account, Cost, Release, Timestamp};
use tokio::time::{Instant, timeout_at};

use super::{RedisStore, codec, keys};
use crate::store::{Admitted, Entry, Limited, Report, Snapshots, Store as _, StoreError};

/// The accounts of a request, in one slot each.
struct Part {
    /// Their places in the request.
    places: Vec<usize>,
    keys: Vec<String>,
    accounts: Vec<Limited>,
}

impl Part {
    fn new(places: Vec<usize>, keys: &[String], accounts: &[Limited]) -> Self {
        Self { keys: pick(&places, keys), accounts: pick(&places, accounts), places }
    }
}

impl RedisStore {
    pub(super) async fn admit_all_or_none(
        &self,
        accounts: &[Limited],
        price: Cost,
    ) -> Result<Admitted, StoreError> {
        let keys = keys(accounts.iter().map(|limited| &limited.account));
        let together = self.connections.together(&keys);
        let end = self.connections.deadline();
        if together.len() == 1 {
            return self.admit_together(end, &keys, accounts, price).await;
        }
        let parts: Vec<Part> =
            together.into_iter().map(|places| Part::new(places, &keys, accounts)).collect();
        let peeked = self.admit_parts(end, &parts, Cost::ZERO).await;
        let peeked = whole(&parts, peeked.into_iter().collect::<Result<Vec<_>, _>>()?);
        if !peeked.allowed || price.is_zero() {
            return Ok(peeked);
        }
        let reserved = self.admit_parts(end, &parts, price).await;
        if reserved.iter().any(|part| !matches!(part, Ok(Admitted { allowed: true, .. }))) {
            self.give_back(end, &parts, &reserved, price).await;
        }
        let mut reserved = whole(&parts, reserved.into_iter().collect::<Result<Vec<_>, _>>()?);
        reserved.snapshots.rebased += peeked.snapshots.rebased;
        Ok(reserved)
    }

    pub(super) async fn usage_of_all(&self, accounts: &[Account]) -> Result<Snapshots, StoreError> {
        let keys = keys(accounts);
        let end = self.connections.deadline();
        let together = self.connections.together(&keys);
        if together.len() == 1 {
            return self.usage_together(end, &keys, accounts).await;
        }
        let parts = together.iter().map(async |places| {
            let (keys, accounts) = (pick(places, &keys), pick(places, accounts));
            self.usage_together(end, &keys, &accounts).await
        });
        let parts = join_all(parts).await.into_iter().collect::<Result<Vec<_>, _>>()?;
        Ok(all_snapshots(together.iter().map(Vec::as_slice).zip(parts)))
    }

    /// Of accounts that are in one slot, or on a single server.
    async fn usage_together(
        &self,
        end: Instant,
        keys: &[String],
        accounts: &[Account],
    ) -> Result<Snapshots, StoreError> {
        let reply = self.run(end, &self.scripts.standing, keys, Vec::new()).await?;
        codec::snapshots(&reply, accounts)
    }

    async fn admit_parts(
        &self,
        end: Instant,
        parts: &[Part],
        price: Cost,
    ) -> Vec<Result<Admitted, StoreError>> {
        join_all(parts.iter().map(|part| self.admit_together(end, &part.keys, &part.accounts, price))).await
    }

    /// On accounts that are in one slot, or on a single server.
    async fn admit_together(
        &self,
        end: Instant,
        keys: &[String],
        accounts: &[Limited],
        price: Cost,
    ) -> Result<Admitted, StoreError> {
        let args = vec![codec::price(price), codec::bounds(accounts)];
        let reply = self.run(end, &self.scripts.admit, keys, args).await?;
        codec::admitted(&reply, accounts.iter().map(|limited| &limited.account))
    }

    /// Gives back what is known to be reserved. What cannot be given back in time, and what was reserved without an answer,
    /// ages out with its bucket.
    async fn give_back(
        &self,
        end: Instant,
        parts: &[Part],
        reserved: &[Result<Admitted, StoreError>],
        amounts: Cost,
    ) {
        let mut report = Report::default();
        for (part, reserved) in parts.iter().zip(reserved) {
            let Ok(Admitted { allowed: true, ticks, .. }) = reserved else { continue };
            for (limited, &tick) in part.accounts.iter().zip(ticks) {
                let releases = vec![Release { tick, amounts }];
                report.entries.push(Entry { releases, ..Entry::new(limited.account.clone()) });
            }
        }
        let _ = timeout_at(end, self.settle(&report)).await;
    }
}

/// What the parts answered is the answer of the whole.
fn whole(parts: &[Part], answers: Vec<Admitted>) -> Admitted {
    let allowed = answers.iter().all(|answer| answer.allowed);
    let places = || parts.iter().map(|part| &part.places[..]);
    let (ticks, snapshots): (Vec<_>, Vec<_>) =
        answers.into_iter().map(|answer| (answer.ticks, answer.snapshots)).unzip();
    Admitted {
        allowed,
        ticks: in_order(places().zip(ticks)),
        snapshots: all_snapshots(places().zip(snapshots)),
    }
}

/// The snapshots of parts in the order of the request, as of the earliest of their servers' clocks, so that nobody is told
/// to come back too early.
fn all_snapshots<'a>(parts: impl Iterator<Item = (&'a [usize], Snapshots)>) -> Snapshots {
    let (mut now, mut rebased, mut accounts) = (None, 0, Vec::new());
    for (places, part) in parts {
        now = now.into_iter().chain([part.now]).min();
        rebased += part.rebased;
        accounts.push((places, part.accounts));
    }
    let now = now.unwrap_or(Timestamp::from_micros(0));
    Snapshots { now, accounts: in_order(accounts.into_iter()), rebased }
}

/// What parts have, each with its place, in the order of the whole.
fn in_order<'a, T>(parts: impl Iterator<Item = (&'a [usize], Vec<T>)>) -> Vec<T> {
    let mut all: Vec<(usize, T)> =
        parts.flat_map(|(places, part)| places.iter().copied().zip(part)).collect();
    all.sort_unstable_by_key(|(place, _)| *place);
    all.into_iter().map(|(_, item)| item).collect()
}

fn pick<T: Clone>(places: &[usize], of: &[T]) -> Vec<T> {
    places.iter().filter_map(|&place| of.get(place).cloned()).collect()
}
