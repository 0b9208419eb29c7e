use std::time::Duration;

use tokio::time::Instant;

/// Slots that have not been needed for so long are given back: another fileserver may need them. It is looked at in steps of this, so
/// that it takes twice as long at most, and less than a second.
const IDLE: Duration = Duration::from_millis(400);

/// How often a lease is renewed in the time for which it lasts.
pub(super) const RENEWALS: u32 = 3;

/// Which block, of this process.
pub(in crate::classes) type BlockId = u64;

/// Slots that were leased together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::classes) struct Block {
    pub(super) id: BlockId,
    pub(super) lease: Vec<u8>,
    pub(super) count: u32,
    /// How many it has by the service's word: more than `count` until it is told that fewer are needed.
    pub(super) leased: u32,
    pub(super) used: u32,
    /// When it was last asked for, from which on it lasts.
    asked: Instant,
    lasts: Duration,
    /// The most that were used since then.
    peak: u32,
    peak_since: Instant,
}

impl Block {
    pub(super) fn new(id: BlockId, lease: Vec<u8>, count: u32, asked: Instant, lasts: Duration) -> Self {
        Self { id, lease, count, leased: count, used: 0, asked, lasts, peak: 0, peak_since: asked }
    }

    pub(super) fn has_ended(&self, now: Instant) -> bool {
        self.asked + self.lasts <= now
    }

    pub(super) fn has_room(&self, now: Instant) -> bool {
        self.used < self.count && !self.has_ended(now)
    }

    pub(super) fn take(&mut self) {
        self.used += 1;
        self.peak = self.peak.max(self.used);
    }

    pub(super) fn give_back(&mut self) {
        self.used = self.used.saturating_sub(1);
    }

    /// Gives up slots that nobody uses, so many at most. Returns how many.
    pub(super) fn give_up(&mut self, most: u32) -> u32 {
        let given_up = self.count.saturating_sub(self.used).min(most);
        self.count -= given_up;
        given_up
    }

    /// How many slots it is to be renewed with: where a third of its time is over, or some were not needed for a while. From then
    /// on no more than these are used of it, whatever becomes of the call.
    pub(super) fn due(&mut self, now: Instant) -> Option<u32> {
        let is_idle = self.peak_since + IDLE <= now;
        let is_old = self.asked + self.lasts / RENEWALS <= now;
        if is_idle {
            self.count = self.peak.min(self.count);
            (self.peak, self.peak_since) = (self.used, now);
        }
        (is_old || self.count < self.leased).then_some(self.count)
    }

    /// It has so many slots, for so long from when that was asked.
    pub(super) fn renew(&mut self, count: u32, asked: Instant, lasts: Duration) {
        self.count = self.count.min(count);
        self.leased = count;
        (self.asked, self.lasts) = (asked, lasts);
    }

    /// It has ended.
    pub(super) fn is_over(&mut self) {
        self.lasts = Duration::ZERO;
    }
}
