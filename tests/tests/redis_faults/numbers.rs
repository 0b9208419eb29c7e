//! F08, F10: amounts at the edge of what numbers can say.

use std::time::Duration;

use quota_core::{BUCKET_CAP, Charge, Comparison, Cost, Resource, Snapshot, Subject, WindowLength, decide};
use quota_server::store::{Entry, RedisStore, Store};
use quota_tests::redis::RedisServer;
use quota_tests::stores::{Opening, StoreClock};
use quota_tests::values::{cost, cpu, enforced, spending, unlimited, user};

use crate::raw::Raw;
use crate::{admit, report, used};

const SECOND: Duration = Duration::from_secs(1);

async fn start() -> (RedisServer, RedisStore, StoreClock) {
    let server = RedisServer::start().await;
    let store = Opening { test_clock: true, ..Opening::default() }.open(&server.url());
    let clock = StoreClock::in_redis(&server).await;
    (server, store, clock)
}

#[tokio::test]
async fn f08_amounts_stop_at_the_cap_and_are_exact_below() {
    let (server, store, clock) = start().await;
    assert!(Cost::ZERO.with_network_bytes((1 << 53) + 1).is_err(), "refused before it comes here");
    let alice = user("alice");
    let charge = async |cost| {
        let charges = vec![Charge { age: Duration::ZERO, cost }];
        let entry = Entry { account: alice.clone(), charges, releases: Vec::new() };
        store.settle(&report(None, [entry])).await.unwrap();
        *store.usage(std::slice::from_ref(&alice)).await.unwrap().accounts[0].usage()
    };
    let petabyte = 1_000_000_000_000_000;
    let memory = Cost::ZERO.with_memory_byte_seconds(9_000_000_000_000_000).unwrap();
    for seconds in 1..=10 {
        let usage = charge(cost(999_999_999_999, 0, petabyte).plus(memory)).await;
        assert_eq!(usage[Resource::Network], seconds * BUCKET_CAP, "a bucket counts no more than its cap");
        assert_eq!(usage[Resource::Memory], seconds * BUCKET_CAP);
        assert_eq!(usage[Resource::Cpu], seconds * 999_999_999_999, "12 days of CPU, to the microsecond");
        clock.advance(SECOND).await;
    }
    // Neither keys nor values hold a number in words.
    let raw = Raw::new(&server).await;
    let keys: Vec<String> = raw.run(&["KEYS", "q1:*"]).await;
    assert_eq!(keys, ["q1:{user:alice}"]);
    assert_eq!(raw.value(&alice).await.len(), 42 + 16 * 9, "nine closed buckets");
}

#[tokio::test]
async fn f08_a_thousand_thousandths_of_a_second_are_a_second() {
    let (_server, store, _) = start().await;
    let alice = user("alice");
    let milli = Cost::ZERO.with_cpu_seconds(0.001).unwrap();
    for _ in 0..1000 {
        admit(&store, &alice, unlimited(), milli).await.unwrap();
    }
    assert_eq!(used(&store, &alice).await.unwrap(), 1_000_000);
}

#[tokio::test]
async fn f10_the_largest_amounts_saturate() {
    let (_server, store, _) = start().await;
    for number in [u64::MAX, i64::MIN.unsigned_abs(), Cost::MAX + 1] {
        assert!(Cost::ZERO.with_cpu_micros(number).is_err(), "refused before it comes here");
    }
    let alice = user("alice");
    for _ in 0..3 {
        admit(&store, &alice, unlimited(), cpu(Cost::MAX)).await.unwrap();
        assert_eq!(used(&store, &alice).await.unwrap(), BUCKET_CAP);
    }
}

#[tokio::test]
async fn f10_a_gigantic_cost_denies_for_one_window() {
    let (server, store, clock) = start().await;
    let alice = user("alice");
    let limit = enforced(100_000_000);
    store.settle(&report(None, [spending(&alice, &[(0, 1_000_000_000_000)])])).await.unwrap();

    let admitted = admit(&store, &alice, limit, cpu(1)).await.unwrap();
    assert!(!admitted.allowed);
    let snapshot: Snapshot = admitted.snapshots.accounts[0].clone();
    let comparisons = limit.map(|ceiling| Comparison { ceiling, here: None });
    let subject = Subject { account: alice.clone(), comparisons, until: None, snapshot };
    let verdict = decide([&subject], admitted.snapshots.now, WindowLength::default());
    let wait = verdict.denied_by.expect("a breach").retry_after;
    assert!(wait > Duration::ZERO && wait <= 60 * SECOND, "{wait:?}");
    let left = Raw::new(&server).await.pttl(&alice).await;
    assert!((1..=121_000).contains(&left), "{left} ms");

    clock.advance(61 * SECOND).await;
    assert_eq!(used(&store, &alice).await.unwrap(), 0);
    assert!(admit(&store, &alice, limit, cpu(1)).await.unwrap().allowed);
}

#[tokio::test]
async fn f10_an_account_idle_for_half_a_day_has_used_nothing() {
    let (_server, store, clock) = start().await;
    let alice = user("alice");
    store.settle(&report(None, [spending(&alice, &[(30, 50), (0, 50)])])).await.unwrap();
    assert!(!admit(&store, &alice, enforced(100), cpu(1)).await.unwrap().allowed);
    // The value is still there: real time has not passed.
    clock.advance(12 * 3600 * SECOND).await;
    assert_eq!(used(&store, &alice).await.unwrap(), 0);
    assert!(admit(&store, &alice, enforced(100), cpu(100)).await.unwrap().allowed);
    assert_eq!(used(&store, &alice).await.unwrap(), 100);
}
