mod account_limit;
mod node;
mod overrides;
mod standing;

use std::time::Duration;

use quota_core::{Accounts, Breach, Cost, Ipv6Prefix, Kind, Limit, Mode, Resource, Scope};

pub use self::account_limit::account_limit;
pub use self::node::{
    CAPACITY_BOUNDS, UsedHere, bound_heaviest, check_heaviest, node_report, used_here, wire_active,
    wire_capacity, wire_limits, wire_pressure, wire_report,
};
pub use self::overrides::{ONE_WORD, override_word, wire_override_word};
pub use self::standing::{comparisons, resource_standing};

use crate::{Invalid, v1};

/// The longest age that is read as it is; longer ones mean the same, since no window is longer than an hour.
const MAX_AGE: Duration = Duration::from_secs(24 * 3600);

/// The accounts of a request, which the field `accounts` holds.
pub fn accounts(wire: Option<&v1::Accounts>, prefix: Ipv6Prefix) -> Result<Accounts, Invalid> {
    let wire = wire.ok_or_else(|| Invalid::new("accounts", "must be given"))?;
    Accounts::new(wire.repo.as_deref(), wire.user.as_deref(), wire.ip.as_deref(), prefix).map_err(
        |(kind, error)| match kind {
            Some(kind) => Invalid::new(format!("accounts.{kind}"), error),
            None => Invalid::new("accounts", "must name a repo, a user or an ip"),
        },
    )
}

/// An age, which a field named `field` holds: absent is none. More than a day is read as a day.
pub fn age(wire: Option<&prost_types::Duration>, field: &str) -> Result<Duration, Invalid> {
    let Some(wire) = wire else { return Ok(Duration::ZERO) };
    Ok(duration(wire, field)?.min(MAX_AGE))
}

/// How long something is, which a field named `field` holds.
pub fn duration(wire: &prost_types::Duration, field: &str) -> Result<Duration, Invalid> {
    let (Ok(seconds), Ok(nanos @ 0..1_000_000_000)) =
        (u64::try_from(wire.seconds), u32::try_from(wire.nanos))
    else {
        return Err(Invalid::new(field, "must not be negative, nor have a second or more of nanos"));
    };
    Ok(Duration::new(seconds, nanos))
}

/// An amount as the API gives it: memory in byte-seconds, the others as they are inside.
pub fn wire_amount(resource: Resource, amount: u64) -> u64 {
    match resource {
        Resource::Memory => amount.saturating_mul(1024),
        Resource::Cpu | Resource::Network => amount,
    }
}

impl TryFrom<v1::Cost> for Cost {
    type Error = Invalid;

    fn try_from(wire: v1::Cost) -> Result<Self, Invalid> {
        Self::ZERO
            .with_cpu_micros(wire.cpu_micros)
            .map_err(|error| Invalid::new("cpu_micros", error))?
            .with_memory_byte_seconds(wire.memory_byte_seconds)
            .map_err(|error| Invalid::new("memory_byte_seconds", error))?
            .with_network_bytes(wire.network_bytes)
            .map_err(|error| Invalid::new("network_bytes", error))
    }
}

impl From<Cost> for v1::Cost {
    fn from(cost: Cost) -> Self {
        let amount = |resource| wire_amount(resource, cost.amounts()[resource]);
        Self {
            cpu_micros: amount(Resource::Cpu),
            memory_byte_seconds: amount(Resource::Memory),
            network_bytes: amount(Resource::Network),
        }
    }
}

impl From<Kind> for v1::Kind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Repo => Self::Repo,
            Kind::User => Self::User,
            Kind::Ip => Self::Ip,
        }
    }
}

impl TryFrom<v1::Kind> for Kind {
    type Error = Invalid;

    fn try_from(wire: v1::Kind) -> Result<Self, Invalid> {
        match wire {
            v1::Kind::Repo => Ok(Self::Repo),
            v1::Kind::User => Ok(Self::User),
            v1::Kind::Ip => Ok(Self::Ip),
            v1::Kind::Unspecified => Err(Invalid::new("kind", "must be given")),
        }
    }
}

impl From<Resource> for v1::Resource {
    fn from(resource: Resource) -> Self {
        match resource {
            Resource::Cpu => Self::Cpu,
            Resource::Memory => Self::Memory,
            Resource::Network => Self::Network,
        }
    }
}

impl TryFrom<v1::Resource> for Resource {
    type Error = Invalid;

    fn try_from(wire: v1::Resource) -> Result<Self, Invalid> {
        match wire {
            v1::Resource::Cpu => Ok(Self::Cpu),
            v1::Resource::Memory => Ok(Self::Memory),
            v1::Resource::Network => Ok(Self::Network),
            v1::Resource::Unspecified => Err(Invalid::new("resource", "must be given")),
        }
    }
}

impl From<Mode> for v1::Mode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Off => Self::Off,
            Mode::Shadow => Self::Shadow,
            Mode::Enforce => Self::Enforce,
        }
    }
}

impl From<Scope> for v1::Scope {
    fn from(scope: Scope) -> Self {
        match scope {
            Scope::Cluster => Self::Cluster,
            Scope::Node => Self::Node,
        }
    }
}

/// A limit as the API gives it.
pub fn limit(resource: Resource, limit: Limit) -> v1::Limit {
    let limit = match limit {
        Limit::At(amount) => v1::limit::Limit::Amount(wire_amount(resource, amount)),
        Limit::Unlimited => v1::limit::Limit::Unlimited(true),
    };
    v1::Limit { limit: Some(limit) }
}

impl From<&Breach> for v1::Breach {
    fn from(breach: &Breach) -> Self {
        Self {
            kind: v1::Kind::from(breach.account.kind()).into(),
            id: breach.account.id().to_owned(),
            resource: v1::Resource::from(breach.resource).into(),
            used: wire_amount(breach.resource, breach.used),
            limit: Some(limit(breach.resource, breach.limit)),
            scope: v1::Scope::from(breach.scope).into(),
            ..Self::default()
        }
    }
}
