use std::iter;
use std::time::Duration;

use crate::{
    Account, Bound, Limit, Mode, PerResource, Ratio, Resource, Tick, Timestamp, Usage, Window, WindowLength,
};

/// What a store tells of an account: the whole window where a limit is reached, the sums where none is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Snapshot {
    /// Below every limit that is compared; when usage falls does not matter.
    Below(Usage),
    /// Everything.
    Full(Window),
}

impl Snapshot {
    /// What was used of each resource.
    pub const fn usage(&self) -> &Usage {
        match self {
            Self::Below(usage) => usage,
            Self::Full(window) => window.usage(),
        }
    }

    fn below_at(&self, resource: Resource, limit: Limit) -> Option<Tick> {
        match self {
            Self::Below(_) => None,
            Self::Full(window) => window.below_at(resource, limit),
        }
    }
}

/// What an account's usage of a resource is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// The account's own limit, for what it used everywhere; and what happens when either limit is reached.
    pub ceiling: Bound,
    /// The limit on the node that is asked about, if it has one.
    pub here: Option<Here>,
}

/// A node's limit, for what an account used on that node: being heavy elsewhere is no reason to be refused on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Here {
    /// The limit.
    pub limit: Limit,
    /// What the account used on the node.
    pub used: HereUsed,
}

/// What an account used on a node, in the resource's internal unit, and by whose word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HereUsed {
    /// As the node counted it when it asked.
    Told(u64),
    /// As the node last reported, a moment ago: no more than what the account used everywhere by now.
    Reported(u64),
    /// Not known: what it used everywhere stands for it.
    Unknown,
}

impl HereUsed {
    /// What counts as used on the node, where this much was used everywhere.
    pub fn of(self, everywhere: u64) -> u64 {
        match self {
            Self::Told(used) => used,
            Self::Reported(used) => used.min(everywhere),
            Self::Unknown => everywhere,
        }
    }
}

impl Comparison {
    /// The same, of a request that may use a part of every limit alone.
    #[must_use]
    pub fn part(self, part: Ratio) -> Self {
        let of = |limit| match limit {
            Limit::At(amount) => Limit::At(part.of(amount)),
            Limit::Unlimited => limit,
        };
        Self {
            ceiling: Bound { limit: of(self.ceiling.limit), ..self.ceiling },
            here: self.here.map(|here| Here { limit: of(here.limit), ..here }),
        }
    }

    /// What a store compares usage everywhere with, to come to the same: usage on the node that is known has been
    /// compared before.
    pub fn bound(&self) -> Bound {
        let here = self.here.map_or(Limit::Unlimited, |Here { limit, used }| match used {
            HereUsed::Told(used) if limit.reached_by(used) => Limit::At(0),
            HereUsed::Reported(used) if limit.reached_by(used) => limit,
            HereUsed::Told(_) | HereUsed::Reported(_) => Limit::Unlimited,
            HereUsed::Unknown => limit,
        });
        Bound { limit: self.ceiling.limit.min(here), ..self.ceiling }
    }

    /// Each limit, and what is compared with it where this much was used everywhere.
    pub fn limits(&self, everywhere: u64) -> impl Iterator<Item = (Scope, Limit, u64)> {
        let here = self.here.map(|here| (Scope::Node, here.limit, here.used.of(everywhere)));
        iter::once((Scope::Cluster, self.ceiling.limit, everywhere)).chain(here)
    }

    /// How long usage may count on beyond the moment at which the store has it leave: on a node that counts for itself, up
    /// to a bucket, since its buckets end at other moments.
    fn lag(&self, scope: Scope, length: WindowLength) -> Duration {
        match (scope, self.here) {
            (Scope::Node, Some(Here { used: HereUsed::Told(_), .. })) => {
                Duration::from_micros(length.bucket_micros())
            }
            _ => Duration::ZERO,
        }
    }
}

/// An account to be judged: its limits, and what a store tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// Who.
    pub account: Account,
    /// The limits in force.
    pub comparisons: PerResource<Comparison>,
    /// When an operator's word on them ends, if it does.
    pub until: Option<Timestamp>,
    /// The usage, whole where [`Comparison::bound`] is reached.
    pub snapshot: Snapshot,
}

/// Whose limit it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The account's own, for what it used everywhere.
    Cluster,
    /// A node's, for what the account used there.
    Node,
}

impl Scope {
    /// The name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cluster => "cluster",
            Self::Node => "node",
        }
    }
}

/// A limit that is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// Whose.
    pub account: Account,
    /// Of what.
    pub resource: Resource,
    /// Which of its limits.
    pub scope: Scope,
    /// How much was used, in the resource's internal unit.
    pub used: u64,
    /// How much may be used.
    pub limit: Limit,
    /// When usage is below the limit again if nothing more is spent; where it is `permanent`, when the operator's word
    /// ends that makes it so, or one window; and at most one window while a clock that stepped back a little catches up. Of a node's limit, the latest that it can be: when what
    /// was spent elsewhere has left first, and a bucket later where the node counts, whose buckets end at other moments.
    pub retry_after: Duration,
    /// Waiting does not help: the limit is 0.
    pub permanent: bool,
}

/// What follows from the usage and limits of a request's accounts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Of the enforced limits that are reached, the one that is so for longest. Any refuses the request.
    pub denied_by: Option<Breach>,
    /// The same of the shadowed ones, which refuse nothing.
    pub shadowed: Option<Breach>,
}

/// Judges the accounts of a request, at the moment at which their snapshots were taken.
pub fn decide<'a>(
    subjects: impl IntoIterator<Item = &'a Subject>,
    now: Timestamp,
    length: WindowLength,
) -> Verdict {
    let mut verdict = Verdict::default();
    for subject in subjects {
        for (resource, comparison) in subject.comparisons.iter() {
            let worst = match comparison.ceiling.mode {
                Mode::Enforce => &mut verdict.denied_by,
                Mode::Shadow => &mut verdict.shadowed,
                Mode::Off => continue,
            };
            for breach in breaches(subject, resource, comparison, now, length) {
                if worst.as_ref().is_none_or(|worst| order(worst) < order(&breach)) {
                    *worst = Some(breach);
                }
            }
        }
    }
    verdict
}

fn order(breach: &Breach) -> (bool, Duration) {
    (breach.permanent, breach.retry_after)
}

/// The limits of a resource that an account has reached.
fn breaches(
    subject: &Subject,
    resource: Resource,
    comparison: &Comparison,
    now: Timestamp,
    length: WindowLength,
) -> impl Iterator<Item = Breach> {
    let everywhere = subject.snapshot.usage()[resource];
    let reached = comparison.limits(everywhere).filter(|(_, limit, used)| limit.reached_by(*used));
    reached.map(move |(scope, limit, used)| {
        let below_at = subject.snapshot.below_at(resource, limit);
        let retry_after = match below_at {
            Some(tick) => (length.until(tick, now) + comparison.lag(scope, length)).min(length.length()),
            None => subject.until.map_or(length.length(), |until| Duration::from_micros(until.since(now))),
        };
        Breach {
            account: subject.account.clone(),
            resource,
            scope,
            used,
            limit,
            retry_after,
            permanent: below_at.is_none(),
        }
    })
}

#[cfg(test)]
mod tests;
