use std::time::Duration;

use crate::{
    Account, Bound, Limit, Mode, PerResource, Resource, Tick, Timestamp, Usage, Window, WindowLength,
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

/// An account to be judged: its limits, and what a store tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// Who.
    pub account: Account,
    /// The limits in force.
    pub bounds: PerResource<Bound>,
    /// The usage.
    pub snapshot: Snapshot,
}

/// A limit that is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// Whose.
    pub account: Account,
    /// Of what.
    pub resource: Resource,
    /// How much was used, in the resource's internal unit.
    pub used: u64,
    /// How much may be used.
    pub limit: Limit,
    /// When usage is below the limit again if nothing more is spent; one window where it is `permanent`, and at most one
    /// window while a clock that stepped back a little catches up.
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
        for (resource, bound) in subject.bounds.iter() {
            let worst = match bound.mode {
                Mode::Enforce => &mut verdict.denied_by,
                Mode::Shadow => &mut verdict.shadowed,
                Mode::Off => continue,
            };
            if bound.limit.reached_by(subject.snapshot.usage()[resource]) {
                let breach = breach(subject, resource, bound.limit, now, length);
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

fn breach(
    subject: &Subject,
    resource: Resource,
    limit: Limit,
    now: Timestamp,
    length: WindowLength,
) -> Breach {
    let below_at = subject.snapshot.below_at(resource, limit);
    Breach {
        account: subject.account.clone(),
        resource,
        used: subject.snapshot.usage()[resource],
        limit,
        retry_after: below_at.map_or(length.length(), |tick| length.until(tick, now).min(length.length())),
        permanent: below_at.is_none(),
    }
}

#[cfg(test)]
mod tests;
