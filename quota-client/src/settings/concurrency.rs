//! A limit of concurrency as it is written in TOML.

use std::time::Duration;

use serde::Deserialize;

use super::duration;
use crate::concurrency::{LimitSettings, Order, Per, RpcSettings, SetSettings};

/// `[[concurrency]]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RpcTable {
    rpc: String,
    per: Per,
    limit: Option<usize>,
    adaptive: Option<Adaptive>,
    max_queue: usize,
    #[serde(with = "duration")]
    max_wait: Duration,
    #[serde(default)]
    order: Order,
    #[serde(default)]
    latency: bool,
    #[serde(default)]
    exempt_loopback: bool,
    unauthenticated: Option<SetTable>,
}

/// `[concurrency.unauthenticated]`; what is not given is as for the others.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SetTable {
    limit: Option<usize>,
    adaptive: Option<Adaptive>,
    max_queue: Option<usize>,
    #[serde(default, with = "duration::optional")]
    max_wait: Option<Duration>,
    order: Option<Order>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Adaptive {
    min: usize,
    initial: usize,
    max: usize,
}

impl TryFrom<RpcTable> for RpcSettings {
    type Error = &'static str;

    fn try_from(table: RpcTable) -> Result<Self, Self::Error> {
        let RpcTable { rpc, per, max_queue, max_wait, order, latency, exempt_loopback, .. } = table;
        let limit = limit(table.limit, table.adaptive)?;
        let unauthenticated = table.unauthenticated.map(|set| {
            Ok::<_, Self::Error>(SetSettings {
                limit: self::limit(set.limit, set.adaptive)?,
                max_queue: set.max_queue.unwrap_or(max_queue),
                max_wait: set.max_wait.unwrap_or(max_wait),
                order: set.order.unwrap_or(order),
            })
        });
        let set = SetSettings { limit, max_queue, max_wait, order };
        Ok(Self { rpc, per, set, unauthenticated: unauthenticated.transpose()?, latency, exempt_loopback })
    }
}

fn limit(limit: Option<usize>, adaptive: Option<Adaptive>) -> Result<LimitSettings, &'static str> {
    match (limit, adaptive) {
        (Some(limit), None) => Ok(LimitSettings::Static(limit)),
        (None, Some(Adaptive { min, initial, max })) => Ok(LimitSettings::Adaptive { min, initial, max }),
        _ => Err("either `limit` or `adaptive` must be given"),
    }
}
