//! Arguments and replies of the scripts on nodes, as the header of each describes them.

use prost::Message as _;
use quota_core::{
    Account, Adaptation, Adaptations, Blame, Calibration, Controller, Cuts, NodeReport, NodeState,
    Observation, PerKind, PerResource, Ratio, Reason, Resource, Rule, Timestamp,
};
use quota_proto::{node_report, v1, wire_report};
use redis::Value;

use super::codec::{integer, malformed, push, read, small, timestamp};
use super::cuts_codec::read_cuts;
use crate::store::{Calibrated, Node, Nodes, StoreError};

/// What comes before the blocks of the resources in a node's state, and the length of each block.
const HEAD: usize = 8;
const BLOCK: usize = 78;

/// The length of a caller's name.
pub(super) const CALLER: usize = 8;

/// Stand for what was not told.
const UNTOLD_SHARE: u64 = (1 << 32) - 1;
const UNTOLD: u64 = (1 << 48) - 1;

pub(super) fn parameters(report: &NodeReport, adaptations: &Adaptations) -> Vec<u8> {
    let mut packed = Vec::with_capacity(327);
    for (resource, adaptation) in adaptations.iter() {
        match adaptation {
            None => packed.resize(packed.len() + 109, 0),
            Some(adaptation) => {
                parameters_of(&mut packed, &report.observation(resource, adaptation.rule), adaptation);
            }
        }
    }
    packed
}

fn parameters_of(packed: &mut Vec<u8>, observation: &Observation, adaptation: &Adaptation) {
    let (rule, soft_limit, backoff_factor) = match adaptation.rule {
        Rule::Aimd { soft_limit, backoff_factor } => (1, soft_limit, backoff_factor),
        Rule::Blame(Blame { soft_limit, backoff_factor, .. }) => (3, soft_limit, backoff_factor),
        Rule::DoubleHalve => (2, Ratio::default(), Ratio::default()),
    };
    packed.push(rule);
    push(packed, adaptation.interval_micros(), 5);
    push(packed, soft_limit.millionths(), 4);
    push(packed, backoff_factor.millionths(), 4);
    push(packed, observation.pressure.map_or(UNTOLD_SHARE, Ratio::millionths), 4);
    packed.push(observation.oom_kill.into());
    for (kind, range) in adaptation.ranges.iter() {
        let heaviest = observation.heaviest[kind].map_or(UNTOLD, |used| used.min(UNTOLD - 1));
        for amount in [range.min, range.initial, range.max, adaptation.step(kind), heaviest] {
            push(packed, amount, 6);
        }
    }
}

/// What is told of a node, as it travels: the message only grows, so that servers of different versions read it.
pub(super) fn report(node: &str, report: &NodeReport) -> Vec<u8> {
    wire_report(node, report).encode_to_vec()
}

pub(super) fn calibrated(reply: &[Value], report: &NodeReport) -> Result<Calibrated, StoreError> {
    let [seconds, micros, Value::BulkString(state), calibrated, rebased, repaired, Value::BulkString(cuts)] =
        reply
    else {
        return Err(malformed("calibrate: shape"));
    };
    let (seen, controllers) = controllers(state, Some(cuts)).ok_or_else(|| malformed("calibrate: state"))?;
    let calibrated = integer(calibrated)?;
    Ok(Calibrated {
        now: timestamp(seconds, micros)?,
        state: NodeState { seen, report: report.clone(), controllers },
        calibrated: PerResource::new(calibrated & 1 > 0, calibrated & 2 > 0, calibrated & 4 > 0),
        rebased: small(rebased)?,
        repaired: integer(repaired)? > 0,
    })
}

/// The nodes of those names, of which state, report and callers are `stored`. One that has just been forgotten is no more.
pub(super) fn nodes(
    now: Timestamp,
    names: &[&str],
    stored: &[Option<Value>],
    caller: [u8; CALLER],
) -> Result<Nodes, StoreError> {
    let mut nodes = Nodes { now, nodes: Vec::new(), unreadable: 0 };
    for (name, fields) in names.iter().zip(stored) {
        match fields {
            Some(Value::Array(fields)) if fields.iter().all(|field| *field == Value::Nil) => {}
            Some(Value::Array(fields)) => match node_state(fields) {
                Some(state) => {
                    nodes.nodes.push(Node { name: (*name).into(), state, ours: ours(fields, caller) });
                }
                None => nodes.unreadable += 1,
            },
            None => nodes.unreadable += 1,
            Some(_) => return Err(malformed("nodes: shape")),
        }
    }
    nodes.nodes.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    Ok(nodes)
}

fn node_state(fields: &[Value]) -> Option<NodeState> {
    let [Value::BulkString(state), Value::BulkString(report), _, cuts] = fields else { return None };
    let cuts = match cuts {
        Value::BulkString(cuts) => Some(cuts.as_slice()),
        _ => None,
    };
    let (seen, controllers) = controllers(state, cuts)?;
    let report = v1::ReportPressureRequest::decode(report.as_slice()).ok()?;
    Some(NodeState { seen, report: node_report(report, Account::from_spelling).ok()?, controllers })
}

/// Whether the last calibration of each resource was made for this caller.
fn ours(fields: &[Value], caller: [u8; CALLER]) -> PerResource<bool> {
    let Some(Value::BulkString(callers)) = fields.get(2) else { return PerResource::default() };
    let mut callers = callers.chunks_exact(CALLER);
    PerResource::from_fn(|_| callers.next() == Some(&caller))
}

/// When a node last reported, and its limits. Who is cut is not told by a server that knows no such rule.
fn controllers(state: &[u8], cuts: Option<&[u8]>) -> Option<(Timestamp, PerResource<Option<Controller>>)> {
    let (head, blocks) = state.split_at_checked(HEAD)?;
    if head.first() != Some(&1) || blocks.len() != Resource::ALL.len() * BLOCK {
        return None;
    }
    let mut cuts = cuts.map_or_else(|| Some(PerResource::default()), read_cuts)?;
    let mut controllers = PerResource::default();
    for (resource, block) in Resource::ALL.into_iter().zip(blocks.chunks_exact(BLOCK)) {
        if block.first() == Some(&1) {
            let cuts = std::mem::take(&mut cuts[resource]);
            controllers[resource] = Some(Controller { cuts, ..controller(&block[1..])? });
        }
    }
    Some((Timestamp::from_micros(read(&head[1..])), controllers))
}

fn controller(block: &[u8]) -> Option<Controller> {
    let moment = |at: usize| Timestamp::from_micros(read(&block[at..at + 7]));
    let of_kinds = |at: usize| {
        let of = |index: usize| read(&block[at + 6 * index..at + 6 * index + 6]);
        PerKind::new(of(0), of(1), of(2))
    };
    let last = match block[54] {
        0 => None,
        reason => Some(Calibration {
            at: moment(47),
            reason: *Reason::ALL.get(usize::from(reason) - 1)?,
            pressure: Ratio::from_millionths(read(&block[55..59])),
            old: of_kinds(59),
        }),
    };
    Some(Controller {
        since: moment(0),
        seen: moment(7),
        area: read(&block[14..21]),
        span: read(&block[21..28]),
        killed: block[28] > 0,
        limits: of_kinds(29),
        last,
        cuts: Cuts::default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_state_is_refused_without_a_panic() {
        for length in 0..300 {
            for byte in [0, 1, 7, 255] {
                let read = controllers(&vec![byte; length], None);
                assert_eq!(read.is_some(), length == HEAD + 3 * BLOCK && byte == 1, "{length} times {byte}");
            }
        }
    }
}
