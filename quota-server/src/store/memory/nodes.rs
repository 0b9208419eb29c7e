use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use quota_core::{Adaptations, NodeReport, NodeState, PerResource, Timestamp};

use crate::store::node::remembered_for;
use crate::store::{Calibrated, MAX_NODES, Node, Nodes, StoreError};

/// The nodes that have told something, each until it is forgotten.
#[derive(Default)]
pub(super) struct MemoryNodes(Mutex<BTreeMap<Box<str>, Known>>);

struct Known {
    state: NodeState,
    forgotten_after: Duration,
}

impl MemoryNodes {
    pub(super) fn calibrate(
        &self,
        name: &str,
        report: &NodeReport,
        adaptations: &Adaptations,
        now: Timestamp,
    ) -> Result<Calibrated, StoreError> {
        let mut nodes = self.0.lock();
        if !nodes.contains_key(name) && nodes.len() >= MAX_NODES {
            forget(&mut nodes, now);
            if nodes.len() >= MAX_NODES {
                return Err(StoreError::TooManyNodes);
            }
        }
        let known = nodes.remove(name).map(|known| known.state);
        let (state, observed) = NodeState::observe(known, now, report.clone(), adaptations);
        nodes.insert(
            name.into(),
            Known { state: state.clone(), forgotten_after: remembered_for(adaptations) },
        );
        let rebased = observed.iter().map(|(_, observed)| u32::from(observed.rebased)).sum();
        Ok(Calibrated {
            now,
            state,
            calibrated: observed.map(|observed| observed.calibrated),
            rebased,
            repaired: false,
        })
    }

    pub(super) fn list(&self, now: Timestamp) -> Nodes {
        let mut nodes = self.0.lock();
        forget(&mut nodes, now);
        let nodes = nodes.iter().map(|(name, known)| Node {
            name: name.clone(),
            state: known.state.clone(),
            ours: PerResource::new(true, true, true),
        });
        Nodes { now, nodes: nodes.collect(), unreadable: 0 }
    }
}

fn forget(nodes: &mut BTreeMap<Box<str>, Known>, now: Timestamp) {
    nodes.retain(|_, known| Duration::from_micros(now.since(known.state.seen)) < known.forgotten_after);
}
