use quota_core::{Calibration, Kind, Limit, NodeReport, NodeState, PerKind, PerResource, Resource};
use quota_proto::Invalid;

use super::node_limits::KnownNode;
use super::words::in_words;
use super::{Label, Quota, QuotaError};

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
        let adaptations = self.policy.adaptations();
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
            node,
        };
        self.show_node(&pressured.node, &known);
        self.nodes.learn(&pressured.node, known);
        Ok(pressured)
    }

    /// Counts the last step of each of these resources and says it in the log, once.
    pub(super) fn tell_steps(&self, node: &str, state: &NodeState, stepped: &PerResource<bool>) {
        for (resource, _) in stepped.iter().filter(|(_, stepped)| **stepped) {
            if let Some(controller) = &state.controllers[resource]
                && let Some(last) = &controller.last
                && self.nodes.is_news(node, resource, last.at)
            {
                self.metrics.nodes.calibrated(node, resource, last.reason);
                tell(node, resource, last, &controller.limits);
            }
        }
    }
}

/// Says each limit that changed in the log.
fn tell(node: &str, resource: Resource, calibration: &Calibration, limits: &PerKind<u64>) {
    for kind in Kind::ALL {
        let (old, new) = (calibration.old[kind], limits[kind]);
        if old != new {
            tracing::info!(
                node,
                kind = kind.as_str(),
                resource = resource.as_str(),
                old = in_words(resource, Limit::At(old)),
                new = in_words(resource, Limit::At(new)),
                reason = calibration.reason.as_str(),
                pressure = f64::from(calibration.pressure),
                "limit changed"
            );
        }
    }
}
