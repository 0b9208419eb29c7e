//! The sliding window: what an account consumed in the last 60 buckets (of one second each, in production).
//!
//! Cost is counted in the bucket in which it was spent, and all of a bucket leaves at once, 60 buckets later.
//! So the usage at a moment is the exact sum of the trailing 60 s less at most what one bucket holds, a release
//! finds the very bucket that it was reserved in, and the moment at which usage falls below a limit is known.
//!
//! Only buckets that hold something are kept, oldest first, and the newest apart: in a busy second everything
//! happens in the open bucket and the sums, and the rest is touched when the second changes. `lua/window.lua`
//! holds the same in one packed string; it is the only other place where this arithmetic exists.

use std::collections::VecDeque;

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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Window {
    sums: Usage,
    open: Bucket,
    /// Before `open`, after `open.tick - BUCKETS`, in the order of their ticks.
    closed: VecDeque<Bucket>,
}

impl Window {
    /// From its buckets, as a store keeps them: the open one, and the closed ones, oldest first.
    ///
    /// `None` where they are not in order, not of one window, or over the cap.
    pub fn from_buckets(open: Bucket, closed: impl IntoIterator<Item = Bucket>) -> Option<Self> {
        let closed: VecDeque<Bucket> = closed.into_iter().collect();
        let in_order = closed.iter().zip(closed.iter().skip(1)).all(|(a, b)| a.tick < b.tick);
        let in_window = closed.front().is_none_or(|oldest| oldest.tick + BUCKETS > open.tick)
            && closed.back().is_none_or(|newest| newest.tick < open.tick);
        let mut sums = Usage::default();
        for bucket in closed.iter().chain([&open]) {
            for (resource, &amount) in bucket.spent.iter() {
                if amount > BUCKET_CAP {
                    return None;
                }
                sums[resource] += amount;
            }
        }
        (in_order && in_window).then_some(Self { sums, open, closed })
    }

    /// The bucket up to which the window has been brought.
    pub const fn mark(&self) -> Tick {
        self.open.tick
    }

    /// What was spent in the window, as of [`Window::mark`].
    pub const fn usage(&self) -> &Usage {
        &self.sums
    }

    /// What was spent of a resource in each bucket of the window, the oldest first: the last one is open.
    pub fn by_bucket(&self, resource: Resource) -> [u64; BUCKETS as usize] {
        let mut spent = [0; BUCKETS as usize];
        for bucket in self.closed.iter().chain([&self.open]) {
            let age = usize::try_from(self.open.tick - bucket.tick).ok();
            if let Some(slot) = age.and_then(|age| spent.iter_mut().rev().nth(age)) {
                *slot = bucket.spent[resource];
            }
        }
        spent
    }

    /// What of it was spent in the bucket of `tick` and later ones.
    pub fn spent_since(&self, tick: Tick) -> Usage {
        let newest_first = std::iter::once(&self.open).chain(self.closed.iter().rev());
        let mut sums = Usage::default();
        for bucket in newest_first.take_while(|bucket| bucket.tick >= tick) {
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
        let ahead = self.open.tick.saturating_sub(now);
        if ahead > 0 {
            self.open.tick = now;
            for bucket in &mut self.closed {
                bucket.tick = bucket.tick.saturating_sub(ahead);
            }
        } else if self.open.tick < now {
            let closing = std::mem::replace(&mut self.open, Bucket { tick: now, spent: Usage::default() });
            if closing.spent != Usage::default() {
                self.closed.push_back(closing);
            }
            while let Some(oldest) = self.closed.front().filter(|oldest| oldest.tick + BUCKETS <= now) {
                for (resource, amount) in oldest.spent.iter() {
                    self.sums[resource] -= amount;
                }
                self.closed.pop_front();
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
        let bucket = if tick >= self.open.tick {
            &mut self.open
        } else {
            let tick = tick.max((self.open.tick + 1).saturating_sub(BUCKETS));
            let at = self.closed.partition_point(|bucket| bucket.tick < tick);
            if self.closed.get(at).is_none_or(|bucket| bucket.tick != tick) {
                self.closed.insert(at, Bucket { tick, spent: Usage::default() });
            }
            &mut self.closed[at]
        };
        for (resource, &amount) in cost.amounts().iter() {
            let added = amount.min(BUCKET_CAP - bucket.spent[resource]);
            bucket.spent[resource] += added;
            self.sums[resource] += added;
        }
    }

    /// Gives back what was reserved in the bucket of `tick`, as far as the bucket holds it; nothing where it has
    /// left. Returns whether it was asked for more than the bucket held.
    pub fn release(&mut self, tick: Tick, amounts: Cost) -> bool {
        let bucket = if tick == self.open.tick {
            Some(&mut self.open)
        } else {
            self.closed.iter_mut().find(|bucket| bucket.tick == tick)
        };
        let Some(bucket) = bucket else {
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
        excess
    }

    /// The first bucket at whose opening usage is below the limit, if nothing more is spent; never for a limit of 0.
    pub fn below_at(&self, resource: Resource, limit: Limit) -> Option<Tick> {
        let mut usage = self.sums[resource];
        if !limit.reached_by(usage) {
            return Some(self.open.tick);
        }
        self.closed.iter().chain([&self.open]).find_map(|bucket| {
            usage -= bucket.spent[resource];
            (!limit.reached_by(usage)).then_some(bucket.tick + BUCKETS)
        })
    }
}

#[cfg(test)]
mod tests;
