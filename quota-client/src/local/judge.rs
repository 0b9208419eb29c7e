use quota_core::{Account, Breach, Cost, Snapshot, Subject, WindowLength, decide};
use tokio::time::Instant;

use super::{Comparisons, Hold};
use crate::payers::Payers;
use crate::usage::Usage;

/// Compares what accounts used on this fileserver with these limits, as the service would. Where all are below, the price
/// is reserved on all accounts of the request; else on none, and the limit is told that is reached for longest.
pub(crate) fn judge(
    usage: &mut Usage,
    payers: &Payers,
    limits: Vec<(Account, Comparisons)>,
    price: Cost,
    now: Instant,
) -> Result<Option<Hold>, Breach> {
    let subject = |(account, comparisons)| {
        let snapshot = Snapshot::Full(usage.window(&account, now));
        Subject { account, comparisons, until: None, snapshot }
    };
    let subjects: Vec<Subject> = limits.into_iter().map(subject).collect();
    match decide(&subjects, usage.clock(now), WindowLength::default()).denied_by {
        Some(breach) => Err(breach),
        None => Ok(Hold::reserve(usage, payers, price, now)),
    }
}

#[cfg(test)]
mod tests;
