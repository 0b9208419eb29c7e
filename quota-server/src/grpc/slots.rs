//! Slots of classes of traffic, over gRPC.

use quota_core::{LeaseId, NoSlot, Progress, SlotStanding};
use quota_proto::v1::slot_service_server::SlotService;
use quota_proto::v1::{
    AcquireSlotsRequest, ListClassesRequest, ListClassesResponse, RenewSlotsRequest, Slots, class_policy,
    slots,
};
use quota_proto::{Invalid, age, v1};
use tonic::{Request, Response, Status};

use super::authenticate::caller;
use super::convert::duration;
use super::{Grpc, status};
use crate::config::{Class, Service};
use crate::quota::{AcquireRequest, ClassStanding, Label, RenewRequest, SlotAnswer, slot_owner};

#[tonic::async_trait]
impl SlotService for Grpc {
    async fn acquire(&self, request: Request<AcquireSlotsRequest>) -> Result<Response<Slots>, Status> {
        let caller = caller(&request)?;
        let (asked, node) = acquire(request.get_ref()).map_err(status)?;
        self.0.speaks_for(&caller, node.as_deref()).map_err(status)?;
        let answer = self.0.acquire_slots(asked).await.map_err(status)?;
        Ok(Response::new(answer.into()))
    }

    async fn renew(&self, request: Request<RenewSlotsRequest>) -> Result<Response<Slots>, Status> {
        let caller = caller(&request)?;
        let (asked, node) = renew(request.get_ref()).map_err(status)?;
        self.0.speaks_for(&caller, node.as_deref()).map_err(status)?;
        let answer = self.0.renew_slots(asked).await.map_err(status)?;
        Ok(Response::new(answer.into()))
    }

    async fn list(
        &self,
        _request: Request<ListClassesRequest>,
    ) -> Result<Response<ListClassesResponse>, Status> {
        let classes = self.0.list_classes().await.map_err(status)?;
        Ok(Response::new(ListClassesResponse { classes: classes.into_iter().map(Into::into).collect() }))
    }
}

fn acquire(wire: &AcquireSlotsRequest) -> Result<(AcquireRequest, Label), Invalid> {
    let node = Label::new("node", Some(&wire.node))?;
    let request = AcquireRequest {
        class: Label::new("class", Some(&wire.class))?,
        owner: slot_owner(Some(&wire.holder), &node)?,
        count: wire.count,
        spare: wire.spare,
        overrun: wire.overrun,
        pooled: wire.pooled,
    };
    Ok((request, node))
}

fn renew(wire: &RenewSlotsRequest) -> Result<(RenewRequest, Label), Invalid> {
    let node = Label::new("node", Some(&wire.node))?;
    let lease = LeaseId::try_from(&wire.lease[..]).map_err(|_| Invalid::new("lease", "must be 16 bytes"))?;
    let took = age(wire.took.as_ref(), "took")?;
    let request = RenewRequest {
        class: Label::new("class", Some(&wire.class))?,
        owner: slot_owner(Some(&wire.holder), &node)?,
        lease,
        count: wire.count,
        progress: Progress { finished: wire.finished, took },
    };
    Ok((request, node))
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
            quota_thousandths: u32::try_from(standing.policy.part.of(1000)).unwrap_or(1000),
            standing: standing.standing.map(wire),
        }
    }
}

impl From<&Class> for v1::ClassPolicy {
    fn from(class: &Class) -> Self {
        let max_run = class.max_run.map(duration);
        match class.service {
            Service::Immediate => {
                Self { service: class_policy::Service::Immediate.into(), max_run, ..Self::default() }
            }
            Service::Patient { max_wait, max_queue } => Self {
                service: class_policy::Service::Patient.into(),
                max_wait: Some(duration(max_wait)),
                max_queue,
                max_run,
            },
        }
    }
}

const fn wire(SlotStanding { leased, leases, cap }: SlotStanding) -> v1::SlotStanding {
    v1::SlotStanding { leased, leases, cap }
}
