use std::sync::Arc;

use quota_core::{Limit, PerResource};

use super::{Change, Quota};
use crate::config::{Classes, Config, FailPolicy, Policy, Prices};

/// The settings that may change while the server runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The limits in force.
    pub policy: Policy,
    /// What an RPC is expected to cost.
    pub prices: Prices,
    /// The most that a fileserver may charge within a window, for each of its nodes.
    pub charges: PerResource<Limit>,
    /// The kinds of traffic.
    pub classes: Classes,
    /// What to answer without the store.
    pub fail: FailPolicy,
    /// The share of requests that finished of which a line is written, 0 to 1.
    pub logged_requests: f64,
}

impl From<&Config> for Settings {
    fn from(config: &Config) -> Self {
        Self {
            policy: config.policy.clone(),
            prices: config.prices.clone(),
            charges: config.charges,
            classes: config.classes.clone(),
            fail: config.store.fail,
            logged_requests: config.log.requests,
        }
    }
}

impl Quota {
    /// Those in force at this moment.
    pub fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings.read())
    }

    /// From now on decides by another configuration, as far as it may change.
    pub fn adopt(&self, config: &Config) {
        let settings = Arc::new(Settings::from(config));
        let before = std::mem::replace(&mut *self.settings.write(), Arc::clone(&settings));
        self.metrics.show_settings(config);
        let of_file = self.operators.replace_file(&config.overrides);
        self.changes.tell(if before == settings { of_file } else { Some(Change::All) });
    }
}
