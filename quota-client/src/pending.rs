//! What is to be reported, as pure state: bounded in number and in age, merged where nothing is lost by it.

use std::collections::VecDeque;
use std::collections::hash_map::Entry;
use std::hash::{Hash, Hasher};
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use quota_core::Cost;
use quota_proto::v1;
use rustc_hash::FxHashMap;
use tokio::time::Instant;

use crate::payers::Payers;

/// The most charges in a report.
pub(crate) const MAX_BATCH: usize = 1024;

/// The most charges that wait.
pub(crate) const MAX_PENDING: usize = 10 * MAX_BATCH;

/// What was spent longer ago than one window does not count any more.
pub(crate) const MAX_AGE: Duration = Duration::from_secs(60);

/// Something spent, and how much of a reservation it gives back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spent {
    pub(crate) payers: Arc<Payers>,
    pub(crate) cost: Cost,
    pub(crate) release: Option<Release>,
    /// What it gives back of a price that was reserved here alone, which is not reported.
    pub(crate) here: Option<quota_core::Release>,
    /// The request, where this is its last charge. Of one without a reservation it is not told: charges of such are merged, so
    /// that a long outage finds room for them.
    pub(crate) finished: Option<Finished>,
}

/// A request that has finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finished {
    pub(crate) rpc: Arc<str>,
    pub(crate) wall: Duration,
    /// What it cost in all.
    pub(crate) total: Cost,
}

/// Part of a reservation, given back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Release {
    pub(crate) reservation: Arc<str>,
    pub(crate) amounts: Cost,
}

/// What a reservation goes by, told from others by where it is: those of one share are clones of one.
#[derive(Debug)]
struct Token(Arc<str>);

impl PartialEq for Token {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Token {}

impl Hash for Token {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.as_ptr().hash(state);
    }
}

/// Charges that wait to be reported.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    /// Of the current interval.
    open: Vec<Spent>,
    /// Where in `open` the charges are that end no request, by who pays and of which reservation they give back.
    mergeable: FxHashMap<(Arc<Payers>, Option<Token>), usize>,
    /// Of earlier intervals, each with its interval's end; oldest first.
    closed: VecDeque<(Instant, Spent)>,
    in_flight: usize,
    /// The end of the interval of the oldest in flight.
    sent: Option<Instant>,
    /// Dropped, and not yet told.
    lost: u64,
}

impl Pending {
    /// Adds to the current interval. Where too many wait, the oldest is dropped.
    pub(crate) fn add(&mut self, spent: Spent, now: Instant) {
        if spent.finished.is_none() {
            let reservation = spent.release.as_ref().map(|release| Token(Arc::clone(&release.reservation)));
            match self.mergeable.entry((Arc::clone(&spent.payers), reservation)) {
                Entry::Occupied(at) => return self.open[*at.get()].merge(&spent),
                Entry::Vacant(at) => drop(at.insert(self.open.len())),
            }
        }
        self.open.push(spent);
        if self.open.len() + self.closed.len() > MAX_PENDING {
            if self.closed.is_empty() {
                self.close(now);
            }
            self.closed.pop_front();
            self.lost += 1;
        }
    }

    /// Ends the current interval: what is in it may be reported.
    pub(crate) fn close(&mut self, now: Instant) {
        // Taken, not drained: what one busy second needed room for is not kept.
        self.mergeable = FxHashMap::default();
        self.closed.extend(mem::take(&mut self.open).into_iter().map(|spent| (now, spent)));
    }

    /// Takes the charges of the next report; they are in flight until [`Pending::landed`].
    pub(crate) fn freeze(&mut self, now: Instant) -> Vec<v1::Charge> {
        let age = |ended: Instant| now.saturating_duration_since(ended);
        while self.closed.front().is_some_and(|(ended, _)| age(*ended) >= MAX_AGE) {
            self.closed.pop_front();
            self.lost += 1;
        }
        self.sent = self.closed.front().map(|(ended, _)| *ended);
        let batch = self.closed.drain(..self.closed.len().min(MAX_BATCH));
        let charges: Vec<_> = batch.map(|(ended, spent)| spent.into_charge(age(ended))).collect();
        self.in_flight = charges.len();
        if self.closed.is_empty() {
            self.closed = VecDeque::new();
        }
        charges
    }

    /// The last report is acknowledged or given up.
    pub(crate) fn landed(&mut self) {
        (self.in_flight, self.sent) = (0, None);
    }

    /// Whether all that was spent before the current interval is reported.
    pub(crate) fn is_drained(&self) -> bool {
        self.closed.is_empty() && self.in_flight == 0
    }

    /// How long the oldest charge has been waiting to be acknowledged.
    pub(crate) fn lag(&self, now: Instant) -> Duration {
        let oldest = self.sent.or_else(|| self.closed.front().map(|(ended, _)| *ended));
        oldest.map_or(Duration::ZERO, |ended| now.saturating_duration_since(ended))
    }

    /// How many charges wait or are in flight.
    pub(crate) fn len(&self) -> usize {
        self.open.len() + self.closed.len() + self.in_flight
    }

    /// How many were dropped since this was last asked.
    pub(crate) fn take_lost(&mut self) -> u64 {
        mem::take(&mut self.lost)
    }
}

impl Spent {
    /// Adds what others of the same reservation spent and give back.
    fn merge(&mut self, other: &Self) {
        self.cost = self.cost.plus(other.cost);
        if let (Some(release), Some(more)) = (&mut self.release, &other.release) {
            release.amounts = release.amounts.plus(more.amounts);
        }
    }

    fn into_charge(self, age: Duration) -> v1::Charge {
        let (reservation, release) = match self.release {
            Some(Release { reservation, amounts }) => (reservation.as_ref().to_owned(), Some(amounts.into())),
            None => (String::new(), None),
        };
        let finished =
            self.finished.map_or_else(v1::Charge::default, |Finished { rpc, wall, total }| v1::Charge {
                rpc: rpc.as_ref().to_owned(),
                finished: true,
                wall: prost_types::Duration::try_from(wall).ok(),
                total: Some(total.into()),
                ..v1::Charge::default()
            });
        v1::Charge {
            accounts: Some(self.payers.named().clone()),
            cost: Some(self.cost.into()),
            // An age is at most `MAX_AGE`, far below what the message holds.
            age: prost_types::Duration::try_from(age).ok(),
            reservation,
            release,
            ..finished
        }
    }
}

#[cfg(test)]
mod tests;
