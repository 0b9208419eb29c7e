//! Classes of traffic: slots for their requests, and what is said of them.

use std::time::Duration;

use quota_core::{LeaseId, Leased, NoSlot, Owner, Progress, Ratio, Renewal, SlotStanding, Wanted};
use quota_proto::{Invalid, check_label};

use super::{Label, Quota, QuotaError, Retry};
use crate::config::{Class, Classes, Service};
use crate::metrics::SlotOutcome;
use crate::store::{SlotCall, StoreError};

/// How long the word that a class has no cap may be taken for true.
const UNCAPPED_LASTS: Duration = Duration::from_secs(5);

/// When to ask again where all slots are leased: leases are renewed, and given back, about once a second.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// The longest name of a holder, in bytes: the scripts' bound.
const MOST_HOLDER_BYTES: usize = 255;

/// Slots that are asked for.
#[derive(Clone, Debug)]
pub struct AcquireRequest {
    /// Of which class; the configured one, if none is named.
    pub class: Label,
    /// For whom.
    pub owner: Owner,
    /// As many as requests wait for one.
    pub count: u32,
    /// Further ones, for requests that may come.
    pub spare: u32,
    /// Requests that still run though their lease has ended, each told once.
    pub overrun: u32,
    /// Whether the holder gives each to one request after the other, and looks itself that none runs for too long.
    pub pooled: bool,
}

/// A lease that goes on, or ends.
#[derive(Clone, Debug)]
pub struct RenewRequest {
    /// Of which class; the configured one, if none is named.
    pub class: Label,
    /// For whom.
    pub owner: Owner,
    /// Which.
    pub lease: LeaseId,
    /// How many of its slots are still needed.
    pub count: u32,
    /// Requests that have ended since that was told last.
    pub progress: Progress,
}

/// Slots of a class, or why there are none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotAnswer {
    /// The name of the class.
    pub class: Box<str>,
    /// How it is served.
    pub policy: Class,
    /// The lease; none where there is none, or the class has no cap.
    pub lease: Option<LeaseId>,
    /// How many slots it has.
    pub count: u32,
    /// For how long, from when it was asked for.
    pub lasts: Duration,
    /// Why there are none.
    pub refused: Option<(NoSlot, Retry)>,
    /// Of the class, where it has a cap.
    pub standing: Option<SlotStanding>,
}

/// A class, and how many of its requests are in progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassStanding {
    /// Its name.
    pub class: Box<str>,
    /// Whether requests that name none are of it.
    pub is_default: bool,
    /// How it is served.
    pub policy: Class,
    /// Where it has a cap.
    pub standing: Option<SlotStanding>,
}

/// Who holds slots, from the fields `holder` and `node`.
pub fn slot_owner(holder: Option<&str>, node: &Label) -> Result<Owner, Invalid> {
    let holder = holder.unwrap_or_default();
    if holder.is_empty() || holder.len() > MOST_HOLDER_BYTES {
        return Err(Invalid::new("holder", format!("must be 1 to {MOST_HOLDER_BYTES} bytes")));
    }
    check_label("holder", holder)?;
    Ok(Owner { holder: holder.into(), node: node.as_str().into() })
}

impl Quota {
    /// Leases slots of a class. Where there are none, the answer says why, and when to ask again.
    pub async fn acquire_slots(&self, request: AcquireRequest) -> Result<SlotAnswer, QuotaError> {
        let (class, policy) = self.class(&request.class)?;
        if request.overrun > 0 {
            self.metrics.classes.overrun(&class, request.overrun);
        }
        let Some(terms) = &policy.slots else {
            let count = request.count.saturating_add(request.spare);
            return Ok(SlotAnswer::uncapped(class, policy, count));
        };
        let wanted = Wanted {
            owner: request.owner,
            lease: new_lease()?,
            count: request.count,
            spare: request.spare,
            stops: policy.max_run.filter(|_| !request.pooled),
        };
        let call = SlotCall { class: &class, terms, pressed: self.nodes.pressed() };
        let leased = self.store.lease_slots(call, &wanted).await?;
        let outcome = match leased.refused {
            None => SlotOutcome::Leased,
            Some(refused) => refused.into(),
        };
        Ok(self.answered(class, policy, wanted.lease, leased, outcome))
    }

    /// Renews a lease, or gives it back.
    pub async fn renew_slots(&self, request: RenewRequest) -> Result<SlotAnswer, QuotaError> {
        let (class, policy) = self.class(&request.class)?;
        let Some(terms) = &policy.slots else {
            return Ok(SlotAnswer::uncapped(class, policy, request.count));
        };
        let RenewRequest { owner, lease, count, progress, .. } = request;
        let call = SlotCall { class: &class, terms, pressed: self.nodes.pressed() };
        let leased = self.store.keep_slots(call, &Renewal { owner, lease, count }, progress).await?;
        let outcome = match (count, leased.count) {
            (0, _) => SlotOutcome::Released,
            (_, 0) => SlotOutcome::Ended,
            _ => SlotOutcome::Renewed,
        };
        Ok(self.answered(class, policy, lease, leased, outcome))
    }

    /// Every class.
    pub async fn list_classes(&self) -> Result<Vec<ClassStanding>, QuotaError> {
        let settings = self.settings();
        let default = settings.classes.get(None).map(|(name, _)| name);
        let mut classes = Vec::new();
        for (name, policy) in settings.classes.iter() {
            let standing = match &policy.slots {
                None => None,
                Some(terms) => {
                    // Nobody's lease that ends: it changes nothing.
                    let nobody = Renewal {
                        owner: Owner { holder: "".into(), node: "".into() },
                        lease: LeaseId::default(),
                        count: 0,
                    };
                    let call = SlotCall { class: name, terms, pressed: self.nodes.pressed() };
                    Some(self.store.keep_slots(call, &nobody, Progress::default()).await?.standing)
                }
            };
            let is_default = default == Some(name);
            classes.push(ClassStanding { class: name.into(), is_default, policy: *policy, standing });
        }
        Ok(classes)
    }

    /// The class of a request, and how it is served.
    fn class(&self, name: &Label) -> Result<(Box<str>, Class), Invalid> {
        let classes = &self.settings().classes;
        let found = classes.get(name.as_deref()).map(|(name, class)| (name.into(), *class));
        found.ok_or_else(|| unknown(classes))
    }

    /// How much of the limits of its accounts a request of a class may use.
    pub(super) fn part_of(&self, class: &Label) -> Result<Ratio, Invalid> {
        let classes = &self.settings().classes;
        classes.get(class.as_deref()).map(|(_, class)| class.part).ok_or_else(|| unknown(classes))
    }

    fn answered(
        &self,
        class: Box<str>,
        policy: Class,
        lease: LeaseId,
        leased: Leased,
        outcome: SlotOutcome,
    ) -> SlotAnswer {
        let Leased { count, lasts, refused, standing } = leased;
        self.metrics.classes.slots(&class, outcome, standing);
        let refused = refused.map(|why| {
            let after = if let NoSlot::Opening(after) = why { after } else { ASK_AGAIN };
            (why, Retry::soon(after, self.jitter))
        });
        let (lease, standing) = (Some(lease).filter(|_| count > 0), Some(standing));
        SlotAnswer { class, policy, lease, count, lasts, refused, standing }
    }
}

fn unknown(classes: &Classes) -> Invalid {
    let known: Vec<&str> = classes.iter().map(|(name, _)| name).collect();
    Invalid::new("class", format!("is unknown; known here: {}", known.join(", ")))
}

/// Nobody can guess it: who knows it may give the lease back.
fn new_lease() -> Result<LeaseId, QuotaError> {
    let mut lease = LeaseId::default();
    getrandom::fill(&mut lease)
        .map_err(|error| StoreError::Unreachable(format!("no random number: {error}")))?;
    Ok(lease)
}

impl SlotAnswer {
    const fn uncapped(class: Box<str>, policy: Class, count: u32) -> Self {
        Self { class, policy, lease: None, count, lasts: UNCAPPED_LASTS, refused: None, standing: None }
    }
}

impl Class {
    /// The queueing rule, as it is written.
    pub const fn service_name(&self) -> &'static str {
        match self.service {
            Service::Immediate => "immediate",
            Service::Patient { .. } => "patient",
        }
    }
}
