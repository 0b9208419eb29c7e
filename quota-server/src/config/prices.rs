use std::collections::HashMap;
use std::time::Duration;

use quota_core::{BUCKET_CAP, Cost, PerResource, Resource};

use super::error::ConfigError;
use super::layers::Settings;
use super::units;

/// The most RPCs with a price of their own.
const MAX_RPCS: usize = 1000;

/// The longest name of an RPC, in bytes.
const MAX_RPC_BYTES: usize = 256;

/// The entry for RPCs that have none.
const DEFAULT: &str = "default";

/// What RPCs are expected to cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prices {
    default: Cost,
    by_rpc: HashMap<Box<str>, Cost>,
}

impl Prices {
    /// The price of an RPC, that of all others if it has none of its own or is not named.
    pub fn price(&self, rpc: Option<&str>) -> Cost {
        rpc.and_then(|rpc| self.by_rpc.get(rpc)).copied().unwrap_or(self.default)
    }

    /// Whether an RPC has a price of its own.
    pub fn has(&self, rpc: &str) -> bool {
        self.by_rpc.contains_key(rpc)
    }

    pub(super) fn read(settings: &Settings) -> Result<Self, ConfigError> {
        let mut by_rpc = HashMap::new();
        for rpc in settings.names(&["prices"])? {
            let key = ["prices", rpc];
            if rpc == DEFAULT {
                continue;
            }
            if rpc.is_empty() || rpc.len() > MAX_RPC_BYTES {
                let reason = format!("the name of an RPC must be 1 to {MAX_RPC_BYTES} bytes");
                return Err(settings.fault(&key, reason));
            }
            if by_rpc.len() == MAX_RPCS {
                return Err(settings.fault(&key, format!("at most {MAX_RPCS} RPCs can have a price")));
            }
            by_rpc.insert(rpc.into(), cost(settings, rpc)?);
        }
        Ok(Self { default: cost(settings, DEFAULT)?, by_rpc })
    }
}

fn cost(settings: &Settings, rpc: &str) -> Result<Cost, ConfigError> {
    let of = |resource: Resource| {
        let key = ["prices", rpc, resource.as_str()];
        if settings.has(&key) { settings.text(&key, |text| amount(resource, text)) } else { Ok(0) }
    };
    let amounts = PerResource::new(of(Resource::Cpu)?, of(Resource::Memory)?, of(Resource::Network)?);
    Ok(Cost::saturating(amounts))
}

fn amount(resource: Resource, text: &str) -> Result<u64, String> {
    match u64::try_from(units::amount(resource, text, Duration::from_secs(1))?) {
        Ok(amount) if amount <= BUCKET_CAP => Ok(amount),
        _ => Err("is more than one second of a window can hold".into()),
    }
}
