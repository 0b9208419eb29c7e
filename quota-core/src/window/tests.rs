use proptest::prelude::*;

use super::*;

fn cpu(micros: u64) -> Cost {
    Cost::ZERO.with_cpu_micros(micros).unwrap()
}

fn used(window: &Window) -> u64 {
    window.usage()[Resource::Cpu]
}

#[test]
fn a_bucket_leaves_sixty_buckets_later() {
    let mut window = Window::default();
    window.advance(1000);
    window.add(1000, cpu(7));
    window.advance(1059);
    assert_eq!(used(&window), 7);
    window.advance(1060);
    assert_eq!(used(&window), 0);
}

#[test]
fn late_cost_lands_where_it_was_spent() {
    let mut window = Window::default();
    window.advance(1000);
    window.add(1000, cpu(1));
    window.add(970, cpu(2));
    window.add(970, cpu(4));
    window.add(940, cpu(8));
    window.advance(1000 + 1);
    // The cost of 940 had just left, and was taken for the oldest bucket, 941; that leaves at 1001.
    assert_eq!(used(&window), 7);
    window.advance(1030);
    assert_eq!(used(&window), 1);
}

#[test]
fn f10_a_release_takes_from_its_own_bucket_and_never_below_zero() {
    let mut window = Window::default();
    window.advance(1000);
    window.add(1000, cpu(10));
    window.advance(1010);
    window.add(1010, cpu(5));
    assert!(!window.release(1000, cpu(4)));
    assert_eq!(used(&window), 11);
    assert!(window.release(1000, cpu(7)), "6 were left");
    assert_eq!(used(&window), 5);
    assert!(window.release(1005, cpu(1)), "nothing was reserved there");
    assert!(!window.release(950, cpu(1)), "has left: ignored");
    assert!(!window.release(1011, cpu(1)), "not yet come: ignored");
    assert_eq!(used(&window), 5);
}

#[test]
fn a_bucket_saturates() {
    let mut window = Window::default();
    window.advance(1000);
    window.add(1000, cpu(1 << 52));
    window.add(1000, cpu(1 << 52));
    assert_eq!(used(&window), BUCKET_CAP);
    window.add(999, cpu(1));
    assert_eq!(used(&window), BUCKET_CAP + 1);
    window.advance(1060);
    assert_eq!(used(&window), 0);
}

#[test]
fn a_clock_that_steps_back_keeps_ages() {
    let mut window = Window::default();
    window.advance(5000);
    window.add(4990, cpu(3));
    window.add(5000, cpu(4));
    assert_eq!(window.advance(1000), 4000);
    assert_eq!(used(&window), 7);
    window.advance(1049);
    assert_eq!(used(&window), 7);
    window.advance(1050);
    assert_eq!(used(&window), 4);
    window.advance(1060);
    assert_eq!(used(&window), 0);
}

#[test]
fn each_bucket_tells_what_was_spent_in_it() {
    let mut window = Window::default();
    window.advance(1000);
    for (tick, amount) in [(941, 5), (999, 7), (1000, 9)] {
        window.add(tick, cpu(amount));
    }
    let mut expected = [0; 60];
    [expected[0], expected[58], expected[59]] = [5, 7, 9];
    assert_eq!(window.by_bucket(Resource::Cpu), expected);
    assert_eq!(window.by_bucket(Resource::Memory), [0; 60]);
    window.advance(1001);
    expected.rotate_left(1);
    expected[59] = 0;
    assert_eq!(window.by_bucket(Resource::Cpu), expected, "the oldest has left");
}

#[test]
fn below_again_when_enough_has_left() {
    let mut window = Window::default();
    window.advance(1000);
    for (tick, amount) in [(950, 10), (960, 20), (1000, 30)] {
        window.add(tick, cpu(amount));
    }
    let below = |limit| window.below_at(Resource::Cpu, limit);
    assert_eq!(below(Limit::Unlimited), Some(1000));
    assert_eq!(below(Limit::At(61)), Some(1000));
    assert_eq!(below(Limit::At(60)), Some(1010));
    assert_eq!(below(Limit::At(50)), Some(1020));
    assert_eq!(below(Limit::At(30)), Some(1060));
    assert_eq!(below(Limit::At(1)), Some(1060));
    assert_eq!(below(Limit::At(0)), None);
}

#[test]
fn what_was_spent_since_is_that_of_its_bucket_and_later_ones() {
    let mut window = Window::default();
    window.advance(1000);
    for (tick, amount) in [(950, 1), (990, 2), (991, 4), (1000, 8)] {
        window.add(tick, cpu(amount));
    }
    window.add(991, Cost::ZERO.with_network_bytes(16).unwrap());
    let since = |tick| window.spent_since(tick);
    assert_eq!(since(991), PerResource::new(12, 0, 16));
    assert_eq!(
        [0, 950, 951, 990, 992, 1000, 1001].map(|tick| since(tick)[Resource::Cpu]),
        [15, 15, 14, 14, 8, 8, 0]
    );
}

#[test]
fn buckets_that_are_no_window_are_refused() {
    let bucket = |tick, cpu| Bucket { tick, spent: PerResource::new(cpu, 0, 0) };
    let open = bucket(1000, 1);
    let window = Window::from_buckets(open, [bucket(941, 1), bucket(999, 2)]).unwrap();
    assert_eq!(used(&window), 4);
    for closed in [
        vec![bucket(940, 1)],
        vec![bucket(1000, 1)],
        vec![bucket(950, 1), bucket(950, 1)],
        vec![bucket(951, 1), bucket(950, 1)],
        vec![bucket(950, BUCKET_CAP + 1)],
    ] {
        assert_eq!(Window::from_buckets(open, closed.clone()), None, "{closed:?}");
    }
}

/// What happens to a window in a random run, and how long after the step before, in buckets.
#[derive(Clone, Debug)]
enum Step {
    Spend { age: Tick, amount: u64 },
    GiveBack { age: Tick, amount: u64 },
}

fn steps() -> impl Strategy<Value = Vec<(Tick, Step)>> {
    let pause = prop_oneof![6 => Just(0), 6 => 1..3u64, 2 => 3..80u64, 1 => 80..100_000u64];
    let amount = prop_oneof![8 => 1..1000u64, 1 => Just(0), 1 => Just(BUCKET_CAP)];
    let step = prop_oneof![
        (0..60u64, amount.clone()).prop_map(|(age, amount)| Step::Spend { age, amount }),
        (0..70u64, amount).prop_map(|(age, amount)| Step::GiveBack { age, amount }),
    ];
    prop::collection::vec((pause, step), 1..200)
}

proptest! {
    #[test]
    fn usage_is_the_exact_sum_of_a_log(steps in steps()) {
        let mut window = Window::default();
        let mut log = std::collections::BTreeMap::<Tick, u64>::new();
        let mut now = 1_000_000;
        let mut charged = 0;
        for (pause, step) in steps {
            now += pause;
            window.advance(now);
            match step {
                Step::Spend { age, amount } => {
                    window.add(now - age, cpu(amount));
                    let bucket = log.entry(now - age).or_default();
                    *bucket = (*bucket + amount).min(BUCKET_CAP);
                    charged += amount;
                }
                Step::GiveBack { age, amount } => {
                    window.release(now - age, cpu(amount));
                    if let Some(bucket) = log.get_mut(&(now - age)).filter(|_| age < 60) {
                        *bucket = bucket.saturating_sub(amount);
                    }
                }
            }
            let exact: u64 = log.range(now - 59..=now).map(|(_, amount)| amount).sum();
            prop_assert_eq!(used(&window), exact);
            prop_assert!(used(&window) <= charged, "never above what was charged");
            let lately: u64 = log.range(now - 9..=now).map(|(_, amount)| amount).sum();
            prop_assert_eq!(window.spent_since(now - 9)[Resource::Cpu], lately);
            prop_assert!(window.buckets().count() <= 60);
        }
    }

    #[test]
    fn f25_refused_until_exactly_the_named_bucket_then_below(steps in steps(), limit in 1..3000u64) {
        let mut window = Window::default();
        let mut now = 1_000_000;
        for (pause, step) in steps {
            now += pause;
            window.advance(now);
            if let Step::Spend { age, amount } = step {
                window.add(now - age, cpu(amount));
            }
            let limit = Limit::At(limit);
            let below_at = window.below_at(Resource::Cpu, limit).unwrap();
            prop_assert!((now..=now + 60).contains(&below_at));
            let at = |tick| {
                let mut later = window.clone();
                later.advance(tick);
                used(&later)
            };
            prop_assert!(!limit.reached_by(at(below_at)));
            if below_at > now {
                prop_assert!(limit.reached_by(at(below_at - 1)));
            }
        }
    }
}
