use quota_core::{Limit, NodeReport, PerKind, PerResource};
use quota_proto::Invalid;

use super::node_limits::KnownNode;
use super::{AccountLimit, Label, Quota, QuotaError};

/// How loaded a fileserver is.
#[derive(Clone, Debug)]
pub struct PressureRequest {
    /// Which.
    pub node: Box<str>,
    /// What it tells.
    pub report: NodeReport,
}

/// What a fileserver's limits are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pressured {
    /// Which.
    pub node: Box<str>,
    /// Whether this report ended an interval, so that limits took a step.
    pub calibrated: bool,
    /// The limits in force on it.
    pub limits: PerKind<PerResource<Limit>>,
    /// Those of single accounts.
    pub accounts: Vec<AccountLimit>,
}

impl PressureRequest {
    /// The name of the node, from the field `node`.
    pub fn node(name: Option<&str>) -> Result<Box<str>, Invalid> {
        let name = Label::new("node", name)?;
        name.as_deref().map(Into::into).ok_or_else(|| Invalid::new("node", "must be given"))
    }
}

impl Quota {
    /// Takes in how loaded a node is; its limits follow, one step an interval.
    pub async fn report_pressure(&self, request: PressureRequest) -> Result<Pressured, QuotaError> {
        let PressureRequest { node, report } = request;
        let settings = self.settings();
        let adaptations = settings.policy.adaptations();
        let calibrated = self.store.calibrate(&node, &report, adaptations).await?;
        if calibrated.repaired {
            tracing::warn!(
                node = &*node,
                "what was stored of the node cannot be read: its limits begin anew"
            );
        }
        let known = KnownNode::new(calibrated.state, calibrated.now, adaptations);
        self.tell_steps(&node, known.state(), &calibrated.calibrated);
        let pressured = Pressured {
            calibrated: calibrated.calibrated.iter().any(|(_, calibrated)| *calibrated),
            limits: self.limits_of(Some(&known)),
            accounts: known.account_limits().map(|(limit, _)| limit).collect(),
            node,
        };
        self.show_node(&pressured.node, &known);
        self.nodes.learn(&pressured.node, known);
        Ok(pressured)
    }
}
