//! What the service does, whichever protocol asks: check, report, standing, backoff.

mod backoff;
mod check;
mod denials;
mod error;
mod names;
mod report;
mod reservation;
mod retry;
mod standing;
mod words;

use std::sync::Arc;

use quota_core::{Account, Ipv6Prefix, Subject, WindowLength};

pub use backoff::{Backoff, BackoffRequest};
pub use check::{CheckRequest, CheckResponse, Decision};
pub use denials::Denials;
pub use error::QuotaError;
pub use names::Label;
pub use report::{ChargeRequest, ReportRequest, Reported};
pub use reservation::Reservation;
pub use retry::{Jitter, Retry};
pub use standing::{Standing, StandingRequest};
pub use words::denial_in_words;

use crate::config::{FailPolicy, Policy, Prices};
use crate::metrics::Metrics;
use crate::store::{Limited, Snapshots, Store};

/// The service: its settings, and what it counts with.
pub struct Quota {
    /// Where usage is kept.
    pub store: Arc<dyn Store>,
    /// The limits in force.
    pub policy: Policy,
    /// What an RPC is expected to cost.
    pub prices: Prices,
    /// What to answer without the store.
    pub fail: FailPolicy,
    /// How long cost counts.
    pub window: WindowLength,
    /// How IPv6 addresses are grouped.
    pub ipv6_prefix: Ipv6Prefix,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// What is said of denials in the log.
    pub denials: Arc<Denials>,
    /// How answers that name a wait are spread.
    pub jitter: Jitter,
}

impl Quota {
    fn limited(&self, account: &Account) -> Limited {
        Limited { account: account.clone(), bounds: *self.policy.bounds(account.kind()) }
    }

    fn subjects(limited: Vec<Limited>, snapshots: Snapshots) -> Vec<Subject> {
        let judged = limited.into_iter().zip(snapshots.accounts);
        judged.map(|(Limited { account, bounds }, snapshot)| Subject { account, bounds, snapshot }).collect()
    }
}
