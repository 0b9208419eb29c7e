//! What is given back of a reservation.

use quota_core::BUCKET_CAP;

use crate::answer::{Answer, Standing, allow, reported, standing};
use crate::case::{Case, run};
use crate::request::{Amounts, NOTHING, Report, charge, check, cpu, repo, spend, standing_of, user};

fn used(seconds: f64) -> Standing {
    standing("user", "u").used(cpu(seconds))
}

#[tokio::test]
async fn a_reservation_is_settled_against_the_real_cost() {
    let (accounts, price) = (repo("r").user("u"), cpu(2.0));
    let allowed = || allow(price).told(standing("repo", "r")).told(standing("user", "u"));
    let real = Amounts { cpu: 500_000, memory: 1024, network: 9 };
    run([
        Case::new("all of it, where no release is named")
            .step(check(accounts).price(price), allowed())
            .step(Report::of([charge(accounts, real).with_last()]), reported(1))
            .step(standing_of("user", "u"), standing("user", "u").used(real))
            .step(standing_of("repo", "r"), standing("repo", "r").used(real)),
        Case::new("in parts")
            .step(check(accounts).price(price), allowed())
            .step(Report::of([charge(accounts, cpu(0.5)).with_last().releases(cpu(0.5))]), reported(1))
            .step(standing_of("user", "u"), used(2.0))
            .step(Report::of([charge(accounts, cpu(0.25)).with_last().releases(cpu(1.5))]), reported(1))
            .step(standing_of("user", "u"), used(0.75))
            .step(standing_of("repo", "r"), standing("repo", "r").used(cpu(0.75))),
        Case::new("more than a bucket holds, which is reserved as far as it is counted")
            .step(check(accounts).price(Amounts { cpu: 1 << 53, ..NOTHING }), {
                let most = Amounts { cpu: BUCKET_CAP, ..NOTHING };
                allow(most).told(standing("repo", "r")).told(standing("user", "u"))
            })
            .step(Report::of([charge(accounts, cpu(1.0)).with_last()]), reported(1))
            .step(standing_of("user", "u"), used(1.0)),
        Case::new("none of it")
            .step(check(accounts).price(price), allowed())
            .step(Report::of([charge(accounts, cpu(1.0)).with_last().releases(NOTHING)]), reported(1))
            .step(standing_of("user", "u"), used(3.0)),
        Case::new("without the reservation, nothing is given back")
            .step(check(accounts).price(price), allowed())
            .step(spend(accounts, cpu(1.0)), reported(1))
            .step(standing_of("user", "u"), used(3.0)),
        Case::new("though the cost itself is too old")
            .step(check(accounts).price(price), allowed())
            .step(Report::of([charge(accounts, cpu(1.0)).aged(90.0).with_last()]), {
                Answer::Reported { applied: 0, dropped_old: 1, duplicate: false }
            })
            .step(standing_of("user", "u"), used(0.0)),
    ])
    .await;
}

#[tokio::test]
async fn no_more_is_given_back_than_was_reserved() {
    let price = cpu(2.0);
    let allowed = || allow(price).told(standing("user", "u"));
    run([
        Case::new("a release above the reservation")
            .step(check(user("u")).price(price), allowed())
            .step(check(user("u")).price(cpu(3.0)), allow(cpu(3.0)).told(used(2.0)))
            .step(Report::of([charge(user("u"), NOTHING).with_last().releases(cpu(50.0))]), reported(1))
            .step(standing_of("user", "u"), used(2.0)),
        Case::new("the same reservation twice, with nothing left")
            .step(check(user("u")).price(price), allowed())
            .step(Report::of([charge(user("u"), NOTHING).with_last()]), reported(1))
            .step(Report::of([charge(user("u"), cpu(1.0)).with_last()]), reported(1))
            .step(standing_of("user", "u"), used(1.0)),
        Case::new("on an account that reserved nothing")
            .step(check(user("u")).price(price), allowed())
            .step(Report::of([charge(repo("r"), NOTHING).with_last()]), reported(1))
            .step(standing_of("repo", "r"), standing("repo", "r"))
            .step(standing_of("user", "u"), used(2.0)),
        Case::new("a marked report releases once")
            .step(check(user("u")).price(price), allowed())
            .step(check(user("u")).price(price), allow(price).told(used(2.0)))
            .step(Report::of([charge(user("u"), cpu(0.5)).with_last()]).marked("s", 1), reported(1))
            .step(Report::of([charge(user("u"), cpu(0.5)).with_last()]).marked("s", 1), {
                Answer::Reported { applied: 0, dropped_old: 0, duplicate: true }
            })
            .step(standing_of("user", "u"), used(2.5)),
    ])
    .await;
}
