use quota_core::{Cost, Tick};

/// What an account spent and how many of its requests ended lose one part in so many each second: half of their weight in
/// 22 s. Quick enough to follow somebody who turns from fetches to clones, slow enough for several clones to be in it.
const PARTS: u64 = 32;

/// One request, so that what is left of it after a minute is not rounded away.
const ONE: u64 = 1 << 20;

/// After so many seconds nothing is left of the most that there can be.
const ALL_GONE: Tick = 2048;

/// What requests of an account cost lately, of CPU.
#[derive(Debug, Default)]
pub(super) struct Lately {
    tick: Tick,
    cpu_micros: u64,
    /// In parts of [`ONE`].
    ended: u64,
}

impl Lately {
    /// So much CPU was spent, by requests that have ended or not.
    pub(super) fn spent(&mut self, cpu_micros: u64, now: Tick) {
        self.advance(now);
        self.cpu_micros = self.cpu_micros.saturating_add(cpu_micros).min(Cost::MAX);
    }

    /// A request has ended.
    pub(super) fn ended(&mut self, now: Tick) {
        self.advance(now);
        self.ended = self.ended.saturating_add(ONE).min(Cost::MAX);
    }

    /// On average, in microseconds. Before a first one has ended, what it has spent so far.
    pub(super) fn mean(&mut self, now: Tick) -> u64 {
        self.advance(now);
        let mean = u128::from(self.cpu_micros) * u128::from(ONE) / u128::from(self.ended.max(ONE));
        u64::try_from(mean).unwrap_or(Cost::MAX)
    }

    fn advance(&mut self, now: Tick) {
        for _ in 0..now.saturating_sub(self.tick).min(ALL_GONE) {
            self.cpu_micros -= self.cpu_micros.div_ceil(PARTS);
            self.ended -= self.ended.div_ceil(PARTS);
        }
        self.tick = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_what_was_spent_by_those_that_ended() {
        let mut lately = Lately::default();
        assert_eq!(lately.mean(1), 0);
        lately.spent(300, 1);
        assert_eq!(lately.mean(1), 300, "it still runs");
        lately.ended(1);
        lately.spent(100, 1);
        lately.ended(1);
        assert_eq!(lately.mean(1), 200);
    }

    #[test]
    fn what_was_long_ago_counts_for_little_and_time_alone_changes_nothing() {
        let mut lately = Lately::default();
        for _ in 0..100 {
            lately.spent(1_000_000, 1);
            lately.ended(1);
        }
        let mean = lately.mean(60);
        assert!((999_900..=1_000_000).contains(&mean), "{mean}");
        for _ in 0..100 {
            lately.spent(3_000_000, 60);
            lately.ended(60);
        }
        let mean = lately.mean(60);
        assert!((2_700_000..2_800_000).contains(&mean), "of the earlier ones 15 % count: {mean}");
        assert_eq!(lately.mean(60 + 10_000), 0);
    }

    #[test]
    fn the_most_there_is_does_not_overflow() {
        let mut lately = Lately { tick: 0, cpu_micros: Cost::MAX, ended: Cost::MAX };
        lately.spent(u64::MAX, 0);
        lately.ended(0);
        assert_eq!(lately.mean(0), ONE);
        assert_eq!(lately.mean(ALL_GONE), 0);
    }
}
