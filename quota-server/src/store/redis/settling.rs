//! Reports that arrive together go to Redis together: while some are on their way, those that come wait until these are
//! answered, and go then, all at once. Decision 20 says why.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use quota_core::WindowLength;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::call::Call;
use super::codec::{self, Outcome};
use super::connections::Connections;
use super::flush::{Part, group};
use super::pool::{Lane, Terms};
use super::scripts::Scripts;
use crate::store::StoreError;

/// The most accounts in a call. Redis does nothing else during one, so that a decision waits for no longer than that.
const ACCOUNTS_IN_CALL: usize = 16;

/// The most in a flush, in units of [`weight`]: what Redis does in a good part of the time that a report has.
const MOST_FLUSHED: u32 = 16 * 1024;

/// The most that waits, or is on its way. Who comes then waits for room.
const MOST_WAITING: u32 = 8 * MOST_FLUSHED;

/// Sends reports to Redis.
#[derive(Clone)]
pub(super) struct Settling(Arc<Inner>);

struct Inner {
    connections: Arc<Connections>,
    scripts: Arc<Scripts>,
    length: WindowLength,
    room: Arc<Semaphore>,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Waiting>,
    is_flushing: bool,
}

/// A report that waits.
struct Waiting {
    parts: Vec<Part>,
    weight: u32,
    answer: oneshot::Sender<Outcomes>,
    _room: OwnedSemaphorePermit,
}

/// What became of a report on each of its accounts, in their order.
pub(super) type Outcomes = Vec<Result<Outcome, StoreError>>;

impl Settling {
    pub(super) fn new(connections: Arc<Connections>, scripts: Arc<Scripts>, length: WindowLength) -> Self {
        let room = Arc::new(Semaphore::new(MOST_WAITING as usize));
        Self(Arc::new(Inner { connections, scripts, length, room, queue: Mutex::default() }))
    }

    /// Settles a report, with others that wait when it can go.
    pub(super) async fn together(&self, parts: Vec<Part>) -> Result<Outcomes, StoreError> {
        if parts.is_empty() {
            return Ok(Vec::new());
        }
        let gone = || StoreError::Unreachable("what sends reports has ended".to_owned());
        let settled = async {
            let weight = weight(&parts).min(MOST_WAITING);
            let room = Arc::clone(&self.0.room).acquire_many_owned(weight).await.map_err(|_| gone())?;
            let (answer, told) = oneshot::channel();
            self.wait(Waiting { parts, weight, answer, _room: room });
            told.await.map_err(|_| gone())
        };
        Terms::new(Lane::Reports, self.0.connections.aside()).within(settled).await
    }

    /// Settles a report by itself.
    pub(super) async fn alone(&self, terms: Terms, parts: Vec<Part>) -> Outcomes {
        self.0.send(terms, &[&parts]).await.pop().unwrap_or_default()
    }

    fn wait(&self, report: Waiting) {
        let mut queue = self.0.queue.lock();
        queue.waiting.push_back(report);
        if !queue.is_flushing {
            queue.is_flushing = true;
            tokio::spawn(Arc::clone(&self.0).flush());
        }
    }
}

impl Inner {
    /// Sends what waits, until nothing does.
    async fn flush(self: Arc<Self>) {
        while let Some(reports) = self.next() {
            let terms = Terms::new(Lane::Reports, self.connections.flush());
            let parts: Vec<&[Part]> = reports.iter().map(|report| &report.parts[..]).collect();
            let told = self.send(terms, &parts).await;
            for (report, outcomes) in reports.into_iter().zip(told) {
                // Who has given up sends it again.
                let _ = report.answer.send(outcomes);
            }
        }
    }

    /// The reports that go together next.
    fn next(&self) -> Option<Vec<Waiting>> {
        let mut queue = self.queue.lock();
        let (mut reports, mut left) = (Vec::new(), MOST_FLUSHED);
        while let Some(report) = queue.waiting.pop_front_if(|next| reports.is_empty() || next.weight <= left)
        {
            if !report.answer.is_closed() {
                left = left.saturating_sub(report.weight);
                reports.push(report);
            }
        }
        if reports.is_empty() {
            queue.is_flushing = false;
            return None;
        }
        Some(reports)
    }

    /// Sends reports in one round trip to each server.
    async fn send(&self, terms: Terms, reports: &[&[Part]]) -> Vec<Outcomes> {
        // On a Cluster an account is rarely in another's slot.
        let accounts = if self.connections.are_many() { 1 } else { ACCOUNTS_IN_CALL };
        let mut groups = group(reports.iter().copied(), accounts);
        let calls = groups.iter_mut().map(|group| {
            let call = Call::script(&self.scripts.settle, &group.keys).arg(self.length.bucket_micros());
            let key = group.keys.first().cloned().unwrap_or_default();
            (key, call.args(std::mem::take(&mut group.packed)))
        });
        let calls: Vec<_> = calls.collect();
        let told = self.connections.run_each(terms, &calls).await;

        let missing = || Err(StoreError::Malformed("settle: no answer".to_owned()));
        let mut outcomes: Vec<Outcomes> =
            reports.iter().map(|parts| parts.iter().map(|_| missing()).collect()).collect();
        for (group, reply) in groups.iter().zip(told) {
            let told = reply.and_then(|reply| codec::outcomes(&reply, group.places.iter().map(Vec::len)));
            let mut told = told.map(Vec::into_iter);
            for place in group.places.iter().flatten() {
                outcomes[place.report][place.part] = match &mut told {
                    Ok(told) => told.next().map_or_else(missing, Ok),
                    Err(error) => Err(error.clone()),
                };
            }
        }
        outcomes
    }
}

/// What a report costs Redis, about, in accounts that are written.
fn weight(parts: &[Part]) -> u32 {
    let weight: usize = parts.iter().map(|part| 1 + part.size / 16).sum();
    u32::try_from(weight).unwrap_or(u32::MAX)
}
