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
    finished: u64,
    micros: u64,
    /// What requests usually take, in microseconds; 0 where that is not known.
    usual: u64,
}

/// A step is taken once in each, in microseconds.
const INTERVAL: u64 = 1_000_000;

/// Of fewer requests in an interval the mean says little.
const FEWEST: u64 = 10;

/// Most of an interval's requests, in microseconds: a mean stays a mean, and sums are exact in doubles, too.
const MOST_MICROS: u64 = 1 << 45;

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

    pub(super) fn learn(&mut self, progress: Progress) {
        let told = if progress.finished == 0 { 0 } else { micros(progress.took) };
        self.finished = (self.finished + u64::from(progress.finished)).min(MOST_MICROS);
        self.micros = self.micros.saturating_add(told).min(MOST_MICROS);
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
        (self.finished, self.micros) = (0, 0);
    }

    /// Whether requests of this interval were slow; takes it into what is usual.
    fn is_slow(&mut self, tolerance: u32) -> bool {
        if self.finished < FEWEST {
            return false;
        }
        let mean = self.micros / self.finished;
        if self.usual == 0 {
            self.usual = mean;
        }
        let slow = mean * 100 > self.usual * u64::from(tolerance);
        if mean < self.usual {
            self.usual -= (self.usual - mean).div_ceil(FOLLOWS_DOWN);
        } else {
            self.usual += (mean - self.usual).div_ceil(FOLLOWS_UP);
        }
        slow
    }
}
