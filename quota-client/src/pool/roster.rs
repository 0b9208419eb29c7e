//! Which endpoint is asked next, as pure state: the time and the jitter are arguments.
//!
//! An endpoint that works is kept to; from another than the first, the first is tried again once a minute, or all would end at the server that
//! was started last. One whose connection fails is set aside, for longer after each failure in a
//! row; when that time is over, exactly one attempt probes it, and where none works, one probe goes on at a time: whoever
//! else asks is told at once that there is nobody to ask. One that answers late or poorly is only passed over in
//! favour of another that works, and set aside after [`STRIKES`] in a row: a single slow answer says little. One that
//! answers without its store is passed over too, and never set aside: were all of them, nobody could refuse any more.

use std::time::Duration;

use tokio::time::Instant;

use crate::backoff;

/// So many late or poor answers in a row set an endpoint aside.
pub(super) const STRIKES: u32 = 3;

/// From one attempt to return to the first endpoint to the next: it may cost a request its deadline.
const RETURN: Duration = Duration::from_secs(60);

/// The endpoint that is asked by choice.
const FIRST: usize = 0;

/// The endpoints, in the order in which they were given.
#[derive(Debug)]
pub(super) struct Roster {
    entries: Vec<Entry>,
    /// Asked first, while it works.
    preferred: usize,
    /// When the first is tried again, where another is preferred.
    returns: Option<Instant>,
}

#[derive(Clone, Debug, Default)]
struct Entry {
    state: State,
    /// Grows with each change of the state, so that late news of an older one is told apart.
    generation: u64,
    /// Times in a row that it was set aside.
    failures: u32,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Working { strikes: u32 },
    Aside { until: Instant },
    Probing,
}

impl Default for State {
    fn default() -> Self {
        Self::Working { strikes: 0 }
    }
}

/// Leave to ask an endpoint once; [`Roster::settle`] takes it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lease {
    pub(super) index: usize,
    /// Whether it is the probe of one that was set aside.
    pub(super) is_probe: bool,
    generation: u64,
}

/// What became of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It answered.
    Worked,
    /// It cannot be reached, or its connection broke.
    Failed,
    /// It answered well that it cannot at the moment, which another may. It is not set aside, since its word counts.
    Elsewhere,
    /// It did not answer in time, or answered that it cannot.
    Poor,
    /// Nobody waited for the answer.
    Abandoned,
}

impl Roster {
    pub(super) fn new(endpoints: usize) -> Self {
        Self { entries: vec![Entry::default(); endpoints], preferred: FIRST, returns: None }
    }

    /// The endpoint that is asked first, of those that work.
    pub(super) fn working(&self) -> Option<usize> {
        self.order().find(|at| matches!(self.entries[*at].state, State::Working { .. }))
    }

    /// It works, and is asked after the others.
    pub(super) fn pass_over(&mut self, index: usize) {
        if self.preferred == index {
            self.preferred = (index + 1) % self.entries.len();
        }
    }

    fn order(&self) -> impl Iterator<Item = usize> + use<> {
        let (first, count) = (self.preferred, self.entries.len());
        (0..count).map(move |step| (first + step) % count)
    }

    /// The next endpoint to ask: one that works, else one that is due for its probe while no other is probed, else none.
    pub(super) fn pick(&mut self, now: Instant) -> Option<Lease> {
        if let Some(lease) = self.try_to_return(now) {
            return Some(lease);
        }
        if let Some(index) = self.working() {
            return Some(Lease { index, is_probe: false, generation: self.entries[index].generation });
        }
        if self.entries.iter().any(|entry| matches!(entry.state, State::Probing)) {
            return None;
        }
        let index = self
            .order()
            .find(|at| matches!(self.entries[*at].state, State::Aside { until } if until <= now))?;
        self.entries[index].enter(State::Probing);
        Some(Lease { index, is_probe: true, generation: self.entries[index].generation })
    }

    /// The probe of the first endpoint, where another is asked in its place and it is time; one that works is preferred again.
    fn try_to_return(&mut self, now: Instant) -> Option<Lease> {
        if self.preferred == FIRST || self.working().is_none() {
            self.returns = None;
            return None;
        }
        if now < *self.returns.get_or_insert(now + RETURN) {
            return None;
        }
        self.returns = Some(now + RETURN);
        let first = &mut self.entries[FIRST];
        match first.state {
            State::Working { .. } => {
                self.preferred = FIRST;
                None
            }
            State::Aside { until } if until <= now => {
                first.enter(State::Probing);
                Some(Lease { index: FIRST, is_probe: true, generation: first.generation })
            }
            State::Aside { .. } | State::Probing => None,
        }
    }

    /// Takes note of what became of an attempt. Returns for how long the endpoint is set aside, if it now is.
    pub(super) fn settle(
        &mut self,
        lease: Lease,
        outcome: Outcome,
        now: Instant,
        jitter: f64,
    ) -> Option<Duration> {
        let Lease { index, generation, .. } = lease;
        let next = (index + 1) % self.entries.len();
        let entry = &mut self.entries[index];
        if entry.generation != generation {
            return None;
        }
        match (entry.state, outcome) {
            (State::Working { strikes }, Outcome::Poor) if strikes + 1 < STRIKES => {
                entry.enter(State::Working { strikes: strikes + 1 });
                self.preferred = next;
                None
            }
            (_, Outcome::Failed | Outcome::Poor) => {
                entry.failures = entry.failures.saturating_add(1);
                let aside = backoff::wait(entry.failures, jitter);
                entry.enter(State::Aside { until: now + aside });
                self.preferred = next;
                Some(aside)
            }
            (State::Working { .. }, Outcome::Worked) => {
                entry.state = State::Working { strikes: 0 };
                None
            }
            (_, Outcome::Worked) => {
                entry.failures = 0;
                entry.enter(State::Working { strikes: 0 });
                self.preferred = index;
                None
            }
            (_, Outcome::Elsewhere) => {
                entry.failures = 0;
                entry.enter(State::Working { strikes: 0 });
                self.preferred = next;
                None
            }
            (State::Probing, Outcome::Abandoned) => {
                entry.enter(State::Aside { until: now });
                None
            }
            (_, Outcome::Abandoned) => None,
        }
    }
}

impl Entry {
    fn enter(&mut self, state: State) {
        self.state = state;
        self.generation += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(lease: Option<Lease>) -> Option<usize> {
        lease.map(|lease| lease.index)
    }

    #[test]
    fn one_that_failed_is_passed_over_and_then_probed_once() {
        let (mut roster, now) = (Roster::new(1), Instant::now());
        let lease = roster.pick(now).unwrap();
        let aside = roster.settle(lease, Outcome::Failed, now, 0.0).unwrap();
        assert_eq!(roster.pick(now + aside - Duration::from_nanos(1)), None);
        let probe = roster.pick(now + aside).unwrap();
        assert_eq!(roster.pick(now + aside), None, "one probe at a time");
        let longer = roster.settle(probe, Outcome::Failed, now + aside, 0.0).unwrap();
        assert!(longer > aside);
        let probe = roster.pick(now + aside + longer).unwrap();
        roster.settle(probe, Outcome::Worked, now, 0.0);
        assert!(roster.pick(now).is_some() && roster.pick(now).is_some());
    }

    #[test]
    fn of_several_that_failed_one_is_probed_at_a_time() {
        let (mut roster, now) = (Roster::new(2), Instant::now());
        for _ in 0..2 {
            let lease = roster.pick(now).unwrap();
            assert!(!lease.is_probe);
            roster.settle(lease, Outcome::Failed, now, 0.0).unwrap();
        }
        let due = now + Duration::from_secs(1);
        let probe = roster.pick(due).unwrap();
        assert!(probe.is_probe);
        assert_eq!(roster.pick(due), None, "the other is due too");
        roster.settle(probe, Outcome::Failed, due, 0.0).unwrap();
        let other = roster.pick(due).unwrap();
        assert!(other.is_probe && other.index != probe.index);
        roster.settle(other, Outcome::Worked, due, 0.0);
        assert!(roster.pick(due).is_some_and(|lease| !lease.is_probe));
    }

    #[test]
    fn many_failures_of_one_moment_are_one() {
        let (mut roster, now) = (Roster::new(1), Instant::now());
        let leases = [(); 50].map(|()| roster.pick(now).unwrap());
        let asides = leases.map(|lease| roster.settle(lease, Outcome::Failed, now, 1.0));
        assert_eq!(asides.into_iter().flatten().collect::<Vec<_>>(), [backoff::wait(1, 1.0)]);
    }

    #[test]
    fn the_one_that_works_is_kept_to_and_the_first_is_tried_once_a_minute() {
        let (mut roster, now) = (Roster::new(2), Instant::now());
        let first = roster.pick(now).unwrap();
        assert_eq!(first.index, 0);
        roster.settle(first, Outcome::Failed, now, 0.0);
        let second = roster.pick(now).unwrap();
        roster.settle(second, Outcome::Worked, now, 0.0);
        assert_eq!(index(roster.pick(now + Duration::from_secs(59))), Some(1));
        let due = now + Duration::from_secs(61);
        let probe = roster.pick(due).unwrap();
        assert_eq!((probe.index, probe.is_probe), (0, true));
        assert_eq!(index(roster.pick(due)), Some(1), "others do not wait for it");
        roster.settle(probe, Outcome::Failed, due, 0.0);
        assert_eq!(index(roster.pick(due + Duration::from_secs(59))), Some(1));
        let probe = roster.pick(due + RETURN).unwrap();
        assert_eq!(probe.index, 0);
        roster.settle(probe, Outcome::Worked, due, 0.0);
        assert_eq!(index(roster.pick(due + RETURN)), Some(0));
    }

    #[test]
    fn one_that_was_to_stop_is_returned_to_without_a_probe() {
        let (mut roster, now) = (Roster::new(2), Instant::now());
        roster.pass_over(0);
        assert_eq!(index(roster.pick(now)), Some(1));
        let lease = roster.pick(now + RETURN).unwrap();
        assert_eq!((lease.index, lease.is_probe), (0, false));
    }

    #[test]
    fn where_none_works_the_return_is_no_second_probe() {
        let (mut roster, mut now) = (Roster::new(2), Instant::now());
        for _ in 0..2 {
            let lease = roster.pick(now).unwrap();
            roster.settle(lease, Outcome::Failed, now, 0.0);
        }
        now += 2 * RETURN;
        assert!(roster.pick(now).is_some_and(|lease| lease.is_probe));
        assert_eq!(roster.pick(now), None);
    }

    #[test]
    fn late_answers_prefer_another_and_only_several_set_aside() {
        let (mut roster, now) = (Roster::new(2), Instant::now());
        let late = |roster: &mut Roster| {
            let lease = roster.pick(now).unwrap();
            (lease.index, roster.settle(lease, Outcome::Poor, now, 0.0).is_some())
        };
        assert_eq!(late(&mut roster), (0, false));
        let second = roster.pick(now).unwrap();
        assert_eq!(second.index, 1);
        roster.settle(second, Outcome::Failed, now, 0.0);
        assert_eq!(late(&mut roster), (0, false));
        assert_eq!(late(&mut roster), (0, true), "the third strike in a row");
    }

    #[test]
    fn many_late_answers_of_one_moment_are_one_strike() {
        let (mut roster, now) = (Roster::new(1), Instant::now());
        for lease in [(); 50].map(|()| roster.pick(now).unwrap()) {
            assert_eq!(roster.settle(lease, Outcome::Poor, now, 0.0), None);
        }
        assert!(roster.pick(now).is_some());
    }

    #[test]
    fn an_answer_in_time_forgives_late_ones() {
        let (mut roster, now) = (Roster::new(1), Instant::now());
        for outcome in [Outcome::Poor, Outcome::Poor, Outcome::Worked, Outcome::Poor, Outcome::Poor] {
            let lease = roster.pick(now).unwrap();
            assert_eq!(roster.settle(lease, outcome, now, 0.0), None);
        }
    }

    #[test]
    fn one_without_its_store_is_passed_over_but_never_set_aside() {
        let (mut roster, now) = (Roster::new(2), Instant::now());
        for expected in [0, 1, 0, 1, 0, 1, 0, 1] {
            let lease = roster.pick(now).unwrap();
            assert_eq!(lease.index, expected);
            assert_eq!(roster.settle(lease, Outcome::Elsewhere, now, 0.0), None);
        }
    }

    #[test]
    fn a_probe_that_nobody_waits_for_leaves_its_turn_to_the_next() {
        let (mut roster, now) = (Roster::new(1), Instant::now());
        let lease = roster.pick(now).unwrap();
        let now = now + roster.settle(lease, Outcome::Failed, now, 0.0).unwrap();
        let probe = roster.pick(now).unwrap();
        roster.settle(probe, Outcome::Abandoned, now, 0.0);
        assert!(roster.pick(now).is_some());
    }
}
