//! How usage is compared with limits, and until when a denial stands.

use std::time::Duration;

use quota_core::{
    Account, Bound, Breach, Charge, Comparison, Cost, Limit, Mode, PerResource, Resource, Snapshot, Subject,
    Verdict, WindowLength, decide,
};
use quota_server::store::{Admitted, Entry};

use super::Fixture;
use crate::values::{bound, cost, cpu, cpu_bound, enforced, unlimited};

const MICROSECOND: Duration = Duration::from_micros(1);

/// Every behaviour of this topic.
pub async fn all(fixture: &Fixture) {
    a_limit_is_reached_at_its_value(fixture).await;
    a_limit_of_zero_refuses_everything(fixture).await;
    unlimited_refuses_nothing(fixture).await;
    a_shadowed_breach_is_told_and_allowed(fixture).await;
    an_enforced_breach_counts_beside_a_shadowed_one(fixture).await;
    a_limit_that_is_off_is_not_compared(fixture).await;
    a_denial_stands_until_exactly_the_moment_it_names(fixture).await;
}

fn judge(account: &Account, bounds: PerResource<Bound>, admitted: &Admitted) -> Verdict {
    let snapshot = admitted.snapshots.accounts[0].clone();
    let comparisons = bounds.map(|ceiling| Comparison { ceiling, here: None });
    let subject = Subject { account: account.clone(), comparisons, until: None, snapshot };
    decide([&subject], admitted.snapshots.now, WindowLength::default())
}

/// The limit `at` for one resource, none for the others.
fn only(resource: Resource, at: u64, mode: Mode) -> PerResource<Bound> {
    PerResource::from_fn(|other| {
        bound(if other == resource { Limit::At(at) } else { Limit::Unlimited }, mode)
    })
}

async fn a_limit_is_reached_at_its_value(fixture: &Fixture) {
    let used = cost(7, 1 << 30, (1 << 40) - 1);
    let account = fixture.account();
    let charges = vec![Charge { age: Duration::ZERO, cost: used }];
    fixture.settle(None, vec![Entry { account: account.clone(), charges, releases: Vec::new() }]).await;
    for (resource, &amount) in used.amounts().iter() {
        for (limit, below) in [(amount - 1, false), (amount, false), (amount + 1, true)] {
            for mode in Mode::ALL {
                let bounds = only(resource, limit, mode);
                let admitted = fixture.admit(&[(&account, bounds)], Cost::ZERO).await;
                let refused = mode == Mode::Enforce && !below;
                assert_eq!(admitted.allowed, !refused, "{resource}: used {amount}, limit {limit}, {mode:?}");
                assert_eq!(admitted.snapshots.accounts[0].usage(), used.amounts());
                let verdict = judge(&account, bounds, &admitted);
                assert_eq!(verdict.denied_by.is_some(), refused, "the store and the decision agree");
                assert_eq!(verdict.shadowed.is_some(), mode == Mode::Shadow && !below);
            }
        }
    }
}

async fn a_limit_of_zero_refuses_everything(fixture: &Fixture) {
    let account = fixture.account();
    for price in [Cost::ZERO, cpu(1)] {
        let admitted = fixture.admit(&[(&account, enforced(0))], price).await;
        assert!(!admitted.allowed);
        let breach = judge(&account, enforced(0), &admitted).denied_by.expect("a breach");
        assert!(breach.permanent);
    }
    assert_eq!(fixture.used(&account).await, 0);
}

async fn unlimited_refuses_nothing(fixture: &Fixture) {
    let account = fixture.account();
    // As much as a window can hold.
    let full: Vec<(u64, u64)> = (0..60).map(|age| (age, Cost::MAX)).collect();
    fixture.spend(&account, &full).await;
    assert!(fixture.admit(&[(&account, unlimited())], cpu(1)).await.allowed);
    let highest = cpu_bound(Limit::At(u64::MAX), Mode::Enforce);
    assert!(fixture.admit(&[(&account, highest)], cpu(1)).await.allowed);
}

async fn a_shadowed_breach_is_told_and_allowed(fixture: &Fixture) {
    let account = fixture.account();
    fixture.spend(&account, &[(5, 60), (0, 40)]).await;
    let bounds = cpu_bound(Limit::At(100), Mode::Shadow);
    let before = fixture.window(&account).await;
    let admitted = fixture.admit(&[(&account, bounds)], cpu(10)).await;
    assert!(admitted.allowed);
    assert_eq!(admitted.snapshots.accounts, [Snapshot::Full(before)]);
    let verdict = judge(&account, bounds, &admitted);
    assert_eq!(verdict.denied_by, None);
    assert!(
        matches!(verdict.shadowed, Some(Breach { resource: Resource::Cpu, used: 100, .. })),
        "{verdict:?}"
    );
    assert_eq!(fixture.used(&account).await, 110, "reserved like any other");
}

async fn an_enforced_breach_counts_beside_a_shadowed_one(fixture: &Fixture) {
    let accounts = fixture.new_accounts(2);
    fixture.spend(&accounts[0], &[(0, 100)]).await;
    fixture.spend(&accounts[1], &[(0, 100)]).await;
    let shadowed = cpu_bound(Limit::At(100), Mode::Shadow);
    for (first, second) in [(shadowed, enforced(100)), (enforced(100), shadowed)] {
        let admitted = fixture.admit(&[(&accounts[0], first), (&accounts[1], second)], cpu(1)).await;
        assert!(!admitted.allowed);
    }
    assert_eq!(fixture.used(&accounts[0]).await, 100);
    assert_eq!(fixture.used(&accounts[1]).await, 100);
}

async fn a_limit_that_is_off_is_not_compared(fixture: &Fixture) {
    let account = fixture.account();
    fixture.spend(&account, &[(0, 100)]).await;
    for limit in [Limit::At(0), Limit::At(100), Limit::Unlimited] {
        let bounds = cpu_bound(limit, Mode::Off);
        let admitted = fixture.admit(&[(&account, bounds)], Cost::ZERO).await;
        assert!(admitted.allowed, "{limit:?}");
        assert_eq!(judge(&account, bounds, &admitted), Verdict::default());
    }
}

async fn a_denial_stands_until_exactly_the_moment_it_names(fixture: &Fixture) {
    let full: Vec<(u64, u64)> = (0..60).map(|age| (age, 1 + age % 7)).collect();
    let spent: [(&[(u64, u64)], u64); 5] = [
        (&[(0, 100)], 100),
        (&[(59, 1), (30, 50), (0, 50)], 100),
        (&[(59, 1), (30, 50), (0, 50)], 51),
        (&[(58, 10), (57, 10), (3, 10), (2, 10), (1, 10)], 21),
        (&full, 100),
    ];
    for (spent, limit) in spent {
        let account = fixture.account();
        fixture.next_bucket().await;
        fixture.clock.advance(Duration::from_micros(123_456)).await;
        fixture.spend(&account, spent).await;
        let ask = async || fixture.admit(&[(&account, enforced(limit))], cpu(1)).await;
        let wait = |admitted: &Admitted| {
            judge(&account, enforced(limit), admitted).denied_by.map(|breach| breach.retry_after)
        };

        let named = wait(&ask().await).expect("a denial");
        assert!(named <= WindowLength::default().length());
        fixture.clock.advance(named - MICROSECOND).await;
        let early = ask().await;
        assert_eq!((early.allowed, wait(&early)), (false, Some(MICROSECOND)), "{spent:?}, limit {limit}");
        fixture.clock.advance(MICROSECOND).await;
        assert!(ask().await.allowed, "{spent:?}, limit {limit}");
    }
}
