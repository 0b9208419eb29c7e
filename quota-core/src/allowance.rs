use std::time::Duration;

use crate::time::micros;
use crate::{Cost, Limit, PerResource, Resource, WindowLength};

/// What somebody may still bring within a window: it is full at first, refills evenly, and is full again after a window.
///
/// So within any time no more comes than `most` for each window of it, and `most` beside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowance {
    /// What has not been refilled yet, in units of a resource times the microseconds of a window: exact, however short the
    /// times between.
    taken: PerResource<u128>,
    /// As of when, in microseconds.
    at: u64,
}

impl Allowance {
    /// Takes a cost, where there is enough of each resource; else nothing, and tells of which there is too little. `now` is
    /// a moment by a clock that never steps back.
    pub fn take(
        &mut self,
        now: Duration,
        most: &PerResource<Limit>,
        window: WindowLength,
        cost: Cost,
    ) -> Result<(), Resource> {
        let window = u128::from(micros(window.length()));
        let now = micros(now);
        let elapsed = u128::from(now.saturating_sub(self.at));
        self.at = self.at.max(now);
        let limited = |resource: Resource| match most[resource] {
            Limit::At(most) => Some(u128::from(most)),
            Limit::Unlimited => None,
        };
        let refilled = |resource| limited(resource).map_or(u128::MAX, |most| most * elapsed);
        self.taken = PerResource::from_fn(|resource| self.taken[resource].saturating_sub(refilled(resource)));
        let amounts = cost.amounts();
        let taken = PerResource::from_fn(|resource| {
            self.taken[resource] + limited(resource).map_or(0, |_| u128::from(amounts[resource]) * window)
        });
        let lacks =
            |resource: &Resource| limited(*resource).is_some_and(|most| taken[*resource] > most * window);
        match Resource::ALL.into_iter().find(lacks) {
            Some(lacking) => Err(lacking),
            None => {
                self.taken = taken;
                Ok(())
            }
        }
    }

    /// What was taken is not needed.
    pub fn give_back(&mut self, window: WindowLength, cost: Cost) {
        let window = u128::from(micros(window.length()));
        for (resource, amount) in cost.amounts().iter() {
            self.taken[resource] = self.taken[resource].saturating_sub(u128::from(*amount) * window);
        }
    }

    /// Whether it is as new at a moment: nothing is missing.
    pub fn is_full(&self, now: Duration, window: WindowLength) -> bool {
        micros(now).saturating_sub(self.at) >= micros(window.length()) || self.taken == PerResource::default()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn window() -> WindowLength {
        WindowLength::default()
    }

    fn cpu(micros: u64) -> Cost {
        Cost::ZERO.with_cpu_micros(micros).unwrap()
    }

    fn most(micros: u64) -> PerResource<Limit> {
        PerResource::new(Limit::At(micros), Limit::Unlimited, Limit::Unlimited)
    }

    proptest! {
        #[test]
        fn no_more_comes_than_for_each_window_and_one_beside(
            steps in prop::collection::vec((0..20_000_000_u64, 0..1000_u64), 1..200),
        ) {
            let (mut allowance, mut now, mut brought) = (Allowance::default(), Duration::from_secs(9), 0);
            let began = now;
            for (later, amount) in steps {
                now += Duration::from_micros(later);
                if allowance.take(now, &most(1000), window(), cpu(amount)).is_ok() {
                    brought += amount;
                }
                let windows = (now - began).as_secs_f64() / 60.0;
                prop_assert!(brought as f64 <= 1000.0 * (windows + 1.0) + 1e-6, "{brought} in {windows}");
            }
        }

        #[test]
        fn who_brings_what_there_is_in_its_time_is_never_refused(
            steps in prop::collection::vec(1..60_000_000_u64, 1..200),
        ) {
            let (mut allowance, mut now) = (Allowance::default(), Duration::ZERO);
            for later in steps {
                now += Duration::from_micros(later);
                // 1,000 in 60 s, and what is left over is not brought.
                let amount = later * 1000 / 60_000_000;
                prop_assert_eq!(allowance.take(now, &most(1000), window(), cpu(amount)), Ok(()));
            }
        }
    }

    #[test]
    fn what_is_too_much_takes_nothing_and_what_is_given_back_is_there_again() {
        let (mut allowance, now) = (Allowance::default(), Duration::from_secs(100));
        let mut take =
            |later: u64, cost| allowance.take(now + Duration::from_secs(later), &most(1000), window(), cost);
        assert_eq!(take(0, cpu(1001)), Err(Resource::Cpu));
        assert_eq!(take(0, cpu(1000)), Ok(()));
        assert_eq!(take(0, cpu(1)), Err(Resource::Cpu));
        assert_eq!(take(6, cpu(101)), Err(Resource::Cpu));
        assert_eq!(take(6, cpu(100).with_network_bytes(1 << 53).unwrap()), Ok(()), "of that there is no end");
        assert!(!allowance.is_full(now + Duration::from_secs(65), window()));
        assert!(allowance.is_full(now + Duration::from_secs(66), window()));
        allowance.give_back(window(), cpu(40));
        assert_eq!(allowance.take(now, &most(1000), window(), cpu(40)), Ok(()), "a clock that stands still");
        assert_eq!(
            allowance.take(now, &most(0), window(), Cost::ZERO),
            Err(Resource::Cpu),
            "less than is taken"
        );
    }

    #[test]
    fn the_largest_amounts_do_not_overflow() {
        let mut allowance = Allowance::default();
        let hour = WindowLength::new(Duration::from_secs(3600)).unwrap();
        let largest = PerResource::from_fn(|_| Limit::At(u64::MAX));
        let cost = Cost::saturating(PerResource::from_fn(|_| u64::MAX));
        for now in [Duration::ZERO, Duration::MAX, Duration::MAX] {
            assert_eq!(allowance.take(now, &largest, hour, cost), Ok(()));
        }
    }
}
