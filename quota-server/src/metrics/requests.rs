use std::time::Duration;

use prometheus::core::Collector as _;
use prometheus::proto::{LabelPair, Metric, MetricFamily};
use prometheus::{HistogramOpts, HistogramVec, Registry};
use quota_core::{Cost, Resource};
use quota_proto::wire_amount;

/// What RPCs are called that the price table does not name.
pub const OTHER_RPCS: &str = "other";

/// What requests that have finished cost, by RPC: those that the price table names, and `other` for the rest.
pub struct RequestMetrics {
    cpu: HistogramVec,
    wall: HistogramVec,
    memory: HistogramVec,
    network: HistogramVec,
}

impl RequestMetrics {
    pub(super) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let seconds = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0, 600.0];
        let bytes: Vec<f64> = (10..=40).step_by(3).map(|power| 2_f64.powi(power)).collect();
        let histogram = |name: &str, help: &str, buckets: &[f64]| {
            let options = HistogramOpts::new(name, help).buckets(buckets.to_vec());
            let histogram = HistogramVec::new(options, &["rpc"])?;
            registry.register(Box::new(histogram.clone()))?;
            Ok::<_, prometheus::Error>(histogram)
        };
        Ok(Self {
            cpu: histogram("quota_request_cpu_seconds", "CPU of requests that finished.", &seconds)?,
            wall: histogram("quota_request_wall_seconds", "How long requests ran that finished.", &seconds)?,
            memory: histogram(
                "quota_request_memory_byte_seconds",
                "Memory held over time by requests that finished.",
                &bytes,
            )?,
            network: histogram(
                "quota_request_network_bytes",
                "Bytes over the network, both ways, of requests that finished.",
                &bytes,
            )?,
        })
    }

    /// Forgets the RPCs that the configuration has not any more, so that those of all times do not add up.
    pub(super) fn retain(&self, has: impl Fn(&str) -> bool) {
        let histograms = [&self.cpu, &self.wall, &self.memory, &self.network];
        for histogram in histograms {
            let families = histogram.collect();
            let labels = families.iter().flat_map(MetricFamily::get_metric).flat_map(Metric::get_label);
            for rpc in labels.map(LabelPair::value).filter(|rpc| *rpc != OTHER_RPCS && !has(rpc)) {
                // An error says that it is gone already.
                let _ = histogram.remove_label_values(&[rpc]);
            }
        }
    }

    /// Counts a request under a name that the configuration has, or `other`.
    pub fn finished(&self, rpc: &str, cost: Cost, wall: Option<Duration>) {
        let amount = |resource| wire_amount(resource, cost.amounts()[resource]) as f64;
        self.cpu.with_label_values(&[rpc]).observe(amount(Resource::Cpu) / 1e6);
        self.memory.with_label_values(&[rpc]).observe(amount(Resource::Memory));
        self.network.with_label_values(&[rpc]).observe(amount(Resource::Network));
        if let Some(wall) = wall {
            self.wall.with_label_values(&[rpc]).observe(wall.as_secs_f64());
        }
    }
}
