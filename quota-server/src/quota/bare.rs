use std::sync::{Arc, LazyLock};

use parking_lot::{Mutex, RwLock};

use super::{
    Allowances, Changes, Consumers, DenialEvents, DenialRecord, Denials, FactRecord, Jitter, NodeLimits,
    Operators, Quota, Settings,
};
use crate::config::Config;
use crate::metrics::Metrics;
use crate::shown::Shown;
use crate::store::Store;

/// Read once: of the targets in `fuzz/` each input has a service of its own.
#[allow(clippy::unwrap_used, reason = "a test that cannot begin fails")]
static DEFAULTS: LazyLock<Config> = LazyLock::new(|| Config::from_toml("").unwrap());

impl Quota {
    /// One with the default settings and nothing around it, which spreads no wait: for tests.
    #[allow(clippy::unwrap_used, reason = "a test that cannot begin fails")]
    pub(crate) fn bare(store: Arc<dyn Store>) -> Self {
        let config = &*DEFAULTS;
        let shown = Arc::new(Shown::open(&config.log).unwrap());
        Self {
            store,
            settings: RwLock::new(Arc::new(Settings::from(config))),
            nodes: NodeLimits::default(),
            operators: Operators::new(&config.overrides),
            changes: Changes::default(),
            window: config.window,
            ipv6_prefix: config.ip.ipv6_prefix,
            metrics: Arc::new(Metrics::new(config).unwrap()),
            denials: Arc::new(Denials::new(Arc::clone(&shown))),
            record: Mutex::<DenialRecord>::default(),
            denial_events: DenialEvents::default(),
            facts: Mutex::<FactRecord>::default(),
            shown,
            consumers: Consumers::new(config.window),
            allowances: Allowances::default(),
            jitter: Jitter::none(),
        }
    }
}
