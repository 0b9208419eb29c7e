//! What a report counts, and how often.

use crate::answer::{Answer, Expected, reported, standing};
use crate::case::{Case, run};
use crate::request::{Amounts, Report, charge, cpu, ip, memory, network, repo, spend, standing_of, user};

fn dropped(applied: u64, dropped_old: u64) -> Expected {
    Answer::Reported { applied, dropped_old, duplicate: false }.into()
}

fn duplicate() -> Expected {
    Answer::Reported { applied: 0, dropped_old: 0, duplicate: true }.into()
}

#[tokio::test]
async fn charges_count_on_all_their_accounts() {
    let most = Amounts { cpu: 1_000_000, memory: 4096, network: 3 };
    run([
        Case::new("several charges of one report")
            .step(
                Report::of([
                    charge(repo("r").user("u"), cpu(1.0)),
                    charge(user("u").ip("192.0.2.1"), memory(4096)),
                    charge(user("u"), network(3)),
                ]),
                reported(3),
            )
            .step(standing_of("repo", "r"), standing("repo", "r").used(cpu(1.0)))
            .step(standing_of("user", "u"), standing("user", "u").used(most))
            .step(standing_of("ip", "192.0.2.1"), standing("ip", "192.0.2.1").used(memory(4096))),
        Case::new("memory is rounded up to KiB-seconds")
            .step(spend(ip("192.0.2.1"), memory(1)), reported(1))
            .step(spend(ip("192.0.2.1"), memory(1025)), reported(1))
            .step(standing_of("ip", "192.0.2.1"), standing("ip", "192.0.2.1").used(memory(3072))),
        Case::new("a thousand thousandths are one second")
            .step(Report::of((0..1000).map(|_| charge(user("u"), cpu(0.001)))), reported(1000))
            .step(standing_of("user", "u"), standing("user", "u").used(cpu(1.0))),
        Case::new("no charges").step(Report::default(), reported(0)),
    ])
    .await;
}

#[tokio::test]
async fn f24_what_is_older_than_the_window_is_dropped() {
    run([
        Case::new("by age")
            .step(
                Report::of([
                    charge(user("u"), cpu(1.0)).aged(60.0),
                    charge(user("u"), cpu(2.0)).aged(20.0),
                    charge(user("u"), cpu(4.0)).aged(1e6),
                ]),
                dropped(1, 2),
            )
            .step(standing_of("user", "u"), standing("user", "u").used(cpu(2.0))),
        Case::new("by the time it was held")
            .step(
                Report::of([
                    charge(user("u"), cpu(1.0)).aged(30.0),
                    charge(user("u"), cpu(2.0)).aged(15.0),
                    charge(user("u"), cpu(4.0)),
                ])
                .held(30.0),
                dropped(2, 1),
            )
            .step(standing_of("user", "u"), standing("user", "u").used(cpu(6.0))),
        Case::new("all of it")
            .step(spend(user("u"), cpu(1.0)).held(61.0), dropped(0, 1))
            .step(standing_of("user", "u"), standing("user", "u")),
    ])
    .await;
}

#[tokio::test]
async fn f03_a_marked_report_counts_once() {
    let report = || spend(repo("r").user("u"), cpu(1.0));
    run([
        Case::new("sent again")
            .step(report().marked("s", 7), reported(1))
            .step(report().marked("s", 7), duplicate())
            .step(report().marked("s", 7).held(2.0), duplicate())
            .step(standing_of("user", "u"), standing("user", "u").used(cpu(1.0)))
            .step(standing_of("repo", "r"), standing("repo", "r").used(cpu(1.0))),
        Case::new("sent again with another cost")
            .step(report().marked("s", 7), reported(1))
            .step(spend(user("u"), cpu(8.0)).marked("s", 7), duplicate())
            .step(standing_of("user", "u"), standing("user", "u").used(cpu(1.0))),
        Case::new("an earlier one after a later one")
            .step(report().marked("s", 7), reported(1))
            .step(report().marked("s", 6), duplicate())
            .step(report().marked("s", 8), reported(1))
            .step(standing_of("user", "u"), standing("user", "u").used(cpu(2.0))),
        Case::new("of another source")
            .step(report().marked("s", 7), reported(1))
            .step(report().marked("t", 7), reported(1))
            .step(standing_of("user", "u"), standing("user", "u").used(cpu(2.0))),
        Case::new("the first is number 0")
            .step(report().marked("s", 0), reported(1))
            .step(report().marked("s", 0), duplicate())
            .step(standing_of("user", "u"), standing("user", "u").used(cpu(1.0))),
        Case::new("the largest sequence")
            .step(report().marked("s", (1 << 53) - 1), reported(1))
            .step(report().marked("s", (1 << 53) - 1), duplicate())
            .step(standing_of("user", "u"), standing("user", "u").used(cpu(1.0))),
    ])
    .await;
}

#[tokio::test]
async fn a_report_without_a_mark_counts_each_time() {
    run([Case::new("twice the same")
        .step(spend(user("u"), cpu(1.0)), reported(1))
        .step(spend(user("u"), cpu(1.0)), reported(1))
        .step(standing_of("user", "u"), standing("user", "u").used(cpu(2.0)))])
    .await;
}
