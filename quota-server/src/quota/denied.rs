//! What was denied, and what enforcing would have denied: in the last hours, over all servers, and as it happens here.

mod event;
#[cfg(any(fuzzing, test))]
pub(super) mod fuzzing;
mod part;
mod record;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use quota_core::{Account, Kind, Mode, Resource, Timestamp};
use quota_proto::Invalid;

pub use self::event::{DenialEvent, DenialEvents, Listening, Told};
use self::part::Part;
pub(crate) use self::record::DenialRecord;
use self::record::PART;
use super::{Denial, Label, Quota, QuotaError};
use crate::store::Board;

/// A kind of denial that is counted: whose, of what, by which RPC, and whether it was enforced.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Denied {
    account: Account,
    resource: Resource,
    rpc: Option<Arc<str>>,
    enforced: bool,
}

/// Which denials.
#[derive(Clone, Debug)]
pub struct DenialsRequest {
    /// Of the time until now.
    pub since: Duration,
    /// Of accounts of this kind; of all, if there is none.
    pub kind: Option<Kind>,
    /// How many at the most.
    pub limit: usize,
}

/// What was denied, and would have been.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DenialReport {
    /// Of the time until now.
    pub since: Duration,
    /// Most often first.
    pub denials: Vec<DenialCount>,
    /// The most that any of them was denied beside its count; 0 where every denial is counted.
    pub missed: u64,
}

/// How often something was denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DenialCount {
    /// Whose.
    pub account: Account,
    /// By its limit of which resource.
    pub resource: Resource,
    /// Which RPC, where it was told.
    pub rpc: Option<Arc<str>>,
    /// `Enforce` where it was denied, `Shadow` where it would have been.
    pub mode: Mode,
    /// How often.
    pub count: u64,
    /// How long ago the last time was.
    pub last: Duration,
}

impl DenialsRequest {
    /// The longest time that can be asked about.
    pub const LONGEST: Duration = Board::DENIALS_KEPT;

    /// The time that is meant where nothing is said.
    pub const DEFAULT_SINCE: Duration = Duration::from_secs(3600);

    /// The most denials that can be asked for.
    pub const MOST: u32 = 1000;

    /// How many there are where nothing is said.
    pub const DEFAULT: u32 = 100;

    /// The time, from the field `field`.
    pub fn since(field: &str, since: Option<Duration>) -> Result<Duration, Invalid> {
        match since.unwrap_or(Self::DEFAULT_SINCE) {
            since if since > Self::LONGEST || since.is_zero() => {
                Err(Invalid::new(field, "must be more than 0 and at most a day"))
            }
            since => Ok(since),
        }
    }

    /// The number of denials, from the field `limit`.
    pub fn limit(limit: Option<u32>) -> Result<usize, Invalid> {
        match limit.unwrap_or(Self::DEFAULT) {
            limit @ 1..=Self::MOST => Ok(limit as usize),
            _ => Err(Invalid::new("limit", format!("must be 1 to {}", Self::MOST))),
        }
    }
}

impl Quota {
    /// What was denied, and what enforcing would have denied. Changes nothing.
    pub async fn list_denials(&self, request: DenialsRequest) -> Result<DenialReport, QuotaError> {
        let posts = self.store.posts(Board::Denials, request.since + PART).await?;
        let mut parts = self.record.lock().parts(posts.now.before(request.since + PART));
        parts.extend(posts.contents.iter().filter_map(|content| Part::read(content)));

        let (mut counts, mut missed) = (HashMap::<Denied, (u64, Timestamp)>::new(), 0_u64);
        for part in parts {
            missed = missed.saturating_add(part.missed);
            for (denied, count, last) in part.denials() {
                let (sum, latest) = counts.entry(denied).or_insert((0, last));
                *sum = sum.saturating_add(count);
                *latest = last.max(*latest);
            }
        }
        let from = posts.now.before(request.since);
        let asked = counts.into_iter().filter(|(denied, (_, last))| {
            *last >= from && request.kind.is_none_or(|kind| denied.account.kind() == kind)
        });
        let mut asked: Vec<_> = asked.collect();
        asked.sort_unstable_by(|(one, (most, _)), (other, (more, _))| {
            more.cmp(most).then_with(|| one.cmp(other))
        });
        asked.truncate(request.limit);
        let denials = asked.into_iter().map(|(denied, (count, last))| DenialCount {
            account: denied.account,
            resource: denied.resource,
            rpc: denied.rpc,
            mode: if denied.enforced { Mode::Enforce } else { Mode::Shadow },
            count,
            last: Duration::from_micros(posts.now.since(last)),
        });
        Ok(DenialReport { since: request.since, denials: denials.collect(), missed })
    }

    /// Tells other servers what was denied here. To be called once a second.
    pub async fn post_denials(&self) {
        let unposted = self.record.lock().unposted();
        for (number, content) in unposted {
            if self.store.post(Board::Denials, number, &content).await.is_err() {
                // Counted and said where the store is asked.
                self.record.lock().post_again(number);
            }
        }
    }

    /// Takes down a denial, or what would have been one.
    pub(super) fn take_down(&self, denial: &Denial, mode: Mode, node: &Label, rpc: &Label, now: Timestamp) {
        let breach = &denial.breach;
        if mode == Mode::Enforce {
            self.consumers.denied(&breach.account);
        }
        self.record.lock().add(now, &breach.account, breach.resource, rpc.as_deref(), mode);
        self.denial_events.tell(|| DenialEvent {
            node: node.clone(),
            rpc: rpc.clone(),
            mode,
            breach: breach.clone(),
        });
    }
}

#[cfg(test)]
mod tests;
