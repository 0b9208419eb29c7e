//! The simulator can be relied on: the same again, and the same requests under each rule.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests report by panicking")]

use std::path::Path;

use quota_tests::simulate::{Contender, Heavy, Scenario, run};

fn scenario(name: &str) -> Scenario {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("simulate/scenarios");
    Scenario::read(&directory.join(format!("{name}.toml"))).unwrap()
}

#[test]
fn the_same_run_twice_is_the_same() {
    let scenario = Scenario { seconds: 300, until: 280, ..scenario("whale") };
    let run = |seed| run(&scenario, &Contender::blame(), seed, Heavy::With);
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}

#[test]
fn light_requests_do_not_depend_on_the_rule() {
    let scenario = Scenario { seconds: 300, until: 280, ..scenario("three_whales") };
    let asked = |contender: Contender| {
        let seconds = run(&scenario, &contender, 1, Heavy::With).seconds;
        seconds.iter().map(|second| second.refused[0] + second.admitted[0]).collect::<Vec<_>>()
    };
    let [first, others @ ..] = Contender::all().map(asked);
    assert!(others.iter().all(|other| *other == first));
}

#[test]
fn every_scenario_can_be_read() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("simulate/scenarios");
    let files = std::fs::read_dir(directory).unwrap();
    let read: Vec<Scenario> = files.map(|file| Scenario::read(&file.unwrap().path()).unwrap()).collect();
    assert!(read.len() >= 11, "{}", read.len());
}
