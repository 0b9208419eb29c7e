//! `lua/calibrate.lua` does what `quota_core::Controller` says, under random reports, clocks and settings.

use std::collections::HashSet;
use std::time::Duration;

use fastrand::Rng;
use quota_core::{
    Account, Adaptation, Adaptations, Blame, Cost, Ipv6Prefix, Kind, NodeReport, NodeState, PerKind,
    PerResource, Range, Ratio, Reason, Resource, Rule, Timestamp, WindowLength,
};
use quota_server::store::{RedisStore, Store};
use quota_tests::redis::RedisServer;
use quota_tests::stores::{Opening, StoreClock};
use quota_tests::values::user;

use crate::seeds;

const OPERATIONS: u32 = 10_000;

/// As large as a limit can be.
const LARGEST: u64 = 60 * ((1 << 40) - 1);

fn account(kind: Kind, name: &str) -> Account {
    Account::new(kind, name, Ipv6Prefix::default()).expect("a name")
}

struct Random(Rng);

impl Random {
    fn ratio(&mut self) -> Ratio {
        match self.0.u8(..6) {
            0 => Ratio::ONE,
            1 => Ratio::default(),
            2 => Ratio::from_millionths(500_000 + self.0.u64(..3) - 1),
            3 => Ratio::from_millionths(800_000 + self.0.u64(..3) - 1),
            _ => Ratio::from_millionths(self.0.u64(..=1_000_000)),
        }
    }

    fn range(&mut self) -> Range {
        let most = if self.0.bool() { LARGEST } else { 1000 };
        let mut limits = [self.0.u64(1..=most), self.0.u64(1..=most), self.0.u64(1..=most)];
        limits.sort_unstable();
        let [min, initial, max] = limits;
        // Of one kind in eight the limits cannot move.
        if self.0.u8(..8) == 0 { Range { min: max, initial: max, max } } else { Range { min, initial, max } }
    }

    fn adaptation(&mut self) -> Option<Adaptation> {
        let rule = match self.0.u8(..6) {
            0 => return None,
            1 => Rule::DoubleHalve,
            2..5 => Rule::Blame(Blame {
                soft_limit: self.ratio(),
                backoff_factor: self.ratio(),
                window: WindowLength::default(),
            }),
            _ => Rule::Aimd { soft_limit: self.ratio(), backoff_factor: self.ratio() },
        };
        let interval = Duration::from_micros(self.0.u64(1_000_000..20_000_000));
        let step = Ratio::from_millionths(self.0.u64(10_000..=1_000_000));
        Some(Adaptation { rule, interval, step, ranges: PerKind::from_fn(|_| self.range()) })
    }

    fn adaptations(&mut self) -> Adaptations {
        PerResource::from_fn(|_| self.adaptation())
    }

    fn report(&mut self) -> NodeReport {
        let amount = |random: &mut Self| {
            let most = if random.0.bool() { Cost::MAX } else { 1000 };
            (random.0.u8(..4) > 0).then(|| random.0.u64(..=most))
        };
        let used = |random: &mut Self| PerResource::from_fn(|_| amount(random));
        let most = if self.0.bool() { Cost::MAX } else { 1000 };
        let capacity = PerResource::from_fn(|_| (self.0.u8(..8) > 0).then(|| self.0.u64(1..=most)));
        let mut report = NodeReport {
            capacity,
            pressure: PerResource::from_fn(|_| (self.0.u8(..5) > 0).then(|| self.ratio())),
            oom_kill: self.0.u8(..8) == 0,
            active: PerKind::from_fn(|_| (self.0.u8(..8) > 0).then(|| self.0.u32(..1000))),
            ..NodeReport::default()
        };
        for number in 0..self.0.usize(..12) {
            let account = match number % 3 {
                0 => user(&format!("{}", self.0.u8(..20))),
                1 => account(Kind::Repo, &format!("{}", self.0.u8(..20))),
                _ => account(Kind::Ip, &format!("10.0.0.{}", self.0.u8(..20))),
            };
            let recent = self.0.bool().then(|| used(self));
            report.add_heaviest(account, used(self), recent);
        }
        report
    }

    fn pass(&mut self) -> Duration {
        match self.0.u8(..20) {
            0..8 => Duration::from_micros(self.0.u64(..10_000)),
            8..18 => Duration::from_micros(self.0.u64(..3_000_000)),
            18 => Duration::from_secs(self.0.u64(..40)),
            _ => Duration::from_secs(self.0.u64(..4000)),
        }
    }
}

struct Run {
    store: RedisStore,
    clock: StoreClock,
    random: Random,
    adaptations: Adaptations,
    /// What `quota-core` makes of it.
    model: Option<NodeState>,
    reasons: [u32; Reason::ALL.len()],
    rebased: u32,
    /// How many cuts were seen made, and forgotten.
    cuts: [usize; 2],
}

impl Run {
    async fn new(server: &RedisServer, seed: u64) -> Self {
        let mut connection = server.client().await;
        redis::cmd("FLUSHALL").exec_async(&mut connection).await.unwrap();
        let mut random = Random(Rng::with_seed(seed));
        Self {
            store: Opening { test_clock: true, ..Opening::default() }.open(&server.url()),
            clock: StoreClock::in_redis(server).await,
            adaptations: random.adaptations(),
            random,
            model: None,
            reasons: [0; Reason::ALL.len()],
            rebased: 0,
            cuts: [0; 2],
        }
    }

    /// Whether every kind of step was taken, and accounts were cut and forgotten.
    fn proves_enough(&self) -> bool {
        let least = self.reasons.into_iter().chain([self.rebased]).min();
        least > Some(5) && self.cuts.iter().all(|cuts| *cuts > 100)
    }

    async fn step(&mut self, place: &str) {
        if self.random.0.u8(..100) == 0 {
            self.adaptations = self.random.adaptations();
        }
        if self.random.0.u8(..100) == 0 {
            self.clock.step_back(Duration::from_micros(self.random.0.u64(..20_000_000))).await;
        } else {
            self.clock.advance(self.random.pass()).await;
        }
        let (now, report): (Timestamp, _) = (self.clock.now(), self.random.report());
        let cut = |model: &Option<NodeState>| -> HashSet<(Resource, Account)> {
            let controllers = model.iter().flat_map(|model| model.controllers.iter());
            let cuts =
                controllers.filter_map(|(resource, controller)| Some((resource, controller.as_ref()?)));
            cuts.flat_map(|(resource, controller)| {
                controller.cuts.accounts.keys().map(move |account| (resource, account.clone()))
            })
            .collect()
        };
        let before = cut(&self.model);
        let (model, observed) = NodeState::observe(self.model.take(), now, report.clone(), &self.adaptations);
        let place = format!("{place}\n{report:?}\n{:?}", self.adaptations);
        let got = self.store.calibrate("model", &report, &self.adaptations).await;
        let got = got.unwrap_or_else(|error| panic!("{error}: {place}"));
        assert_eq!(got.state, model, "of the store and of the model: {place}");
        assert_eq!(got.calibrated, observed.map(|observed| observed.calibrated), "{place}");
        let rebased = observed.iter().map(|(_, observed)| u32::from(observed.rebased)).sum();
        assert_eq!((got.now, got.rebased, got.repaired), (now, rebased, false), "{place}");
        self.rebased += rebased;
        for resource in Resource::ALL {
            if let Some(last) = model.controllers[resource].as_ref().and_then(|controller| controller.last)
                && observed[resource].calibrated
            {
                let at = Reason::ALL.iter().position(|reason| *reason == last.reason).unwrap();
                self.reasons[at] += 1;
            }
        }
        self.model = Some(model);
        let after = cut(&self.model);
        self.cuts[0] += after.difference(&before).count();
        self.cuts[1] += before.difference(&after).count();
    }
}

#[tokio::test]
async fn limits_of_nodes() {
    let server = RedisServer::start().await;
    for seed in seeds() {
        let mut run = Run::new(&server, seed).await;
        for number in 0..2 * OPERATIONS {
            // A seed that has shown too little by then goes on for as long again.
            if number >= OPERATIONS && run.proves_enough() {
                break;
            }
            run.step(&format!("QUOTA_MODEL_SEED={seed}, nodes, operation {number}")).await;
        }
        println!(
            "seed {seed}, nodes: {:?} in the order of {:?}, rebased {}, cut and forgotten {:?}",
            run.reasons,
            Reason::ALL,
            run.rebased,
            run.cuts
        );
        assert!(run.proves_enough(), "the operations of seed {seed} prove little");
    }
}
