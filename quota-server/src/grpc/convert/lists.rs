//! Lists for operators: who consumes most, what was denied.

use std::time::Duration;

use quota_core::{Kind, Resource};
use quota_proto::{Invalid, limit, v1, wire_amount};

use super::duration;
use crate::quota::{DenialCount, DenialReport, DenialsRequest, Label, Top, TopRequest};

pub(crate) fn top(wire: &v1::ListTopRequest) -> Result<TopRequest, Invalid> {
    Ok(TopRequest {
        kind: Kind::try_from(wire.kind())?,
        resource: Resource::try_from(wire.resource())?,
        node: Label::new("node", Some(&wire.node))?,
        limit: TopRequest::limit(wire.limit)?,
    })
}

pub(crate) fn denials(wire: &v1::ListDenialsRequest) -> Result<DenialsRequest, Invalid> {
    let not_negative = |_| Invalid::new("since", "must not be negative");
    let since = wire.since.map(|since| Duration::try_from(since).map_err(not_negative)).transpose()?;
    let kind = (wire.kind != v1::Kind::Unspecified as i32).then(|| Kind::try_from(wire.kind()));
    Ok(DenialsRequest {
        since: DenialsRequest::since("since", since)?,
        kind: kind.transpose()?,
        limit: DenialsRequest::limit(wire.limit)?,
    })
}

impl From<Top> for v1::ListTopResponse {
    fn from(top: Top) -> Self {
        let accounts = top.accounts.into_iter().map(|consumer| v1::Consumer {
            kind: v1::Kind::from(consumer.account.kind()).into(),
            id: consumer.account.id().to_owned(),
            used: wire_amount(top.resource, consumer.used),
            limit: Some(limit(top.resource, consumer.limit)),
            denied: consumer.denied,
        });
        Self {
            kind: v1::Kind::from(top.kind).into(),
            resource: v1::Resource::from(top.resource).into(),
            node: top.node.as_str().to_owned(),
            accounts: accounts.collect(),
        }
    }
}

impl From<DenialReport> for v1::ListDenialsResponse {
    fn from(report: DenialReport) -> Self {
        let denials = report.denials.into_iter().map(|denial: DenialCount| v1::DenialCount {
            kind: v1::Kind::from(denial.account.kind()).into(),
            id: denial.account.id().to_owned(),
            resource: v1::Resource::from(denial.resource).into(),
            rpc: denial.rpc.map(|rpc| (*rpc).to_owned()).unwrap_or_default(),
            mode: v1::Mode::from(denial.mode).into(),
            count: denial.count,
            last_ago: Some(duration(denial.last)),
        });
        Self { since: Some(duration(report.since)), denials: denials.collect(), missed: report.missed }
    }
}
