use axum::Extension;
use axum::extract::State;
use quota_core::{Account, Cost, Ipv6Prefix, Kind, NodeReport, PerKind, PerResource, Ratio, Used};
use quota_proto::{CAPACITY_BOUNDS, Invalid, check_heaviest};
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::{Number, Value, json};

use super::Http;
use super::amounts::{self, UsedBody};
use super::bounded::Bounded;
use super::extract::Json;
use super::object::Object;
use super::problem::Problem;
use crate::auth::Caller;
use crate::quota::{PressureRequest, QuotaError};

/// More events than there are kinds of them.
const MAX_EVENTS: usize = 16;

const MAX_HEAVIEST: usize = NodeReport::MAX_HEAVIEST * Kind::ALL.len();

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PressureBody {
    node: Option<String>,
    #[serde(default, deserialize_with = "share")]
    cpu: Option<Ratio>,
    #[serde(default, deserialize_with = "share")]
    memory: Option<Ratio>,
    #[serde(default, deserialize_with = "share")]
    network: Option<Ratio>,
    #[serde(default)]
    events: Bounded<Event, MAX_EVENTS>,
    #[serde(default)]
    capacity: Object<CapacityBody>,
    #[serde(default)]
    active: Object<ActiveBody>,
    #[serde(default)]
    heaviest: Bounded<Object<HeavyBody>, MAX_HEAVIEST>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Event {
    OomKill,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct CapacityBody {
    #[serde(deserialize_with = "millicores")]
    cpu: Option<u64>,
    #[serde(deserialize_with = "whole")]
    memory: Option<u64>,
    #[serde(deserialize_with = "whole")]
    network: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ActiveBody {
    repo: Option<u32>,
    user: Option<u32>,
    ip: Option<u32>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct HeavyBody {
    kind: String,
    id: String,
    #[serde(deserialize_with = "amounts::known_cpu")]
    cpu: Option<Cost>,
    #[serde(deserialize_with = "amounts::known_memory")]
    memory: Option<Cost>,
    #[serde(deserialize_with = "amounts::known_network")]
    network: Option<Cost>,
    recent: Option<Object<UsedBody>>,
}

fn share<'de, D: Deserializer<'de>>(json: D) -> Result<Option<Ratio>, D::Error> {
    let share = Option::<f64>::deserialize(json)?;
    share.map(Ratio::try_from).transpose().map_err(D::Error::custom)
}

/// Cores, in decimal.
fn millicores<'de, D: Deserializer<'de>>(json: D) -> Result<Option<u64>, D::Error> {
    let cores = Option::<f64>::deserialize(json)?;
    // The cast saturates, and makes 0 of what is no number and of what is negative.
    capacity(cores.map(|cores| (cores * 1000.0).round() as u64))
}

/// Bytes.
fn whole<'de, D: Deserializer<'de>>(json: D) -> Result<Option<u64>, D::Error> {
    let bytes = Option::<Number>::deserialize(json)?;
    // As an f64, one more than the most would be the most.
    let whole = |bytes: Number| bytes.as_u64().or_else(|| bytes.as_f64().map(|bytes| bytes as u64));
    capacity(bytes.map(|bytes| whole(bytes).unwrap_or_default()))
}

fn capacity<E: Error>(amount: Option<u64>) -> Result<Option<u64>, E> {
    match amount {
        Some(amount) if !(1..=Cost::MAX).contains(&amount) => Err(E::custom(CAPACITY_BOUNDS)),
        amount => Ok(amount),
    }
}

impl PressureBody {
    fn read(self, prefix: Ipv6Prefix) -> Result<PressureRequest, Invalid> {
        let Self { node, cpu, memory, network, events, capacity, active, heaviest } = self;
        let mut report = NodeReport {
            pressure: PerResource::new(cpu, memory, network),
            oom_kill: events.0.iter().any(|event| matches!(event, Event::OomKill)),
            capacity: PerResource::new(capacity.0.cpu, capacity.0.memory, capacity.0.network),
            active: PerKind::new(active.0.repo, active.0.user, active.0.ip),
            ..NodeReport::default()
        };
        for (at, Object(heavy)) in heaviest.0.into_iter().enumerate() {
            let (account, used, recent) =
                heavy.read(prefix).map_err(|invalid| invalid.within(&format!("heaviest[{at}]")))?;
            report.add_heaviest(account, used, recent);
        }
        check_heaviest(&report)?;
        Ok(PressureRequest { node: PressureRequest::node(node.as_deref())?, report })
    }
}

impl HeavyBody {
    fn read(self, prefix: Ipv6Prefix) -> Result<(Account, Used, Option<Used>), Invalid> {
        let kind = self.kind.parse().map_err(|error| Invalid::new("kind", error))?;
        let account = Account::new(kind, &self.id, prefix).map_err(|error| Invalid::new("id", error))?;
        let recent = self.recent.map(|Object(recent)| recent.into());
        Ok((account, amounts::used(self.cpu, self.memory, self.network), recent))
    }
}

pub(super) async fn pressure(
    State(http): State<Http>,
    Extension(caller): Extension<Caller>,
    Json(body): Json<PressureBody>,
) -> Result<axum::Json<Value>, Problem> {
    let request = body.read(http.quota.ipv6_prefix).map_err(QuotaError::from)?;
    http.quota.speaks_for(&caller, Some(&request.node))?;
    let pressured = http.quota.report_pressure(request).await?;
    Ok(axum::Json(json!({
        "node": pressured.node,
        "calibrated": pressured.calibrated,
        "limits": amounts::limits(&pressured.limits),
        "accounts": pressured.accounts.iter().map(amounts::account_limit).collect::<Vec<_>>(),
    })))
}
