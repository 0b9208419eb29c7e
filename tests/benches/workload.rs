//! What is asked: three accounts, each with a limit for every resource, and a price.

use std::time::Duration;

use fastrand::Rng;
use quota_core::{
    Account, Charge, Cost, Ipv6Prefix, Kind, Limit, Mode, PerResource, Release, Resource, Tick,
};
use quota_proto::v1;
use quota_server::store::{Entry, Limited};
use quota_tests::values::{bound, cost};

/// Who a request is charged to.
#[derive(Clone, Copy)]
pub(crate) struct Accounts {
    repo: usize,
    user: usize,
    ip: usize,
}

/// `number` requests by `number` repositories, users and addresses, each in one of them, in no order.
pub(crate) fn shuffled(number: usize) -> Vec<Accounts> {
    let mut random = Rng::with_seed(1);
    let mut numbers = || {
        let mut numbers: Vec<_> = (0..number).collect();
        random.shuffle(&mut numbers);
        numbers
    };
    let (repos, users, ips) = (numbers(), numbers(), numbers());
    let together = repos.into_iter().zip(users).zip(ips);
    together.map(|((repo, user), ip)| Accounts { repo, user, ip }).collect()
}

impl Accounts {
    fn ids(self) -> [(Kind, String); 3] {
        let ip = format!("10.{}.{}.{}", self.ip / 62_500 + 1, self.ip / 250 % 250, self.ip % 250 + 1);
        [
            (Kind::Repo, format!("project-{}", self.repo)),
            (Kind::User, format!("user-{}", self.user)),
            (Kind::Ip, ip),
        ]
    }

    pub(crate) fn accounts(self) -> [Account; 3] {
        self.ids().map(|(kind, id)| Account::new(kind, &id, Ipv6Prefix::default()).expect("a name"))
    }

    /// The same as parameters of a path.
    pub(crate) fn query(self) -> String {
        self.ids().map(|(kind, id)| format!("{kind}={id}")).join("&")
    }

    /// The same for limitador.
    pub(crate) fn descriptor(self) -> Vec<(&'static str, String)> {
        let names = self.ids().map(|(kind, id)| (kind.as_str(), id));
        names.into()
    }

    /// With limits that nobody reaches.
    pub(crate) fn limited(self) -> [Limited; 3] {
        let far = bound(Limit::At(1 << 47), Mode::Enforce);
        self.accounts().map(|account| Limited { account, bounds: PerResource::new(far, far, far) })
    }

    /// The user has reached a limit.
    pub(crate) fn over(self) -> [Limited; 3] {
        let mut limited = self.limited();
        limited[1].bounds[Resource::Cpu] = bound(Limit::At(1), Mode::Enforce);
        limited
    }

    /// The same cost, spent at each of these ages in seconds, on each account.
    pub(crate) fn entries(self, ages: impl Iterator<Item = u64> + Clone) -> [Entry; 3] {
        let charges = ages.map(|age| Charge { age: Duration::from_secs(age), cost: spent() });
        self.accounts().map(|account| Entry {
            account,
            charges: charges.clone().collect(),
            releases: Vec::new(),
        })
    }

    /// What an RPC did cost half a second ago, and its price given back.
    pub(crate) fn settled(self, tick: Tick) -> [Entry; 3] {
        self.accounts().map(|account| Entry {
            account,
            charges: vec![Charge { age: Duration::from_millis(500), cost: spent() }],
            releases: vec![Release { tick, amounts: price() }],
        })
    }

    /// The question over gRPC.
    pub(crate) fn check(self) -> v1::CheckRequest {
        let [repo, user, ip] = self.ids().map(|(_, id)| Some(id));
        v1::CheckRequest {
            node: "gitaly-01".into(),
            rpc: "/gitaly.SmartHTTPService/PostUploadPackWithSidechannel".into(),
            accounts: Some(v1::Accounts { repo, user, ip }),
            class: "interactive".into(),
            price: Some(v1::Cost { cpu_micros: 1_000, memory_byte_seconds: 1 << 20, network_bytes: 4_096 }),
            ..v1::CheckRequest::default()
        }
    }
}

/// What an RPC is expected to cost.
pub(crate) fn price() -> Cost {
    cost(1_000, 1_024, 4_096)
}

/// What an RPC did cost: as large as amounts are in a busy second.
fn spent() -> Cost {
    cost(800_000, 200_000, 5_000_000)
}

/// The key of an account in Redis.
pub(crate) fn key(account: &Account) -> String {
    format!("q1:{{{}}}", account.key())
}
