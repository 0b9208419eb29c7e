//! What a fileserver tells of itself, and what is told of it.

use quota_core::{
    Account, Cost, InvalidAccount, Kind, Limit, NodeReport, PerKind, PerResource, Ratio, Reason, Resource,
    Used,
};

use super::{limit, wire_amount};
use crate::{Invalid, v1};

/// For each kind of account, what the one of a request used on a node; `None` where it is not known.
pub type UsedHere = PerKind<PerResource<Option<u64>>>;

/// What a request's accounts used on its node, which the field `used_here` holds.
pub fn used_here(wire: Option<&v1::UsedHere>) -> Result<UsedHere, Invalid> {
    let Some(v1::UsedHere { repo, user, ip }) = wire else { return Ok(UsedHere::default()) };
    let mut used = UsedHere::default();
    for (kind, amounts) in [(Kind::Repo, repo), (Kind::User, user), (Kind::Ip, ip)] {
        if let Some(wire) = amounts {
            used[kind] =
                read_amounts(*wire).map_err(|invalid| invalid.within(&format!("used_here.{kind}")))?;
        }
    }
    Ok(used)
}

fn read_amounts(wire: v1::Amounts) -> Result<PerResource<Option<u64>>, Invalid> {
    let cost = Cost::try_from(v1::Cost {
        cpu_micros: wire.cpu_micros.unwrap_or_default(),
        memory_byte_seconds: wire.memory_byte_seconds.unwrap_or_default(),
        network_bytes: wire.network_bytes.unwrap_or_default(),
    })?;
    let given = PerResource::new(
        wire.cpu_micros.is_some(),
        wire.memory_byte_seconds.is_some(),
        wire.network_bytes.is_some(),
    );
    Ok(PerResource::from_fn(|resource| given[resource].then_some(cost.amounts()[resource])))
}

/// A node's report as it travels, but for the node's name, which says whose it is; `read` makes accounts of names.
pub fn node_report(
    wire: v1::ReportPressureRequest,
    read: impl Fn(Kind, &str) -> Result<Account, InvalidAccount>,
) -> Result<NodeReport, Invalid> {
    let v1::Pressure { cpu, memory, network } = wire.pressure.unwrap_or_default();
    let v1::Active { repo, user, ip } = wire.active.unwrap_or_default();
    let oom_kill = v1::report_pressure_request::Event::OomKill;
    let mut report = NodeReport {
        pressure: PerResource::new(
            pressure("cpu", cpu)?,
            pressure("memory", memory)?,
            pressure("network", network)?,
        ),
        oom_kill: wire.events.contains(&oom_kill.into()),
        capacity: capacity(wire.capacity.unwrap_or_default())?,
        active: PerKind::new(repo, user, ip),
        ..NodeReport::default()
    };
    heaviest(&mut report, wire.heaviest, read)?;
    Ok(report)
}

fn pressure(name: &str, share: Option<f64>) -> Result<Option<Ratio>, Invalid> {
    let share = share.map(Ratio::try_from).transpose();
    share.map_err(|error| Invalid::new(format!("pressure.{name}"), error))
}

fn capacity(wire: v1::Capacity) -> Result<PerResource<Option<u64>>, Invalid> {
    let checked = |name: &str, amount: Option<u64>| match amount {
        Some(amount) if !(1..=Cost::MAX).contains(&amount) => {
            Err(Invalid::new(format!("capacity.{name}"), CAPACITY_BOUNDS))
        }
        amount => Ok(amount),
    };
    Ok(PerResource::new(
        checked("cpu_millicores", wire.cpu_millicores)?,
        checked("memory_bytes", wire.memory_bytes)?,
        checked("network_bytes_per_second", wire.network_bytes_per_second)?,
    ))
}

/// What a capacity must be.
pub const CAPACITY_BOUNDS: &str = "must be more than 0, and at most 2^53";

fn heaviest(
    report: &mut NodeReport,
    wire: Vec<v1::HeavyAccount>,
    read: impl Fn(Kind, &str) -> Result<Account, InvalidAccount>,
) -> Result<(), Invalid> {
    bound_heaviest(wire.len())?;
    let read = |wire: v1::HeavyAccount| {
        let account =
            read(Kind::try_from(wire.kind())?, &wire.id).map_err(|error| Invalid::new("id", error))?;
        let used = read_amounts(wire.used.unwrap_or_default()).map_err(|error| error.within("used"))?;
        let recent = wire.recent.map(read_amounts).transpose().map_err(|error| error.within("recent"))?;
        Ok((account, used, recent))
    };
    for (at, wire) in wire.into_iter().enumerate() {
        let (account, used, recent) =
            read(wire).map_err(|invalid: Invalid| invalid.within(&format!("heaviest[{at}]")))?;
        report.add_heaviest(account, used, recent);
    }
    check_heaviest(report)
}

/// Refuses more accounts than a report may name, before they are looked at.
pub fn bound_heaviest(accounts: usize) -> Result<(), Invalid> {
    let most = NodeReport::MAX_HEAVIEST * Kind::ALL.len();
    if accounts > most { Err(Invalid::new("heaviest", format!("must be at most {most}"))) } else { Ok(()) }
}

/// Refuses more accounts of a kind than a report may name.
pub fn check_heaviest(report: &NodeReport) -> Result<(), Invalid> {
    for kind in Kind::ALL {
        if report.heaviest.keys().filter(|account| account.kind() == kind).count() > NodeReport::MAX_HEAVIEST
        {
            let reason = format!("must be at most {} of the kind {kind}", NodeReport::MAX_HEAVIEST);
            return Err(Invalid::new("heaviest", reason));
        }
    }
    Ok(())
}

/// A node's report as it travels, and as it is stored.
pub fn wire_report(node: &str, report: &NodeReport) -> v1::ReportPressureRequest {
    let oom_kill = v1::report_pressure_request::Event::OomKill.into();
    let heaviest = report.heaviest.iter().map(|(account, used)| v1::HeavyAccount {
        kind: v1::Kind::from(account.kind()).into(),
        id: account.id().to_owned(),
        used: Some(wire_used(used)),
        recent: report.recent.get(account).map(wire_used),
    });
    v1::ReportPressureRequest {
        node: node.to_owned(),
        pressure: Some(wire_pressure(&report.pressure)),
        events: if report.oom_kill { vec![oom_kill] } else { Vec::new() },
        capacity: Some(wire_capacity(&report.capacity)),
        active: Some(wire_active(&report.active)),
        heaviest: heaviest.collect(),
    }
}

/// Amounts that may not be known; a sum of several is at most what one may be.
fn wire_used(used: &Used) -> v1::Amounts {
    let of = |resource| used[resource].map(|used| wire_amount(resource, used).min(Cost::MAX));
    v1::Amounts {
        cpu_micros: of(Resource::Cpu),
        memory_byte_seconds: of(Resource::Memory),
        network_bytes: of(Resource::Network),
    }
}

/// How loaded a node is.
pub fn wire_pressure(pressure: &PerResource<Option<Ratio>>) -> v1::Pressure {
    let of = |resource| pressure[resource].map(f64::from);
    v1::Pressure { cpu: of(Resource::Cpu), memory: of(Resource::Memory), network: of(Resource::Network) }
}

/// What a node has.
pub fn wire_capacity(capacity: &PerResource<Option<u64>>) -> v1::Capacity {
    v1::Capacity {
        cpu_millicores: capacity[Resource::Cpu],
        memory_bytes: capacity[Resource::Memory],
        network_bytes_per_second: capacity[Resource::Network],
    }
}

/// How many accounts were active on a node.
pub fn wire_active(active: &PerKind<Option<u32>>) -> v1::Active {
    v1::Active { repo: active[Kind::Repo], user: active[Kind::User], ip: active[Kind::Ip] }
}

/// The limits in force on a node.
pub fn wire_limits(limits: &PerKind<PerResource<Limit>>) -> v1::NodeLimits {
    let of_kind = |kind| {
        let of = |resource| Some(limit(resource, limits[kind][resource]));
        Some(v1::Limits {
            cpu: of(Resource::Cpu),
            memory: of(Resource::Memory),
            network: of(Resource::Network),
        })
    };
    v1::NodeLimits { repo: of_kind(Kind::Repo), user: of_kind(Kind::User), ip: of_kind(Kind::Ip) }
}

impl From<Reason> for v1::calibration::Reason {
    fn from(reason: Reason) -> Self {
        match reason {
            Reason::Hot => Self::Hot,
            Reason::OomKill => Self::OomKill,
            Reason::Calm => Self::Calm,
            Reason::Steady => Self::Steady,
            Reason::Silent => Self::Silent,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use quota_core::Ipv6Prefix;

    use super::*;

    fn read(wire: v1::ReportPressureRequest) -> Result<NodeReport, Invalid> {
        node_report(wire, Account::from_spelling)
    }

    #[test]
    fn a_report_is_read_as_it_was_written() {
        let network = Account::from_spelling(Kind::Ip, "2001:db8::/48").unwrap();
        let report = NodeReport {
            pressure: PerResource::new(Some(Ratio::from_millionths(930_000)), None, Some(Ratio::ONE)),
            oom_kill: true,
            capacity: PerResource::new(Some(16_000), Some(1 << 36), None),
            active: PerKind::new(Some(0), None, Some(51)),
            heaviest: BTreeMap::from([(network.clone(), PerResource::new(Some(310_200_000), None, Some(0)))]),
            recent: BTreeMap::from([(network, PerResource::new(Some(51_700_000), None, None))]),
        };
        assert_eq!(read(wire_report("n", &report)), Ok(report));
    }

    #[test]
    fn f26_what_addresses_of_one_network_used_is_added_up() {
        let heavy = |id: &str, cpu_micros| v1::HeavyAccount {
            kind: v1::Kind::Ip.into(),
            id: id.to_owned(),
            used: Some(v1::Amounts { cpu_micros: Some(cpu_micros), ..v1::Amounts::default() }),
            recent: None,
        };
        let heaviest = vec![heavy("2001:db8:1:1::1", 60), heavy("2001:db8:1:2::1", 1), heavy("192.0.2.1", 5)];
        let wire = v1::ReportPressureRequest { heaviest, ..v1::ReportPressureRequest::default() };
        let prefix = Ipv6Prefix::new(48).unwrap();
        let report = node_report(wire, |kind, id| Account::new(kind, id, prefix)).unwrap();
        let used = |id| {
            let account = Account::new(Kind::Ip, id, prefix).unwrap();
            [Resource::Cpu, Resource::Memory].map(|resource| report.used(&account, resource))
        };
        assert_eq!(used("2001:db8:1:3::1"), [Some(61), None]);
        assert_eq!(used("192.0.2.1"), [Some(5), None]);
        assert_eq!(used("192.0.2.2"), [Some(0), None], "not among the heaviest; of memory nothing is known");
    }

    #[test]
    fn an_event_that_is_not_known_yet_is_skipped() {
        let wire = v1::ReportPressureRequest { events: vec![77], ..v1::ReportPressureRequest::default() };
        assert_eq!(read(wire), Ok(NodeReport::default()));
    }
}
