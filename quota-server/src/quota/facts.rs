//! What requests cost, by RPC, from what fileservers tell when they have finished: for a table of prices.

mod record;

use std::sync::Arc;
use std::time::Duration;

use quota_core::{Accounts, Cost, Histogram, Kind, PerResource};
use quota_proto::{Invalid, v1};

pub(crate) use self::record::FactRecord;
use super::{Label, Quota, ReportRequest};
use crate::metrics::OTHER_RPCS;

/// A request that has finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Its full method name.
    pub rpc: Box<str>,
    /// What it cost in all.
    pub cost: Cost,
    /// How long it ran, where that is told.
    pub wall: Option<Duration>,
}

/// Of which requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PricesRequest {
    /// Those that finished within this time until now.
    pub since: Duration,
}

/// What requests of an RPC cost, by what this server was told.
#[derive(Clone, Debug)]
pub struct RpcCosts {
    /// Its full method name, or `other`.
    pub rpc: Arc<str>,
    /// How many finished.
    pub count: u64,
    /// What they cost, in internal units.
    pub cost: PerResource<Histogram>,
    /// How long they ran, in microseconds; empty where that was not told.
    pub wall: Histogram,
}

impl PricesRequest {
    /// The longest time that can be asked about.
    pub const LONGEST: Duration = Duration::from_secs(24 * 3600);

    /// The time, from the field `field`; a day if absent.
    pub fn since(field: &str, since: Option<Duration>) -> Result<Duration, Invalid> {
        match since.unwrap_or(Self::LONGEST) {
            since if since > Self::LONGEST || since.is_zero() => {
                Err(Invalid::new(field, "must be more than 0 and at most a day"))
            }
            since => Ok(since),
        }
    }
}

impl Finished {
    /// What a charge tells of its request, from its fields: `rpc`, `finished`, `total` and `wall`.
    pub fn read(
        rpc: Option<&str>,
        finished: bool,
        cost: Cost,
        wall: Option<Duration>,
    ) -> Result<Option<Self>, Invalid> {
        let rpc = Label::new("rpc", rpc)?;
        let finished = rpc.as_deref().filter(|_| finished);
        Ok(finished.map(|rpc| Self { rpc: rpc.into(), cost, wall }))
    }
}

impl Quota {
    /// What requests cost, by RPC, those of which most finished first; by what this server was told. Changes nothing.
    pub fn list_prices(&self, request: PricesRequest) -> Vec<RpcCosts> {
        self.facts.lock().costs(request.since)
    }

    /// Takes down the requests of a report that have finished.
    pub(super) fn take_down_finished(&self, report: &ReportRequest) {
        let settings = self.settings();
        let finished = report.charges.iter().filter_map(|charge| Some((charge, charge.finished.as_ref()?)));
        for (charge, finished) in finished {
            self.facts.lock().add(finished);
            let label = if settings.prices.has(&finished.rpc) { &finished.rpc } else { OTHER_RPCS };
            self.metrics.requests.finished(label, finished.cost, finished.wall);
            if fastrand::f64() < settings.logged_requests {
                self.log_finished(report, &charge.accounts, finished);
            }
        }
    }

    fn log_finished(&self, report: &ReportRequest, accounts: &Accounts, finished: &Finished) {
        let of = |kind| {
            let named = accounts.as_slice().iter().find(|account| account.kind() == kind);
            named.and_then(|account| self.shown.id(account))
        };
        let cost = v1::Cost::from(finished.cost);
        tracing::info!(
            target: "request",
            rpc = &*finished.rpc,
            node = report.node.as_str(),
            repo = of(Kind::Repo),
            user = of(Kind::User),
            ip = of(Kind::Ip),
            cpu_seconds = cost.cpu_micros as f64 / 1e6,
            memory_byte_seconds = cost.memory_byte_seconds,
            network_bytes = cost.network_bytes,
            wall_seconds = finished.wall.map(|wall| wall.as_secs_f64()),
            "finished"
        );
    }
}
