use quota_core::{Cost, Resource, Tick};

/// What an account spent and how many of its requests ended lose one part in so many each second: half of their weight in
/// 22 s. Quick enough to follow somebody who turns from fetches to clones, slow enough for several clones to be in it.
const PARTS: u64 = 32;

/// One request, so that what is left of it after a minute is not rounded away.
const ONE: u64 = 1 << 20;

/// After so many seconds nothing is left of the most that there can be.
const ALL_GONE: Tick = 2048;

/// What requests of an account cost lately.
#[derive(Debug, Default)]
pub(super) struct Lately {
    tick: Tick,
    spent: Cost,
    /// In parts of [`ONE`].
    ended: u64,
}

impl Lately {
    /// So much was spent, by requests that have ended or not.
    pub(super) fn spent(&mut self, cost: Cost, now: Tick) {
        self.advance(now);
        self.spent = self.spent.plus(cost);
    }

    /// A request has ended.
    pub(super) fn ended(&mut self, now: Tick) {
        self.advance(now);
        self.ended = self.ended.saturating_add(ONE).min(Cost::MAX);
    }

    /// On average, in the unit of the resource. Before a first one has ended, what it has spent so far.
    pub(super) fn mean(&mut self, resource: Resource, now: Tick) -> u64 {
        self.advance(now);
        let spent = self.spent.amounts()[resource];
        let mean = u128::from(spent) * u128::from(ONE) / u128::from(self.ended.max(ONE));
        u64::try_from(mean).unwrap_or(Cost::MAX)
    }

    fn advance(&mut self, now: Tick) {
        for _ in 0..now.saturating_sub(self.tick).min(ALL_GONE) {
            self.spent = Cost::saturating(self.spent.amounts().map(faded));
            self.ended = faded(self.ended);
        }
        self.tick = now;
    }
}

/// What is left of it after a second.
const fn faded(amount: u64) -> u64 {
    amount - amount.div_ceil(PARTS)
}

#[cfg(test)]
mod tests {
    use quota_core::Usage;

    use super::*;

    /// The same number of each resource: microseconds, KiB-seconds and bytes.
    fn of_each(amount: u64) -> Cost {
        Cost::saturating(Usage::from_fn(|_| amount))
    }

    /// The same of each resource.
    fn mean(lately: &mut Lately, now: Tick) -> u64 {
        let [cpu, memory, network] = Resource::ALL.map(|resource| lately.mean(resource, now));
        assert_eq!((cpu, memory), (memory, network));
        cpu
    }

    #[test]
    fn it_is_what_was_spent_by_those_that_ended() {
        let mut lately = Lately::default();
        assert_eq!(mean(&mut lately, 1), 0);
        lately.spent(of_each(300), 1);
        assert_eq!(mean(&mut lately, 1), 300, "it still runs");
        lately.ended(1);
        lately.spent(of_each(100), 1);
        lately.ended(1);
        assert_eq!(mean(&mut lately, 1), 200);
    }

    #[test]
    fn what_was_long_ago_counts_for_little_and_time_alone_changes_nothing() {
        let mut lately = Lately::default();
        for _ in 0..100 {
            lately.spent(of_each(1_000_000), 1);
            lately.ended(1);
        }
        let cheap = mean(&mut lately, 60);
        assert!((999_900..=1_000_000).contains(&cheap), "{cheap}");
        for _ in 0..100 {
            lately.spent(of_each(3_000_000), 60);
            lately.ended(60);
        }
        let dear = mean(&mut lately, 60);
        assert!((2_700_000..2_800_000).contains(&dear), "of the earlier ones 15 % count: {dear}");
        assert_eq!(mean(&mut lately, 60 + 10_000), 0);
    }

    #[test]
    fn the_most_there_is_does_not_overflow() {
        let mut lately = Lately { tick: 0, spent: of_each(Cost::MAX), ended: Cost::MAX };
        lately.spent(of_each(u64::MAX), 0);
        lately.ended(0);
        assert_eq!(mean(&mut lately, 0), ONE);
        assert_eq!(mean(&mut lately, ALL_GONE), 0);
    }
}
