//! Who runs and who waits, as pure state: nobody is woken here.
//!
//! A slot that becomes free goes to a waiter in the same step, so that it is never counted as free while somebody
//! live waits. A key is there while it has a request in flight or waiting.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::adaptive::{AdaptiveLimit, BackoffFactor, Change};
use super::figures::Figures;
use super::latency::{Latency, Verdict};
use super::limiter::Permit;
use super::pace::{Load, Mean, Pace, SHORTEST};
use super::refusal::{Reason, Refusal};
use super::settings::Order;

/// A repository or an address.
pub(crate) type Key = Arc<str>;

/// Below this many entries a map is never made smaller.
const SMALL_MAP: usize = 64;

/// The slots of all keys of one set.
#[derive(Debug)]
pub(super) struct Slots {
    limit: AdaptiveLimit,
    max_queue: usize,
    order: Order,
    keys: HashMap<Key, KeySlots>,
    /// Numbers waiters in the order in which they came.
    next_waiter: u64,
    in_flight: usize,
    queued: usize,
    held: Mean,
    latency: Option<Latency>,
    acquired: u64,
    refused: [u64; Reason::ALL.len()],
}

#[derive(Debug)]
struct KeySlots {
    in_flight: usize,
    queue: BTreeMap<u64, Waiter>,
    pace: Pace,
}

#[derive(Debug)]
struct Waiter {
    until: Instant,
    permit: oneshot::Sender<Permit>,
}

/// What becomes of a request that comes.
pub(super) enum Entry {
    /// It has a slot.
    Runs(Started),
    /// It waits, by this number, for its permit.
    Waits(u64, oneshot::Receiver<Permit>),
    Refused(Refusal),
}

/// A request that has a slot and uses it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Started {
    pub(super) at: Instant,
    pub(super) waited: Duration,
    /// How many of all keys were in flight then, this one among them.
    in_flight: usize,
}

impl Slots {
    pub(super) fn new(
        limit: AdaptiveLimit,
        max_queue: usize,
        order: Order,
        latency: Option<Latency>,
    ) -> Self {
        Self {
            limit,
            max_queue,
            order,
            keys: HashMap::new(),
            next_waiter: 0,
            in_flight: 0,
            queued: 0,
            held: Mean::default(),
            latency,
            acquired: 0,
            refused: [0; Reason::ALL.len()],
        }
    }

    /// A request comes, and would wait until `until`. `chance`, from 0 to 1, may decide whether it may.
    pub(super) fn enter(
        &mut self,
        key: &Key,
        caller: u64,
        until: Instant,
        chance: f64,
        now: Instant,
    ) -> Entry {
        let (limit, held) = (self.limit.current(), self.held);
        let slots = self.keys.entry(Arc::clone(key)).or_insert_with(|| KeySlots::new(held, now));
        let places = slots.pace.places(caller, slots.load(limit, self.max_queue), chance, now);
        if slots.in_flight < limit {
            slots.in_flight += 1;
            self.in_flight += 1;
            return Entry::Runs(self.start(Duration::ZERO, now));
        }
        if slots.queue.len() >= places {
            return Entry::Refused(self.refuse(key, caller, Reason::QueueFull, Duration::ZERO, now));
        }
        let (permit, receiver) = oneshot::channel();
        slots.queue.insert(self.next_waiter, Waiter { until, permit });
        self.next_waiter += 1;
        self.queued += 1;
        Entry::Waits(self.next_waiter - 1, receiver)
    }

    /// A request that was given a slot uses it.
    pub(super) fn start(&mut self, waited: Duration, now: Instant) -> Started {
        self.acquired += 1;
        Started { at: now, waited, in_flight: self.in_flight }
    }

    /// Tells when to come back.
    pub(super) fn refuse(
        &mut self,
        key: &Key,
        caller: u64,
        reason: Reason,
        waited: Duration,
        now: Instant,
    ) -> Refusal {
        self.refused[reason as usize] += 1;
        let limit = self.limit.current();
        let idle = Load { limit, in_flight: 0, queued: 0, max_queue: self.max_queue };
        let (load, retry_after) = match self.keys.get_mut(key) {
            Some(slots) => {
                let load = slots.load(limit, self.max_queue);
                // Who came too late for any wait takes no place in the order of those who will come back.
                let too_late = reason == Reason::DeadlinePassed && waited.is_zero();
                (load, if too_late { SHORTEST } else { slots.pace.promise(caller, load, now) })
            }
            None => (idle, SHORTEST),
        };
        Refusal { reason, retry_after, waited, limit, in_flight: load.in_flight, queued: load.queued }
    }

    /// A waiter goes, if it still waits.
    pub(super) fn leave(&mut self, key: &Key, waiter: u64) {
        if let Some(slots) = self.keys.get_mut(key)
            && slots.queue.remove(&waiter).is_some()
        {
            self.queued -= 1;
            if slots.is_idle() {
                self.drop_idle(key);
            }
        }
    }

    /// A slot becomes free; `started` unless nobody used it. Returns who has it now.
    pub(super) fn release(
        &mut self,
        key: &Key,
        started: Option<Started>,
        now: Instant,
    ) -> Option<oneshot::Sender<Permit>> {
        let slots = self.keys.get_mut(key)?;
        if let Some(started) = started {
            let held = now.saturating_duration_since(started.at);
            self.held.add(held);
            slots.pace.freed(held);
            if let Some(latency) = &mut self.latency {
                latency.add(held, started.in_flight);
            }
        }
        // Above a limit that was lowered, the slot is gone.
        if slots.in_flight <= self.limit.current()
            && let Some(permit) = slots.next(self.order, now)
        {
            self.queued -= 1;
            return Some(permit);
        }
        slots.in_flight -= 1;
        self.in_flight -= 1;
        if slots.is_idle() {
            self.drop_idle(key);
        }
        None
    }

    /// Ends an interval: the limit takes a step, down if the machine is `overloaded` or the latency says so.
    /// Returns what the latency said.
    pub(super) fn calibrate(
        &mut self,
        overloaded: bool,
        factor: BackoffFactor,
    ) -> (Option<Verdict>, Option<Change>) {
        let at_min = self.limit.is_at_min();
        let verdict = self.latency.as_mut().and_then(|latency| latency.end_interval(overloaded, at_min));
        let event = overloaded || verdict.is_some_and(|verdict| verdict.is_event);
        (verdict, self.limit.calibrate(event, factor))
    }

    /// Gives slots that a raised limit has made to those who wait.
    pub(super) fn hand_out(&mut self, now: Instant) -> Vec<(Key, oneshot::Sender<Permit>)> {
        let limit = self.limit.current();
        let mut handed = Vec::new();
        for (key, slots) in &mut self.keys {
            while slots.in_flight < limit
                && let Some(permit) = slots.next(self.order, now)
            {
                slots.in_flight += 1;
                self.in_flight += 1;
                self.queued -= 1;
                handed.push((Arc::clone(key), permit));
            }
        }
        handed
    }

    /// Whether more is in flight than the limit allows, of any key: what was admitted before it was lowered.
    pub(super) fn is_exceeded(&self) -> bool {
        let limit = self.limit.current();
        self.in_flight > limit && self.keys.values().any(|slots| slots.in_flight > limit)
    }

    pub(super) fn figures(&self) -> Figures {
        Figures {
            limit: self.limit.current(),
            in_flight: self.in_flight,
            queued: self.queued,
            keys: self.keys.len(),
            acquired: self.acquired,
            refused: self.refused,
        }
    }

    #[cfg(test)]
    pub(super) fn set_limit(&mut self, limit: usize) {
        self.limit.set(limit);
    }

    /// How many keys there is memory for.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.keys.capacity()
    }

    fn drop_idle(&mut self, key: &Key) {
        self.keys.remove(key);
        let (used, kept) = (self.keys.len(), self.keys.capacity());
        if kept > SMALL_MAP && used < kept / 8 {
            self.keys.shrink_to((2 * used).max(SMALL_MAP / 2));
        }
    }
}

impl KeySlots {
    fn new(held: Mean, now: Instant) -> Self {
        Self { in_flight: 0, queue: BTreeMap::new(), pace: Pace::new(held, now) }
    }

    fn load(&self, limit: usize, max_queue: usize) -> Load {
        Load { limit, in_flight: self.in_flight, queued: self.queue.len(), max_queue }
    }

    /// Takes the next waiter who can still be started. The others leave by their own timers.
    fn next(&mut self, order: Order, now: Instant) -> Option<oneshot::Sender<Permit>> {
        let is_live = |(_, waiter): &(&u64, &Waiter)| waiter.until > now;
        let next = match order {
            Order::Fifo => self.queue.iter().find(is_live),
            Order::Lifo => self.queue.iter().rev().find(is_live),
        };
        let number = *next?.0;
        self.queue.remove(&number).map(|waiter| waiter.permit)
    }

    fn is_idle(&self) -> bool {
        self.in_flight == 0 && self.queue.is_empty()
    }
}
