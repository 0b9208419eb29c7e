mod grpc;
mod http;

use std::time::Duration;

use quota_core::{Breach, Kind, Limit, Resource};
use quota_proto::{Invalid, v1, wire_amount};

use crate::{NoSlot, Refusal};

pub use grpc::{CONCURRENCY_LIMIT, ERROR_REASON, NO_SLOT, SHED};

/// A refusal: why, and when to come back.
///
/// It reads as a sentence for people, and becomes the answer of a gRPC or HTTP service by `into()`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    cause: Cause,
    retry_after: Duration,
    permanent: bool,
    node: String,
}

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// An account is over its limit.
    OverQuota(OverQuota),
    /// The quota service has lost its store, and is set to refuse what it cannot check; or it cannot read what is
    /// stored of an account.
    Unavailable,
    /// As many requests as may run at once are running, and as many as may wait are waiting or this one waited too
    /// long. It was not started.
    Concurrency(Refusal),
    /// There was no slot for a request of its class, or it has run for too long.
    NoSlot(NoSlot),
    /// It was in flight, and is ended, since the machine is overloaded and it is among those that harm it most.
    Shed,
}

/// Who is over which limit.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OverQuota {
    /// The kind of the account.
    pub kind: Kind,
    /// The account's name, in the spelling of the service.
    pub id: String,
    /// What it has used too much of.
    pub resource: Resource,
    /// How much it used in the window: microseconds, byte-seconds or bytes.
    pub used: u64,
    /// How much it may use, in the same unit.
    pub limit: u64,
    /// Since when and why it has this limit, as a sentence of the service, where it is its own on the node.
    pub why: Option<String>,
}

impl Denial {
    /// Of the answer of the service to a request on `node`. An error where the answer does not tell who is denied
    /// by what.
    pub(crate) fn new(response: &v1::CheckResponse, node: &str) -> Result<Self, Invalid> {
        let breach = response.denied_by.as_ref().ok_or_else(|| Invalid::new("denied_by", "must be given"))?;
        let Some(v1::Limit { limit: Some(v1::limit::Limit::Amount(limit)) }) = breach.limit else {
            return Err(Invalid::new("denied_by.limit", "must be an amount"));
        };
        let over_quota = OverQuota {
            kind: breach.kind().try_into()?,
            resource: breach.resource().try_into()?,
            id: breach.id.clone(),
            used: breach.used,
            limit,
            why: (!breach.why.is_empty()).then(|| breach.why.clone()),
        };
        Ok(Self {
            cause: Cause::OverQuota(over_quota),
            retry_after: quota_proto::age(response.retry_after.as_ref(), "retry_after")?,
            permanent: response.permanent,
            node: node.to_owned(),
        })
    }

    /// Of a limit that is reached by what was used here, as it was last known.
    pub(crate) fn local(breach: &Breach, node: &str) -> Self {
        let limit = match breach.limit {
            Limit::At(amount) => amount,
            Limit::Unlimited => u64::MAX,
        };
        let over_quota = OverQuota {
            kind: breach.account.kind(),
            resource: breach.resource,
            id: breach.account.id().to_owned(),
            used: wire_amount(breach.resource, breach.used),
            limit: wire_amount(breach.resource, limit),
            why: None,
        };
        Self {
            cause: Cause::OverQuota(over_quota),
            retry_after: breach.retry_after,
            permanent: breach.permanent,
            node: node.to_owned(),
        }
    }

    /// The same, to come back after another time.
    #[must_use]
    pub(crate) fn again(&self, retry_after: Duration) -> Self {
        Self { retry_after, ..self.clone() }
    }

    /// Which of a request's accounts is refused; none where it is not one of them.
    pub(crate) const fn kind(&self) -> Option<Kind> {
        match &self.cause {
            Cause::OverQuota(over) => Some(over.kind),
            Cause::Unavailable | Cause::Concurrency(_) | Cause::NoSlot(_) | Cause::Shed => None,
        }
    }

    /// Of a service that cannot check the requests on `node`, and refuses them.
    pub(crate) fn unavailable(retry_after: Duration, node: &str) -> Self {
        Self { cause: Cause::Unavailable, retry_after, permanent: false, node: node.to_owned() }
    }

    /// Of a request of a class that has no slot for it on `node`.
    pub(crate) fn no_slot(no_slot: NoSlot, node: &str) -> Self {
        let retry_after = no_slot.retry_after;
        Self { cause: Cause::NoSlot(no_slot), retry_after, permanent: false, node: node.to_owned() }
    }

    /// Of a request on `node` that is ended while it runs.
    pub(crate) fn shed(retry_after: Duration, node: &str) -> Self {
        Self { cause: Cause::Shed, retry_after, permanent: false, node: node.to_owned() }
    }

    /// Why.
    pub const fn cause(&self) -> &Cause {
        &self.cause
    }

    /// After this long the account is below its limit, if it does nothing more until then; or, as far as can be
    /// known, the service can check again, or there is room for one more request.
    pub const fn retry_after(&self) -> Duration {
        self.retry_after
    }

    /// Waiting does not help: the account is blocked, or its limit is 0.
    pub const fn permanent(&self) -> bool {
        self.permanent
    }

    /// [`retry_after`](Self::retry_after) in whole seconds, rounded up, and at least 1.
    pub fn retry_after_seconds(&self) -> u64 {
        let rounded_up = self.retry_after.as_secs() + u64::from(self.retry_after.subsec_nanos() > 0);
        rounded_up.max(1)
    }
}

impl From<Refusal> for Denial {
    fn from(refusal: Refusal) -> Self {
        let retry_after = refusal.retry_after;
        Self { cause: Cause::Concurrency(refusal), retry_after, permanent: false, node: String::new() }
    }
}

impl std::fmt::Display for Denial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.cause {
            Cause::OverQuota(over) => write!(f, "{over}")?,
            Cause::Unavailable => f.write_str("the quota service cannot check requests")?,
            Cause::Concurrency(refusal) => write!(f, "{refusal}")?,
            Cause::NoSlot(no_slot) => write!(f, "{no_slot}")?,
            Cause::Shed => f.write_str("the request was ended, since the machine is overloaded")?,
        }
        if !self.node.is_empty() {
            write!(f, " on {}", self.node)?;
        }
        if self.permanent {
            f.write_str("; waiting does not help")
        } else {
            write!(f, "; try again in {} s", self.retry_after_seconds())
        }
    }
}

impl std::fmt::Display for OverQuota {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let resource = match self.resource {
            Resource::Cpu => "CPU",
            Resource::Memory => "memory",
            Resource::Network => "network",
        };
        write!(f, "{} {} is over its {resource} quota", self.kind, self.id)
    }
}

impl std::error::Error for Denial {}

#[cfg(test)]
pub(crate) mod tests;
