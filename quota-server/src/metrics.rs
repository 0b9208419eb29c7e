//! The catalogue of metrics. Labels come from closed sets, and from the names of nodes, which are validated and capped: no
//! account or path is ever one.

mod classes;
mod config;
mod labels;
mod nodes;
mod requests;

use prometheus::{
    Encoder as _, Gauge, GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec,
    IntGauge, IntGaugeVec, Opts, Registry, TextEncoder,
};
use quota_core::{Breach, Limit, Mode, Resource};
use quota_proto::wire_amount;

pub use self::classes::{ClassMetrics, SlotOutcome};
pub use self::config::ConfigMetrics;
pub use self::labels::{Beyond, Change, Operation, Outcome};
pub use self::nodes::{CutFigures, NodeMetrics};
pub use self::requests::{OTHER_RPCS, RequestMetrics};
use crate::auth::Refusal;
use crate::config::{Config, Policy};
use crate::store::{Cause, Danger, Risk};
use crate::tls::Protocol;

/// Whose denials are counted, as a label: of accounts that are cut on the node, and of others.
const HEAVY: &str = "heavy";
const LIGHT: &str = "light";

/// Every metric of the server.
pub struct Metrics {
    registry: Registry,
    decisions: IntCounterVec,
    denials: IntCounterVec,
    changes: IntCounterVec,
    store_unsafe: IntGaugeVec,
    limits: GaugeVec,
    store_seconds: HistogramVec,
    store_errors: IntCounterVec,
    refusals: IntCounterVec,
    beyond: IntCounterVec,
    connections_refused: IntCounterVec,
    /// 0 from the first failure of the store until a second without one.
    pub store_up: IntGauge,
    /// Shares granted to fileservers.
    pub shares: IntCounter,
    /// Charges counted.
    pub charges_applied: IntCounter,
    /// Charges older than the window, not counted.
    pub charges_dropped_old: IntCounter,
    /// Reports that had been counted before.
    pub reports_duplicate: IntCounter,
    /// Releases of more than their bucket held.
    pub excess_releases: IntCounter,
    /// Windows dated back, since the store's clock had stepped back.
    pub windows_rebased: IntCounter,
    /// What requests that have finished cost.
    pub requests: RequestMetrics,
    /// Overrides that are known, by origin.
    pub overrides: IntGaugeVec,
    /// What operators say of how far limits are enforced, by mode.
    pub modes: IntGaugeVec,
    /// Words of operators that the store had lost, and that this server put back.
    pub overrides_restored: IntCounter,
    /// Pressure and limits by node.
    pub nodes: NodeMetrics,
    /// Slots by class of traffic.
    pub classes: ClassMetrics,
    /// Which configuration is in force.
    pub config: ConfigMetrics,
    /// When the limits of the nodes were last read.
    pub node_limits_age: Gauge,
    /// Whether that is more than 5 s ago.
    pub node_limits_stale: IntGauge,
    /// Sessions of fileservers that are open.
    pub sessions: IntGauge,
}

impl Metrics {
    /// The metrics, with the settings in force.
    pub fn new(config: &Config) -> Result<Self, prometheus::Error> {
        let registry = Registry::new();
        let counter = |name: &str, help: &str| {
            let counter = IntCounter::new(name, help)?;
            registry.register(Box::new(counter.clone()))?;
            Ok::<_, prometheus::Error>(counter)
        };
        let counters = |name: &str, help: &str, labels: &[&str]| {
            let counters = IntCounterVec::new(Opts::new(name, help), labels)?;
            registry.register(Box::new(counters.clone()))?;
            Ok::<_, prometheus::Error>(counters)
        };
        let store_up = IntGauge::new(
            "quota_store_up",
            "0 from the first failure of the store until a second without one.",
        )?;
        registry.register(Box::new(store_up.clone()))?;
        let node_limits_stale = IntGauge::new(
            "quota_node_limits_stale",
            "1 while what this server knows of the nodes' limits is more than 5 s old.",
        )?;
        registry.register(Box::new(node_limits_stale.clone()))?;
        let sessions = IntGauge::new("quota_sessions", "Sessions of fileservers that are open.")?;
        registry.register(Box::new(sessions.clone()))?;
        let node_limits_age = Gauge::new(
            "quota_node_limits_age_seconds",
            "How old what this server knows of the nodes' limits is.",
        )?;
        registry.register(Box::new(node_limits_age.clone()))?;
        let overrides = IntGaugeVec::new(
            Opts::new(
                "quota_overrides",
                "Overrides of accounts that this server knows, by origin: api or file.",
            ),
            &["origin"],
        )?;
        registry.register(Box::new(overrides.clone()))?;
        let modes = IntGaugeVec::new(
            Opts::new(
                "quota_modes",
                "How often operators say of the system, a node or a kind of account how far limits are enforced, by mode.",
            ),
            &["mode"],
        )?;
        registry.register(Box::new(modes.clone()))?;
        let store_unsafe = IntGaugeVec::new(
            Opts::new(
                "quota_store_unsafe",
                "1 where the store may lose what it holds, by reason; no value where that is not known.",
            ),
            &["reason"],
        )?;
        registry.register(Box::new(store_unsafe.clone()))?;
        let limits = GaugeVec::new(
            Opts::new(
                "quota_limit",
                "The limit in force for usage on all nodes: CPU in seconds, memory in byte-seconds, network in bytes, a window; +Inf is none.",
            ),
            &["kind", "resource", "mode"],
        )?;
        registry.register(Box::new(limits.clone()))?;
        let latency =
            HistogramOpts::new("quota_store_seconds", "How long the store took to answer, errors included.")
                .buckets(vec![5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.5]);
        let store_seconds = HistogramVec::new(latency, &["operation"])?;
        registry.register(Box::new(store_seconds.clone()))?;

        let metrics = Self {
            decisions: counters(
                "quota_decisions_total",
                "Checks by outcome, and by the kind, resource and mode of the limit that decided them.",
                &["outcome", "kind", "resource", "mode"],
            )?,
            denials: counters(
                "quota_denials_total",
                "Checks that were denied by a limit of an account that is cut on the node (heavy), and of another (light).",
                &["account"],
            )?,
            changes: counters(
                "quota_changes_total",
                "Changes by operators by way of this server.",
                &["what"],
            )?,
            limits,
            store_seconds,
            store_errors: counters(
                "quota_store_errors_total",
                "Errors of the store by cause.",
                &["operation", "cause"],
            )?,
            refusals: counters(
                "quota_auth_refusals_total",
                "Requests refused for want of a token, of one that is known, of the role that they take, or of the node that they speak for.",
                &["reason"],
            )?,
            connections_refused: counters(
                "quota_connections_refused_total",
                "Connections that were closed at once, since their address had as many as it may, by port.",
                &["port"],
            )?,
            beyond: counters(
                "quota_beyond_charges_total",
                "Reports that were refused, and checks that reserved nothing, since their fileserver had charged or reserved more than its nodes can spend.",
                &["what"],
            )?,
            store_up,
            shares: counter(
                "quota_shares_granted_total",
                "Shares that fileservers were granted, to admit requests by themselves.",
            )?,
            charges_applied: counter("quota_charges_applied_total", "Charges counted.")?,
            charges_dropped_old: counter(
                "quota_charges_dropped_old_total",
                "Charges older than the window, not counted.",
            )?,
            reports_duplicate: counter(
                "quota_reports_duplicate_total",
                "Reports that had been counted before.",
            )?,
            excess_releases: counter(
                "quota_releases_excess_total",
                "Releases of more than their bucket held.",
            )?,
            windows_rebased: counter(
                "quota_windows_rebased_total",
                "Windows and intervals dated back, since the store's clock had stepped back.",
            )?,
            requests: RequestMetrics::new(&registry)?,
            overrides,
            store_unsafe,
            modes,
            overrides_restored: counter(
                "quota_overrides_restored_total",
                "Words of operators that the store had lost, and that this server put back.",
            )?,
            nodes: NodeMetrics::new(&registry)?,
            classes: ClassMetrics::new(&registry)?,
            config: ConfigMetrics::new(&registry)?,
            node_limits_age,
            node_limits_stale,
            sessions,
            registry,
        };
        metrics.show_limits(&config.policy);
        metrics.classes.show(&config.classes);
        metrics.config.accepted(config.digest, 0);
        for account in [HEAVY, LIGHT] {
            metrics.denials.with_label_values(&[account]);
        }
        for reason in Refusal::ALL {
            metrics.refusals.with_label_values(&[reason]);
        }
        for port in Protocol::ALL {
            metrics.connections_refused(port);
        }
        for what in Beyond::ALL {
            metrics.beyond.with_label_values(&[what.as_str()]);
        }
        for change in Change::ALL {
            metrics.changes.with_label_values(&[change.as_str()]);
        }
        for (operation, cause) in
            Operation::ALL.iter().flat_map(|op| Cause::ALL.iter().map(move |cause| (op, cause)))
        {
            metrics.store_errors.with_label_values(&[operation.as_str(), cause.as_str()]);
        }
        Ok(metrics)
    }

    /// Counts a check; `breach` is the limit that decided it, if one did.
    pub fn decision(&self, outcome: Outcome, breach: Option<(&Breach, Mode)>) {
        let (kind, resource, mode) = breach.map_or(("none", "none", "none"), |(breach, mode)| {
            (breach.account.kind().as_str(), breach.resource.as_str(), mode.as_str())
        });
        self.decisions.with_label_values(&[outcome.as_str(), kind, resource, mode]).inc();
    }

    /// Counts a denied check, by whether its account has a limit of its own on the node.
    pub fn denial(&self, heavy: bool) {
        self.denials.with_label_values(&[if heavy { HEAVY } else { LIGHT }]).inc();
    }

    /// Counts a request that was refused for who asked.
    pub fn refused(&self, refusal: &Refusal) {
        self.refusals.with_label_values(&[refusal.as_str()]).inc();
    }

    /// Where connections to a port are counted that were closed at once.
    pub(crate) fn connections_refused(&self, port: Protocol) -> IntCounter {
        self.connections_refused.with_label_values(&[port.as_str()])
    }

    /// Counts what is beyond what a fileserver may charge.
    pub fn beyond(&self, what: Beyond) {
        self.beyond.with_label_values(&[what.as_str()]).inc();
    }

    /// Counts a change by an operator.
    pub fn change(&self, what: Change) {
        self.changes.with_label_values(&[what.as_str()]).inc();
    }

    /// Shows whether the store may lose what it holds.
    pub fn show_risk(&self, risk: Risk, danger: Danger) {
        let label = [risk.as_str()];
        if danger == Danger::Unknown {
            // An error says that there was no value.
            let _ = self.store_unsafe.remove_label_values(&label);
        } else {
            self.store_unsafe.with_label_values(&label).set((danger == Danger::Yes).into());
        }
    }

    /// Where the store's latency for an operation is measured.
    pub fn store_latency(&self, operation: Operation) -> Histogram {
        self.store_seconds.with_label_values(&[operation.as_str()])
    }

    /// Counts an error of the store.
    pub fn store_error(&self, operation: Operation, cause: Cause) {
        self.store_errors.with_label_values(&[operation.as_str(), cause.as_str()]).inc();
    }

    /// All metrics in the text format of Prometheus.
    pub fn encode(&self) -> Result<Vec<u8>, prometheus::Error> {
        let mut text = Vec::new();
        TextEncoder::new().encode(&self.registry.gather(), &mut text)?;
        Ok(text)
    }

    /// Shows other settings, and forgets what only the earlier ones named.
    pub fn show_settings(&self, config: &Config) {
        self.show_limits(&config.policy);
        self.classes.show(&config.classes);
        self.requests.retain(|rpc| config.prices.has(rpc));
    }

    fn show_limits(&self, policy: &Policy) {
        self.limits.reset();
        for (kind, resource, bound) in policy.iter() {
            self.limits
                .with_label_values(&[kind.as_str(), resource.as_str(), bound.mode.as_str()])
                .set(limit_value(resource, bound.limit));
        }
    }
}

/// A limit as a gauge shows it.
fn limit_value(resource: Resource, limit: Limit) -> f64 {
    match limit {
        Limit::Unlimited => f64::INFINITY,
        Limit::At(amount) if resource == Resource::Cpu => amount as f64 / 1e6,
        Limit::At(amount) => wire_amount(resource, amount) as f64,
    }
}

#[cfg(test)]
mod tests;
