//! F09: what is stored and cannot be read is an error for its account, never an allow.

use std::time::Duration;

use quota_core::{Account, Adaptation, NodeReport, PerKind, PerResource, Range, Ratio, Rule};
use quota_server::store::{RedisStore, Store, StoreError};
use quota_tests::redis::RedisServer;
use quota_tests::stores::{Opening, StoreClock};
use quota_tests::values::{cpu, enforced, mark, spending, unlimited, user};

use crate::raw::Raw;
use crate::{admit, report, used};

/// Of a value: where the sums and the closed buckets begin.
const SUMS: usize = 7;
const HEAD: usize = 42;

struct Poisoned {
    _server: RedisServer,
    raw: Raw,
    store: RedisStore,
    clock: StoreClock,
    alice: Account,
    /// A good value of alice: 30 two seconds ago, 20 now, and one mark.
    good: Vec<u8>,
}

impl Poisoned {
    async fn start() -> Self {
        let server = RedisServer::start().await;
        let store = Opening { test_clock: true, ..Opening::default() }.open(&server.url());
        let (clock, raw) = (StoreClock::in_redis(&server).await, Raw::new(&server).await);
        let alice = user("alice");
        store.settle(&report(mark("r", 1), [spending(&alice, &[(2, 30), (0, 20)])])).await.unwrap();
        let good = raw.value(&alice).await;
        assert_eq!(good.len(), HEAD + 16 + 18);
        Self { _server: server, raw, store, clock, alice, good }
    }

    fn assert_corrupt<T: std::fmt::Debug>(&self, answer: Result<T, StoreError>, what: &str) {
        let ours = matches!(&answer, Err(StoreError::Corrupt(account)) if *account == self.alice);
        assert!(ours, "{what}: {answer:?}");
    }

    async fn admit(
        &self,
        bounds: PerResource<quota_core::Bound>,
    ) -> Result<quota_server::store::Admitted, StoreError> {
        admit(&self.store, &self.alice, bounds, cpu(1)).await
    }

    /// Every call, in the second of the value's last write and later, is an error and changes nothing.
    async fn assert_unreadable(&self, value: &[u8], what: &str) {
        let now = self.clock.now();
        for later in [Duration::ZERO, Duration::from_secs(1), Duration::from_secs(3600)] {
            self.raw.plant(&self.alice, value).await;
            self.clock.advance(later).await;
            self.assert_corrupt(used(&self.store, &self.alice).await, what);
            self.assert_corrupt(self.admit(enforced(1000)).await, what);
            self.assert_corrupt(self.admit(unlimited()).await, what);
            let settled = self.store.settle(&report(None, [spending(&self.alice, &[(0, 1)])])).await;
            self.assert_corrupt(settled, what);
            assert_eq!(self.raw.value(&self.alice).await, value, "{what}: unchanged");
            self.clock.set(now).await;
        }
    }

    fn good_with(&self, at: usize, bytes: &[u8]) -> Vec<u8> {
        let mut value = self.good.clone();
        value[at..at + bytes.len()].copy_from_slice(bytes);
        value
    }
}

#[tokio::test]
async fn f09_garbage_is_an_error() {
    let poisoned = Poisoned::start().await;
    for value in ["nan", "inf", "-1", "1e309", "0", "\0", &"x".repeat(HEAD), &"9".repeat(1000)] {
        poisoned.assert_unreadable(value.as_bytes(), value).await;
    }
    poisoned.assert_unreadable(&[0; HEAD], "zeros").await;
    poisoned.assert_unreadable(&[0xff; HEAD], "ones").await;
    for version in [1, 3] {
        poisoned.assert_unreadable(&poisoned.good_with(0, &[version]), "another version").await;
    }
    poisoned.assert_unreadable(&poisoned.good_with(40, &[60]), "more buckets than a window has").await;
    poisoned.assert_unreadable(&poisoned.good_with(41, &[1]), "the oldest bucket is none of them").await;
}

#[tokio::test]
async fn f09_a_head_that_is_cut_off_is_an_error() {
    let poisoned = Poisoned::start().await;
    for length in 1..HEAD {
        poisoned.assert_unreadable(&poisoned.good[..length], &format!("{length} bytes")).await;
    }
}

#[tokio::test]
async fn f09_sums_below_the_open_bucket_are_an_error() {
    let poisoned = Poisoned::start().await;
    for sum in [0, 19] {
        let value = poisoned.good_with(SUMS, &[sum, 0, 0, 0, 0, 0]);
        poisoned
            .assert_unreadable(&value, &format!("a sum of {sum}, of which 20 are in the open bucket"))
            .await;
    }
}

/// While the second lasts, the head alone decides where no limit is reached: its sums are whole. What comes
/// behind it is read where a limit is reached, with every report and standing, and when the second changes.
#[tokio::test]
async fn f09_a_tail_that_is_cut_off_is_an_error_wherever_it_is_read() {
    let poisoned = Poisoned::start().await;
    let (alice, store) = (&poisoned.alice, &poisoned.store);
    for length in (HEAD..HEAD + 16 + 18).filter(|length| *length != HEAD + 16) {
        let what = format!("{length} bytes");
        let plant = async || poisoned.raw.plant(alice, &poisoned.good[..length]).await;
        plant().await;
        poisoned.assert_corrupt(used(store, alice).await, &what);
        poisoned.assert_corrupt(poisoned.admit(enforced(50)).await, &what);
        let settled = store.settle(&report(None, [spending(alice, &[(0, 1)])])).await;
        poisoned.assert_corrupt(settled, &what);

        assert!(poisoned.admit(enforced(51)).await.expect("the head is whole").allowed);
        let now = poisoned.clock.now();
        poisoned.clock.advance(Duration::from_secs(1)).await;
        poisoned.assert_corrupt(poisoned.admit(enforced(1000)).await, &what);
        poisoned.clock.set(now).await;
    }
}

/// Sums that are not those of the buckets: noticed where the whole is read, and where they fall below zero.
#[tokio::test]
async fn f09_sums_that_are_not_those_of_the_buckets_are_an_error() {
    let poisoned = Poisoned::start().await;
    let (alice, store) = (&poisoned.alice, &poisoned.store);
    for sum in [20, 49, 51, 200] {
        let what = format!("a sum of {sum} over 50");
        poisoned.raw.plant(alice, &poisoned.good_with(SUMS, &[sum, 0, 0, 0, 0, 0])).await;
        poisoned.assert_corrupt(used(store, alice).await, &what);
        poisoned.assert_corrupt(poisoned.admit(enforced(u64::from(sum))).await, &what);
    }
    poisoned.raw.plant(alice, &poisoned.good_with(SUMS, &[20, 0, 0, 0, 0, 0])).await;
    poisoned.clock.advance(Duration::from_secs(58)).await;
    poisoned.assert_corrupt(poisoned.admit(enforced(1000)).await, "30 leave a sum of 20");
}

/// Two buckets of one second, buckets in the wrong order, a mark of the time to come: none denies for ever.
#[tokio::test]
async fn f09_a_poisoned_account_starts_anew_two_windows_later() {
    let poisoned = Poisoned::start().await;
    let (alice, store) = (&poisoned.alice, &poisoned.store);
    poisoned.raw.plant(alice, &poisoned.good_with(SUMS, &[200, 0, 0, 0, 0, 0])).await;
    poisoned.assert_corrupt(used(store, alice).await, "a sum of 200 over 50");
    let left = poisoned.raw.pttl(alice).await;
    assert!((1..=120_000).contains(&left), "{left} ms");
    poisoned.raw.run::<()>(&["DEL", &crate::raw::key(alice)]).await;
    assert_eq!(used(store, alice).await.unwrap(), 0);
}

/// A node's limits are no account's usage: what cannot be read begins anew, and is counted.
#[tokio::test]
async fn what_is_stored_of_a_node_and_cannot_be_read_begins_anew() {
    let server = RedisServer::start().await;
    let (store, raw) = (Opening::default().open(&server.url()), Raw::new(&server).await);
    let node = "q1:{node:a}";
    let report = NodeReport { pressure: PerResource::from_fn(|_| Some(Ratio::ONE)), ..NodeReport::default() };
    let ranges = PerKind::from_fn(|_| Range { min: 1, initial: 10, max: 100 });
    let adaptation =
        Adaptation { rule: Rule::DoubleHalve, interval: Duration::from_secs(1), step: Ratio::ONE, ranges };
    let adaptations = PerResource::from_fn(|_| Some(adaptation));
    let calibrate = async || store.calibrate("a", &report, &adaptations).await.unwrap();
    assert!(!calibrate().await.repaired);
    let good: Vec<u8> = raw.run(&["HGET", node, "state"]).await;
    let version = [&[2], &good[1..]].concat();
    for state in [&b"garbage"[..], &b""[..], &good[1..], &version] {
        raw.run::<()>(&[b"HSET", node.as_bytes(), b"state", state]).await;
        let nodes = store.nodes().await.unwrap();
        assert_eq!((nodes.nodes.len(), nodes.unreadable), (0, 1));
        let calibrated = calibrate().await;
        assert!(calibrated.repaired);
        let limits = calibrated.state.controllers.map(|controller| controller.unwrap().limits);
        assert_eq!(limits, PerResource::from_fn(|_| PerKind::new(10, 10, 10)));
        assert!(!calibrate().await.repaired);
        assert_eq!(store.nodes().await.unwrap().nodes.len(), 1);
    }
    raw.run::<()>(&["HSET", node, "report", "\u{1}garbage"]).await;
    assert_eq!(store.nodes().await.unwrap().unreadable, 1);
    raw.run::<()>(&["SET", node, "of another type"]).await;
    store.calibrate("b", &report, &adaptations).await.unwrap();
    let nodes = store.nodes().await.unwrap();
    assert_eq!((nodes.nodes.len(), nodes.unreadable), (1, 1), "the other is read all the same");
    assert!(calibrate().await.repaired);
    assert_eq!(store.nodes().await.unwrap().nodes.len(), 2);

    raw.run::<()>(&["SET", "q1:nodes", "of another type"]).await;
    assert_eq!(store.nodes().await.unwrap().nodes.len(), 0);
    calibrate().await;
    assert_eq!(store.nodes().await.unwrap().nodes.len(), 1, "each is back with its next report");
}
