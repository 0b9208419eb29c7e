//! What the store in Redis does when Redis, what it holds, or the way to it fails: the scenarios of the catalogue of
//! faults (F01 to F12) that concern the store alone.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests report by panicking")]

mod access;
mod eviction;
mod expiry;
mod idempotency;
mod keys;
mod numbers;
mod outage;
mod poison;
mod raw;
mod safety;
mod scripts;
mod shapes;
mod together;

use quota_core::{Account, Cost, PerResource, Resource};
use quota_server::store::{Admitted, Entry, Limited, RedisStore, Report, Store, StoreError};

/// Asks for one account.
async fn admit(
    store: &RedisStore,
    account: &Account,
    bounds: PerResource<quota_core::Bound>,
    price: Cost,
) -> Result<Admitted, StoreError> {
    store.admit(&[Limited { account: account.clone(), bounds }], price).await
}

/// What an account has used, in CPU microseconds.
async fn used(store: &RedisStore, account: &Account) -> Result<u64, StoreError> {
    let snapshots = store.usage(std::slice::from_ref(account)).await?;
    Ok(snapshots.accounts[0].usage()[Resource::Cpu])
}

fn report(mark: Option<quota_core::Mark>, entries: impl Into<Vec<Entry>>) -> Report {
    Report { mark, entries: entries.into() }
}
