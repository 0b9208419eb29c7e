//! The lock around [`Slots`], and the waiting. A permit is a value that owns its slot: it travels to a waiter
//! through a channel, so that whoever drops it, the waiter, the channel or the request, gives the slot back, and
//! nobody else does.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use super::adaptive::{BackoffFactor, Change};
use super::figures::Figures;
use super::latency::Verdict;
use super::refusal::{Reason, Refusal};
use super::slots::{Entry, Key, Slots, Started};

/// One limit for many keys, each with its own requests in flight and its own queue.
#[derive(Clone, Debug)]
pub(crate) struct Limiter(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    max_wait: Duration,
    /// Never held while somebody is woken or a permit is dropped, since that takes it again.
    slots: Mutex<Slots>,
}

/// Leave to run. Its slot becomes free when it is dropped, however the work ended; for a stream, keep it until the
/// stream has ended.
#[must_use = "the slot is free again when the permit is dropped"]
pub struct Permit {
    shared: Arc<Shared>,
    key: Key,
    /// Not of one that is on its way to a waiter.
    started: Option<Started>,
}

/// A place in the queue, which is left when it is dropped.
struct Place<'a> {
    shared: &'a Shared,
    key: &'a Key,
    waiter: u64,
}

impl Limiter {
    pub(super) fn new(slots: Slots, max_wait: Duration) -> Self {
        Self(Arc::new(Shared { max_wait, slots: Mutex::new(slots) }))
    }

    /// Waits for a slot, at most until the deadline or for the longest wait. `caller` tells one who comes back from
    /// others.
    pub(crate) async fn acquire(
        &self,
        key: &Key,
        caller: u64,
        deadline: Option<Instant>,
    ) -> Result<Permit, Refusal> {
        let shared = &self.0;
        let asked = Instant::now();
        let longest = asked + shared.max_wait;
        let until = deadline.map_or(longest, |deadline| deadline.min(longest));
        let late = if until < longest { Reason::DeadlinePassed } else { Reason::WaitedTooLong };
        if deadline.is_some_and(|deadline| deadline <= asked) {
            return Err(shared.slots.lock().refuse(key, caller, late, Duration::ZERO, asked));
        }
        let entry = shared.slots.lock().enter(key, caller, until, fastrand::f64(), asked);
        let (waiter, receiver) = match entry {
            Entry::Runs(started) => return Ok(Permit::new(shared, key, Some(started))),
            Entry::Refused(refusal) => return Err(refusal),
            Entry::Waits(waiter, receiver) => (waiter, receiver),
        };
        let place = Place { shared, key, waiter };
        let handed = timeout_at(until, receiver).await;
        drop(place);
        let now = Instant::now();
        let waited = now.saturating_duration_since(asked);
        match handed {
            Ok(Ok(mut permit)) if now < until => {
                permit.started = Some(shared.slots.lock().start(waited, now));
                Ok(permit)
            }
            // One that came too late goes on to the next waiter.
            late_permit => {
                drop(late_permit);
                Err(shared.slots.lock().refuse(key, caller, late, waited, now))
            }
        }
    }

    /// Ends an interval, and lets in whom a raised limit has room for. What is in flight above a lowered one goes on.
    pub(super) fn calibrate(
        &self,
        overloaded: bool,
        factor: BackoffFactor,
    ) -> (Option<Verdict>, Option<Change>) {
        self.step(|slots| slots.calibrate(overloaded, factor))
    }

    pub(crate) fn is_exceeded(&self) -> bool {
        self.0.slots.lock().is_exceeded()
    }

    pub(crate) fn figures(&self) -> Figures {
        self.0.slots.lock().figures()
    }

    #[cfg(test)]
    pub(super) fn set_limit(&self, limit: usize) {
        self.step(|slots| slots.set_limit(limit));
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.0.slots.lock().capacity()
    }

    fn step<T>(&self, change: impl FnOnce(&mut Slots) -> T) -> T {
        let (changed, handed) = {
            let mut slots = self.0.slots.lock();
            (change(&mut slots), slots.hand_out(Instant::now()))
        };
        for (key, waiter) in handed {
            Permit::new(&self.0, &key, None).pass_to(waiter);
        }
        changed
    }
}

impl Permit {
    fn new(shared: &Arc<Shared>, key: &Key, started: Option<Started>) -> Self {
        Self { shared: Arc::clone(shared), key: Arc::clone(key), started }
    }

    /// How long it was waited for.
    pub fn waited(&self) -> Duration {
        self.started.map_or(Duration::ZERO, |started| started.waited)
    }

    /// A waiter who has gone in this very moment does not take it: it is dropped, and goes on to the next.
    fn pass_to(self, waiter: oneshot::Sender<Self>) {
        drop(waiter.send(self));
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let waiter = self.shared.slots.lock().release(&self.key, self.started, Instant::now());
        if let Some(waiter) = waiter {
            Self::new(&self.shared, &self.key, None).pass_to(waiter);
        }
    }
}

impl std::fmt::Debug for Permit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Permit").field("started", &self.started).finish_non_exhaustive()
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.shared.slots.lock().leave(self.key, self.waiter);
    }
}
