//! What happens when the store's clock steps back.

use std::time::Duration;

use quota_server::store::Settlement;

use super::{Fixture, LENGTH, SECOND};
use crate::values::{cpu, enforced, giving_back, mark, spending, unlimited, window_of};

/// How far a clock may have stepped back for its old time to be used on.
const TOLERANCE: Duration = Duration::from_secs(5);

/// Further than that, by seven hours and a half a second.
const FAR: Duration = Duration::from_millis(25_200_500);

/// Every behaviour of this topic.
pub async fn all(fixture: &Fixture) {
    a_small_step_back_keeps_the_bucket_that_is_open(fixture).await;
    the_newest_account_of_a_call_is_now_for_all(fixture).await;
    a_large_step_back_keeps_the_age_of_usage(fixture).await;
    a_large_step_back_is_mended_by_a_denial(fixture).await;
    a_large_step_back_is_mended_by_a_duplicate(fixture).await;
    a_large_step_back_keeps_the_age_of_marks(fixture).await;
    a_release_after_a_large_step_back_takes_nothing_from_others(fixture).await;
}

async fn rebased(fixture: &Fixture, account: &quota_core::Account) -> u32 {
    fixture.store.usage(std::slice::from_ref(account)).await.expect("a standing").rebased
}

async fn a_small_step_back_keeps_the_bucket_that_is_open(fixture: &Fixture) {
    let account = fixture.account();
    fixture.next_bucket().await;
    let open = fixture.tick();
    fixture.spend(&account, &[(59, 1), (1, 2), (0, 4)]).await;
    fixture.clock.step_back(TOLERANCE).await;
    assert_eq!(fixture.tick(), open - 5);
    let admitted = fixture.admit(&[(&account, unlimited())], cpu(8)).await;
    assert_eq!((admitted.allowed, &*admitted.ticks, admitted.snapshots.rebased), (true, &[open][..], 0));
    assert_eq!(admitted.snapshots.now, fixture.clock.now(), "the clock is told as it is");
    assert_eq!(fixture.window(&account).await, window_of(open, &[(59, 1), (1, 2), (0, 12)]));
    // What was spent just now, by the clock, was spent five buckets before the one that is open.
    fixture.spend(&account, &[(0, 16)]).await;
    assert_eq!(fixture.window(&account).await, window_of(open, &[(59, 1), (5, 16), (1, 2), (0, 12)]));
}

async fn the_newest_account_of_a_call_is_now_for_all(fixture: &Fixture) {
    let (ahead, behind, beyond) = (fixture.account(), fixture.account(), fixture.account());
    fixture.next_bucket().await;
    let now = fixture.tick();
    fixture.spend(&behind, &[(0, 1)]).await;
    fixture.clock.advance(3 * SECOND).await;
    fixture.spend(&ahead, &[(0, 2)]).await;
    fixture.clock.advance(3 * SECOND).await;
    fixture.spend(&beyond, &[(0, 4)]).await;
    fixture.clock.step_back(TOLERANCE + SECOND).await;

    let asked = [(&behind, unlimited()), (&ahead, unlimited()), (&beyond, unlimited())];
    let admitted = fixture.admit(&asked, cpu(8)).await;
    // On a Cluster each is in a call of its own.
    let (own, reserved) =
        if fixture.is_spread() { (now, [now, now + 3, now]) } else { (now + 3, [now + 3; 3]) };
    assert_eq!((&*admitted.ticks, admitted.snapshots.rebased), (&reserved[..], 1));
    assert_eq!(fixture.used(&behind).await, 9);
    assert_eq!(fixture.window(&behind).await.mark(), own);
    assert_eq!(fixture.window(&ahead).await, window_of(now + 3, &[(0, 10)]));
    assert_eq!(fixture.window(&beyond).await, window_of(own, &[(0, 12)]));
}

async fn a_large_step_back_keeps_the_age_of_usage(fixture: &Fixture) {
    for back in [TOLERANCE + SECOND, LENGTH, 256 * SECOND, FAR] {
        let account = fixture.account();
        fixture.next_bucket().await;
        let spent = [(59, 1), (10, 2), (0, 4)];
        fixture.spend(&account, &spent).await;
        fixture.clock.step_back(back).await;
        assert_eq!(rebased(fixture, &account).await, 1, "{back:?}");
        assert_eq!(fixture.window(&account).await, window_of(fixture.tick(), &spent));
        assert_eq!(rebased(fixture, &account).await, 0, "mended once");
        for (seconds, left) in [(1, 6), (49, 4), (10, 0)] {
            fixture.clock.advance(seconds * SECOND).await;
            assert_eq!(fixture.used(&account).await, left, "{back:?}");
        }
    }
}

async fn a_large_step_back_is_mended_by_a_denial(fixture: &Fixture) {
    let (heavy, light) = (fixture.account(), fixture.account());
    fixture.next_bucket().await;
    fixture.spend(&heavy, &[(10, 2), (0, 98)]).await;
    fixture.spend(&light, &[(0, 1)]).await;
    fixture.clock.step_back(FAR).await;
    let ask = async || fixture.admit(&[(&light, enforced(100)), (&heavy, enforced(100))], cpu(1)).await;
    let admitted = ask().await;
    assert_eq!((admitted.allowed, admitted.snapshots.rebased), (false, 2));
    let admitted = ask().await;
    assert_eq!((admitted.allowed, admitted.snapshots.rebased), (false, 0));
    assert_eq!(fixture.window(&heavy).await, window_of(fixture.tick(), &[(10, 2), (0, 98)]));
    assert_eq!(fixture.used(&light).await, 1);
    fixture.clock.advance(50 * SECOND).await;
    assert!(ask().await.allowed, "denied no longer than the window says");
}

async fn a_large_step_back_is_mended_by_a_duplicate(fixture: &Fixture) {
    let account = fixture.account();
    let send =
        async || fixture.settle(mark("step back", 1), vec![spending(&account, &[(10, 2), (0, 4)])]).await;
    assert_eq!(send().await, Settlement { applied: 1, ..Settlement::default() });
    fixture.clock.step_back(FAR).await;
    assert_eq!(send().await, Settlement { duplicates: 1, rebased: 1, ..Settlement::default() });
    assert_eq!(send().await, Settlement { duplicates: 1, ..Settlement::default() });
    assert_eq!(fixture.window(&account).await, window_of(fixture.tick(), &[(10, 2), (0, 4)]));
}

async fn a_large_step_back_keeps_the_age_of_marks(fixture: &Fixture) {
    let account = fixture.account();
    let send = async |source| {
        let settlement = fixture.settle(mark(source, 1), vec![spending(&account, &[(0, 1)])]).await;
        (settlement.applied, settlement.duplicates, settlement.rebased)
    };
    fixture.next_bucket().await;
    assert_eq!(send("old").await, (1, 0, 0));
    fixture.clock.advance(LENGTH).await;
    assert_eq!(send("new").await, (1, 0, 0));
    fixture.clock.step_back(LENGTH).await;
    assert_eq!(send("old").await, (0, 1, 1));
    fixture.clock.advance(LENGTH - SECOND).await;
    assert_eq!(send("old").await, (0, 1, 0));
    fixture.clock.advance(SECOND).await;
    assert_eq!(send("old").await, (1, 0, 0), "two windows after it was set, by age");
    assert_eq!(send("new").await, (0, 1, 0));
}

/// The bucket that it was reserved in has another date now, and its old date may be another bucket's.
async fn a_release_after_a_large_step_back_takes_nothing_from_others(fixture: &Fixture) {
    let account = fixture.account();
    fixture.next_bucket().await;
    let reserved = fixture.admit(&[(&account, unlimited())], cpu(10)).await.ticks[0];
    fixture.clock.step_back(FAR).await;
    fixture.spend(&account, &[(0, 5)]).await;
    let settlement = fixture.settle(None, vec![giving_back(&account, reserved, 10)]).await;
    assert_eq!((settlement.applied, settlement.excess_releases), (1, 0));
    assert_eq!(fixture.used(&account).await, 15, "the price ages out with its bucket");
}
