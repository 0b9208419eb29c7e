use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quota_core::{Charge, Ipv6Prefix, Kind, Limit, Mode, Resource};

use super::*;
use crate::store::Entry;

/// A store, and the microseconds of its clock.
fn store(max_accounts: usize) -> (MemoryStore, Arc<AtomicU64>) {
    let micros = Arc::new(AtomicU64::new(1_764_500_000_000_000));
    let clock = Clock::Manual(Arc::clone(&micros));
    (MemoryStore::new(WindowLength::default(), max_accounts, clock), micros)
}

fn pass(clock: &AtomicU64, seconds: u64) {
    clock.fetch_add(seconds * 1_000_000, Ordering::Relaxed);
}

fn report(user: usize) -> Report {
    let account = Account::new(Kind::User, &format!("user-{user}"), Ipv6Prefix::default()).unwrap();
    let cost = Cost::ZERO.with_cpu_micros(1).unwrap();
    let charges = vec![Charge { age: Duration::ZERO, cost }];
    Report { mark: None, entries: vec![Entry { account, charges, releases: Vec::new() }] }
}

#[tokio::test]
async fn accounts_are_bounded_and_idle_ones_make_room() {
    let (store, clock) = store(640);
    let mut held = 0;
    for user in 0..2000 {
        match store.settle(&report(user)).await {
            Ok(_) => held += 1,
            Err(error) => assert!(matches!(error, StoreError::Full), "{error}"),
        }
    }
    assert_eq!(store.accounts(), held);
    assert!((500..=640).contains(&held), "{held}");
    pass(&clock, 60);
    for user in 2000..2064 {
        store.settle(&report(user)).await.unwrap();
    }
    assert!(store.accounts() <= 640);
}

#[tokio::test]
async fn idle_accounts_are_dropped() {
    let (store, clock) = store(640);
    store.settle(&report(1)).await.unwrap();
    pass(&clock, 59);
    store.drop_idle();
    assert_eq!(store.accounts(), 1);
    pass(&clock, 1);
    store.drop_idle();
    assert_eq!(store.accounts(), 0);
}

#[tokio::test]
async fn asking_keeps_nothing() {
    let (store, _) = store(640);
    let account = Account::new(Kind::User, "alice", Ipv6Prefix::default()).unwrap();
    store.usage(&[account]).await.unwrap();
    assert_eq!(store.accounts(), 0);
}

#[tokio::test]
async fn a_full_store_refuses_who_is_over_and_counts_for_whom_it_knows() {
    let (store, _) = store(640);
    store.settle(&report(0)).await.unwrap();
    let mut refused = None;
    for user in 1..2000 {
        if store.settle(&report(user)).await.is_err() {
            refused.get_or_insert(user);
        }
    }
    let limited = |user: usize, limit| {
        let bound = Bound { limit: Limit::At(limit), mode: Mode::Enforce };
        let off = Bound { mode: Mode::Off, ..bound };
        let account = report(user).entries.remove(0).account;
        Limited { account, bounds: PerResource::new(bound, off, off) }
    };
    let unknown = refused.unwrap();
    let price = Cost::ZERO.with_cpu_micros(1).unwrap();
    let over = store.admit(&[limited(0, 1), limited(unknown, 1)], price).await.unwrap();
    assert!(!over.allowed);
    let below = store.admit(&[limited(0, 5), limited(unknown, 5)], price).await;
    assert!(matches!(below, Err(StoreError::Full)));

    let mut both = report(0);
    both.entries.insert(0, report(unknown).entries.remove(0));
    assert!(matches!(store.settle(&both).await, Err(StoreError::Full)));
    let usage = store.usage(&[report(0).entries.remove(0).account]).await.unwrap();
    assert_eq!(usage.accounts[0].usage()[Resource::Cpu], 2);
}
