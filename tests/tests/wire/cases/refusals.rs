//! Requests that are refused, by the field at fault; nothing of them counts.

use crate::answer::{Class, invalid, refused, reported, standing};
use crate::case::{Case, run};
use crate::request::{
    Amounts, Charge, Check, NOBODY, NOTHING, Report, ask, backoff, charge, check, cpu, network, repo, spend,
    standing_of, user,
};

/// One above what a double keeps exact.
const TOO_MUCH: u64 = (1 << 53) + 1;

fn labelled(label: impl FnOnce(&mut Check)) -> Check {
    let mut check = ask(user("u"));
    label(&mut check);
    check
}

#[tokio::test]
async fn checks_are_refused() {
    let much = |memory, network| Amounts { cpu: 1, memory, network };
    run([Case::new("checks")
        .step(ask(NOBODY), invalid("accounts"))
        .step(ask(user("")), invalid("accounts.user"))
        .step(ask(repo("")), invalid("accounts.repo"))
        .step(ask(repo("/").user("u")), invalid("accounts.repo"))
        .step(ask(repo("a/../b").user("u")), invalid("accounts.repo"))
        .step(ask(user("a\0b")), invalid("accounts.user"))
        .step(ask(user("a\nb").repo("r")), invalid("accounts.user"))
        .step(check(user("u")).price(network(TOO_MUCH)), invalid("price.network"))
        .step(check(user("u")).price(much(u64::MAX, 0)), invalid("price.memory"))
        .step(check(user("u")).price(Amounts { cpu: u64::MAX, ..NOTHING }), invalid("price.cpu"))
        .step(labelled(|check| check.node = "n".repeat(257)), invalid("node"))
        .step(labelled(|check| check.rpc = "/svc/\u{7}".into()), invalid("rpc"))
        .step(labelled(|check| check.class = "c".repeat(257)), invalid("class"))
        .step(standing_of("user", "u"), standing("user", "u"))
        .step(standing_of("repo", "r"), standing("repo", "r"))])
    .await;
}

#[tokio::test]
async fn reports_are_refused_as_a_whole() {
    let good = || charge(repo("r").user("u"), cpu(1.0));
    let with = |charge: Charge| Report::of([good(), charge]);
    run([Case::new("reports")
        .step(with(charge(NOBODY, cpu(1.0))), invalid("charges[1].accounts"))
        .step(with(charge(repo("a/./b"), cpu(1.0))), invalid("charges[1].accounts.repo"))
        .step(with(charge(user("u"), network(TOO_MUCH))), invalid("charges[1].cost.network"))
        .step(with(good().aged(-0.5)), invalid("charges[1].age"))
        .step(with(good().aged(-1e9)), invalid("charges[1].age"))
        .step(with(good().releases(cpu(1.0))), invalid("charges[1].release"))
        .step(with(good().with("r1.")), invalid("charges[1].reservation"))
        .step(with(good().with("no such thing")), invalid("charges[1].reservation"))
        .step(Report::of([good()]).held(-1.0), invalid("held"))
        .step(Report::of((0..1025).map(|_| good())), invalid("charges"))
        .step(Report::of([good()]).marked(&"s".repeat(65), 1), invalid("source"))
        .step(Report::of([good()]).marked("", 1), invalid("source"))
        .step(Report::of([good()]).marked("s", 1 << 53), invalid("sequence"))
        .step(Report::of([good()]).marked("s", u64::MAX), invalid("sequence"))
        .step(standing_of("user", "u"), standing("user", "u"))
        .step(standing_of("repo", "r"), standing("repo", "r"))])
    .await;
}

#[tokio::test]
async fn questions_are_refused() {
    run([Case::new("standings and backoff")
        .step(standing_of("unspecified", "u"), invalid("kind"))
        .step(standing_of("group", "u"), invalid("kind"))
        .step(standing_of("user", &"u".repeat(1025)), invalid("id"))
        .step(standing_of("user", "a\u{0}"), invalid("id"))
        .step(backoff(NOBODY, 1), invalid("accounts"))
        .step(backoff(user(""), 1), invalid("accounts.user"))])
    .await;
}

#[tokio::test]
async fn what_is_too_large_is_not_read() {
    let long = || charge(repo("r").user("u"), cpu(1.0)).with(&"x".repeat(8000));
    run([Case::new("8 MB of charges")
        .step(Report::of((0..1000).map(|_| long())), refused(Class::TooLarge, ""))
        .step(spend(user("u"), cpu(1.0)), reported(1))
        .step(standing_of("user", "u"), standing("user", "u").used(cpu(1.0)))])
    .await;
}
