//! What the service says of a class and its slots.

use std::sync::Arc;
use std::time::Duration;

use quota_proto::v1::{self, class_policy, slots};

use super::no_slot::NoSlotReason;

/// An answer as it is understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) class: Arc<str>,
    pub(super) policy: Policy,
    /// Whether its requests may use a part of the limits of an account alone.
    pub(super) partial: bool,
    /// How many slots are leased, of how many; none where the class has no cap.
    pub(super) standing: Option<v1::SlotStanding>,
    pub(super) lease: Vec<u8>,
    pub(super) count: u32,
    pub(super) lasts: Duration,
    pub(super) refused: Option<(NoSlotReason, Duration)>,
}

/// How a class is served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Policy {
    /// For how long, and how many of them; none where requests do not wait.
    pub(super) waits: Option<(Duration, usize)>,
    pub(super) max_run: Option<Duration>,
}

/// Where the service tells no time to come back.
pub(super) const COME_BACK: Duration = Duration::from_secs(1);

impl From<v1::Slots> for Answer {
    /// What is missing or makes no sense is none of it: then nothing is held.
    fn from(wire: v1::Slots) -> Self {
        let duration = |wire: Option<&prost_types::Duration>| quota_proto::age(wire, "duration").ok();
        let policy = wire.policy.as_ref();
        let waits =
            policy.filter(|policy| policy.service() == class_policy::Service::Patient).map(|policy| {
                let max_wait = duration(policy.max_wait.as_ref()).unwrap_or_default();
                (max_wait, usize::try_from(policy.max_queue).unwrap_or(usize::MAX))
            });
        let max_run = policy.and_then(|policy| duration(Some(policy.max_run.as_ref()?)));
        let reason = match wire.refused() {
            slots::NoSlot::Unspecified => None,
            slots::NoSlot::AtCap => Some(NoSlotReason::AtCap),
            slots::NoSlot::AtNodeCap => Some(NoSlotReason::AtNodeCap),
            slots::NoSlot::Opening => Some(NoSlotReason::Opening),
            slots::NoSlot::TooManyLeases => Some(NoSlotReason::TooManyLeases),
        };
        let retry_after = wire.retry_after.as_ref().and_then(|after| duration(Some(after)));
        Self {
            policy: Policy { waits, max_run },
            partial: policy.is_some_and(|policy| policy.quota_thousandths < 1000),
            standing: wire.standing,
            count: if wire.lease.is_empty() { 0 } else { wire.count },
            lasts: duration(wire.lasts.as_ref()).unwrap_or_default(),
            refused: reason.map(|reason| (reason, retry_after.unwrap_or(COME_BACK))),
            class: wire.class.into(),
            lease: wire.lease,
        }
    }
}
