//! Messages to requests of the service, and its answers to messages.

mod lists;

use std::time::Duration;

use quota_core::{Account, Cost, Ipv6Prefix, Kind, Limit, Resource};
use quota_proto::{
    Invalid, accounts, age, limit, node_report, resource_standing, used_here, v1, wire_active, wire_capacity,
    wire_limits, wire_pressure,
};

pub(super) use self::lists::{denials, top};
use crate::auth::Caller;
use crate::quota::{
    AccountLimit, Backoff, BackoffRequest, ChargeRequest, CheckRequest, CheckResponse, Decision, Denial,
    Explanation, Finished, Label, NodeCalibration, NodeStanding, PressureRequest, Pressured, ReportRequest,
    Reported, Retry, Share, Standing, StandingRequest,
};

pub(super) fn check(wire: v1::CheckRequest, prefix: Ipv6Prefix) -> Result<CheckRequest, Invalid> {
    Ok(CheckRequest {
        node: Label::new("node", Some(&wire.node))?,
        rpc: Label::new("rpc", Some(&wire.rpc))?,
        accounts: accounts(wire.accounts.as_ref(), prefix)?,
        class: Label::new("class", Some(&wire.class))?,
        price: wire.price.map(|price| cost(price, "price")).transpose()?,
        used_here: used_here(wire.used_here.as_ref())?,
        share_wanted: cost(wire.share_wanted.unwrap_or_default(), "share_wanted")?,
    })
}

pub(super) fn report(
    wire: v1::ReportRequest,
    prefix: Ipv6Prefix,
    caller: &Caller,
) -> Result<ReportRequest, Invalid> {
    ReportRequest::bound(wire.charges.len())?;
    let charges =
        wire.charges.into_iter().enumerate().map(|(at, wire)| {
            charge(wire, prefix).map_err(|invalid| invalid.within(&format!("charges[{at}]")))
        });
    Ok(ReportRequest {
        mark: ReportRequest::mark(caller, &wire.source, wire.sequence)?,
        held: age(wire.held.as_ref(), "held")?,
        node: Label::new("node", Some(&wire.node))?,
        charges: charges.collect::<Result<_, _>>()?,
    })
}

fn charge(wire: v1::Charge, prefix: Ipv6Prefix) -> Result<ChargeRequest, Invalid> {
    let release = wire.release.map(|release| cost(release, "release")).transpose()?;
    let spent = cost(wire.cost.unwrap_or_default(), "cost")?;
    let total = wire.total.map(|total| cost(total, "total")).transpose()?;
    let wall = wire.wall.map(|wall| age(Some(&wall), "wall")).transpose()?;
    Ok(ChargeRequest {
        accounts: accounts(wire.accounts.as_ref(), prefix)?,
        cost: spent,
        age: age(wire.age.as_ref(), "age")?,
        release: ChargeRequest::release(&wire.reservation, release)?,
        finished: Finished::read(Some(&wire.rpc), wire.finished, total.unwrap_or(spent), wall)?,
    })
}

pub(super) fn standing(wire: v1::GetStandingRequest, prefix: Ipv6Prefix) -> Result<StandingRequest, Invalid> {
    let kind = Kind::try_from(wire.kind())?;
    Ok(StandingRequest {
        account: Account::new(kind, &wire.id, prefix).map_err(|error| Invalid::new("id", error))?,
        node: Label::new("node", Some(&wire.node))?,
    })
}

pub(super) fn backoff(wire: v1::BackoffRequest, prefix: Ipv6Prefix) -> Result<BackoffRequest, Invalid> {
    Ok(BackoffRequest {
        accounts: accounts(wire.accounts.as_ref(), prefix)?,
        node: Label::new("node", Some(&wire.node))?,
        attempt: wire.attempt,
    })
}

pub(super) fn backoffs(
    wire: v1::BatchBackoffRequest,
    prefix: Ipv6Prefix,
) -> Result<Vec<BackoffRequest>, Invalid> {
    BackoffRequest::bound(wire.requests.len())?;
    let read = |(at, request)| {
        backoff(request, prefix).map_err(|invalid| invalid.within(&format!("requests[{at}]")))
    };
    wire.requests.into_iter().enumerate().map(read).collect()
}

pub(super) fn pressure(
    wire: v1::ReportPressureRequest,
    prefix: Ipv6Prefix,
) -> Result<PressureRequest, Invalid> {
    let node = PressureRequest::node(Some(&wire.node))?;
    let report = node_report(wire, |kind, id| Account::new(kind, id, prefix))?;
    Ok(PressureRequest { node, report })
}

pub(super) fn nodes(wire: &v1::ListNodesRequest) -> Result<Label, Invalid> {
    Label::new("node", Some(&wire.node))
}

fn cost(wire: v1::Cost, field: &str) -> Result<Cost, Invalid> {
    Cost::try_from(wire).map_err(|invalid| invalid.within(field))
}

impl From<CheckResponse> for v1::CheckResponse {
    fn from(response: CheckResponse) -> Self {
        let standings = response.standings.into_iter().map(Into::into).collect();
        let share = response.share.map(|Share { reservation, lasts }| v1::Share {
            reservation: reservation.to_string(),
            amounts: Some(reservation.amounts.into()),
            lasts: Some(duration(lasts)),
        });
        match response.decision {
            Decision::Allow { reservation, checked, shadow } => Self {
                decision: v1::check_response::Decision::Allow.into(),
                reserved: Some(reservation.map_or(Cost::ZERO, |reservation| reservation.amounts).into()),
                reservation: reservation.map(|reservation| reservation.to_string()).unwrap_or_default(),
                checked,
                standings,
                shadow: shadow.as_ref().map(Into::into),
                share,
                ..Self::default()
            },
            Decision::Deny { denied_by, retry } => Self {
                decision: v1::check_response::Decision::Deny.into(),
                checked: true,
                standings,
                denied_by: Some((&denied_by).into()),
                retry_after: Some(duration(retry.after)),
                permanent: retry.permanent,
                ..Self::default()
            },
        }
    }
}

impl From<Standing> for v1::Standing {
    fn from(standing: Standing) -> Self {
        let of = |resource: Resource| {
            let (used, comparison) = &standing.resources[resource];
            let mut wire = resource_standing(resource, *used, comparison);
            if let (Some(here), Some(Explanation { since, why })) = (&mut wire.here, &standing.own[resource])
            {
                (here.since, here.why) = (since.map(duration), why.to_string());
            }
            Some(wire)
        };
        Self {
            kind: v1::Kind::from(standing.account.kind()).into(),
            id: standing.account.id().to_owned(),
            over: standing.over,
            retry_after: Some(duration(standing.retry_after)),
            cpu: of(Resource::Cpu),
            memory: of(Resource::Memory),
            network: of(Resource::Network),
            own: standing.overriding.is_some() || standing.own.iter().any(|(_, own)| own.is_some()),
            r#override: standing.overriding.map(Into::into),
        }
    }
}

impl From<&Denial> for v1::Breach {
    fn from(denial: &Denial) -> Self {
        let mut wire = Self::from(&denial.breach);
        if let Some(Explanation { since, why }) = &denial.explanation {
            (wire.since, wire.why) = (since.map(duration), why.to_string());
        }
        wire
    }
}

impl From<Reported> for v1::ReportResponse {
    fn from(reported: Reported) -> Self {
        Self { applied: reported.applied, dropped_old: reported.dropped_old, duplicate: reported.duplicate }
    }
}

impl From<Backoff> for v1::BackoffResponse {
    fn from(backoff: Backoff) -> Self {
        match backoff {
            Backoff::No => Self::default(),
            Backoff::Yes { denied_by, retry: Retry { after, permanent } } => Self {
                backoff: true,
                retry_after: Some(duration(after)),
                denied_by: Some((&denied_by).into()),
                permanent,
            },
        }
    }
}

impl From<Pressured> for v1::ReportPressureResponse {
    fn from(pressured: Pressured) -> Self {
        Self {
            node: pressured.node.into(),
            calibrated: pressured.calibrated,
            limits: Some(wire_limits(&pressured.limits)),
            accounts: pressured.accounts.iter().map(account_limit).collect(),
        }
    }
}

impl From<NodeStanding> for v1::Node {
    fn from(node: NodeStanding) -> Self {
        let calibrations = node.calibrations.iter();
        let calibrations =
            calibrations.filter_map(|(resource, last)| Some(calibration(resource, last.as_ref()?)));
        Self {
            seen_ago: Some(duration(node.seen_ago)),
            pressure: Some(wire_pressure(&node.report.pressure)),
            limits: Some(wire_limits(&node.limits)),
            last_calibrations: calibrations.collect(),
            capacity: Some(wire_capacity(&node.report.capacity)),
            active: Some(wire_active(&node.report.active)),
            accounts: node
                .accounts
                .into_iter()
                .map(|(limit, Explanation { since, why })| v1::AccountLimit {
                    since: since.map(duration),
                    why: why.to_string(),
                    ..account_limit(&limit)
                })
                .collect(),
            node: node.name.into(),
        }
    }
}

pub(super) fn account(account: &Account) -> v1::Account {
    v1::Account { kind: v1::Kind::from(account.kind()).into(), id: account.id().to_owned() }
}

fn account_limit(AccountLimit { account, resource, limit: most }: &AccountLimit) -> v1::AccountLimit {
    v1::AccountLimit {
        kind: v1::Kind::from(account.kind()).into(),
        id: account.id().to_owned(),
        resource: v1::Resource::from(*resource).into(),
        limit: Some(limit(*resource, *most)),
        ..v1::AccountLimit::default()
    }
}

fn calibration(resource: Resource, calibration: &NodeCalibration) -> v1::Calibration {
    let wire_limit = |amount| Some(limit(resource, Limit::At(amount)));
    let change = |kind| v1::calibration::Change {
        kind: v1::Kind::from(kind).into(),
        old: wire_limit(calibration.old[kind]),
        new: wire_limit(calibration.new[kind]),
    };
    v1::Calibration {
        resource: v1::Resource::from(resource).into(),
        ago: Some(duration(calibration.ago)),
        reason: v1::calibration::Reason::from(calibration.reason).into(),
        pressure: calibration.pressure.into(),
        changes: Kind::ALL.map(change).to_vec(),
    }
}

/// What is told is far below what a protobuf duration holds.
pub(super) fn duration(duration: Duration) -> prost_types::Duration {
    prost_types::Duration {
        seconds: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        nanos: i32::try_from(duration.subsec_nanos()).unwrap_or_default(),
    }
}
