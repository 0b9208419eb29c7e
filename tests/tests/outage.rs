//! Traffic classes keep an outage of one kind of traffic from the other.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests report by panicking")]

use std::time::Duration;

use quota_tests::outage::{run, slow};

const INTERACTIVE: usize = 0;
const CI: usize = 1;

#[test]
fn with_classes_interactive_requests_do_not_feel_an_outage_and_ci_recovers_by_itself() {
    for seed in 0..3 {
        let with = run(true, seed);
        assert!(with.success(INTERACTIVE, slow()) >= 0.999, "seed {seed}");
        assert!(with.p99_wait(INTERACTIVE, slow()) < Duration::from_millis(50), "seed {seed}");
        assert_eq!(with.most_ci, 50, "seed {seed}");
        // What CI gets is its cap: 50 in 0.5 s, of 700.
        let ci = with.success(CI, slow());
        assert!((0.12..0.20).contains(&ci), "seed {seed}: {ci}");
        assert!(with.refused(CI) > 60_000, "seed {seed}");
        let recovery = with.recovery(CI).expect("it recovers");
        assert!(recovery <= Duration::from_secs(10), "seed {seed}: {recovery:?}");
    }
}

#[test]
fn without_classes_they_do() {
    for seed in 0..3 {
        let without = run(false, seed);
        assert!(without.success(INTERACTIVE, slow()) < 0.5, "seed {seed}");
        assert!(without.most_ci > 90, "seed {seed}");
    }
}

#[test]
fn the_same_seed_is_the_same_run() {
    assert!(run(true, 1) == run(true, 1) && run(true, 1) != run(true, 2));
}
