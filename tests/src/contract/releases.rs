//! What a reservation gives back.

use quota_core::{BUCKET_CAP, Charge, Cost, Release};
use quota_server::store::{Entry, MAX_CHARGES, Settlement};

use super::{Fixture, LENGTH, SECOND};
use crate::values::{cost, cpu, enforced, giving_back, mark, unlimited, window_of};

const APPLIED: Settlement = Settlement { applied: 1, duplicates: 0, excess_releases: 0, rebased: 0 };

/// Every behaviour of this topic.
pub async fn all(fixture: &Fixture) {
    a_release_takes_from_the_bucket_reserved_in(fixture).await;
    a_release_takes_no_more_than_the_bucket_holds(fixture).await;
    a_release_comes_before_the_charge_beside_it(fixture).await;
    a_release_of_what_has_left_is_ignored(fixture).await;
    a_release_from_a_bucket_to_come_is_ignored(fixture).await;
    a_price_that_saturated_is_given_back_whole(fixture).await;
    a_release_counts_once_under_its_mark(fixture).await;
    a_report_takes_many_releases(fixture).await;
}

async fn a_release_takes_from_the_bucket_reserved_in(fixture: &Fixture) {
    let account = fixture.account();
    let reserved = fixture.admit(&[(&account, unlimited())], cpu(10)).await.ticks[0];
    assert_eq!(fixture.settle(None, vec![giving_back(&account, reserved, 3)]).await, APPLIED);
    assert_eq!(fixture.used(&account).await, 7, "from the open bucket");
    fixture.clock.advance(5 * SECOND).await;
    fixture.spend(&account, &[(1, 100), (0, 200)]).await;
    assert_eq!(fixture.settle(None, vec![giving_back(&account, reserved, 4)]).await, APPLIED);
    let expected = window_of(fixture.tick(), &[(5, 3), (1, 100), (0, 200)]);
    assert_eq!(fixture.window(&account).await, expected, "from a closed one");
}

async fn a_release_takes_no_more_than_the_bucket_holds(fixture: &Fixture) {
    let account = fixture.account();
    let reserved = fixture.admit(&[(&account, unlimited())], cost(10, 10, 10)).await.ticks[0];
    for later in [0, 5] {
        fixture.clock.advance(later * SECOND).await;
        fixture.spend(&account, &[(0, 1000)]).await;
        // In the first round, the open bucket holds the charge too.
        let held = if later == 0 { 1010 } else { 0 };
        let amounts = cost(held + 1, 5, 5);
        let releases = vec![Release { tick: reserved, amounts }];
        let entry = Entry { account: account.clone(), charges: Vec::new(), releases };
        let settlement = fixture.settle(None, vec![entry]).await;
        assert_eq!(settlement, Settlement { excess_releases: 1, ..APPLIED });
    }
    assert_eq!(fixture.usage(&account).await, *cost(1000, 0, 0).amounts());
    let again = fixture.settle(None, vec![giving_back(&account, reserved, 1)]).await;
    assert_eq!(again.excess_releases, 1);
    let elsewhere = fixture.settle(None, vec![giving_back(&account, reserved + 1, 1)]).await;
    assert_eq!(elsewhere.excess_releases, 1, "a bucket in which nothing was spent");
    assert_eq!(fixture.usage(&account).await, *cost(1000, 0, 0).amounts());
}

async fn a_release_comes_before_the_charge_beside_it(fixture: &Fixture) {
    let account = fixture.account();
    let reserved = fixture.admit(&[(&account, enforced(100))], cpu(30)).await.ticks[0];
    let charges = vec![Charge { age: std::time::Duration::ZERO, cost: cpu(8) }];
    let releases = vec![Release { tick: reserved, amounts: cpu(35) }];
    let settlement = fixture.settle(None, vec![Entry { account: account.clone(), charges, releases }]).await;
    assert_eq!(settlement.excess_releases, 1);
    assert_eq!(fixture.used(&account).await, 8);
}

async fn a_release_of_what_has_left_is_ignored(fixture: &Fixture) {
    let account = fixture.account();
    fixture.next_bucket().await;
    let reserved = fixture.admit(&[(&account, unlimited())], cpu(10)).await.ticks[0];
    fixture.clock.advance(LENGTH - SECOND).await;
    fixture.spend(&account, &[(0, 5)]).await;
    assert_eq!(fixture.settle(None, vec![giving_back(&account, reserved, 1)]).await, APPLIED);
    assert_eq!(fixture.used(&account).await, 14);
    fixture.clock.advance(SECOND).await;
    assert_eq!(fixture.settle(None, vec![giving_back(&account, reserved, 9)]).await, APPLIED);
    assert_eq!(fixture.used(&account).await, 5);
    assert_eq!(fixture.settle(None, vec![giving_back(&account, 0, 9)]).await, APPLIED);
    assert_eq!(fixture.used(&account).await, 5);
}

async fn a_release_from_a_bucket_to_come_is_ignored(fixture: &Fixture) {
    let account = fixture.account();
    fixture.spend(&account, &[(1, 10), (0, 5)]).await;
    for ahead in [1, 60, 255, 256, 1 << 40] {
        let settlement = fixture.settle(None, vec![giving_back(&account, fixture.tick() + ahead, 1)]).await;
        assert_eq!(settlement, APPLIED);
    }
    assert_eq!(fixture.used(&account).await, 15);
}

async fn a_price_that_saturated_is_given_back_whole(fixture: &Fixture) {
    let account = fixture.account();
    let reserved = fixture.admit(&[(&account, unlimited())], cpu(Cost::MAX)).await.ticks[0];
    assert_eq!(fixture.used(&account).await, BUCKET_CAP);
    assert_eq!(fixture.settle(None, vec![giving_back(&account, reserved, Cost::MAX)]).await, APPLIED);
    assert_eq!(fixture.used(&account).await, 0);
}

async fn a_release_counts_once_under_its_mark(fixture: &Fixture) {
    let account = fixture.account();
    let reserved = fixture.admit(&[(&account, unlimited())], cpu(10)).await.ticks[0];
    let give_back =
        async || fixture.settle(mark("release", 1), vec![giving_back(&account, reserved, 4)]).await;
    assert_eq!(give_back().await, APPLIED);
    assert_eq!(give_back().await, Settlement { applied: 0, duplicates: 1, ..APPLIED });
    assert_eq!(fixture.used(&account).await, 6);
}

async fn a_report_takes_many_releases(fixture: &Fixture) {
    let accounts = fixture.new_accounts(2);
    let asked: Vec<_> = accounts.iter().map(|account| (account, unlimited())).collect();
    let reserved = fixture.admit(&asked, cpu(2000)).await.ticks[0];
    let release = Release { tick: reserved, amounts: cpu(1) };
    let entries = accounts.iter().map(|account| {
        let releases = vec![release; MAX_CHARGES];
        Entry { account: account.clone(), charges: Vec::new(), releases }
    });
    let settlement = fixture.settle(None, entries.collect()).await;
    assert_eq!(settlement, Settlement { applied: 2, ..APPLIED });
    assert_eq!(fixture.used(&accounts[1]).await, 2000 - 1024);
}
