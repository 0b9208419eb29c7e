//! F07: nothing stays for ever.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use quota_core::{
    Account, Adaptations, Cap, NodeReport, Owner, PerResource, Ratio, SlotTerms, Wanted, WindowLength,
};
use quota_server::store::{Limited, RedisStore, SlotCall, Store, StoreError};
use quota_tests::redis::RedisServer;
use quota_tests::stores::{Opening, StoreClock};
use quota_tests::values::{cpu, enforced, giving_back, mark, spending, unlimited, user};
use tokio::task::JoinSet;

use crate::raw::{Raw, key};
use crate::{admit, report, used};

const CALLERS: u64 = 8;
const OPERATIONS: u64 = 20_000;

/// All keys, and those of them that never expire, at one moment.
const KEYS: &str = "local all, forever = redis.call('KEYS', '*'), {}
    for _, key in ipairs(all) do
        if redis.call('PTTL', key) == -1 then forever[#forever + 1] = key end
    end
    return { #all, forever }";

async fn some_operation(store: &RedisStore, rng: &mut Rng) -> Result<(), StoreError> {
    let account = user(&format!("user-{}", rng.u8(..100)));
    match rng.u8(..12) {
        10 => {
            let report =
                NodeReport { pressure: PerResource::from_fn(|_| Some(Ratio::ONE)), ..NodeReport::default() };
            let node = format!("node-{}", rng.u8(..10));
            store.calibrate(&node, &report, &Adaptations::default()).await.map(drop)
        }
        11 => {
            let owner = Owner { holder: "holder".into(), node: "".into() };
            let wanted = Wanted { owner, lease: rng.u128(..).to_le_bytes(), count: 1, spare: 0, stops: None };
            let terms = SlotTerms { cap: Cap::Fixed(10), node_cap: None, lasts: Duration::from_millis(120) };
            store
                .lease_slots(SlotCall { class: "ci", terms: &terms, pressed: false }, &wanted)
                .await
                .map(drop)
        }
        0..3 => admit(store, &account, enforced(rng.u64(..500)), cpu(rng.u64(..100))).await.map(drop),
        3 => store.usage(&[account]).await.map(drop),
        4 => store.probe().await,
        5 => {
            let reserved = admit(store, &account, unlimited(), cpu(10)).await?;
            store.settle(&report(None, [giving_back(&account, reserved.ticks[0], 20)])).await.map(drop)
        }
        _ => {
            let mark = mark(&format!("source-{}", rng.u8(..5)), rng.u64(..10)).filter(|_| rng.bool());
            store.settle(&report(mark, [spending(&account, &[(0, rng.u64(..100))])])).await.map(drop)
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn f07_every_key_expires() {
    let server = RedisServer::start().await;
    let raw = Raw::new(&server).await;
    // Keys come to their end in the middle of it, again and again.
    let length = WindowLength::new(Duration::from_millis(120)).unwrap();
    let store = Arc::new(Opening { length, ..Opening::default() }.open(&server.url()));
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        let (store, raw) = (Arc::clone(&store), raw.clone());
        callers.spawn(async move {
            let mut rng = Rng::with_seed(caller);
            let mut seen = 0;
            for operation in 0..OPERATIONS / CALLERS {
                some_operation(&store, &mut rng).await.expect("an answer");
                if operation % 50 == 0 {
                    let (all, forever): (u64, Vec<String>) = raw.run(&["EVAL", KEYS, "0"]).await;
                    assert_eq!(forever, [""; 0], "of {all} keys");
                    seen += all;
                }
            }
            seen
        });
    }
    assert!(callers.join_all().await.iter().sum::<u64>() > 0, "there were keys");
}

/// Of a window with cost in every second an admission writes a bucket and the head, and prolongs nothing as a rule.
#[tokio::test]
async fn f07_a_mark_that_takes_the_place_of_another_has_two_windows_to_live() {
    let server = RedisServer::start().await;
    let raw = Raw::new(&server).await;
    let store = Opening { test_clock: true, ..Opening::default() }.open(&server.url());
    let clock = StoreClock::in_redis(&server).await;
    let alice = user("alice");
    let always: Vec<_> = (0..60).map(|second| (second, 10)).collect();
    store.settle(&report(mark("r", 1), [spending(&alice, &always)])).await.unwrap();
    clock.advance(Duration::from_secs(1)).await;
    raw.run::<()>(&["PEXPIRE", &key(&alice), "60000"]).await;
    assert!(admit(&store, &alice, unlimited(), cpu(10)).await.unwrap().allowed);
    assert!(raw.pttl(&alice).await <= 60_000, "the ring has turned by one");

    store.settle(&report(mark("r", 2), [spending(&alice, &[(0, 10)])])).await.unwrap();
    let left = raw.pttl(&alice).await;
    assert!(left > 60_000, "{left} ms");
    assert_eq!(used(&store, &alice).await.unwrap(), 59 * 10 + 10 + 10);
    let again = store.settle(&report(mark("r", 2), [spending(&alice, &[(0, 10)])])).await.unwrap();
    assert_eq!((again.applied, again.duplicates), (0, 1));
}

/// A value of another type, in the place of each of the accounts of a call.
#[tokio::test]
async fn f07_a_key_of_a_wrong_type_harms_its_account_alone_and_expires() {
    let server = RedisServer::start().await;
    let raw = Raw::new(&server).await;
    let store = Opening::default().open(&server.url());
    for bad in 0..3 {
        let accounts = [0, 1, 2].map(|number| user(&format!("user-{bad}-{number}")));
        let entries = || accounts.clone().map(|account| spending(&account, &[(0, 10)]));
        raw.run::<()>(&["RPUSH", &key(&accounts[bad]), "x"]).await;

        let refused = store.settle(&report(mark("r", 1), entries())).await.expect_err("a wrong type");
        assert!(matches!(&refused, StoreError::Corrupt(account) if *account == accounts[bad]), "{refused}");
        let asked = accounts.clone().map(|account| Limited { account, bounds: unlimited() });
        let refused = store.admit(&asked, cpu(1)).await.expect_err("a wrong type");
        assert!(matches!(&refused, StoreError::Corrupt(account) if *account == accounts[bad]), "{refused}");
        for (number, account) in accounts.iter().enumerate() {
            if number == bad {
                assert_corrupt(&store, account).await;
            } else {
                assert_eq!(
                    used(&store, account).await.unwrap(),
                    10,
                    "the report counts, the admission does not"
                );
            }
        }

        let left = raw.pttl(&accounts[bad]).await;
        assert!((1..=120_000).contains(&left), "two windows to live: {left} ms");
        // As when they are over.
        raw.run::<()>(&["DEL", &key(&accounts[bad])]).await;
        let settlement = store.settle(&report(mark("r", 1), entries())).await.unwrap();
        assert_eq!((settlement.applied, settlement.duplicates), (1, 2));
        assert_eq!(used(&store, &accounts[bad]).await.unwrap(), 10);
    }
}

async fn assert_corrupt(store: &RedisStore, account: &Account) {
    let error = used(store, account).await.expect_err("what cannot be read");
    assert!(matches!(&error, StoreError::Corrupt(other) if other == account), "{error}");
}

/// Each look at it shows the error, and none prolongs its life.
#[tokio::test]
async fn f07_a_value_that_cannot_be_read_keeps_its_expiry() {
    let server = RedisServer::start().await;
    let raw = Raw::new(&server).await;
    let store = Opening::default().open(&server.url());
    let alice = user("alice");
    raw.run::<()>(&["SET", &key(&alice), "nan", "PX", "60000"]).await;
    for _ in 0..3 {
        assert_corrupt(&store, &alice).await;
        store.settle(&report(None, [spending(&alice, &[(0, 1)])])).await.expect_err("what cannot be read");
    }
    let left = raw.pttl(&alice).await;
    assert!((1..=60_000).contains(&left), "{left} ms");
}
