use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use parking_lot::Mutex;
use prometheus::{CounterVec, GaugeVec, IntCounterVec, Opts, Registry};
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
    pressure_seconds: CounterVec,
    cut_accounts: GaugeVec,
    lowest_cuts: GaugeVec,
    cut_share: GaugeVec,
    at_min: GaugeVec,
    labels: Mutex<BTreeSet<Box<str>>>,
}

/// The limits of single accounts of a resource on a node.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CutFigures {
    /// How many accounts of each kind have one.
    pub accounts: PerKind<u32>,
    /// The lowest of each kind, in the internal unit.
    pub lowest: PerKind<Option<u64>>,
    /// What those accounts use of all that is used on the node, 0 to 1.
    pub share: f64,
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
        let pressure_seconds = Opts::new(
            "quota_node_pressure_seconds_total",
            "Seconds of the intervals in which the pressure of a node called for lower limits, told to this server.",
        );
        let pressure_seconds = CounterVec::new(pressure_seconds, &["node", "resource"])?;
        registry.register(Box::new(pressure_seconds.clone()))?;
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
            pressure_seconds,
            cut_accounts: gauges(
                "quota_node_cut_accounts",
                "How many accounts have a limit of their own on a node.",
                &["node", "kind", "resource"],
            )?,
            lowest_cuts: gauges(
                "quota_node_cut_limit_lowest",
                "The lowest limit of a single account on a node, in the unit of quota_node_limit; no value where there is none.",
                &["node", "kind", "resource"],
            )?,
            cut_share: gauges(
                "quota_node_cut_share",
                "What the accounts with a limit of their own use of all that is used on a node, 0 to 1.",
                &["node", "resource"],
            )?,
            at_min: gauges(
                "quota_node_at_min",
                "1 while the pressure of a node calls for lower limits and none can fall further.",
                &["node", "resource"],
            )?,
            labels: Mutex::default(),
        })
    }

    /// Shows what is known of a node.
    pub fn show(
        &self,
        node: &str,
        limits: &PerKind<PerResource<Limit>>,
        pressure: &PerResource<Option<Ratio>>,
        cuts: &PerResource<CutFigures>,
        at_min: &PerResource<bool>,
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
        for (resource, cuts) in cuts.iter() {
            self.show_cuts(node, resource, cuts);
        }
        for (resource, at_min) in at_min.iter() {
            self.at_min.with_label_values(&[node, resource.as_str()]).set(f64::from(u8::from(*at_min)));
        }
    }

    fn show_cuts(&self, node: &str, resource: Resource, cuts: &CutFigures) {
        self.cut_share.with_label_values(&[node, resource.as_str()]).set(cuts.share);
        for kind in Kind::ALL {
            let labels = [node, kind.as_str(), resource.as_str()];
            self.cut_accounts.with_label_values(&labels).set(cuts.accounts[kind].into());
            match cuts.lowest[kind] {
                Some(lowest) => {
                    let lowest = limit_value(resource, Limit::At(lowest));
                    self.lowest_cuts.with_label_values(&labels).set(lowest);
                }
                None => drop(self.lowest_cuts.remove_label_values(&labels)),
            }
        }
    }

    /// Counts a step that this server carried out, at the end of an interval.
    pub fn calibrated(&self, node: &str, resource: Resource, reason: Reason, interval: Duration) {
        let node = if has_label(&mut self.labels.lock(), node) { node } else { OTHER };
        self.calibrations.with_label_values(&[node, resource.as_str(), reason.as_str()]).inc();
        let hot = if matches!(reason, Reason::Hot | Reason::OomKill) { interval } else { Duration::ZERO };
        self.pressure_seconds.with_label_values(&[node, resource.as_str()]).inc_by(hot.as_secs_f64());
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
            let _ = self.pressure_seconds.remove_label_values(&[node, resource]);
            for gauges in [&self.cut_share, &self.at_min] {
                let _ = gauges.remove_label_values(&[node, resource]);
            }
            for kind in Kind::ALL {
                for gauges in [&self.limits, &self.cut_accounts, &self.lowest_cuts] {
                    let _ = gauges.remove_label_values(&[node, kind.as_str(), resource]);
                }
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
    use prometheus::TextEncoder;

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
            let cuts = CutFigures { lowest: PerKind::from_fn(|_| Some(1)), ..CutFigures::default() };
            let pressure = PerResource::from_fn(|_| Some(Ratio::ONE));
            metrics.show(&node, &limits, &pressure, &PerResource::from_fn(|_| cuts), &PerResource::default());
            metrics.calibrated(&node, Resource::Cpu, Reason::Hot, Duration::from_secs(5));
        }
        let series = |registry: &Registry| {
            registry.gather().iter().map(|family| family.get_metric().len()).sum::<usize>()
        };
        // Limits, accounts and the lowest by kind and resource; pressure, share and whether it is at its least by resource;
        // steps and seconds.
        const OF_A_NODE: usize = 3 * 9 + 3 * 3 + 2;
        assert_eq!(series(&registry), 256 * OF_A_NODE + 2);
        metrics.retain(&HashSet::from(["node-7", "not-known-yet"]));
        assert_eq!(series(&registry), OF_A_NODE + 2);
    }

    #[test]
    fn cuts_and_hot_intervals_are_shown_and_an_end_of_them_too() {
        let registry = Registry::new();
        let metrics = NodeMetrics::new(&registry).unwrap();
        let limits = PerKind::from_fn(|_| PerResource::from_fn(|_| Limit::At(1)));
        let show = |cpu| {
            let cuts = PerResource::new(cpu, CutFigures::default(), CutFigures::default());
            metrics.show(
                "n",
                &limits,
                &PerResource::default(),
                &cuts,
                &PerResource::new(cpu.share > 0.7, false, false),
            );
        };
        let text = || TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
        show(CutFigures {
            accounts: PerKind::new(0, 3, 0),
            lowest: PerKind::new(None, Some(12_500_000), None),
            share: 0.75,
        });
        for reason in [Reason::Hot, Reason::Calm, Reason::OomKill] {
            metrics.calibrated("n", Resource::Cpu, reason, Duration::from_secs(5));
        }
        for line in [
            "quota_node_cut_accounts{kind=\"user\",node=\"n\",resource=\"cpu\"} 3",
            "quota_node_cut_accounts{kind=\"repo\",node=\"n\",resource=\"cpu\"} 0",
            "quota_node_cut_limit_lowest{kind=\"user\",node=\"n\",resource=\"cpu\"} 12.5",
            "quota_node_cut_share{node=\"n\",resource=\"cpu\"} 0.75",
            "quota_node_pressure_seconds_total{node=\"n\",resource=\"cpu\"} 10",
            "quota_node_at_min{node=\"n\",resource=\"cpu\"} 1",
            "quota_node_at_min{node=\"n\",resource=\"memory\"} 0",
        ] {
            assert!(text().lines().any(|shown| shown == line), "{line}\n{}", text());
        }
        show(CutFigures::default());
        assert!(!text().contains("quota_node_cut_limit_lowest{"), "{}", text());
        assert!(text().contains("quota_node_cut_accounts{kind=\"user\",node=\"n\",resource=\"cpu\"} 0"));
    }
}
