//! Traffic classes keep an outage of one kind of traffic from the other.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests report by panicking")]

use std::time::Duration;

use quota_tests::outage::{CI_SLOTS, run};
use quota_tests::process::Program;

const INTERACTIVE: usize = 0;
const CI: usize = 1;

#[test]
fn with_classes_interactive_requests_do_not_feel_an_outage_and_ci_recovers_by_itself() {
    for seed in 0..3 {
        let with = run(true, seed);
        assert!(with.success(INTERACTIVE) >= 0.999, "seed {seed}");
        assert!(with.p99_wait(INTERACTIVE) < Duration::from_millis(50), "seed {seed}");
        assert_eq!(with.most_ci, 50, "seed {seed}");
        // What CI gets is its cap: 50 in 0.5 s, of 700.
        let ci = with.success(CI);
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
        assert!(without.success(INTERACTIVE) < 0.5, "seed {seed}");
        assert!(without.most_ci > 90, "seed {seed}");
    }
}

#[test]
fn the_same_seed_is_the_same_run() {
    assert!(run(true, 1) == run(true, 1) && run(true, 1) != run(true, 2));
}

#[tokio::test]
async fn real_processes_go_through_it_too_and_no_more_calls_are_in_progress_than_there_are_slots() {
    let folder = tempfile::tempdir().unwrap();
    let plot = folder.path().join("outage.svg");
    let mut outage = Program::of_workspace("quota-outage").args(["--quick", "--plot"]).arg(&plot).start();
    let status = outage.wait_for_exit_within(Duration::from_secs(150)).await;
    assert!(status.success(), "{status}\n{}", outage.stderr());
    let told = outage.stdout();
    assert_eq!(told.matches("% served while calls take long").count(), 4, "{told}");
    let most = told.split_once("in progress, with classes ").and_then(|(_, rest)| rest.split_once(','));
    let most: u32 = most.and_then(|(most, _)| most.parse().ok()).unwrap_or_else(|| panic!("{told}"));
    assert!((1..=CI_SLOTS).contains(&most), "{told}");
    assert!(std::fs::read_to_string(&plot).unwrap().ends_with("</svg>\n"));
}
