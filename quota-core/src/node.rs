//! A fileserver as the service knows it: what it tells, and the limits that follow.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::{
    Account, Adaptations, Controller, Cost, Kind, Observation, Observed, PerKind, PerResource, Ratio,
    Resource, Timestamp, WindowLength, key,
};

/// A node's name in a key: `node:<name>`, made as [`Account::key`] is.
pub fn node_key(name: &str) -> String {
    key::encode("node", name)
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
    pub heaviest: BTreeMap<Account, Cost>,
}

impl NodeReport {
    /// The most accounts of a kind that are told as the heaviest.
    pub const MAX_HEAVIEST: usize = 50;

    /// What an account used on this node, in the resource's internal unit: nothing to speak of where others are told as
    /// the heaviest; `None` where none of its kind is.
    pub fn used(&self, account: &Account, resource: Resource) -> Option<u64> {
        match self.heaviest.get(account) {
            Some(cost) => Some(cost.amounts()[resource]),
            None => self.tells_usage_of(account.kind()).then_some(0),
        }
    }

    fn tells_usage_of(&self, kind: Kind) -> bool {
        self.active[kind].is_some() || self.heaviest.keys().any(|account| account.kind() == kind)
    }

    /// What this tells of a resource. An OOM kill is for want of memory.
    pub fn observation(&self, resource: Resource) -> Observation {
        let most = |kind| {
            let of_kind = self.heaviest.iter().filter(|(account, _)| account.kind() == kind);
            of_kind.map(|(_, cost)| cost.amounts()[resource]).max().unwrap_or_default()
        };
        Observation {
            pressure: self.pressure[resource],
            oom_kill: self.oom_kill && resource == Resource::Memory,
            heaviest: PerKind::from_fn(|kind| self.tells_usage_of(kind).then(|| most(kind))),
        }
    }
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
            let observation = report.observation(resource);
            match &adaptations[resource] {
                None => {
                    controllers[resource] = None;
                    Observed::default()
                }
                Some(_) if observation.pressure.is_none() && !observation.oom_kill => Observed::default(),
                Some(adaptation) => controllers[resource]
                    .get_or_insert_with(|| Controller::new(now, adaptation))
                    .observe(now, &observation, adaptation),
            }
        });
        (Self { seen: now, report, controllers }, observed)
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
