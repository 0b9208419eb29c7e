use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

fn add(heaviest: &mut Heaviest<u64>, key: u64, amount: u64) {
    heaviest.add(&key, amount, (), || key);
}

/// A weight for each rank, which falls as the rank grows.
fn zipf(ranks: u64, exponent: f64) -> Vec<u64> {
    (1..=ranks).map(|rank| (1e9 / (rank as f64).powf(exponent)) as u64 + 1).collect()
}

/// A permutation of 0..count, the same each time.
fn scattered(count: u64) -> impl Iterator<Item = u64> {
    (0..count).map(move |number| number * 1_000_003 % count)
}

proptest! {
    #[test]
    fn what_is_told_is_below_the_truth_by_no_more_than_is_said(
        keep in 1_usize..8,
        amounts in prop::collection::vec((0_u64..40, 0_u64..1000), 0..400),
    ) {
        let (mut heaviest, mut truth) = (Heaviest::new(keep), HashMap::<u64, u64>::new());
        for &(key, amount) in &amounts {
            add(&mut heaviest, key, amount);
            *truth.entry(key).or_default() += amount;
            prop_assert!(heaviest.len() < 2 * keep.max(1) + 1);
        }
        let sum: u64 = truth.values().sum();
        prop_assert!(heaviest.missed() <= sum / (keep as u64 + 1));
        for (key, used) in truth {
            let told = heaviest.get(&key).map_or(0, |kept| kept.amount);
            prop_assert!(told <= used && used - told <= heaviest.missed(), "{key}: {told} of {used}");
        }
    }

    #[test]
    fn summaries_that_are_joined_keep_the_bound(
        parts in prop::collection::vec(prop::collection::vec((0_u64..40, 1_u64..1000), 0..100), 1..5),
    ) {
        let (mut joined, mut truth) = (Heaviest::new(6), HashMap::<u64, u64>::new());
        for part in &parts {
            let mut heaviest = Heaviest::new(6);
            for &(key, amount) in part {
                add(&mut heaviest, key, amount);
                *truth.entry(key).or_default() += amount;
            }
            let missed = heaviest.missed();
            joined.absorb(heaviest.kept, missed);
        }
        for (key, used) in truth {
            let told = joined.get(&key).map_or(0, |kept| kept.amount);
            prop_assert!(told <= used && used - told <= joined.missed(), "{key}: {told} of {used}");
        }
    }
}

#[test]
fn the_heaviest_of_many_are_found() {
    for exponent in [0.8, 1.0, 1.3] {
        let weights = zipf(100_000, exponent);
        let mut heaviest = Heaviest::new(2048);
        // Each in ten portions, as reports come, the heavy ones among the light.
        for portion in 0..10 {
            for key in scattered(100_000) {
                add(&mut heaviest, key, weights[key as usize] / 10 + portion % 2);
            }
        }
        let found: Vec<u64> = heaviest.heaviest(100).into_iter().map(|(key, _)| *key).collect();
        assert_eq!(found.len(), 100);
        // The order of those that are alike may be another.
        let lightest = found.iter().map(|key| weights[*key as usize]).min().unwrap();
        assert!(lightest > weights[99] * 95 / 100, "exponent {exponent}: {lightest} of {}", weights[99]);
        assert!(heaviest.missed() < weights[99], "{} of {}", heaviest.missed(), weights[99]);
    }
}

#[test]
fn a_million_keys_that_come_once_hold_no_more_than_the_bound() {
    let mut heaviest = Heaviest::new(512);
    for key in 0..1_000_000 {
        add(&mut heaviest, key, 1);
        add(&mut heaviest, u64::MAX, 1);
        assert!(heaviest.len() < 1024);
    }
    let (key, kept) = heaviest.heaviest(1)[0];
    assert_eq!(*key, u64::MAX);
    assert!(kept.amount <= 1_000_000 && kept.amount + heaviest.missed() >= 1_000_000);
}

const SLICES: Slices = Slices { before: 2, open: 4, closed: 2 };

fn told(lately: &mut Lately<&'static str, u64>, slice: u64) -> Vec<(&'static str, u64, u64)> {
    let sum = lately.sum(slice);
    sum.heaviest(10).into_iter().map(|(key, kept)| (*key, kept.amount, kept.note)).collect()
}

#[test]
fn slices_add_up_until_they_are_too_old() {
    let mut lately = Lately::new(SLICES);
    lately.add(10, &"a", 5, 1, || "a");
    lately.add(11, &"a", 7, 3, || "a");
    lately.add(11, &"b", 1, 2, || "b");
    assert_eq!(told(&mut lately, 11), [("a", 12, 3), ("b", 1, 2)]);
    assert_eq!(told(&mut lately, 12), [("a", 12, 3), ("b", 1, 2)]);
    assert_eq!(told(&mut lately, 13), [("a", 7, 3), ("b", 1, 2)], "slice 10 no longer counts");
    // Late, since two that take the time may come in the other order.
    lately.add(12, &"b", 9, 0, || "b");
    assert_eq!(told(&mut lately, 13), [("b", 10, 2), ("a", 7, 3)]);
    assert_eq!(told(&mut lately, 16), []);
}

#[test]
fn of_a_slice_that_is_closed_the_heaviest_stay_and_what_was_dropped_is_said() {
    let mut lately = Lately::new(SLICES);
    for (key, amount) in [("a", 5), ("b", 3), ("c", 2)] {
        lately.add(1, &key, amount, 0, || key);
    }
    assert_eq!(lately.sum(1).missed(), 0);
    assert_eq!(told(&mut lately, 2), [("a", 5, 0), ("b", 3, 0)]);
    assert_eq!(lately.sum(2).missed(), 2);
}
