//! The sliding window: what an account consumed in the last 60 buckets (of one second each, in production).
//!
//! Cost is counted in the bucket in which it was spent, and all of a bucket leaves at once, 60 buckets later.
//! So the usage at a moment is the exact sum of the trailing 60 s less at most what one bucket holds, a release
//! finds the very bucket that it was reserved in, and the moment at which usage falls below a limit is known.
//!
//! Only buckets that hold something are kept, packed and oldest first, and the newest apart: in a busy second everything
//! happens in the open bucket and the sums, and the rest is touched when the second changes. `lua/window.lua`
//! holds the same in one packed string; it is the only other place where this arithmetic exists.

mod closed;

use self::closed::Closed;
use crate::{BUCKETS, Cost, Limit, PerResource, Resource, Tick};

/// The most that one bucket counts of a resource, 2^40 - 1: 12 days of CPU, 1 PiB-second, 1 TiB. More saturates.
///
/// Five bytes when packed; a window of full buckets stays far below 2^53, where doubles stop being exact.
pub const BUCKET_CAP: u64 = (1 << 40) - 1;

/// What an account has used of each resource, in internal units.
pub type Usage = PerResource<u64>;

/// What was spent in one bucket, each amount at most [`BUCKET_CAP`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bucket {
    /// When.
    pub tick: Tick,
    /// How much.
    pub spent: Usage,
}

/// The last [`BUCKETS`] buckets of an account.
#[derive(Clone, Debug, Default)]
pub struct Window {
    sums: Usage,
    open: Bucket,
    /// Before `open`, after `open.tick - BUCKETS`, in the order of their ticks.
    closed: Closed,
}

impl Window {
    /// From its buckets, as a store keeps them: the open one, and the closed ones, oldest first.
    ///
    /// `None` where they are not in order, not of one window, or over the cap.
    pub fn from_buckets(open: Bucket, closed: impl IntoIterator<Item = Bucket>) -> Option<Self> {
        let closed: Vec<Bucket> = closed.into_iter().collect();
        let in_order = closed.is_sorted_by(|a, b| a.tick < b.tick);
        let in_window = closed.first().is_none_or(|oldest| oldest.tick + BUCKETS > open.tick)
            && closed.last().is_none_or(|newest| newest.tick < open.tick);
        let mut sums = Usage::default();
        for bucket in closed.iter().chain([&open]) {
            for (resource, &amount) in bucket.spent.iter() {
                if amount > BUCKET_CAP {
                    return None;
                }
                sums[resource] += amount;
            }
        }
        (in_order && in_window).then(|| Self { sums, open, closed: closed.into_iter().collect() })
    }

    /// The bucket up to which the window has been brought.
    pub const fn mark(&self) -> Tick {
        self.open.tick
    }

    /// What was spent in the window, as of [`Window::mark`].
    pub const fn usage(&self) -> &Usage {
        &self.sums
    }

    /// Those that hold something, or did, and the open one; the oldest first.
    fn buckets(&self) -> impl DoubleEndedIterator<Item = Bucket> {
        self.closed.iter(self.open.tick).chain([self.open])
    }

    /// What was spent of a resource in each bucket of the window, the oldest first: the last one is open.
    pub fn by_bucket(&self, resource: Resource) -> [u64; BUCKETS as usize] {
        let mut spent = [0; BUCKETS as usize];
        for bucket in self.buckets() {
            let age = usize::try_from(self.open.tick - bucket.tick).ok();
            if let Some(slot) = age.and_then(|age| spent.iter_mut().rev().nth(age)) {
                *slot = bucket.spent[resource];
            }
        }
        spent
    }

    /// What of it was spent in the bucket of `tick` and later ones.
    pub fn spent_since(&self, tick: Tick) -> Usage {
        let mut sums = Usage::default();
        for bucket in self.buckets().rev().take_while(|bucket| bucket.tick >= tick) {
            for (resource, amount) in bucket.spent.iter() {
                sums[resource] += amount;
            }
        }
        sums
    }

    /// Brings the window to `now`: what has become too old leaves.
    ///
    /// A mark ahead of `now` means that the clock stepped back: everything keeps its age and is dated anew
    /// (rebased). Returns by how many buckets, 0 as a rule.
    pub fn advance(&mut self, now: Tick) -> Tick {
        let mark = self.open.tick;
        let ahead = mark.saturating_sub(now);
        if ahead > 0 {
            let rebased =
                |bucket: Bucket| Bucket { tick: bucket.tick.saturating_sub(ahead), spent: bucket.spent };
            self.closed = self.closed.iter(mark).map(rebased).collect();
            self.open.tick = now;
        } else if mark + BUCKETS <= now {
            *self = Self { open: Bucket { tick: now, ..Bucket::default() }, ..Self::default() };
        } else if mark < now {
            let oldest = (now + 1).saturating_sub(BUCKETS);
            for left in self.closed.iter(mark).take_while(|bucket| bucket.tick < oldest) {
                for (resource, amount) in left.spent.iter() {
                    self.sums[resource] -= amount;
                }
            }
            self.closed.drop_before(oldest, mark);
            let closing = std::mem::replace(&mut self.open, Bucket { tick: now, spent: Usage::default() });
            if closing.spent != Usage::default() {
                self.closed.push(closing);
            }
        }
        ahead
    }

    /// Counts a cost in the bucket of `tick`; one that has just left is taken for the oldest, a later one for the
    /// open one.
    pub fn add(&mut self, tick: Tick, cost: Cost) {
        if cost.is_zero() {
            return;
        }
        let oldest = (self.open.tick + 1).saturating_sub(BUCKETS);
        let tick = tick.clamp(oldest, self.open.tick);
        let mut bucket = self.bucket(tick).unwrap_or(Bucket { tick, spent: Usage::default() });
        for (resource, &amount) in cost.amounts().iter() {
            let added = amount.min(BUCKET_CAP - bucket.spent[resource]);
            bucket.spent[resource] += added;
            self.sums[resource] += added;
        }
        self.put(bucket);
    }

    /// Gives back what was reserved in the bucket of `tick`, as far as the bucket holds it; nothing where it has
    /// left. Returns whether it was asked for more than the bucket held.
    pub fn release(&mut self, tick: Tick, amounts: Cost) -> bool {
        let Some(mut bucket) = self.bucket(tick) else {
            return tick < self.open.tick && tick + BUCKETS > self.open.tick && !amounts.is_zero();
        };
        let mut excess = false;
        for (resource, &amount) in amounts.amounts().iter() {
            // What was reserved above the cap was never counted, so giving it back asks for no more than was there.
            let amount = amount.min(BUCKET_CAP);
            let taken = amount.min(bucket.spent[resource]);
            excess |= taken < amount;
            bucket.spent[resource] -= taken;
            self.sums[resource] -= taken;
        }
        self.put(bucket);
        excess
    }

    /// None where nothing was spent in it, or it is not of the window.
    fn bucket(&self, tick: Tick) -> Option<Bucket> {
        if tick == self.open.tick { Some(self.open) } else { self.closed.get(tick, self.open.tick) }
    }

    /// In place of that of its tick.
    fn put(&mut self, bucket: Bucket) {
        if bucket.tick == self.open.tick {
            self.open = bucket;
        } else {
            self.closed.put(bucket, self.open.tick);
        }
    }

    /// The first bucket at whose opening usage is below the limit, if nothing more is spent; never for a limit of 0.
    pub fn below_at(&self, resource: Resource, limit: Limit) -> Option<Tick> {
        let mut usage = self.sums[resource];
        if !limit.reached_by(usage) {
            return Some(self.open.tick);
        }
        self.buckets().find_map(|bucket| {
            usage -= bucket.spent[resource];
            (!limit.reached_by(usage)).then_some(bucket.tick + BUCKETS)
        })
    }
}

impl PartialEq for Window {
    fn eq(&self, other: &Self) -> bool {
        self.buckets().eq(other.buckets())
    }
}

impl Eq for Window {}

#[cfg(test)]
mod tests;
