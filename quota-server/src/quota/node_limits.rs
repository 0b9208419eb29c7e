use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};
use quota_core::{
    Account, Adaptations, Kind, Limit, NodeState, PerKind, PerResource, Resource, Timestamp, WindowLength,
};

use super::Quota;
use crate::metrics::Metrics;
use crate::store::Nodes;

/// What is older than this is told to operators.
const STALE: Duration = Duration::from_secs(5);

/// What this server knows of the nodes, so that a check need not ask for their limits first. It is read from the store
/// again and again ([`Quota::refresh_nodes`]); without the store, what was last known stays in force.
pub struct NodeLimits {
    known: RwLock<HashMap<Box<str>, Arc<KnownNode>>>,
    /// The step of each resource's limits that was last told, of the known nodes.
    told: Mutex<HashMap<Box<str>, PerResource<Option<Timestamp>>>>,
    refreshed: Mutex<Instant>,
    stale: AtomicBool,
}

/// A node as of a moment.
pub(super) struct KnownNode {
    state: NodeState,
    now: Timestamp,
    limits: PerResource<Option<PerKind<u64>>>,
}

impl Default for NodeLimits {
    fn default() -> Self {
        Self {
            known: RwLock::default(),
            told: Mutex::default(),
            refreshed: Mutex::new(Instant::now()),
            stale: AtomicBool::new(false),
        }
    }
}

impl NodeLimits {
    pub(super) fn get(&self, node: Option<&str>) -> Option<Arc<KnownNode>> {
        self.known.read().get(node?).cloned()
    }

    pub(super) fn learn(&self, name: &str, node: KnownNode) {
        self.known.write().insert(name.into(), Arc::new(node));
    }

    /// Whether a step has not been told yet, which it is from now on.
    pub(super) fn is_news(&self, node: &str, resource: Resource, at: Timestamp) -> bool {
        self.told.lock().entry(node.into()).or_default()[resource].replace(at) != Some(at)
    }

    fn replace(&self, nodes: HashMap<Box<str>, Arc<KnownNode>>) {
        self.told.lock().retain(|name, _| nodes.contains_key(name));
        *self.known.write() = nodes;
        *self.refreshed.lock() = Instant::now();
    }

    /// Says once each time when what is known becomes old, and when it no longer is.
    fn tell_age(&self, metrics: &Metrics) {
        let age = self.refreshed.lock().elapsed();
        let stale = age > STALE;
        metrics.node_limits_age.set(age.as_secs_f64());
        metrics.node_limits_stale.set(stale.into());
        if self.stale.swap(stale, Ordering::Relaxed) != stale {
            if stale {
                tracing::warn!(?age, "limits of nodes are not refreshed: the last known stay in force");
            } else {
                tracing::info!("limits of nodes are refreshed again");
            }
        }
    }
}

impl KnownNode {
    pub(super) fn new(state: NodeState, now: Timestamp, adaptations: &Adaptations) -> Self {
        let limits = PerResource::from_fn(|resource| {
            let controller = state.controllers[resource].as_ref()?;
            Some(controller.limits_at(now, adaptations[resource].as_ref()?))
        });
        Self { state, now, limits }
    }

    pub(super) const fn state(&self) -> &NodeState {
        &self.state
    }

    /// The adapted limit; `None` where pressure has not been told yet.
    pub(super) fn limit(&self, kind: Kind, resource: Resource) -> Option<u64> {
        Some(self.limits[resource]?[kind])
    }

    /// What an account used on the node, by its last report.
    pub(super) fn used(&self, account: &Account, resource: Resource, window: WindowLength) -> Option<u64> {
        self.state.used(account, resource, self.now, window)
    }
}

impl Quota {
    /// Reads the nodes' limits from the store. To be called at least every 500 ms.
    pub async fn refresh_nodes(&self) {
        if let Ok(Nodes { now, nodes, .. }) = self.store.nodes().await {
            let adaptations = self.policy.adaptations();
            let known = nodes.into_iter().map(|node| {
                // A step is told by the server that it was made for, even where the answer came too late for it.
                self.tell_steps(&node.name, &node.state, &node.ours);
                let known = KnownNode::new(node.state, now, adaptations);
                self.show_node(&node.name, &known);
                (node.name, Arc::new(known))
            });
            let known: HashMap<_, _> = known.collect();
            self.metrics.nodes.retain(&known.keys().map(AsRef::as_ref).collect::<HashSet<&str>>());
            self.nodes.replace(known);
        }
        self.nodes.tell_age(&self.metrics);
    }

    pub(super) fn show_node(&self, name: &str, node: &KnownNode) {
        self.metrics.nodes.show(name, &self.limits_of(Some(node)), &node.state().report.pressure);
    }

    /// The limits in force on a node: those that are adapted, and the fixed ones.
    pub(super) fn limits_of(&self, node: Option<&KnownNode>) -> PerKind<PerResource<Limit>> {
        PerKind::from_fn(|kind| {
            PerResource::from_fn(|resource| {
                let adapted = self.node_limit(node, kind, resource);
                adapted.unwrap_or(self.policy.ceilings(kind)[resource].limit)
            })
        })
    }

    /// The limit of a node, `initial` where the node is not known; `None` where the resource is not adapted.
    pub(super) fn node_limit(
        &self,
        node: Option<&KnownNode>,
        kind: Kind,
        resource: Resource,
    ) -> Option<Limit> {
        let adaptation = self.policy.adaptations()[resource].as_ref()?;
        let adapted = node.and_then(|node| node.limit(kind, resource));
        Some(Limit::At(adapted.unwrap_or(adaptation.ranges[kind].initial)))
    }
}
