use std::time::Duration;

/// Ranges of amounts that are told apart within a doubling.
const PARTS: u32 = 4;

/// Ranges in all: of every amount that a `u64` holds.
const RANGES: usize = 64 * PARTS as usize;

/// How often which amounts came: in ranges of which each is an eighth to a quarter wider than where it begins, so that a
/// quantile is within an eighth of what it was. About a kilobyte, however many came.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Box<[u32; RANGES]>,
    sum: u128,
    count: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: Box::new([0; RANGES]), sum: 0, count: 0 }
    }
}

impl Histogram {
    /// Counts an amount.
    pub fn add(&mut self, amount: u64) {
        let count = &mut self.counts[range(amount)];
        *count = count.saturating_add(1);
        self.sum = self.sum.saturating_add(amount.into());
        self.count += 1;
    }

    /// Counts a duration in microseconds.
    pub fn add_duration(&mut self, duration: Duration) {
        self.add(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX));
    }

    /// Adds what another counted.
    pub fn absorb(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(other.counts.iter()) {
            *count = count.saturating_add(*more);
        }
        self.sum = self.sum.saturating_add(other.sum);
        self.count += other.count;
    }

    /// How many came.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The mean, exact but for its fraction; 0 where nothing came.
    pub fn mean(&self) -> u64 {
        u64::try_from(self.sum / u128::from(self.count.max(1))).unwrap_or(u64::MAX)
    }

    /// The amount that so many hundredths of those that came did not exceed, within an eighth; 0 where nothing came.
    pub fn percentile(&self, hundredths: u64) -> u64 {
        let least = (u128::from(self.count) * u128::from(hundredths)).div_ceil(100).max(1);
        let mut seen = 0_u128;
        let found = self.counts.iter().position(|count| {
            seen += u128::from(*count);
            seen >= least
        });
        found.map_or(0, middle)
    }
}

/// The range of an amount: below 4 its own, above by the highest bit and the two that follow it.
const fn range(amount: u64) -> usize {
    if amount < PARTS as u64 {
        return amount as usize;
    }
    let doublings = amount.ilog2();
    let part = (amount >> (doublings - 2)) & (PARTS as u64 - 1);
    ((doublings - 1) * PARTS) as usize + part as usize
}

/// The middle of a range.
const fn middle(range: usize) -> u64 {
    if range < PARTS as usize {
        return range as u64;
    }
    let doublings = range as u32 / PARTS + 1;
    let width = 1_u64 << (doublings - 2);
    let from = (PARTS as u64 + (range as u64 % PARTS as u64)) * width;
    from + width / 2
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(amounts: impl IntoIterator<Item = u64>) -> Histogram {
        let mut histogram = Histogram::default();
        amounts.into_iter().for_each(|amount| histogram.add(amount));
        histogram
    }

    proptest! {
        #[test]
        fn an_amount_is_told_within_an_eighth(amount: u64) {
            let told = of([amount]).percentile(50);
            prop_assert!(told.abs_diff(amount) <= amount / 8, "{amount}: {told}");
        }

        #[test]
        fn percentiles_are_those_of_the_sorted_amounts_within_an_eighth(
            mut amounts in prop::collection::vec(0_u64..1 << 40, 1..200),
            hundredths in 1_u64..=100,
        ) {
            let histogram = of(amounts.clone());
            amounts.sort_unstable();
            let exact = amounts[(amounts.len() * hundredths as usize).div_ceil(100) - 1];
            let told = histogram.percentile(hundredths);
            prop_assert!(told.abs_diff(exact) <= exact / 8, "{told} of {exact}");
        }
    }

    #[test]
    fn what_is_joined_is_as_if_it_had_come_to_one() {
        let (few, many) = (of([1, 5, 7000]), of(0..1000));
        let mut joined = few;
        joined.absorb(&many);
        let all = of([1, 5, 7000].into_iter().chain(0..1000));
        assert_eq!((joined.count(), joined.mean()), (1003, all.mean()));
        assert_eq!([50, 95, 100].map(|p| joined.percentile(p)), [50, 95, 100].map(|p| all.percentile(p)));
    }

    #[test]
    fn nothing_is_nothing_and_the_most_does_not_overflow() {
        let nothing = Histogram::default();
        assert_eq!((nothing.count(), nothing.mean(), nothing.percentile(95)), (0, 0, 0));
        let most = of([u64::MAX; 3]);
        assert_eq!(most.mean(), u64::MAX);
        assert!(most.percentile(50) > u64::MAX / 8 * 7);
    }
}
