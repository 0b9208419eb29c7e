//! Fewer charges that come to the same usage.

use std::time::Duration;

use quota_core::{Charge, Release, WindowLength};

/// Parts of a bucket. What was spent within one of them is one charge.
const PARTS: u64 = 16;

/// Makes charges of about the same moment one, dated as late as the latest can be: each by less than a part of a bucket, so
/// that it counts for as much longer, and never shorter. What stands alone keeps its moment.
pub(super) fn charges(charges: &mut Vec<Charge>, length: WindowLength) {
    if charges.len() < 2 {
        return;
    }
    let part = (length.bucket_micros() / PARTS).max(1);
    for Charge { age, .. } in &mut *charges {
        *age = Duration::from_micros(micros(*age) / part * part);
    }
    charges.sort_unstable_by_key(|charge| charge.age);
    charges.dedup_by(|next, kept| {
        let same = next.age == kept.age;
        if same {
            kept.cost = kept.cost.plus(next.cost);
        }
        same
    });
}

/// Makes releases to the same bucket one.
pub(super) fn releases(releases: &mut Vec<Release>) {
    releases.sort_unstable_by_key(|release| release.tick);
    releases.dedup_by(|next, kept| {
        let same = next.tick == kept.tick;
        if same {
            kept.amounts = kept.amounts.plus(next.amounts);
        }
        same
    });
}

fn micros(age: Duration) -> u64 {
    u64::try_from(age.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use quota_core::{Cost, PerResource, Resource};

    use super::*;

    const PART: u64 = 62_500;

    fn cost(cpu: u64) -> Cost {
        Cost::saturating(PerResource::new(cpu, 2 * cpu, 3 * cpu))
    }

    fn cpu(sum: u64, cost: Cost) -> u64 {
        sum + cost.amounts()[Resource::Cpu]
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_what_is_moved_is_moved_by_less_than_a_part(
            spent in vec((0..60_000_000_u64, 1..1000_u64), 0..300),
        ) {
            let before: Vec<_> =
                spent.iter().map(|&(age, cpu)| Charge { age: Duration::from_micros(age), cost: cost(cpu) }).collect();
            let mut merged = before.clone();
            charges(&mut merged, WindowLength::default());
            let sum = |charges: &[Charge]| charges.iter().fold(0, |sum, charge| cpu(sum, charge.cost));
            prop_assert_eq!(sum(&merged), sum(&before));
            prop_assert!(merged.len() <= 960);
            // Whatever moment is looked at: as much was spent up to it, but for what was less than a part before.
            for Charge { age, .. } in &before {
                let since = |charges: &[Charge], age: Duration| {
                    sum(&charges.iter().copied().filter(|charge| charge.age <= age).collect::<Vec<_>>())
                };
                let later = since(&before, *age + Duration::from_micros(PART - 1));
                prop_assert!((since(&before, *age)..=later).contains(&since(&merged, *age)));
            }
        }

        #[test]
        fn releases_to_a_bucket_are_one_and_nothing_of_them_is_lost(given in vec((0..5_u64, 1..1000_u64), 0..50)) {
            let before: Vec<_> =
                given.iter().map(|&(tick, cpu)| Release { tick, amounts: cost(cpu) }).collect();
            let mut merged = before.clone();
            releases(&mut merged);
            for tick in 0..5 {
                let of = |all: &[Release]| {
                    all.iter().filter(|release| release.tick == tick).fold(0, |sum, release| cpu(sum, release.amounts))
                };
                prop_assert_eq!(of(&merged), of(&before));
                prop_assert!(merged.iter().filter(|release| release.tick == tick).count() <= 1);
            }
        }
    }

    #[test]
    fn a_charge_that_stands_alone_keeps_its_moment() {
        let mut alone = vec![Charge { age: Duration::from_micros(59_999_999), cost: cost(1) }];
        charges(&mut alone, WindowLength::default());
        assert_eq!(alone[0].age, Duration::from_micros(59_999_999));
    }
}
