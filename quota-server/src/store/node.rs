use std::time::Duration;

use quota_core::{Adaptations, NodeState, PerResource, Ratio, Timestamp};

/// The most nodes that are remembered.
pub const MAX_NODES: usize = 1000;

/// The least time for which a node that tells nothing is remembered.
const LEAST_MEMORY: Duration = Duration::from_secs(3600);

/// What a node's report led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calibrated {
    /// When, by the store's clock.
    pub now: Timestamp,
    /// What is kept of the node now.
    pub state: NodeState,
    /// Whether the limits of each resource took a step.
    pub calibrated: PerResource<bool>,
    /// How many resources were dated anew, since the store's clock had stepped back.
    pub rebased: u32,
    /// What was stored could not be read, and began anew.
    pub repaired: bool,
}

/// A node that is remembered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: Box<str>,
    /// What is kept of it.
    pub state: NodeState,
    /// Whether the last step of each resource's limits was made by a report through this store: it may not have come
    /// to hear of it.
    pub ours: PerResource<bool>,
}

/// The nodes that are remembered, at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nodes {
    /// When, by the store's clock.
    pub now: Timestamp,
    /// By name; at most about [`MAX_NODES`].
    pub nodes: Vec<Node>,
    /// How many were left out, since what is stored of them cannot be read.
    pub unreadable: u32,
}

/// How long a node that tells nothing is remembered: until its limits have long returned to the initial ones.
pub(super) fn remembered_for(adaptations: &Adaptations) -> Duration {
    let returned = adaptations.iter().filter_map(|(_, adaptation)| adaptation.as_ref()).map(|adaptation| {
        let steps = Ratio::ONE.millionths().div_ceil(adaptation.step.millionths().max(1));
        // Three intervals of silence come first, and at most 1,000,000 steps.
        adaptation.interval * u32::try_from(steps + 4).unwrap_or(u32::MAX)
    });
    returned.fold(LEAST_MEMORY, Duration::max)
}
