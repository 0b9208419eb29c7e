//! An admission counts on all its accounts or on none.

use std::sync::Arc;

use quota_core::{Account, Limit, Mode, Snapshot};
use quota_server::store::{Limited, MAX_ACCOUNTS};

use super::{Fixture, LENGTH, SECOND};
use crate::values::{cost, cpu, cpu_bound, enforced, unlimited};

/// Every behaviour of this topic.
pub async fn all(fixture: &Fixture) {
    a_price_is_reserved_on_all_accounts(fixture).await;
    a_denial_changes_nothing_on_any_account(fixture).await;
    a_denial_names_every_account_in_order(fixture).await;
    a_price_of_nothing_is_not_written(fixture).await;
    a_price_whose_holder_died_ages_out(fixture).await;
    a_call_takes_as_many_accounts_as_it_says(fixture).await;
    a_limit_is_passed_by_nobody_however_many_ask_at_once(fixture).await;
    who_is_refused_by_one_of_three_leaves_nothing_on_the_others(fixture).await;
}

async fn a_price_is_reserved_on_all_accounts(fixture: &Fixture) {
    let accounts = fixture.new_accounts(3);
    let asked = [(&accounts[0], enforced(100)), (&accounts[1], enforced(100)), (&accounts[2], unlimited())];
    let admitted = fixture.admit(&asked, cost(30, 20, 10)).await;
    assert!(admitted.allowed);
    assert_eq!(admitted.ticks, [fixture.tick(); 3]);
    assert_eq!(admitted.snapshots.now, fixture.clock.now());
    assert_eq!(admitted.snapshots.rebased, 0);
    for snapshot in &admitted.snapshots.accounts {
        assert_eq!(*snapshot.usage(), *cost(0, 0, 0).amounts(), "told as it was compared");
    }
    for account in &accounts {
        assert_eq!(fixture.usage(account).await, *cost(30, 20, 10).amounts());
    }
    let again = fixture.admit(&asked, cost(30, 20, 10)).await;
    assert_eq!(*again.snapshots.accounts[0].usage(), *cost(30, 20, 10).amounts());
    assert_eq!(fixture.usage(&accounts[2]).await, *cost(60, 40, 20).amounts());
}

async fn a_denial_changes_nothing_on_any_account(fixture: &Fixture) {
    for heavy in 0..3 {
        let accounts = fixture.new_accounts(3);
        for account in &accounts {
            fixture.spend(account, &[(2, 5), (0, 40)]).await;
        }
        fixture.spend(&accounts[heavy], &[(1, 55)]).await;
        let mut before = Vec::new();
        for account in &accounts {
            before.push(fixture.window(account).await);
        }
        let asked: Vec<_> = accounts.iter().map(|account| (account, enforced(100))).collect();
        assert!(!fixture.admit(&asked, cpu(30)).await.allowed, "account {heavy} is at its limit");
        for (account, before) in accounts.iter().zip(before) {
            assert_eq!(fixture.window(account).await, before);
        }
    }
}

async fn a_denial_names_every_account_in_order(fixture: &Fixture) {
    let accounts = fixture.new_accounts(3);
    fixture.spend(&accounts[0], &[(0, 1)]).await;
    fixture.spend(&accounts[1], &[(0, 2)]).await;
    fixture.spend(&accounts[2], &[(0, 3)]).await;
    let asked = [(&accounts[0], enforced(9)), (&accounts[1], enforced(2)), (&accounts[2], enforced(9))];
    let admitted = fixture.admit(&asked, cpu(1)).await;
    assert!(!admitted.allowed);
    let told: Vec<_> = admitted.snapshots.accounts.iter().map(|snapshot| *snapshot.usage()).collect();
    assert_eq!(told, [1, 2, 3].map(|micros| *cpu(micros).amounts()));
    assert_eq!(admitted.snapshots.accounts[1], Snapshot::Full(fixture.window(&accounts[1]).await));
}

/// What is not written is not there to be dated back when the clock steps back.
async fn a_price_of_nothing_is_not_written(fixture: &Fixture) {
    let account = fixture.account();
    assert!(fixture.admit(&[(&account, enforced(100))], cpu(0)).await.allowed);
    fixture.clock.step_back(10 * LENGTH).await;
    let snapshots = fixture.store.usage(std::slice::from_ref(&account)).await.expect("a standing");
    assert_eq!(snapshots.rebased, 0);
    fixture.clock.advance(10 * LENGTH).await;

    fixture.spend(&account, &[(3, 7), (0, 8)]).await;
    let before = fixture.window(&account).await;
    assert!(fixture.admit(&[(&account, enforced(100))], cpu(0)).await.allowed);
    assert_eq!(fixture.window(&account).await, before);
}

async fn a_price_whose_holder_died_ages_out(fixture: &Fixture) {
    let account = fixture.account();
    fixture.next_bucket().await;
    assert!(fixture.admit(&[(&account, enforced(100))], cpu(100)).await.allowed);
    fixture.clock.advance(LENGTH - SECOND / 1000).await;
    assert!(!fixture.admit(&[(&account, enforced(100))], cpu(100)).await.allowed);
    fixture.clock.advance(SECOND / 1000).await;
    assert!(fixture.admit(&[(&account, enforced(100))], cpu(100)).await.allowed);
}

async fn a_call_takes_as_many_accounts_as_it_says(fixture: &Fixture) {
    let accounts = fixture.new_accounts(MAX_ACCOUNTS);
    let asked: Vec<_> = accounts.iter().map(|account| (account, enforced(2))).collect();
    assert!(fixture.admit(&asked, cpu(1)).await.allowed);
    let snapshots = fixture.store.usage(&accounts).await.expect("a standing");
    assert_eq!(snapshots.accounts.len(), MAX_ACCOUNTS);
    assert!(snapshots.accounts.iter().all(|snapshot| snapshot.usage() == cpu(1).amounts()));

    fixture.spend(&accounts[MAX_ACCOUNTS - 1], &[(0, 1)]).await;
    assert!(!fixture.admit(&asked, cpu(1)).await.allowed, "the last is compared too");
}

/// Where accounts are on several nodes, two that ask at once may each have reserved on one what the other wants: then both
/// are refused, though there was room for one. Never is one let in too many.
async fn who_is_refused_by_one_of_three_leaves_nothing_on_the_others(fixture: &Fixture) {
    for _ in 0..10 {
        let accounts = fixture.new_accounts(3);
        let limited = |account: &Account| Limited { account: account.clone(), bounds: enforced(20) };
        let limited: Vec<Limited> = accounts.iter().map(limited).collect();
        let mut asking = tokio::task::JoinSet::new();
        for number in 0..100 {
            let store = if number % 2 == 0 { &fixture.store } else { &fixture.other };
            let (store, limited) = (Arc::clone(store), limited.clone());
            asking.spawn(async move { store.admit(&limited, cpu(1)).await.expect("a decision").allowed });
        }
        let allowed = asking.join_all().await.into_iter().filter(|allowed| *allowed).count();
        assert!(if fixture.is_spread() { (1..=20).contains(&allowed) } else { allowed == 20 }, "{allowed}");
        for account in &accounts {
            assert_eq!(fixture.used(account).await, allowed as u64, "what was refused is given back");
        }
    }
}

/// Of 300 that ask at once through two servers, as many are let in as there is room for.
async fn a_limit_is_passed_by_nobody_however_many_ask_at_once(fixture: &Fixture) {
    let accounts = fixture.new_accounts(2);
    let limited = [
        Limited { account: accounts[0].clone(), bounds: enforced(100) },
        Limited { account: accounts[1].clone(), bounds: cpu_bound(Limit::At(100), Mode::Shadow) },
    ];
    let mut asking = tokio::task::JoinSet::new();
    for number in 0..300 {
        let store = if number % 2 == 0 { &fixture.store } else { &fixture.other };
        let (store, limited) = (Arc::clone(store), limited.clone());
        asking.spawn(async move { store.admit(&limited, cpu(1)).await.expect("a decision").allowed });
    }
    let answers = asking.join_all().await;
    assert_eq!(answers.iter().filter(|&&allowed| allowed).count(), 100);
    assert_eq!(fixture.used(&accounts[0]).await, 100);
    assert_eq!(fixture.used(&accounts[1]).await, 100);
}
