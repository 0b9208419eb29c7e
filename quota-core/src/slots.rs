//! The slots of a class of traffic: how many of its requests are in progress, everywhere.
//!
//! A slot is one request in progress. Slots are leased for a while, in blocks, and the lease is renewed while any of them is
//! needed: what a holder that was killed had comes back when its lease ends. A holder counts its lease from before it asked,
//! so that it ends there no later than here. `lua/slots.lua` holds the same in Redis.
//!
//! No answer that is lost, and no call that comes twice or late, lets more be held than the cap: acquiring makes a lease of its
//! own each time, and renewing only ever makes one smaller.

mod cap;
mod clock;

use std::collections::BTreeMap;
use std::time::Duration;

use self::cap::CapState;
pub use self::cap::{Adaptive, Cap, Progress};
use self::clock::SteadyClock;
use crate::Timestamp;
use crate::time::micros;

/// Which lease: a random number, which its holder alone knows.
pub type LeaseId = [u8; 16];

/// The leases of a class, and what its cap has come to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slots {
    clock: SteadyClock,
    /// Until when it is not known what was leased before: nothing new is.
    opens: Timestamp,
    cap: CapState,
    leases: BTreeMap<LeaseId, Lease>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Lease {
    owner: Owner,
    count: u32,
    /// When it was leased, or renewed last.
    since: Timestamp,
    ends: Timestamp,
    /// When it ends for good, however often it is renewed.
    stops: Option<Timestamp>,
}

impl Lease {
    /// What it has been since it was renewed last: slots times microseconds, of those an interval at the most.
    fn slot_micros(&self, now: Timestamp) -> u64 {
        u64::from(self.count) * now.since(self.since).min(cap::INTERVAL)
    }
}

/// Who holds slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// A process; as it names itself.
    pub holder: Box<str>,
    /// The node on which the requests run; empty where it is none.
    pub node: Box<str>,
}

/// On which terms slots of a class are leased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotTerms {
    /// The most that are leased.
    pub cap: Cap,
    /// The most that are leased for one node.
    pub node_cap: Option<u32>,
    /// How long a lease lasts unless it is renewed.
    pub lasts: Duration,
}

/// Slots that are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// By whom.
    pub owner: Owner,
    /// What the lease is to be.
    pub lease: LeaseId,
    /// As many as requests wait for one.
    pub count: u32,
    /// Further ones, for requests that may come; of those a part is given that leaves most to others.
    pub spare: u32,
    /// For how long the lease can be renewed; none: as long as the holder likes.
    pub stops: Option<Duration>,
}

/// A lease that goes on, or ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renewal {
    /// By whom.
    pub owner: Owner,
    /// Which.
    pub lease: LeaseId,
    /// How many slots of it are still needed; more than it has is no more than that. 0 gives it back.
    pub count: u32,
}

/// Slots that are held, or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leased {
    /// How many slots the lease has now; 0 where there is none.
    pub count: u32,
    /// For how long.
    pub lasts: Duration,
    /// Why there is none, where slots were asked for.
    pub refused: Option<NoSlot>,
    /// Of the class.
    pub standing: SlotStanding,
}

/// How many slots of a class are leased, of how many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotStanding {
    /// How many are.
    pub leased: u32,
    /// In so many leases.
    pub leases: u32,
    /// The cap as it is now.
    pub cap: u32,
}

/// Why nothing was leased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoSlot {
    /// All slots of the class are.
    AtCap,
    /// All slots of the class that the node may have are.
    AtNodeCap,
    /// What was leased before is not known for so long: the store was started, or another took its place.
    Opening(Duration),
    /// There are as many leases as are kept, of the class or of the node.
    TooManyLeases,
}

impl Slots {
    /// The most leases of a class.
    pub const MOST_LEASES: usize = 10_000;

    /// The most leases of a node: others need some, too.
    pub const MOST_LEASES_OF_NODE: usize = Self::MOST_LEASES / 4;

    /// Spare slots are given from a part of what is left: others may want some, too.
    const SPARE_PART: u32 = 4;

    /// Nothing is leased. What was before is not known until `opens`.
    pub fn opening(opens: Timestamp) -> Self {
        Self { opens, ..Self::default() }
    }

    /// Leases slots, as many as there are of those that are wanted.
    pub fn acquire(&mut self, now: Timestamp, wanted: &Wanted, terms: &SlotTerms, pressed: bool) -> Leased {
        let now = self.expire(now);
        self.step(now, terms, pressed);
        let left = if now < self.opens {
            Err(NoSlot::Opening(Duration::from_micros(self.opens.since(now))))
        } else {
            self.left(&wanted.owner.node, terms)
        };
        let left = match left {
            Ok(left) => left,
            Err(refused) => return Leased { refused: Some(refused), ..self.nothing() },
        };
        let needed = wanted.count.min(left);
        let count = needed + wanted.spare.min((left - needed) / Self::SPARE_PART);
        if count == 0 {
            return self.nothing();
        }
        let stops = wanted.stops.map(|stops| now.after_micros(micros(stops)));
        self.lease(now, wanted.lease, &wanted.owner, count, stops, terms)
    }

    /// Renews a lease, or gives it back. One that has ended is not renewed, unless what was leased before is not known.
    pub fn renew(
        &mut self,
        now: Timestamp,
        renewal: &Renewal,
        progress: Progress,
        terms: &SlotTerms,
        pressed: bool,
    ) -> Leased {
        let now = self.expire(now);
        let stored = self.leases.get(&renewal.lease);
        let is_unknown = stored.is_none();
        let known = stored.filter(|lease| lease.owner == renewal.owner).cloned();
        if let Some(lease) = &known {
            self.cap.learn(progress, lease.slot_micros(now), terms.cap);
        }
        self.step(now, terms, pressed);
        let (count, stops) = match known {
            Some(lease) => {
                self.leases.remove(&renewal.lease);
                (renewal.count.min(lease.count), lease.stops)
            }
            None if is_unknown && now < self.opens => {
                let left = self.left(&renewal.owner.node, terms).unwrap_or(0);
                (renewal.count.min(left), None)
            }
            None => (0, None),
        };
        if count == 0 {
            return self.nothing();
        }
        self.lease(now, renewal.lease, &renewal.owner, count, stops, terms)
    }

    /// How many slots are leased.
    pub fn standing(&self) -> SlotStanding {
        SlotStanding {
            leased: self.count(|_| true),
            leases: u32::try_from(self.leases.len()).unwrap_or(u32::MAX),
            cap: self.cap.now(),
        }
    }

    fn lease(
        &mut self,
        now: Timestamp,
        id: LeaseId,
        owner: &Owner,
        count: u32,
        stops: Option<Timestamp>,
        terms: &SlotTerms,
    ) -> Leased {
        let ends = now.after_micros(micros(terms.lasts));
        let ends = stops.map_or(ends, |stops| stops.min(ends));
        self.leases.insert(id, Lease { owner: owner.clone(), count, since: now, ends, stops });
        let lasts = Duration::from_micros(ends.since(now));
        Leased { count, lasts, refused: None, standing: self.standing() }
    }

    /// What has ended leaves.
    fn expire(&mut self, now: Timestamp) -> Timestamp {
        let now = self.clock.read(now);
        self.leases.retain(|_, lease| lease.ends > now);
        now
    }

    /// The cap takes its step where an interval is over.
    fn step(&mut self, now: Timestamp, terms: &SlotTerms, pressed: bool) {
        let leased = self.count(|_| true);
        self.cap.step(now, terms.cap, leased, pressed);
    }

    /// How many slots more can be leased for a node, or why none can. What is for no node is bounded by the class alone.
    fn left(&self, node: &str, terms: &SlotTerms) -> Result<u32, NoSlot> {
        let on_node = |owner: &Owner| !node.is_empty() && &*owner.node == node;
        let leases = self.leases.values().filter(|lease| on_node(&lease.owner)).count();
        let left = self.cap.now().saturating_sub(self.count(|_| true));
        let left_here = match terms.node_cap {
            Some(most) if !node.is_empty() => most.saturating_sub(self.count(on_node)),
            _ => u32::MAX,
        };
        if self.leases.len() >= Self::MOST_LEASES || leases >= Self::MOST_LEASES_OF_NODE {
            Err(NoSlot::TooManyLeases)
        } else if left == 0 {
            Err(NoSlot::AtCap)
        } else if left_here == 0 {
            Err(NoSlot::AtNodeCap)
        } else {
            Ok(left.min(left_here))
        }
    }

    fn nothing(&self) -> Leased {
        Leased { count: 0, lasts: Duration::ZERO, refused: None, standing: self.standing() }
    }

    fn count(&self, of: impl Fn(&Owner) -> bool) -> u32 {
        let counted = self.leases.values().filter(|lease| of(&lease.owner));
        counted.fold(0, |sum: u32, lease| sum.saturating_add(lease.count))
    }
}

#[cfg(test)]
mod tests;
