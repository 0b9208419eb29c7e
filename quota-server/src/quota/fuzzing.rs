use std::sync::Arc;

use quota_core::{NodeState, Timestamp, WindowLength};

use super::node_limits::KnownNode;
pub(crate) use super::operators::fuzzing::word;
use super::{AccountLimit, Explanation, Quota, denied, top};
use crate::store::{Clock, MemoryStore};

/// What another server has posted: of those who are heaviest, or of denials.
pub(crate) fn post(content: &[u8]) {
    top::fuzzing::post(content);
    denied::fuzzing::post(content);
}

/// What is kept of a node.
///
/// Whatever it says: its limits are known, and shares are shares.
pub(crate) fn node(state: NodeState, now: Timestamp) {
    let store = MemoryStore::new(WindowLength::default(), 1, Clock::Manual(Arc::default()));
    let quota = Quota::bare(Arc::new(store));
    let known = KnownNode::new(state, now, quota.settings().policy.adaptations());
    quota.show_node("node", &known);
    for (AccountLimit { account, resource, .. }, cut) in known.account_limits() {
        let explained = Explanation::new(&account, resource, cut, "node", now, quota.window);
        assert!(!explained.why.to_string().is_empty());
    }
    quota.nodes.learn("node", known);
    for (_, look) in quota.nodes.look() {
        assert!(look.iter().all(|(_, look)| look.pressure.is_none_or(|share| (0.0..=1.0).contains(&share))));
        assert!(look.iter().all(|(_, look)| look.lowest.is_none_or(f32::is_finite)));
    }
}
