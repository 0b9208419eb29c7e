//! The moments that were promised, in two lines beside each other.
//!
//! A caller goes to the first line while he has fewer promises open there than requests may run at once, and else to the
//! second, until all that he has there are over. So one who asks without end pushes back others like him, and nobody else.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use super::LONGEST;

/// The most promises that are kept for one key, at 40 bytes each. Whoever is refused beyond them is told a moment as
/// well, but then comes as a newcomer.
pub(super) const MAX: usize = 1024;

/// HTTP tells whole seconds, rounded up: a caller may be late by so much and does not know.
const ROUNDING: Duration = Duration::from_secs(1);

/// What was promised to those who were refused for one key.
#[derive(Debug, Default)]
pub(super) struct Promises {
    first: Queue,
    second: Queue,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line {
    First,
    Second,
}

#[derive(Debug, Default)]
struct Queue {
    /// By `due`, which only rises.
    open: VecDeque<Promise>,
    /// The next moment that is not promised.
    next: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Promise {
    caller: u64,
    due: Instant,
    until: Instant,
}

impl Promises {
    /// Forgets those that are over.
    pub(super) fn expire(&mut self, now: Instant) {
        for Queue { open, .. } in [&mut self.first, &mut self.second] {
            while open.front().is_some_and(|promise| promise.until <= now) {
                open.pop_front();
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.first.open.len() + self.second.open.len()
    }

    /// Takes one of this caller's that is due. Returns whether there was any.
    pub(super) fn take(&mut self, caller: u64, now: Instant) -> bool {
        self.first.take(caller, now) || self.second.take(caller, now)
    }

    pub(super) fn has(&self, caller: u64) -> bool {
        [&self.first, &self.second].into_iter().any(|queue| queue.of(caller).next().is_some())
    }

    /// Where a caller goes, and whether others have promises in the other line. `most` is how many he may have open in
    /// the first.
    pub(super) fn line(&self, caller: u64, most: usize) -> (Line, bool) {
        let is_first = self.second.of(caller).next().is_none() && self.first.of(caller).count() < most;
        let (line, other) = if is_first { (Line::First, &self.second) } else { (Line::Second, &self.first) };
        (line, other.open.iter().any(|promise| promise.caller != caller))
    }

    /// Promises the next moment of a line, not before `soonest`; the one after it is so far `apart`. Returns how far off
    /// it is.
    pub(super) fn make(
        &mut self,
        line: Line,
        caller: u64,
        soonest: Duration,
        apart: Duration,
        now: Instant,
    ) -> Duration {
        let first = self.first.next;
        let queue = match line {
            Line::First => &mut self.first,
            Line::Second => {
                // Who comes to the second line has had his share of what is promised in the first.
                self.second.next = self.second.next.max(first);
                &mut self.second
            }
        };
        let wait = queue.make(caller, soonest, apart, now);
        if self.len() > MAX {
            let longest = if self.second.open.is_empty() { &mut self.first } else { &mut self.second };
            longest.open.pop_back();
        }
        wait
    }
}

impl Queue {
    fn of(&self, caller: u64) -> impl Iterator<Item = &Promise> {
        self.open.iter().filter(move |promise| promise.caller == caller)
    }

    fn take(&mut self, caller: u64, now: Instant) -> bool {
        let is_due =
            |promise: &Promise| promise.caller == caller && promise.due <= now && now < promise.until;
        let due = self.open.iter().position(is_due);
        due.is_some_and(|at| self.open.remove(at).is_some())
    }

    fn make(&mut self, caller: u64, soonest: Duration, apart: Duration, now: Instant) -> Duration {
        let due = self.next.map_or(now + soonest, |next| next.max(now + soonest)).min(now + LONGEST);
        self.next = Some(due + apart);
        let wait = due.saturating_duration_since(now);
        // Kept for as long again.
        self.open.push_back(Promise { caller, due, until: due + wait + ROUNDING });
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const APART: Duration = Duration::from_millis(10);

    fn make(promises: &mut Promises, caller: u64, most: usize, now: Instant) -> u128 {
        let (line, _) = promises.line(caller, most);
        promises.make(line, caller, APART, APART, now).as_millis()
    }

    #[test]
    fn who_asks_without_end_pushes_back_nobody_else() {
        let (mut promises, now) = (Promises::default(), Instant::now());
        let told: Vec<_> = (0..100).map(|_| make(&mut promises, 1, 3, now)).collect();
        assert_eq!((&told[..5], told[99]), (&[10, 20, 30, 40, 50][..], 1000));
        assert_eq!([2, 3].map(|caller| make(&mut promises, caller, 3, now)), [40, 50]);
        assert_eq!(make(&mut promises, 1, 3, now), 1010);
    }

    #[test]
    fn a_caller_is_back_in_the_first_line_when_all_that_he_has_in_the_second_is_over() {
        let (mut promises, now) = (Promises::default(), Instant::now());
        for _ in 0..3 {
            make(&mut promises, 1, 2, now);
        }
        let at = |millis| now + Duration::from_millis(millis);
        let line = |promises: &Promises| promises.line(1, 2);
        assert!([10, 20].into_iter().all(|millis| promises.take(1, at(millis))));
        assert_eq!((promises.take(1, at(29)), line(&promises)), (false, (Line::Second, false)));
        assert!(promises.take(1, at(30)));
        assert_eq!((promises.has(1), line(&promises)), (false, (Line::First, false)));
    }

    #[test]
    fn promises_of_others_in_the_other_line_are_told() {
        let (mut promises, now) = (Promises::default(), Instant::now());
        let lines = |promises: &Promises| [1, 2].map(|caller| promises.line(caller, 1));
        for expected in [
            [(Line::First, false), (Line::First, false)],
            [(Line::Second, false), (Line::First, false)],
            [(Line::Second, false), (Line::First, true)],
        ] {
            assert_eq!(lines(&promises), expected);
            make(&mut promises, 1, 1, now);
        }
        make(&mut promises, 2, 1, now);
        assert_eq!(lines(&promises), [(Line::Second, true), (Line::Second, true)]);
    }

    #[test]
    fn they_are_bounded_and_the_second_line_makes_room_for_the_first() {
        let (mut promises, now) = (Promises::default(), Instant::now());
        for _ in 0..2 * MAX {
            make(&mut promises, 0, 3, now);
        }
        assert_eq!((promises.len(), promises.second.open.len()), (MAX, MAX - 3));
        for caller in 1..=1_000 {
            make(&mut promises, caller, 3, now);
        }
        assert_eq!((promises.len(), promises.second.open.len()), (MAX, 21));
        for caller in 1_001..=2_000 {
            make(&mut promises, caller, 3, now);
        }
        assert_eq!((promises.len(), promises.second.open.len()), (MAX, 0));
        assert!(promises.has(1_000) && !promises.has(2_000), "the last ones are not kept");
        promises.expire(now + 2 * LONGEST);
        assert_eq!(promises.len(), 0);
    }
}
