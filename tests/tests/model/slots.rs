//! The slots of a class in Redis and those of `quota-core`, over the same random calls.

use std::time::Duration;

use fastrand::Rng;
use quota_core::{
    Adaptive, Cap, LeaseId, Leased, NoSlot, Owner, Progress, Renewal, SlotTerms, Slots, Wanted,
};
use quota_server::store::{RedisStore, SlotCall, Store};
use quota_tests::redis::RedisServer;
use quota_tests::stores::{Opening, StoreClock};
use redis::aio::MultiplexedConnection;

use super::seeds;

const OPERATIONS: u32 = 5_000;

const LASTS: Duration = Duration::from_secs(3);

struct Run {
    store: RedisStore,
    /// None until the store has said whether it knows what was leased before.
    model: Option<Slots>,
    clock: StoreClock,
    connection: MultiplexedConnection,
    rng: Rng,
    terms: SlotTerms,
    leases: Vec<(LeaseId, Owner)>,
    /// Leased, at the cap, at the node's, while it opens, renewed, ended, taken up again, lost.
    seen: [u32; 8],
}

impl Run {
    fn owner(&mut self) -> Owner {
        let holder = format!("holder-{}", self.rng.u8(..3)).into();
        let node = ["", "gitaly-01", "gitaly-02"][self.rng.usize(..3)].into();
        Owner { holder, node }
    }

    fn change_terms(&mut self) {
        let max = self.rng.u32(1..60);
        let adaptive = Adaptive { min: self.rng.u32(1..=max), max, tolerance: self.rng.u32(110..400) };
        self.terms = SlotTerms {
            cap: if self.rng.bool() { Cap::Adaptive(adaptive) } else { Cap::Fixed(max) },
            node_cap: self.rng.bool().then(|| self.rng.u32(1..30)),
            lasts: LASTS,
        };
    }

    async fn step(&mut self, place: &str) {
        let pressed = self.rng.u8(..10) == 0;
        match self.rng.u8(..100) {
            0..25 => self.clock.advance(Duration::from_micros(self.rng.u64(..1_500_000))).await,
            25..28 => self.clock.step_back(Duration::from_secs(self.rng.u64(..100))).await,
            28..30 => self.change_terms(),
            30 => self.lose().await,
            31..60 => {
                let wanted = Wanted {
                    owner: self.owner(),
                    lease: self.rng.u128(..).to_le_bytes(),
                    count: self.rng.u32(..6),
                    spare: self.rng.u32(..6),
                    stops: self.rng.bool().then(|| Duration::from_micros(self.rng.u64(1..8_000_000))),
                };
                let call = SlotCall { class: "ci", terms: &self.terms, pressed };
                let leased = self.store.lease_slots(call, &wanted).await.unwrap();
                let now = self.clock.now();
                let (terms, model) = (self.terms, self.model(leased.refused));
                assert_eq!(leased, model.acquire(now, &wanted, &terms, pressed), "{place}: {wanted:?}");
                match leased.refused {
                    None => self.seen[0] += u32::from(leased.count > 0),
                    Some(NoSlot::AtCap) => self.seen[1] += 1,
                    Some(NoSlot::AtNodeCap) => self.seen[2] += 1,
                    Some(_) => self.seen[3] += 1,
                }
                self.leases.push((wanted.lease, wanted.owner));
            }
            _ => self.renew(pressed, place).await,
        }
    }

    async fn renew(&mut self, pressed: bool, place: &str) {
        if self.leases.is_empty() || self.model.is_none() {
            return;
        }
        // Of the last ones: most of the others have ended.
        let at = self.leases.len() - 1 - self.rng.usize(..self.leases.len().min(8));
        let (lease, owner) = self.leases[at].clone();
        let owner = if self.rng.u8(..20) == 0 { self.owner() } else { owner };
        let renewal = Renewal { owner, lease, count: self.rng.u32(..6) };
        let finished = self.rng.u32(..30);
        let took = Duration::from_micros(u64::from(finished) * self.rng.u64(..100_000));
        let progress = Progress { finished, took };
        let call = SlotCall { class: "ci", terms: &self.terms, pressed };
        let kept = self.store.keep_slots(call, &renewal, progress).await.unwrap();
        let (now, terms) = (self.clock.now(), self.terms);
        let known = self.model(None);
        let before = known.standing().leases;
        let expected = known.renew(now, &renewal, progress, &terms, pressed);
        assert_eq!(kept, expected, "{place}: {renewal:?} {progress:?}");
        self.seen[4] += u32::from(kept.count > 0);
        self.seen[5] += u32::from(kept.count == 0);
        self.seen[6] += u32::from(kept.standing.leases > before);
    }

    /// As the store says when it is first asked.
    fn model(&mut self, refused: Option<NoSlot>) -> &mut Slots {
        let now = self.clock.now();
        self.model.get_or_insert_with(|| match refused {
            Some(NoSlot::Opening(lasts)) => Slots::opening(now.after_micros(lasts.as_micros() as u64)),
            _ => Slots::default(),
        })
    }

    /// As a Redis that kept nothing.
    async fn lose(&mut self) {
        let keys = ["q1:{slots:ci}", "q1:{slots:ci}:ends"];
        redis::cmd("DEL").arg(&keys).exec_async(&mut self.connection).await.unwrap();
        self.model = None;
        self.seen[7] += 1;
    }
}

#[tokio::test]
async fn slots_of_a_class() {
    let server = RedisServer::start().await;
    for seed in seeds() {
        let mut run = Run {
            store: Opening { test_clock: true, ..Opening::default() }.open(&server.url()),
            model: None,
            clock: StoreClock::in_redis(&server).await,
            connection: server.client().await,
            rng: Rng::with_seed(seed),
            terms: SlotTerms { cap: Cap::Fixed(1), node_cap: None, lasts: LASTS },
            leases: Vec::new(),
            seen: [0; 8],
        };
        run.change_terms();
        run.lose().await;
        for number in 0..OPERATIONS {
            run.step(&format!("QUOTA_MODEL_SEED={seed}, slots, operation {number}")).await;
        }
        println!("seed {seed}, slots: {:?}", run.seen);
        // A server that is not new opens at once, so that nothing may have been refused or taken up meanwhile.
        let [leased, at_cap, at_node_cap, _, renewed, ended, _, lost] = run.seen;
        for seen in [leased, at_cap, at_node_cap, renewed, ended, lost] {
            assert!(seen > 5, "the operations of seed {seed} prove little");
        }
    }
}

/// One node asks for one slot after the other, more than the random calls come to.
#[tokio::test]
async fn a_node_has_no_more_than_its_part_of_the_leases() {
    let server = RedisServer::start().await;
    // Of long leases: none ends meanwhile.
    let terms = SlotTerms { cap: Cap::Fixed(50_000), node_cap: None, lasts: Duration::from_secs(600) };
    let store = Opening { test_clock: true, ..Opening::default() }.open(&server.url());
    let clock = StoreClock::in_redis(&server).await;
    let (mut model, call) = (Slots::default(), SlotCall { class: "ci", terms: &terms, pressed: false });
    let wanted = |lease: usize, node: &str| Wanted {
        owner: Owner { holder: "a".into(), node: node.into() },
        lease: (lease as u128).to_le_bytes(),
        count: 1,
        spare: 0,
        stops: None,
    };
    store.lease_slots(call, &wanted(0, "")).await.unwrap();
    clock.advance(terms.lasts).await;
    let mut refused = Vec::new();
    for lease in 1..=Slots::MOST_LEASES_OF_NODE + 2 {
        for wanted in [wanted(lease, "gitaly-01"), wanted(Slots::MOST_LEASES + lease, "gitaly-02")] {
            // Of the second node few: it has its own part.
            if &*wanted.owner.node == "gitaly-02" && lease % 100 != 0 {
                continue;
            }
            let leased = store.lease_slots(call, &wanted).await.unwrap();
            assert_eq!(leased, model.acquire(clock.now(), &wanted, &terms, false), "{lease}");
            refused.extend(leased.refused);
        }
    }
    assert_eq!(refused, [NoSlot::TooManyLeases; 2]);
    // What is given back is another's.
    let renewal = Renewal { owner: wanted(1, "gitaly-01").owner, lease: wanted(1, "").lease, count: 0 };
    store.keep_slots(call, &renewal, Progress::default()).await.unwrap();
    let leased = store.lease_slots(call, &wanted(9999, "gitaly-01")).await.unwrap();
    assert_eq!((leased.count, leased.refused), (1, None));
}

/// While it is not known who holds what, a node that makes up leases takes nothing from those that hold some.
#[tokio::test]
async fn a_node_takes_up_no_more_than_its_cap() {
    let server = RedisServer::start().await;
    let store = Opening { test_clock: true, ..Opening::default() }.open(&server.url());
    let clock = StoreClock::in_redis(&server).await;
    // Longer than the server can have run.
    let lasts = Duration::from_secs(600);
    let terms = SlotTerms { cap: Cap::Fixed(20), node_cap: Some(10), lasts };
    let call = SlotCall { class: "ci", terms: &terms, pressed: false };
    let mut model = Slots::opening(clock.now().after_micros(lasts.as_micros() as u64));
    let mut counts = Vec::new();
    for (lease, node, count) in [(1, "gitaly-01", 100), (2, "gitaly-01", 1), (3, "gitaly-02", 8), (4, "", 9)]
    {
        let owner = Owner { holder: "a".into(), node: node.into() };
        let renewal = Renewal { owner, lease: [lease; 16], count };
        let kept = store.keep_slots(call, &renewal, Progress::default()).await.unwrap();
        assert_eq!(
            kept,
            model.renew(clock.now(), &renewal, Progress::default(), &terms, false),
            "{renewal:?}"
        );
        counts.push(kept.count);
    }
    assert_eq!(counts, [10, 0, 8, 2]);
}

/// What a server that has just been started answers, to one that asks and one that holds.
#[tokio::test]
async fn a_server_that_was_started_leases_nothing_until_it_can_know_who_holds_what() {
    let server = RedisServer::start().await;
    let store = Opening { test_clock: true, ..Opening::default() }.open(&server.url());
    let clock = StoreClock::in_redis(&server).await;
    // Longer than the server can have run.
    let lasts = Duration::from_secs(600);
    let terms = SlotTerms { cap: Cap::Fixed(10), node_cap: None, lasts };
    let call = SlotCall { class: "ci", terms: &terms, pressed: false };
    let owner = Owner { holder: "a".into(), node: "".into() };
    let wanted =
        |lease: u8| Wanted { owner: owner.clone(), lease: [lease; 16], count: 4, spare: 0, stops: None };
    let renewal = |lease: u8| Renewal { owner: owner.clone(), lease: [lease; 16], count: 4 };
    let refused = |leased: Leased| leased.refused;
    let opening = Some(NoSlot::Opening(lasts));
    assert_eq!(refused(store.lease_slots(call, &wanted(1)).await.unwrap()), opening);
    let progress = Progress::default();
    let counts = [
        store.keep_slots(call, &renewal(2), progress).await.unwrap().count,
        store.keep_slots(call, &renewal(3), progress).await.unwrap().count,
        store.keep_slots(call, &renewal(4), progress).await.unwrap().count,
    ];
    assert_eq!(counts, [4, 4, 2], "holders go on, up to the cap");
    clock.advance(lasts / 2).await;
    store.keep_slots(call, &renewal(2), progress).await.unwrap();
    clock.advance(lasts / 2).await;
    let leased = store.lease_slots(call, &wanted(1)).await.unwrap();
    assert_eq!((leased.count, leased.refused), (4, None), "what was not renewed has ended");
}
