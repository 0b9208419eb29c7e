//! Slots of classes of traffic, over gRPC.

use quota_core::{LeaseId, NoSlot, Progress, SlotStanding};
use quota_proto::v1::{AcquireSlotsRequest, RenewSlotsRequest, Slots, class_policy, slots};
use quota_proto::{Invalid, age, v1};

use super::convert::duration;
use crate::config::{Class, Service};
use crate::quota::{AcquireRequest, ClassStanding, Label, RenewRequest, SlotAnswer, slot_owner};

pub(super) fn acquire(wire: &AcquireSlotsRequest, node: &Label) -> Result<AcquireRequest, Invalid> {
    Ok(AcquireRequest {
        class: Label::new("class", Some(&wire.class))?,
        owner: slot_owner(Some(&wire.holder), node)?,
        count: wire.count,
        spare: wire.spare,
        overrun: wire.overrun,
        pooled: wire.pooled,
    })
}

pub(super) fn renew(wire: &RenewSlotsRequest, node: &Label) -> Result<RenewRequest, Invalid> {
    let lease = LeaseId::try_from(&wire.lease[..]).map_err(|_| Invalid::new("lease", "must be 16 bytes"))?;
    let took = age(wire.took.as_ref(), "took")?;
    Ok(RenewRequest {
        class: Label::new("class", Some(&wire.class))?,
        owner: slot_owner(Some(&wire.holder), node)?,
        lease,
        count: wire.count,
        progress: Progress { finished: wire.finished, took },
    })
}

impl From<SlotAnswer> for Slots {
    fn from(answer: SlotAnswer) -> Self {
        let refused = answer.refused.map(|(why, _)| match why {
            NoSlot::AtCap => slots::NoSlot::AtCap,
            NoSlot::AtNodeCap => slots::NoSlot::AtNodeCap,
            NoSlot::Opening(_) => slots::NoSlot::Opening,
            NoSlot::TooManyLeases => slots::NoSlot::TooManyLeases,
        });
        Self {
            class: answer.class.into(),
            policy: Some((&answer.policy).into()),
            lease: answer.lease.map(Vec::from).unwrap_or_default(),
            count: answer.count,
            lasts: Some(duration(answer.lasts)),
            refused: refused.unwrap_or_default().into(),
            retry_after: answer.refused.map(|(_, retry)| duration(retry.after)),
            standing: answer.standing.map(wire),
        }
    }
}

impl From<ClassStanding> for v1::Class {
    fn from(standing: ClassStanding) -> Self {
        Self {
            class: standing.class.into(),
            is_default: standing.is_default,
            policy: Some((&standing.policy).into()),
            standing: standing.standing.map(wire),
        }
    }
}

impl From<&Class> for v1::ClassPolicy {
    fn from(class: &Class) -> Self {
        let (service, max_wait, max_queue) = match class.service {
            Service::Immediate => (class_policy::Service::Immediate, None, 0),
            Service::Patient { max_wait, max_queue } => {
                (class_policy::Service::Patient, Some(duration(max_wait)), max_queue)
            }
        };
        Self {
            service: service.into(),
            max_wait,
            max_queue,
            max_run: class.max_run.map(duration),
            quota_thousandths: u32::try_from(class.part.of(1000)).unwrap_or(1000),
        }
    }
}

const fn wire(SlotStanding { leased, leases, cap }: SlotStanding) -> v1::SlotStanding {
    v1::SlotStanding { leased, leases, cap }
}
