//! The simulator can be relied on: the same again, and the same requests under each rule.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests report by panicking")]

use std::path::Path;

use quota_tests::simulate::{Aim, Contender, Figures, Heavy, Scenario, light_p95, relief_seconds, run};

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

/// With two seeds; `scripts/simulate` runs twenty.
#[test]
fn the_rule_blame_meets_its_aims_in_every_scenario() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("simulate/scenarios");
    let files: Vec<_> = std::fs::read_dir(directory).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(files.len() >= 11, "{files:?}");
    std::thread::scope(|scope| {
        for file in &files {
            scope.spawn(move || {
                let scenario = Scenario::read(file).unwrap();
                let figures = Figures::worst((0..2).map(|seed| figures(&scenario, seed))).unwrap();
                for aim in Aim::ALL.into_iter().filter(|aim| scenario.excuse(*aim).is_none()) {
                    assert!(aim.is_met(&figures), "{aim:?} of {}: {figures:?}", file.display());
                }
            });
        }
    });
}

fn figures(scenario: &Scenario, seed: u64) -> Figures {
    let with = |contender: &Contender, heavy| run(scenario, contender, seed, heavy);
    let idle = light_p95(scenario, &with(&Contender::FIXED, Heavy::Without));
    let least_relief = relief_seconds(scenario, &with(&Contender::FIXED, Heavy::UntilHot));
    Figures::of(scenario, &with(&Contender::blame(), Heavy::With), idle, least_relief)
}
