//! Amounts as JSON has them: CPU in decimal seconds, memory in byte-seconds, network in bytes.

use std::time::Duration;

use quota_core::{Cost, Limit, PerKind, PerResource, Resource, Used};
use quota_proto::wire_amount;
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use crate::quota::{AccountLimit, Denial, Explanation};

/// A cost in a body; what is absent is nothing.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct CostBody {
    #[serde(deserialize_with = "cpu")]
    cpu: Cost,
    #[serde(deserialize_with = "memory")]
    memory: Cost,
    #[serde(deserialize_with = "network")]
    network: Cost,
}

/// What was used of each resource; what is absent is not known.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct UsedBody {
    #[serde(deserialize_with = "known_cpu")]
    cpu: Option<Cost>,
    #[serde(deserialize_with = "known_memory")]
    memory: Option<Cost>,
    #[serde(deserialize_with = "known_network")]
    network: Option<Cost>,
}

impl From<UsedBody> for Used {
    fn from(UsedBody { cpu, memory, network }: UsedBody) -> Self {
        used(cpu, memory, network)
    }
}

/// Of each cost, the amount of the one resource that it is of.
pub(super) fn used(cpu: Option<Cost>, memory: Option<Cost>, network: Option<Cost>) -> Used {
    let costs = PerResource::new(cpu, memory, network);
    Used::from_fn(|resource| costs[resource].map(|cost| cost.amounts()[resource]))
}

pub(super) fn known_cpu<'de, D: Deserializer<'de>>(json: D) -> Result<Option<Cost>, D::Error> {
    cpu(json).map(Some)
}

pub(super) fn known_memory<'de, D: Deserializer<'de>>(json: D) -> Result<Option<Cost>, D::Error> {
    memory(json).map(Some)
}

pub(super) fn known_network<'de, D: Deserializer<'de>>(json: D) -> Result<Option<Cost>, D::Error> {
    network(json).map(Some)
}

impl From<CostBody> for Cost {
    fn from(body: CostBody) -> Self {
        body.cpu.plus(body.memory).plus(body.network)
    }
}

fn cpu<'de, D: Deserializer<'de>>(json: D) -> Result<Cost, D::Error> {
    Cost::ZERO.with_cpu_seconds(f64::deserialize(json)?).map_err(Error::custom)
}

fn memory<'de, D: Deserializer<'de>>(json: D) -> Result<Cost, D::Error> {
    Cost::ZERO.with_memory_byte_seconds(whole(json)?).map_err(Error::custom)
}

fn network<'de, D: Deserializer<'de>>(json: D) -> Result<Cost, D::Error> {
    Cost::ZERO.with_network_bytes(whole(json)?).map_err(Error::custom)
}

/// A number that is not negative, rounded up to a whole one; above what a `u64` holds, the largest.
fn whole<'de, D: Deserializer<'de>>(json: D) -> Result<u64, D::Error> {
    struct Whole;
    impl Visitor<'_> for Whole {
        type Value = u64;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a number that is not negative")
        }

        fn visit_u64<E: Error>(self, value: u64) -> Result<u64, E> {
            Ok(value)
        }

        fn visit_i64<E: Error>(self, value: i64) -> Result<u64, E> {
            u64::try_from(value).map_err(|_| E::invalid_value(Unexpected::Signed(value), &self))
        }

        fn visit_f64<E: Error>(self, value: f64) -> Result<u64, E> {
            if value.is_finite() && value.is_sign_positive() {
                // The cast saturates, and the bound on costs refuses what is too large.
                Ok(value.ceil() as u64)
            } else {
                Err(E::invalid_value(Unexpected::Float(value), &self))
            }
        }
    }
    json.deserialize_any(Whole)
}

/// A duration in decimal seconds; absent is none. More than a day is read as a day, since no window is that long.
pub(super) fn seconds<'de, D: Deserializer<'de>>(json: D) -> Result<Duration, D::Error> {
    Ok(exact_seconds(json)?.min(Duration::from_secs(86_400)))
}

/// The same, however long, and known whether it is absent.
pub(super) fn some_seconds<'de, D: Deserializer<'de>>(json: D) -> Result<Option<Duration>, D::Error> {
    exact_seconds(json).map(Some)
}

/// Rounded up to whole nanoseconds, so that what is more than nothing is not nothing, and what is more than a bound is. Where it
/// does not fit, the longest there is.
fn exact_seconds<'de, D: Deserializer<'de>>(json: D) -> Result<Duration, D::Error> {
    let seconds = f64::deserialize(json)?;
    if !seconds.is_finite() || seconds.is_sign_negative() {
        return Err(D::Error::invalid_value(Unexpected::Float(seconds), &"a number that is not negative"));
    }
    let nearest = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
    let is_less = nearest.as_secs_f64() < seconds;
    Ok(nearest.saturating_add(Duration::from_nanos(is_less.into())))
}

/// An amount in the unit of its resource.
pub(super) fn amount(resource: Resource, amount: u64) -> Value {
    match resource {
        Resource::Cpu => json!(amount as f64 / 1e6),
        Resource::Memory | Resource::Network => json!(wire_amount(resource, amount)),
    }
}

pub(super) fn limit(resource: Resource, limit: Limit) -> Value {
    match limit {
        Limit::At(most) => amount(resource, most),
        Limit::Unlimited => json!("unlimited"),
    }
}

pub(super) fn cost(cost: Cost) -> Value {
    each(|resource| amount(resource, cost.amounts()[resource]))
}

/// The limits of each kind of account.
pub(super) fn limits(limits: &PerKind<PerResource<Limit>>) -> Value {
    let of_kind = |limits: &PerResource<Limit>| each(|resource| limit(resource, limits[resource]));
    limits.iter().map(|(kind, limits)| (kind.as_str().to_owned(), of_kind(limits))).collect()
}

/// An object with a member for each resource.
pub(super) fn each(value: impl FnMut(Resource) -> Value) -> Value {
    let values = PerResource::from_fn(value);
    values.iter().map(|(resource, value)| (resource.as_str().to_owned(), value.clone())).collect()
}

/// A limit that is reached, and why it is what it is.
pub(super) fn denial(denial: &Denial) -> Value {
    let breach = &denial.breach;
    let body = json!({
        "kind": breach.account.kind().as_str(),
        "id": breach.account.id(),
        "resource": breach.resource.as_str(),
        "used": amount(breach.resource, breach.used),
        "limit": limit(breach.resource, breach.limit),
        "scope": breach.scope.as_str(),
    });
    explained(body, denial.explanation.as_ref())
}

pub(super) fn account_limit(AccountLimit { account, resource, limit: most }: &AccountLimit) -> Value {
    json!({
        "kind": account.kind().as_str(),
        "id": account.id(),
        "resource": resource.as_str(),
        "limit": limit(*resource, *most),
    })
}

/// An object with since when and why a limit is an account's own, if it is.
pub(super) fn explained(mut body: Value, explanation: Option<&Explanation>) -> Value {
    if let Some(Explanation { since, why }) = explanation {
        if let Some(since) = since {
            body["since_seconds"] = since.as_secs_f64().into();
        }
        body["why"] = why.to_string().into();
    }
    body
}
