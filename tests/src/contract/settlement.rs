//! What a report charges: when it counts, for how long, and how much fits.

use std::time::Duration;

use quota_core::{BUCKET_CAP, Charge, Cost, Resource};
use quota_server::store::{Entry, MAX_ACCOUNTS, MAX_CHARGES};

use super::{Fixture, LENGTH, SECOND};
use crate::values::{cost, cpu, enforced, mark, spending, unlimited, window_of};

/// Every behaviour of this topic.
pub async fn all(fixture: &Fixture) {
    a_charge_counts_in_the_bucket_in_which_it_was_spent(fixture).await;
    a_charge_that_just_left_counts_in_the_oldest_bucket(fixture).await;
    a_bucket_leaves_one_window_later(fixture).await;
    an_account_idle_for_hours_has_used_nothing(fixture).await;
    a_charge_is_not_refused_over_the_limit(fixture).await;
    a_bucket_saturates(fixture).await;
    a_thousand_small_charges_lose_nothing(fixture).await;
    a_report_takes_many_accounts(fixture).await;
    a_report_takes_many_charges(fixture).await;
}

fn aged(millis: u64, cost: Cost) -> Charge {
    Charge { age: Duration::from_millis(millis), cost }
}

async fn a_charge_counts_in_the_bucket_in_which_it_was_spent(fixture: &Fixture) {
    let account = fixture.account();
    fixture.next_bucket().await;
    fixture.clock.advance(Duration::from_millis(400)).await;
    // 400 ms ago is this bucket still, 401 ms the one before. In no order, as clients report.
    let charges = vec![
        aged(20_000, cpu(8)),
        aged(0, cpu(1)),
        aged(401, cpu(4)),
        aged(59_400, cpu(32)),
        aged(400, cpu(2)),
        aged(1_400, cpu(16)),
        aged(30_000, Cost::ZERO),
    ];
    fixture.settle(None, vec![Entry { account: account.clone(), charges, releases: Vec::new() }]).await;
    let expected = window_of(fixture.tick(), &[(59, 32), (20, 8), (1, 20), (0, 3)]);
    assert_eq!(fixture.window(&account).await, expected);

    let late = vec![aged(20_500, cpu(64)), aged(40_000, cost(0, 5, 0))];
    fixture.settle(None, vec![Entry { account: account.clone(), charges: late, releases: Vec::new() }]).await;
    fixture.clock.advance(SECOND).await;
    assert_eq!(fixture.usage(&account).await, *cost(95, 5, 0).amounts());
    fixture.clock.advance(19 * SECOND).await;
    assert_eq!(fixture.usage(&account).await, *cost(95, 0, 0).amounts());
    // 20.0 s ago and 20.5 s ago, at 0.4 s into a second: two buckets.
    fixture.clock.advance(19 * SECOND).await;
    assert_eq!(fixture.used(&account).await, 31);
    fixture.clock.advance(SECOND).await;
    assert_eq!(fixture.used(&account).await, 23);
}

async fn a_charge_that_just_left_counts_in_the_oldest_bucket(fixture: &Fixture) {
    let account = fixture.account();
    fixture.next_bucket().await;
    let charges = vec![aged(59_999, cpu(1)), aged(59_000, cpu(2))];
    fixture.settle(None, vec![Entry { account: account.clone(), charges, releases: Vec::new() }]).await;
    assert_eq!(fixture.window(&account).await, window_of(fixture.tick(), &[(59, 3), (0, 0)]));
}

async fn a_bucket_leaves_one_window_later(fixture: &Fixture) {
    let account = fixture.account();
    fixture.next_bucket().await;
    fixture.spend(&account, &[(59, 1), (58, 2), (1, 4), (0, 8)]).await;
    for (seconds, before, after) in [(1, 15, 14), (1, 14, 12), (57, 12, 8), (1, 8, 0)] {
        fixture.clock.advance(seconds * SECOND - Duration::from_micros(1)).await;
        assert_eq!(fixture.used(&account).await, before);
        fixture.clock.advance(Duration::from_micros(1)).await;
        assert_eq!(fixture.used(&account).await, after);
    }
}

async fn an_account_idle_for_hours_has_used_nothing(fixture: &Fixture) {
    for idle in [2 * LENGTH, 5 * LENGTH, Duration::from_secs(12 * 3600)] {
        let account = fixture.account();
        fixture.spend(&account, &[(59, 1), (30, 2), (0, 4)]).await;
        fixture.clock.advance(idle).await;
        assert_eq!(fixture.window(&account).await, window_of(fixture.tick(), &[(0, 0)]));
        assert!(fixture.admit(&[(&account, enforced(1))], cpu(1)).await.allowed);
        assert_eq!(fixture.used(&account).await, 1);
    }
}

async fn a_charge_is_not_refused_over_the_limit(fixture: &Fixture) {
    let account = fixture.account();
    assert!(fixture.admit(&[(&account, enforced(10))], cpu(10)).await.allowed);
    fixture.spend(&account, &[(0, 1000)]).await;
    assert_eq!(fixture.used(&account).await, 1010);
}

async fn a_bucket_saturates(fixture: &Fixture) {
    let account = fixture.account();
    let most = cost(Cost::MAX, Cost::MAX, Cost::MAX);
    let full: Vec<Charge> = (0..60).map(|age| Charge { age: age * SECOND, cost: most }).collect();
    fixture.next_bucket().await;
    for _ in 0..2 {
        let charges = full.clone();
        fixture.settle(None, vec![Entry { account: account.clone(), charges, releases: Vec::new() }]).await;
        let cap = 60 * BUCKET_CAP;
        assert_eq!(fixture.usage(&account).await, *cost(cap, cap, cap).amounts());
    }
    fixture.clock.advance(59 * SECOND).await;
    assert_eq!(fixture.used(&account).await, BUCKET_CAP, "nothing wrapped in any bucket");

    let account = fixture.account();
    fixture.spend(&account, &[(0, BUCKET_CAP - 1)]).await;
    assert_eq!(fixture.used(&account).await, BUCKET_CAP - 1);
    for _ in 0..3 {
        assert!(fixture.admit(&[(&account, unlimited())], cpu(1)).await.allowed);
        assert_eq!(fixture.used(&account).await, BUCKET_CAP);
    }
}

async fn a_thousand_small_charges_lose_nothing(fixture: &Fixture) {
    let account = fixture.account();
    fixture.spend(&account, &[(0, 1000); 1000]).await;
    assert_eq!(fixture.used(&account).await, 1_000_000);
}

async fn a_report_takes_many_accounts(fixture: &Fixture) {
    let accounts = fixture.new_accounts(2 * MAX_ACCOUNTS + 2);
    let entries = || accounts.iter().zip(1..).map(|(account, n)| spending(account, &[(0, n)])).collect();
    let count = u32::try_from(accounts.len()).expect("few accounts");
    let settlement = fixture.settle(mark("many accounts", 1), entries()).await;
    assert_eq!((settlement.applied, settlement.duplicates), (count, 0));
    let settlement = fixture.settle(mark("many accounts", 1), entries()).await;
    assert_eq!((settlement.applied, settlement.duplicates), (0, count));
    for (account, n) in accounts.iter().zip(1..) {
        assert_eq!(fixture.used(account).await, n);
    }
}

async fn a_report_takes_many_charges(fixture: &Fixture) {
    let accounts = fixture.new_accounts(3);
    let charges: Vec<Charge> = (0..MAX_CHARGES).map(|n| aged(n as u64 * 58, cost(1, 2, n as u64))).collect();
    let entries = accounts.iter().map(|account| Entry {
        account: account.clone(),
        charges: charges.clone(),
        releases: Vec::new(),
    });
    let settlement = fixture.settle(mark("many charges", 1), entries.collect()).await;
    assert_eq!((settlement.applied, settlement.duplicates), (3, 0));
    for account in &accounts {
        let usage = fixture.usage(account).await;
        assert_eq!(usage[Resource::Cpu], 1024);
        assert_eq!(usage[Resource::Memory], 2048);
        assert_eq!(usage[Resource::Network], 1023 * 1024 / 2);
    }
}
