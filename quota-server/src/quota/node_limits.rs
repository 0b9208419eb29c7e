use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};
use quota_core::{
    Account, Adaptation, Adaptations, Controller, Cut, Kind, Limit, NodeState, PerKind, PerResource, Reason,
    Resource, Rule, Timestamp, Used, WindowLength,
};

use super::{AccountLimit, Quota, Settings};
use crate::config::Policy;
use crate::history::Look;
use crate::metrics::{CutFigures, Metrics};
use crate::store::Nodes;

/// What is older than this is told to operators.
const STALE: Duration = Duration::from_secs(5);

/// A step that is so much earlier than the one told last is a new one, by a clock that was set back, in microseconds. No answer is on its
/// way for as long.
const SET_BACK: u64 = 60_000_000;

/// What this server knows of the nodes, so that a check need not ask for their limits first. It is read from the store
/// again and again ([`Quota::refresh_nodes`]); without the store, what was last known stays in force.
pub struct NodeLimits {
    known: RwLock<HashMap<Box<str>, Arc<KnownNode>>>,
    /// The step of each resource's limits that was last told, of the known nodes.
    told: Mutex<HashMap<Box<str>, PerResource<Option<Timestamp>>>>,
    refreshed: Mutex<Instant>,
    stale: AtomicBool,
    /// Whether most nodes are under pressure.
    pressed: AtomicBool,
}

/// A node as of a moment.
pub(super) struct KnownNode {
    state: NodeState,
    now: Timestamp,
    limits: PerResource<Option<PerKind<u64>>>,
    /// The limits of single accounts, where they are lower.
    cuts: PerResource<BTreeMap<Account, Cut>>,
    /// The lowest of all these limits, as a share of the most that it can be.
    lowest: PerResource<Option<f32>>,
}

impl Default for NodeLimits {
    fn default() -> Self {
        Self {
            known: RwLock::default(),
            told: Mutex::default(),
            refreshed: Mutex::new(Instant::now()),
            stale: AtomicBool::new(false),
            pressed: AtomicBool::new(false),
        }
    }
}

impl NodeLimits {
    pub(super) fn get(&self, node: Option<&str>) -> Option<Arc<KnownNode>> {
        self.known.read().get(node?).cloned()
    }

    /// What is known of each node's pressure and limits.
    pub(crate) fn look(&self) -> Vec<(Box<str>, PerResource<Look>)> {
        let known = self.known.read();
        known.iter().map(|(name, node)| (name.clone(), node.look())).collect()
    }

    /// How many nodes are known.
    pub(super) fn count(&self) -> usize {
        self.known.read().len()
    }

    /// Whether at least half of them are under pressure: the last step of their limits was down.
    pub(super) fn pressed(&self) -> bool {
        self.pressed.load(Ordering::Relaxed)
    }

    pub(super) fn learn(&self, name: &str, node: KnownNode) {
        self.known.write().insert(name.into(), Arc::new(node));
    }

    /// Whether a step has not been told yet, which it is from now on. An answer that was overtaken tells of an earlier one again.
    pub(super) fn is_news(&self, node: &str, resource: Resource, at: Timestamp) -> bool {
        let mut told = self.told.lock();
        let last = &mut told.entry(node.into()).or_default()[resource];
        let is_overtaken = last.is_some_and(|last| at <= last && last.since(at) < SET_BACK);
        if !is_overtaken {
            *last = Some(at);
        }
        !is_overtaken
    }

    fn replace(&self, nodes: HashMap<Box<str>, Arc<KnownNode>>) {
        self.told.lock().retain(|name, _| nodes.contains_key(name));
        let hot = nodes.values().filter(|node| node.is_hot()).count();
        self.pressed.store(hot > 0 && 2 * hot >= nodes.len(), Ordering::Relaxed);
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
        let cuts = PerResource::from_fn(|resource| {
            let controller = state.controllers[resource].as_ref();
            // Under another rule nothing moves what an earlier one has left behind.
            let blame = |adaptation: &&Adaptation| matches!(adaptation.rule, Rule::Blame(_));
            let adaptation = adaptations[resource].as_ref().filter(blame);
            let Some((controller, adaptation)) = controller.zip(adaptation) else { return BTreeMap::new() };
            let mut cuts = controller.cuts_at(now, adaptation);
            if let Some(limits) = &limits[resource] {
                cuts.retain(|account, cut| cut.limit < limits[account.kind()]);
            }
            cuts
        });
        let lowest = PerResource::from_fn(|resource| {
            let (ranges, limits) = (&adaptations[resource].as_ref()?.ranges, &limits[resource]?);
            let of_kinds = limits.iter().map(|(kind, limit)| (kind, *limit));
            let of_accounts = cuts[resource].iter().map(|(account, cut)| (account.kind(), cut.limit));
            let share = |(kind, limit): (Kind, u64)| (limit as f64 / ranges[kind].max as f64) as f32;
            of_kinds.chain(of_accounts).map(share).reduce(f32::min)
        });
        Self { state, now, limits, cuts, lowest }
    }

    fn look(&self) -> PerResource<Look> {
        PerResource::from_fn(|resource| Look {
            pressure: self.state.report.pressure[resource].map(|pressure| f64::from(pressure) as f32),
            lowest: self.lowest[resource],
        })
    }

    /// Whether the pressure called for lower limits, of any resource, when it was last looked at.
    fn is_hot(&self) -> bool {
        let last = |controller: &Controller| controller.last.as_ref().map(|last| last.reason);
        let reasons = self.state.controllers.iter().filter_map(|(_, c)| c.as_ref().and_then(last));
        reasons.into_iter().any(|reason| matches!(reason, Reason::Hot | Reason::OomKill))
    }

    pub(super) const fn state(&self) -> &NodeState {
        &self.state
    }

    /// The adapted limit; `None` where pressure has not been told yet.
    pub(super) fn limit(&self, kind: Kind, resource: Resource) -> Option<u64> {
        Some(self.limits[resource]?[kind])
    }

    /// The account's own limit, where it is lower than that of its kind.
    pub(super) fn cut(&self, account: &Account, resource: Resource) -> Option<&Cut> {
        self.cuts[resource].get(account)
    }

    /// The limits of single accounts.
    pub(super) fn account_limits(&self) -> impl Iterator<Item = (AccountLimit, &Cut)> {
        self.cuts.iter().flat_map(|(resource, cuts)| {
            cuts.iter().map(move |(account, cut)| {
                let limit = Limit::At(cut.limit);
                (AccountLimit { account: account.clone(), resource, limit }, cut)
            })
        })
    }

    /// How many accounts of each kind have limits of their own, and what they make up.
    fn cut_figures(&self) -> PerResource<CutFigures> {
        PerResource::from_fn(|resource| {
            let (cuts, mut figures) = (&self.cuts[resource], CutFigures::default());
            let mut used = PerKind::<u64>::default();
            for (account, cut) in cuts {
                let kind = account.kind();
                figures.accounts[kind] += 1;
                figures.lowest[kind] =
                    Some(figures.lowest[kind].map_or(cut.limit, |lowest| lowest.min(cut.limit)));
                let more = self.state.report.used(account, resource).unwrap_or_default();
                used[kind] = used[kind].saturating_add(more);
            }
            // What a user spends, his address spends too: the kinds do not add up.
            let most = used.iter().map(|(_, used)| *used).max().unwrap_or_default();
            let mean = self.state.controllers[resource].as_ref().map_or(0, |controller| controller.cuts.mean);
            figures.share = if mean == 0 { 0.0 } else { (most as f64 / mean as f64).min(1.0) };
            figures
        })
    }

    /// What the heaviest accounts used on the node by its last report, while that is no older than a window.
    pub(super) fn heaviest(&self, window: WindowLength) -> impl Iterator<Item = (&Account, &Used)> {
        let is_fresh = Duration::from_micros(self.now.since(self.state.seen)) < window.length();
        self.state.report.heaviest.iter().filter(move |_| is_fresh)
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
            let settings = self.settings();
            let adaptations = settings.policy.adaptations();
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
        let (state, settings) = (node.state(), self.settings());
        let at_min = PerResource::from_fn(|resource| {
            state.is_at_min(resource, node.now, settings.policy.adaptations())
        });
        let limits = self.limits_of(Some(node));
        self.metrics.nodes.show(name, &limits, &state.report.pressure, &node.cut_figures(), &at_min);
    }

    /// The limits in force on a node: those that are adapted, and the fixed ones.
    pub(super) fn limits_of(&self, node: Option<&KnownNode>) -> PerKind<PerResource<Limit>> {
        let Settings { policy, .. } = &*self.settings();
        PerKind::from_fn(|kind| {
            PerResource::from_fn(|resource| {
                let adapted = node_limit(policy, node, kind, resource);
                adapted.unwrap_or(policy.ceilings(kind)[resource].limit)
            })
        })
    }
}

/// The limit of a node, `initial` where the node is not known; `None` where the resource is not adapted.
pub(super) fn node_limit(
    policy: &Policy,
    node: Option<&KnownNode>,
    kind: Kind,
    resource: Resource,
) -> Option<Limit> {
    let adaptation = policy.adaptations()[resource].as_ref()?;
    let adapted = node.and_then(|node| node.limit(kind, resource));
    Some(Limit::At(adapted.unwrap_or(adaptation.ranges[kind].initial)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_news_once_whichever_answer_tells_of_it_first() {
        let nodes = NodeLimits::default();
        let is_news = |seconds: u64| {
            nodes.is_news("gitaly-01", Resource::Cpu, Timestamp::from_micros(seconds * 1_000_000))
        };
        // The second answer was overtaken by one that told of a later step.
        let told = [100, 101, 100, 101, 102, 101].map(is_news);
        assert_eq!(told, [true, true, false, false, true, false]);
        assert!(is_news(42) && !is_news(42) && is_news(43), "by a clock that was set back");
    }
}
