use std::collections::{BTreeSet, HashSet};

use parking_lot::Mutex;
use prometheus::{GaugeVec, IntCounterVec, Opts, Registry};
use quota_core::{Kind, Limit, PerKind, PerResource, Ratio, Reason, Resource};

use super::limit_value;

/// The most nodes that are told apart.
const MAX_NODES: usize = 256;

/// The longest name of a node that is a label, in bytes.
const MAX_LABEL_BYTES: usize = 64;

/// What nodes are called that have no label of their own.
const OTHER: &str = "other";

/// The metrics of nodes. A name is a label only if it is one of letters, digits, `.`, `_` and `-`, and one of the first 256
/// that are known.
pub struct NodeMetrics {
    limits: GaugeVec,
    pressure: GaugeVec,
    calibrations: IntCounterVec,
    labels: Mutex<BTreeSet<Box<str>>>,
}

impl NodeMetrics {
    pub(super) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let gauges = |name: &str, help: &str, labels: &[&str]| {
            let gauges = GaugeVec::new(Opts::new(name, help), labels)?;
            registry.register(Box::new(gauges.clone()))?;
            Ok::<_, prometheus::Error>(gauges)
        };
        let calibrations = Opts::new(
            "quota_calibrations_total",
            "Steps that the limits of a node's resource took by way of this server, by reason.",
        );
        let calibrations = IntCounterVec::new(calibrations, &["node", "resource", "reason"])?;
        registry.register(Box::new(calibrations.clone()))?;
        Ok(Self {
            limits: gauges(
                "quota_node_limit",
                "The limit in force on a node: CPU in seconds, memory in byte-seconds, network in bytes, a window; +Inf is \
                 none.",
                &["node", "kind", "resource"],
            )?,
            pressure: gauges(
                "quota_node_pressure",
                "How loaded a node is, as it last told, 0 to 1.",
                &["node", "resource"],
            )?,
            calibrations,
            labels: Mutex::default(),
        })
    }

    /// Shows what is known of a node.
    pub fn show(
        &self,
        node: &str,
        limits: &PerKind<PerResource<Limit>>,
        pressure: &PerResource<Option<Ratio>>,
    ) {
        let mut labels = self.labels.lock();
        if !has_label(&mut labels, node) {
            return;
        }
        for (kind, limits) in limits.iter() {
            for (resource, limit) in limits.iter() {
                let value = limit_value(resource, *limit);
                self.limits.with_label_values(&[node, kind.as_str(), resource.as_str()]).set(value);
            }
        }
        for (resource, pressure) in pressure.iter() {
            let labels = [node, resource.as_str()];
            match pressure {
                Some(pressure) => self.pressure.with_label_values(&labels).set((*pressure).into()),
                // Not told is not healthy: no value at all. That there was none before is no error.
                None => drop(self.pressure.remove_label_values(&labels)),
            }
        }
    }

    /// Counts a step that this server carried out.
    pub fn calibrated(&self, node: &str, resource: Resource, reason: Reason) {
        let node = if has_label(&mut self.labels.lock(), node) { node } else { OTHER };
        self.calibrations.with_label_values(&[node, resource.as_str(), reason.as_str()]).inc();
    }

    /// Drops what is shown of nodes that are not known any more.
    pub fn retain(&self, known: &HashSet<&str>) {
        self.labels.lock().retain(|node| {
            let keep = known.contains(&**node);
            if !keep {
                self.forget(node);
            }
            keep
        });
    }

    /// That a series had never been there is no error.
    fn forget(&self, node: &str) {
        for resource in Resource::ALL {
            let resource = resource.as_str();
            let _ = self.pressure.remove_label_values(&[node, resource]);
            for kind in Kind::ALL {
                let _ = self.limits.remove_label_values(&[node, kind.as_str(), resource]);
            }
            for reason in Reason::ALL {
                let _ = self.calibrations.remove_label_values(&[node, resource, reason.as_str()]);
            }
        }
    }
}

fn has_label(labels: &mut BTreeSet<Box<str>>, node: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if labels.contains(node) {
        return true;
    }
    let has = node.len() <= MAX_LABEL_BYTES
        && node != OTHER
        && node.chars().all(is_plain)
        && labels.len() < MAX_NODES;
    has && labels.insert(node.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f28_names_that_are_no_label_and_those_beyond_the_most_are_others() {
        let registry = Registry::new();
        let metrics = NodeMetrics::new(&registry).unwrap();
        let limits = PerKind::from_fn(|_| PerResource::from_fn(|_| Limit::At(1)));
        let names = (0..1000).map(|number| format!("node-{number}"));
        for node in
            ["a\"b", "x\ny", "ü", "other", &"n".repeat(65)].map(str::to_owned).into_iter().chain(names)
        {
            metrics.show(&node, &limits, &PerResource::from_fn(|_| Some(Ratio::ONE)));
            metrics.calibrated(&node, Resource::Cpu, Reason::Hot);
        }
        let series = |registry: &Registry| {
            registry.gather().iter().map(|family| family.get_metric().len()).sum::<usize>()
        };
        assert_eq!(series(&registry), 256 * (9 + 3 + 1) + 1);
        metrics.retain(&HashSet::from(["node-7", "not-known-yet"]));
        assert_eq!(series(&registry), 9 + 3 + 1 + 1);
    }
}
