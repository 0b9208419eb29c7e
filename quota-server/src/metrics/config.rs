use std::time::SystemTime;

use prometheus::{Gauge, IntGauge, Registry};

/// Which configuration is in force.
pub struct ConfigMetrics {
    successful: IntGauge,
    since: Gauge,
    digest: Gauge,
    pending: IntGauge,
}

impl ConfigMetrics {
    pub(super) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let integer = |name: &str, help: &str| {
            let gauge = IntGauge::new(name, help)?;
            registry.register(Box::new(gauge.clone()))?;
            Ok::<_, prometheus::Error>(gauge)
        };
        let number = |name: &str, help: &str| {
            let gauge = Gauge::new(name, help)?;
            registry.register(Box::new(gauge.clone()))?;
            Ok::<_, prometheus::Error>(gauge)
        };
        Ok(Self {
            successful: integer(
                "quota_config_last_reload_successful",
                "0 while the configuration file has what was refused, and the one before it is in force.",
            )?,
            since: number(
                "quota_config_last_reload_success_timestamp_seconds",
                "When the configuration in force was read, in seconds since 1970.",
            )?,
            digest: number(
                "quota_config_hash",
                "Of the settings that all servers on one store decide by: another number is another configuration.",
            )?,
            pending: integer(
                "quota_config_restart_pending",
                "How many settings in the file differ from those in force, and take a restart.",
            )?,
        })
    }

    /// A configuration is in force, of this digest; so many settings wait for a restart.
    pub fn accepted(&self, digest: u64, pending: usize) {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.since.set(now.as_secs_f64());
        // 48 bits, which it holds exactly.
        self.digest.set(digest as f64);
        self.pending.set(i64::try_from(pending).unwrap_or(i64::MAX));
        self.successful.set(1);
    }

    /// Another one was refused.
    pub fn refused(&self) {
        self.successful.set(0);
    }
}
