use std::time::Duration;

use quota_core::{Limit, NodeReport, PerKind, PerResource, Ratio, Reason};

use super::node_limits::KnownNode;
use super::{AccountLimit, Explanation, Label, Quota, QuotaError};

/// A fileserver that tells its pressure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeStanding {
    /// Its name.
    pub name: Box<str>,
    /// How long ago it last reported, by the store's clock.
    pub seen_ago: Duration,
    /// What it last reported.
    pub report: NodeReport,
    /// The limits in force on it.
    pub limits: PerKind<PerResource<Limit>>,
    /// Those of single accounts.
    pub accounts: Vec<(AccountLimit, Explanation)>,
    /// The last step of each resource that is adapted.
    pub calibrations: PerResource<Option<NodeCalibration>>,
}

/// A step that limits took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeCalibration {
    /// How long ago.
    pub ago: Duration,
    /// Why.
    pub reason: Reason,
    /// The mean pressure of the interval that ended.
    pub pressure: Ratio,
    /// The limits before it.
    pub old: PerKind<u64>,
    /// The limits after it.
    pub new: PerKind<u64>,
}

impl Quota {
    /// The fileservers that tell their pressure, by name; one of them, or all. Changes nothing.
    pub async fn list_nodes(&self, node: &Label) -> Result<Vec<NodeStanding>, QuotaError> {
        let known = self.store.nodes().await?;
        let asked =
            known.nodes.into_iter().filter(|known| node.as_deref().is_none_or(|name| *known.name == *name));
        Ok(asked
            .map(|node| {
                let state = KnownNode::new(node.state, known.now, self.settings().policy.adaptations());
                let ago = |moment| Duration::from_micros(known.now.since(moment));
                let calibrations = PerResource::from_fn(|resource| {
                    let controller = state.state().controllers[resource].as_ref()?;
                    let last = controller.last?;
                    Some(NodeCalibration {
                        ago: ago(last.at),
                        reason: last.reason,
                        pressure: last.pressure,
                        old: last.old,
                        new: controller.limits,
                    })
                });
                let accounts = state.account_limits().map(|(limit, cut)| {
                    let AccountLimit { account, resource, .. } = &limit;
                    let explanation =
                        Explanation::new(account, *resource, cut, &node.name, known.now, self.window);
                    (limit, explanation)
                });
                let accounts = accounts.collect();
                NodeStanding {
                    accounts,
                    name: node.name,
                    seen_ago: ago(state.state().seen),
                    report: state.state().report.clone(),
                    limits: self.limits_of(Some(&state)),
                    calibrations,
                }
            })
            .collect())
    }
}
