//! A fileserver as the service knows it: what it tells, and the limits that follow.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::{
    Account, Adaptations, Controller, Kind, Load, Observation, Observed, PerKind, PerResource, Ratio,
    Resource, Rule, Spending, Timestamp, WindowLength,
};

/// A node's name in a key: `node:<name>`, made as [`Account::key`] is.
#[cfg(feature = "keys")]
pub fn node_key(name: &str) -> String {
    crate::key::encode("node", name)
}

/// What a node tells of itself, about once a second. Each part may be missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeReport {
    /// How loaded it is, as a share of its capacity.
    pub pressure: PerResource<Option<Ratio>>,
    /// Since the last report, the kernel killed a process for want of memory.
    pub oom_kill: bool,
    /// What it has: thousandths of a core, bytes of memory, bytes a second over the network.
    pub capacity: PerResource<Option<u64>>,
    /// How many accounts of each kind used something on it within a window.
    pub active: PerKind<Option<u32>>,
    /// What its heaviest accounts used on it within a window; at most [`NodeReport::MAX_HEAVIEST`] of a kind.
    pub heaviest: BTreeMap<Account, Used>,
    /// What they used in the last [`NodeReport::RECENT`], where that is told.
    pub recent: BTreeMap<Account, Used>,
}

/// What an account used on a node, in internal units; `None` where it is not known.
pub type Used = PerResource<Option<u64>>;

impl NodeReport {
    /// The most accounts of a kind that are told as the heaviest.
    pub const MAX_HEAVIEST: usize = 50;

    /// For how long [`NodeReport::recent`] counts: a fetch or two of an ordinary user do not look like a flood, and what has
    /// just begun is seen soon.
    pub const RECENT: Duration = Duration::from_secs(10);

    /// Adds what an account used: one that is named twice, by two spellings or two addresses of its network, used both.
    pub fn add_heaviest(&mut self, account: Account, used: Used, recent: Option<Used>) {
        if let Some(recent) = recent {
            add(self.recent.entry(account.clone()).or_default(), &recent);
        }
        add(self.heaviest.entry(account).or_default(), &used);
    }

    /// What an account used on this node: nothing to speak of where others are told as the heaviest; `None` where that is
    /// not known of any of its kind.
    pub fn used(&self, account: &Account, resource: Resource) -> Option<u64> {
        match self.heaviest.get(account) {
            Some(used) => used[resource],
            None => self.most_used(account.kind(), resource).map(|_| 0),
        }
    }

    /// What the heaviest account of a kind used. Where none of it was active, nothing.
    fn most_used(&self, kind: Kind, resource: Resource) -> Option<u64> {
        let of_kind = self.heaviest.iter().filter(|(account, _)| account.kind() == kind);
        let most = of_kind.filter_map(|(_, used)| used[resource]).max();
        most.or((self.active[kind] == Some(0)).then_some(0))
    }

    /// Who used how much of a resource; `None` where the node does not tell what it has, or who is active.
    fn load(&self, resource: Resource, window: WindowLength) -> Option<Load> {
        if self.active.iter().all(|(_, active)| active.is_none()) {
            return None;
        }
        let capacity = within(self.capacity[resource]?, resource, window);
        let spending = |account, used: u64| {
            let recent = self.recent.get(account).and_then(|recent| recent[resource]);
            let rate = recent.map_or(used, |recent| pace(recent, window));
            Spending { used: used.min(Load::LARGEST), rate: rate.min(Load::LARGEST) }
        };
        let accounts = self
            .heaviest
            .iter()
            .filter_map(|(account, used)| Some((account.clone(), spending(account, used[resource]?))));
        Some(Load { capacity, active: self.active, accounts: accounts.collect() })
    }

    /// What this tells of a resource. An OOM kill is for want of memory.
    pub fn observation(&self, resource: Resource, rule: Rule) -> Observation {
        Observation {
            pressure: self.pressure[resource],
            oom_kill: self.oom_kill && resource == Resource::Memory,
            heaviest: PerKind::from_fn(|kind| self.most_used(kind, resource)),
            load: match rule {
                Rule::Blame(blame) => self.load(resource, blame.window),
                Rule::Aimd { .. } | Rule::DoubleHalve => None,
            },
        }
    }
}

fn add(sum: &mut Used, used: &Used) {
    for (resource, used) in used.iter() {
        if let Some(used) = used {
            sum[resource] = Some(sum[resource].unwrap_or_default().saturating_add(*used));
        }
    }
}

/// What a capacity comes to within a window, in the resource's internal unit.
fn within(capacity: u64, resource: Resource, window: WindowLength) -> u64 {
    let a_second = match resource {
        Resource::Cpu => u128::from(capacity) * 1000,
        Resource::Memory => u128::from(capacity) / 1024,
        Resource::Network => capacity.into(),
    };
    let amount = a_second * window.length().as_micros() / 1_000_000;
    u64::try_from(amount).unwrap_or(u64::MAX).min(Load::LARGEST)
}

/// What a recent amount comes to within a window.
fn pace(recent: u64, window: WindowLength) -> u64 {
    let amount = u128::from(recent) * window.length().as_micros() / NodeReport::RECENT.as_micros();
    u64::try_from(amount).unwrap_or(u64::MAX)
}

/// What is kept of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeState {
    /// When it last reported.
    pub seen: Timestamp,
    /// What it last reported.
    pub report: NodeReport,
    /// Its limits of each resource that is adapted, once its pressure has been told.
    pub controllers: PerResource<Option<Controller>>,
}

impl NodeState {
    /// Takes a report of a node in, of which `known` was kept.
    pub fn observe(
        known: Option<Self>,
        now: Timestamp,
        report: NodeReport,
        adaptations: &Adaptations,
    ) -> (Self, PerResource<Observed>) {
        let mut controllers = known.map_or_else(Default::default, |known| known.controllers);
        let observed = PerResource::from_fn(|resource| {
            // Another server, or this one another time, may adapt it.
            let Some(adaptation) = &adaptations[resource] else { return Observed::default() };
            let observation = report.observation(resource, adaptation.rule);
            if observation.pressure.is_none() && !observation.oom_kill {
                return Observed::default();
            }
            controllers[resource].get_or_insert_with(|| Controller::new(now, adaptation)).observe(
                now,
                &observation,
                adaptation,
            )
        });
        (Self { seen: now, report, controllers }, observed)
    }

    /// Whether pressure calls for lower limits of a resource and none can fall further: the rule has nothing left to give.
    pub fn is_at_min(&self, resource: Resource, now: Timestamp, adaptations: &Adaptations) -> bool {
        let adapted = self.controllers[resource].as_ref().zip(adaptations[resource].as_ref());
        adapted.is_some_and(|(controller, adaptation)| {
            controller.is_pressed(now, adaptation) && {
                let load = self.report.observation(resource, adaptation.rule).load;
                controller.is_at_min(load.as_ref(), adaptation)
            }
        })
    }

    /// What an account used on this node by its last report, while that is no older than a window.
    pub fn used(
        &self,
        account: &Account,
        resource: Resource,
        now: Timestamp,
        window: WindowLength,
    ) -> Option<u64> {
        let is_fresh = Duration::from_micros(now.since(self.seen)) < window.length();
        is_fresh.then(|| self.report.used(account, resource)).flatten()
    }
}
