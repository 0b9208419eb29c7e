//! The cap of a class, and how it follows how long the class's requests take.

use std::time::Duration;

use crate::Timestamp;
use crate::time::micros;

/// The most slots of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cap {
    /// Always as many.
    Fixed(u32),
    /// It moves.
    Adaptive(Adaptive),
}

/// A cap that is lowered while requests take much longer than they usually do, or nodes are under pressure, and raised again
/// while it is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Adaptive {
    /// It is never lower; more than 0.
    pub min: u32,
    /// It is never higher, and it begins there.
    pub max: u32,
    /// Requests that take more than so many hundredths of what they usually take are slow; more than 100.
    pub tolerance: u32,
}

/// What a holder tells of requests that have ended since it told last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// How many; at most 2^32 - 1.
    pub finished: u32,
    /// How long they took in all.
    pub took: Duration,
}

/// Where a cap is, and what is known of how long requests take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CapState {
    /// 0 before the first look at it.
    cap: u32,
    /// When the interval ends.
    ends: Timestamp,
    /// Requests that ended in it.
    finished: u64,
    /// What they took in hundredths of what is usual, or of [`LEAST`] where that is not known, times the weight of who told.
    ratios: u64,
    weights: u64,
    /// What requests usually take, in microseconds; 0 where that is not known.
    usual: u64,
}

/// A step is taken once in each, in microseconds.
pub(super) const INTERVAL: u64 = 1_000_000;

/// Of fewer requests in an interval the mean says little.
const FEWEST: u64 = 10;

/// The shortest time that is told apart, and the longest, 19 hours, in microseconds.
const LEAST: u64 = 1000;
const MOST: u64 = 1 << 36;

/// The longest time of which is learnt what is usual, in hundredths of [`LEAST`]: 100 s.
const MOST_AT_FIRST: u64 = 10_000_000;

/// The most of an interval's sums, which are exact in doubles, too.
const MOST_SUM: u64 = 1 << 52;

/// What a slow interval leaves of the cap: three quarters.
const LEFT: (u64, u64) = (3, 4);

/// What is added to a cap that is used up: a twentieth of the highest.
const STEP: u32 = 20;

/// What requests usually take follows quickly to what is shorter, and slowly to what is longer: an outage of some minutes is
/// not what is usual, and a slower disk is after an hour.
const FOLLOWS_DOWN: u64 = 8;
const FOLLOWS_UP: u64 = 600;

impl CapState {
    /// The cap as it is.
    pub(super) const fn now(&self) -> u32 {
        self.cap
    }

    /// Takes down what the holder of a lease tells. It weighs by the lease's slots, each for as long as it was held, so that
    /// nobody is heard for more than he holds, however much he says, and counts as twice what is slow at the most.
    pub(super) fn learn(&mut self, told: Progress, slot_micros: u64, cap: Cap) {
        let Cap::Adaptive(adaptive) = cap else { return };
        let Some(mean) = micros(told.took).checked_div(u64::from(told.finished)) else { return };
        let (usual, most) = match self.usual {
            0 => (LEAST, MOST_AT_FIRST),
            usual => (usual, 2 * u64::from(adaptive.tolerance)),
        };
        let ratio = (100 * mean.min(MOST) / usual).min(most);
        let weight = slot_micros / 1000;
        self.finished = (self.finished + u64::from(told.finished)).min(MOST_SUM);
        self.ratios = self.ratios.saturating_add(weight.saturating_mul(ratio)).min(MOST_SUM);
        self.weights = (self.weights + weight).min(MOST_SUM);
    }

    /// Takes a step where an interval is over; `leased` is how many slots are, `pressed` whether nodes are under pressure.
    pub(super) fn step(&mut self, now: Timestamp, cap: Cap, leased: u32, pressed: bool) {
        let adaptive = match cap {
            Cap::Fixed(cap) => {
                *self = Self { cap, ..Self::default() };
                return;
            }
            Cap::Adaptive(adaptive) => adaptive,
        };
        let before = if self.cap == 0 { adaptive.max } else { self.cap };
        self.cap = before.clamp(adaptive.min, adaptive.max);
        if now < self.ends {
            return;
        }
        let slow = self.is_slow(adaptive.tolerance);
        if slow || pressed {
            let left = u64::from(self.cap) * LEFT.0 / LEFT.1;
            self.cap = u32::try_from(left).unwrap_or(u32::MAX).max(adaptive.min);
        } else if u64::from(leased) * LEFT.1 >= u64::from(self.cap) * LEFT.0 {
            self.cap = self.cap.saturating_add((adaptive.max / STEP).max(1)).min(adaptive.max);
        }
        self.ends = now.after_micros(INTERVAL);
        (self.finished, self.ratios, self.weights) = (0, 0, 0);
    }

    /// Whether requests of this interval were slow; takes it into what is usual.
    fn is_slow(&mut self, tolerance: u32) -> bool {
        if self.finished < FEWEST || self.weights == 0 {
            return false;
        }
        let ratio = self.ratios / self.weights;
        let is_first = self.usual == 0;
        self.usual = if is_first {
            LEAST * ratio / 100
        } else if ratio < 100 {
            self.usual - (self.usual * (100 - ratio)).div_ceil(100 * FOLLOWS_DOWN)
        } else {
            self.usual + (self.usual * (ratio - 100)).div_ceil(100 * FOLLOWS_UP)
        };
        self.usual = self.usual.clamp(LEAST, MOST);
        !is_first && ratio > u64::from(tolerance)
    }
}
