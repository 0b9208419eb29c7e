//! Whether to back off, and for how long.

use crate::answer::{Answer, Expected, Wait, allow, back_off, breach, each, invalid, reported, standing};
use crate::case::{Case, run};
use crate::request::{NOBODY, Report, backoff, backoffs, charge, check, cpu, repo, spend, standing_of, user};

#[tokio::test]
async fn it_says_what_a_check_would_say_and_changes_nothing() {
    run([
        Case::new("go on")
            .step(backoff(repo("r").user("u").ip("192.0.2.1"), 1), Answer::GoOn)
            .step(standing_of("user", "u"), standing("user", "u")),
        Case::new("back off")
            .step(spend(user("u"), cpu(10.0)), reported(1))
            .step(
                backoff(repo("r").user("u"), 0),
                back_off(breach("user", "u", "cpu", 10_000_000, 10_000_000)),
            )
            .step(backoff(repo("r"), 0), Answer::GoOn)
            .step(standing_of("repo", "r"), standing("repo", "r"))
            .step(standing_of("user", "u"), standing("user", "u").used(cpu(10.0)).over()),
        Case::new("a shadowed limit is no reason")
            .settings("limits.user.cpu.mode = \"shadow\"\n")
            .step(spend(user("u"), cpu(10.0)), reported(1))
            .step(backoff(user("u"), 0), Answer::GoOn),
        Case::new("nothing helps")
            .settings("limits.user.memory = { mode = \"enforce\", min = \"0\", initial = \"0\" }\n")
            .step(backoff(user("u"), 0), back_off(breach("user", "u", "memory", 0, 0)).permanent(60.0)),
    ])
    .await;
}

#[tokio::test]
async fn the_wait_doubles_with_each_attempt_up_to_a_cap() {
    let denied = || back_off(breach("user", "u", "cpu", 10_000_000, 10_000_000));
    let doubled = [(0, 1.0), (1, 1.0), (2, 2.0), (3, 4.0), (4, 8.0), (5, 16.0)];
    // Of what is spent long ago, so that the cap is seen to be reached, and not before.
    let spent = Case::new("doubled").step(Report::of([charge(user("u"), cpu(10.0)).aged(40.0)]), reported(1));
    let capped = Case::new("capped")
        .step(check(user("u")).price(cpu(10.0)), allow(cpu(10.0)).told(standing("user", "u")));
    run([
        doubled.into_iter().fold(spent, |case, (attempt, times)| {
            case.step(backoff(user("u"), attempt), denied().waits(Wait::SpentBefore(40.0, times)))
        }),
        [10, 100, u32::MAX].into_iter().fold(capped, |case, attempt| {
            case.step(backoff(user("u"), attempt), denied().waits(Wait::Exactly(300.0)))
        }),
    ])
    .await;
}

#[tokio::test]
async fn several_are_answered_in_their_order_each_as_alone() {
    let denied = || back_off(breach("user", "u", "cpu", 10_000_000, 10_000_000));
    let go_on = || Expected::from(Answer::GoOn);
    run([
        Case::new("none").step(backoffs([]), each([])),
        Case::new("several")
            .settings("overrides = [{ kind = \"repo\", id = \"b\", blocked = true, reason = \"why\" }]\n")
            .step(spend(user("u"), cpu(10.0)), reported(1))
            .step(
                backoffs([
                    (user("v"), 0),
                    (repo("b").user("v"), 0),
                    (repo("r"), 3),
                    (user("u"), 0),
                    (repo("r").user("u"), 2),
                ]),
                each([
                    go_on(),
                    back_off(breach("repo", "b", "cpu", 0, 0)).permanent(60.0),
                    go_on(),
                    denied(),
                    denied().waits(Wait::SpentBefore(0.0, 2.0)),
                ]),
            )
            .step(standing_of("user", "v"), standing("user", "v")),
        Case::new("a hundred")
            .step(backoffs((0..100).map(|_| (repo("r").user("u"), 0))), each((0..100).map(|_| go_on()))),
    ])
    .await;
}

#[tokio::test]
async fn one_that_is_wrong_is_named_and_none_is_answered() {
    run([Case::new("wrong")
        .step(backoffs([(user("u"), 0), (user("u").ip("192.0.2.1:80"), 0)]), invalid("requests[1].ip"))
        .step(backoffs([(repo("r"), 0), (repo("r").user(""), 0)]), invalid("requests[1].user"))
        .step(backoffs([(NOBODY, 0)]), invalid("requests[0]"))
        .step(backoffs((0..101).map(|_| (user("u"), 0))), invalid("requests"))])
    .await;
}
