//! Who consumes most.

use crate::answer::{Answer, Consumer, Expected, allow, breach, deny, invalid, reported, standing};
use crate::case::{Case, run};
use crate::request::{
    Amounts, NOTHING, Report, ask, charge, cpu, memory, network, pressure, repo, spend, top, user,
};

const SECOND: u64 = 1_000_000;

fn consumer(kind: &str, id: &str, used: u64, limit: Option<u64>, denied: u64) -> Consumer {
    Consumer { kind: kind.to_owned(), id: id.to_owned(), used, limit, denied }
}

/// Users, by CPU, in seconds, each with the limit of 10 s.
fn users<const N: usize>(node: &str, users: [(&str, u64, u64); N]) -> Expected {
    let users =
        users.map(|(id, seconds, denied)| consumer("user", id, seconds * SECOND, Some(10 * SECOND), denied));
    Answer::Top(["user", "cpu", node].map(str::to_owned), users.to_vec()).into()
}

fn others(kind: &str, resource: &str, accounts: Vec<Consumer>) -> Expected {
    Answer::Top([kind, resource, ""].map(str::to_owned), accounts).into()
}

#[tokio::test]
async fn the_heaviest_are_told_with_their_limit_and_denials() {
    let all = Amounts { cpu: 7 * SECOND, memory: 1 << 20, network: 4096 };
    run([
        Case::new("by kind and resource, heaviest first")
            .step(top("user", "cpu"), users("", []))
            .step(
                Report::of([
                    charge(user("light").repo("r"), cpu(1.0)),
                    charge(user("heavy").repo("r"), all),
                    charge(user("heavy"), cpu(4.0)),
                ]),
                reported(3),
            )
            .step(top("user", "cpu"), users("", [("heavy", 11, 0), ("light", 1, 0)]))
            .step(
                ask(user("heavy")),
                deny(breach("user", "heavy", "cpu", 11 * SECOND, 10 * SECOND))
                    .told(standing("user", "heavy").used(Amounts { cpu: 11 * SECOND, ..all }).over()),
            )
            .step(top("user", "cpu"), users("", [("heavy", 11, 1), ("light", 1, 0)]))
            .step(top("user", "cpu").limit(1), users("", [("heavy", 11, 1)]))
            .step(
                top("user", "memory"),
                others("user", "memory", vec![consumer("user", "heavy", 1 << 20, Some((8 << 30) * 60), 1)]),
            )
            .step(
                top("repo", "network"),
                others("repo", "network", vec![consumer("repo", "r", 4096, Some(10 << 30), 0)]),
            )
            .step(top("ip", "cpu"), others("ip", "cpu", Vec::new())),
        Case::new("equal ones by name, and without a limit")
            .settings(
                "limits.user.network.max = \"unlimited\"\nlimits.user.network.initial = \"unlimited\"\n",
            )
            .step(spend(user("b"), network(5)), reported(1))
            .step(spend(user("a"), network(5)), reported(1))
            .step(
                top("user", "network"),
                others(
                    "user",
                    "network",
                    vec![consumer("user", "a", 5, None, 0), consumer("user", "b", 5, None, 0)],
                ),
            ),
        Case::new("a report counts once, and what is old not at all")
            .step(spend(user("u"), cpu(2.0)).marked("s", 1), reported(1))
            .step(
                spend(user("u"), cpu(2.0)).marked("s", 1),
                Expected::from(Answer::Reported { applied: 0, dropped_old: 0, duplicate: true }),
            )
            .step(
                Report::of([charge(user("old"), cpu(9.0)).aged(61.0)]),
                Expected::from(Answer::Reported { applied: 0, dropped_old: 1, duplicate: false }),
            )
            .step(top("user", "cpu"), users("", [("u", 2, 0)])),
    ])
    .await;
}

#[tokio::test]
async fn on_a_node_they_are_those_of_its_last_report() {
    const ADAPTED: &str =
        "adapt.cpu.rule = \"aimd\"\nadapt.cpu.interval = \"10m\"\nlimits.user.cpu.max = \"200s\"\n";
    let limits = [Some(10 * SECOND), Some((8 << 30) * 60), Some(10 << 30)];
    let pressured = || Expected::from(Answer::Pressured { node: "a".to_owned(), calibrated: false, limits });
    run([Case::new("and the limits there")
        .settings(ADAPTED)
        .step(spend(user("elsewhere"), cpu(100.0)), reported(1))
        .step(top("user", "cpu").on("a"), users("a", []))
        .step(
            pressure("a").cpu(0.5).heavy("user", "x", cpu(3.0)).heavy("user", "y", cpu(9.0)).heavy(
                "repo",
                "r",
                cpu(9.0),
            ),
            pressured(),
        )
        .step(top("user", "cpu").on("a"), users("a", [("y", 9, 0), ("x", 3, 0)]))
        .step(top("user", "cpu").on("a").limit(1), users("a", [("y", 9, 0)]))
        .step(top("user", "cpu").on("b"), users("b", []))
        .step(
            top("user", "cpu"),
            others("user", "cpu", vec![consumer("user", "elsewhere", 100 * SECOND, Some(200 * SECOND), 0)]),
        )])
    .await;
}

#[tokio::test]
async fn what_cannot_be_asked_is_refused_by_its_field() {
    run([
        Case::new("kinds, resources, names, limits")
            .step(top("group", "cpu"), invalid("kind"))
            .step(top("", "cpu"), invalid("kind"))
            .step(top("user", "disk"), invalid("resource"))
            .step(top("user", ""), invalid("resource"))
            .step(top("user", "cpu").on("a\nb"), invalid("node"))
            .step(top("user", "cpu").limit(0), invalid("limit"))
            .step(top("user", "cpu").limit(101), invalid("limit")),
        Case::new("and asking changes nothing")
            .step(top("user", "cpu"), users("", []))
            .step(ask(repo("r")), allow(NOTHING).told(standing("repo", "r")))
            .step(top("repo", "memory"), others("repo", "memory", Vec::new()))
            .step(spend(repo("r"), memory(1)), reported(1))
            .step(
                top("repo", "memory"),
                others("repo", "memory", vec![consumer("repo", "r", 1024, Some((8 << 30) * 60), 0)]),
            ),
    ])
    .await;
}
