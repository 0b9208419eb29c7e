//! When a refused caller should come back: a queue outside of the queue.
//!
//! Each refusal promises a moment, the next one free. The moments are as far apart as slots become free, a little
//! further, so that who comes back does not meet others who do. So that newcomers do not take their places
//! meanwhile, these may fill only half of the queue while any promise is open; no slot stands idle for it. From a
//! quarter on they are let in by chance, the fewer the fuller it is: else the place that a request leaves when it
//! has ended would go to whoever comes in that moment, which is always the client that was just served and asks
//! again.
//!
//! A caller who comes back is known by a number that the limiter was given, such as a hash of user and address. Callers
//! who share one number cannot be told apart: any of them takes the promise that is due. Nor can many of them be told
//! from one who asks again and again without waiting, so once they have as many promises as requests may run at once,
//! further ones are made in a line of their own ([`promises`]), beside that of everyone else: the one line gets a small
//! part of the returns while others are in the other. While they are alone, how often they come is measured, and the
//! moments are set further apart by that, so that of all who come at least every other finds a place.

mod measured;
mod promises;

use std::time::Duration;

use tokio::time::Instant;

pub(super) use self::measured::Mean;
use self::measured::Rate;
use self::promises::{Line, Promises};

/// The bounds of what a caller is told.
pub(super) const SHORTEST: Duration = Duration::from_millis(100);
pub(super) const LONGEST: Duration = Duration::from_secs(300);

/// Those who come back may take up to so much of the rate at which slots become free: less than all of it, so that
/// the queue drains and a late one finds room.
const MOST_RETURNS: f64 = 0.9;

/// And so much at least, however many come unasked. So much is also the part of those who have had their share of
/// promises while others, who have the rest, are promised moments too.
const LEAST_RETURNS: f64 = 0.2;

/// Callers who cannot be told apart are paced so that together they come so many times as often as slots become
/// free: four of five then find a place.
const ARRIVALS: f64 = 1.25;

/// What a slot is held for at least, in seconds, as long as none has become free. A guess that is too short costs
/// one more refusal, one that is too long leaves slots idle.
const HELD_UNKNOWN: f64 = 0.1;

/// How fast slots of one key become free, and what was promised to those who were refused.
#[derive(Debug)]
pub(super) struct Pace {
    /// When the first request came.
    began: Instant,
    held: Mean,
    promises: Promises,
    confusable: Rate,
}

/// What there is to wait for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) limit: usize,
    pub(super) in_flight: usize,
    pub(super) queued: usize,
    pub(super) max_queue: usize,
}

impl Pace {
    /// `held` is what is known from other keys of the same RPC.
    pub(super) fn new(held: Mean, now: Instant) -> Self {
        Self {
            began: now,
            held: held.as_first_guess(),
            promises: Promises::default(),
            confusable: Rate::default(),
        }
    }

    /// A slot was held for so long.
    pub(super) fn freed(&mut self, held: Duration) {
        self.held.add(held);
    }

    /// Somebody comes. Returns how much of the queue they may use: all of it if they come back as promised. Of
    /// newcomers `chance`, from 0 to 1, decides.
    pub(super) fn places(&mut self, caller: u64, load: Load, chance: f64, now: Instant) -> usize {
        self.promises.expire(now);
        if self.promises.len() == 0 || self.promises.take(caller, now) {
            return load.max_queue;
        }
        if self.promises.has(caller) {
            self.confusable.add(now, self.measured_over(load.limit, now));
        }
        let places = newcomers(load.max_queue);
        let left = places.saturating_sub(load.queued) as f64;
        if chance * places as f64 <= 2.0 * left { places } else { 0 }
    }

    /// Promises a moment to somebody who is refused. Returns how far off it is.
    pub(super) fn promise(&mut self, caller: u64, load: Load, now: Instant) -> Duration {
        let freed = self.freed_per_second(load.limit, now);
        let (line, others) = self.promises.line(caller, load.limit);
        let returns = freed
            * match (line, others) {
                (Line::First, false) => MOST_RETURNS,
                (Line::First, true) => MOST_RETURNS - LEAST_RETURNS,
                (Line::Second, true) => LEAST_RETURNS,
                (Line::Second, false) => {
                    let confusable = self.confusable.per_second(now, self.measured_over(load.limit, now));
                    (ARRIVALS - confusable / freed).clamp(LEAST_RETURNS, MOST_RETURNS)
                }
            };
        // What is in flight above a limit that was lowered frees no slot, and the queue must fall to what newcomers
        // leave.
        let before = load.in_flight.saturating_sub(load.limit)
            + load.queued.saturating_sub(newcomers(load.max_queue))
            + 1;
        let soonest = seconds(before as f64 / freed).clamp(SHORTEST, LONGEST);
        self.promises.make(line, caller, soonest, seconds(1.0 / returns), now)
    }

    /// How many slots become free while all are in use.
    fn freed_per_second(&self, limit: usize, now: Instant) -> f64 {
        let running = || now.saturating_duration_since(self.began).as_secs_f64();
        let held = self.held.seconds().unwrap_or_else(|| running().max(HELD_UNKNOWN));
        limit as f64 / held.max(1e-6)
    }

    /// Long enough for some dozens of slots to become free.
    fn measured_over(&self, limit: usize, now: Instant) -> Duration {
        seconds(32.0 / self.freed_per_second(limit, now))
            .clamp(Duration::from_secs(1), Duration::from_secs(60))
    }
}

/// How much of the queue newcomers may fill while somebody was promised to find room.
const fn newcomers(max_queue: usize) -> usize {
    max_queue.div_ceil(2)
}

/// At most [`LONGEST`], whatever the number is.
fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).map_or(LONGEST, |duration| duration.min(LONGEST))
}

#[cfg(test)]
mod tests;
