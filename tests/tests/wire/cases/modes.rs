//! How far limits are enforced: the lowest of the limit's own mode and of what is said of the system, the kind and the node.

use crate::answer::{
    Answer, Class, Expected, ModeSetting, Standing, allow, breach, deny, invalid, refused, reported, standing,
};
use crate::case::{Case, run};
use crate::request::{
    Check, NOTHING, PutMode, Request, Word, ask, cpu, delete_mode, put, repo, set_mode, spend, standing_of,
    user,
};

const SECOND: u64 = 1_000_000;

fn set(node: &str, kind: &str, mode: &str) -> ModeSetting {
    let [node, kind, mode, reason, author] = [node, kind, mode, "why", "anonymous"].map(str::to_owned);
    ModeSetting { node, kind, mode, reason, author }
}

fn told(setting: ModeSetting) -> Expected {
    Answer::Mode(setting).into()
}

fn all(settings: impl Into<Vec<ModeSetting>>) -> Expected {
    Answer::Modes(settings.into()).into()
}

fn deleted() -> Expected {
    Answer::Deleted.into()
}

fn none() -> Expected {
    refused(Class::NotFound, "")
}

#[tokio::test]
async fn what_is_said_of_system_kinds_and_nodes_is_told_until_it_is_taken_back() {
    run([Case::new("each of them")
        .step(Request::ListModes, all([]))
        .step(delete_mode("", ""), none())
        .step(set_mode("b/c d", "", "off"), told(set("b/c d", "", "off")))
        .step(set_mode("a", "", "shadow"), told(set("a", "", "shadow")))
        .step(set_mode("", "user", "shadow"), told(set("", "user", "shadow")))
        .step(set_mode("", "", "off"), told(set("", "", "off")))
        .step(set_mode("", "", "enforce"), told(set("", "", "enforce")))
        .step(
            Request::ListModes,
            all([
                set("", "", "enforce"),
                set("", "user", "shadow"),
                set("a", "", "shadow"),
                set("b/c d", "", "off"),
            ]),
        )
        .step(delete_mode("b/c d", ""), deleted())
        .step(delete_mode("b/c d", ""), none())
        .step(delete_mode("", "user"), deleted())
        .step(delete_mode("", "repo"), none())
        .step(delete_mode("", ""), deleted())
        .step(Request::ListModes, all([set("a", "", "shadow")]))])
    .await;
}

/// The user of the cases, over the limit.
fn over() -> Standing {
    standing("user", "u").used(cpu(15.0))
}

fn refuses() -> Expected {
    deny(breach("user", "u", "cpu", 15 * SECOND, 10 * SECOND)).told(over().over())
}

fn only_tells() -> Expected {
    let shadowed = over().limit(0, Some(10 * SECOND), "shadow");
    allow(NOTHING).shadowed(breach("user", "u", "cpu", 15 * SECOND, 10 * SECOND)).told(shadowed)
}

/// Nothing is compared.
fn off(standing: Standing) -> Standing {
    let limits = standing.limits.clone();
    limits
        .iter()
        .enumerate()
        .fold(standing, |standing, (resource, (limit, _))| standing.limit(resource, *limit, "off"))
}

fn on(node: &str) -> Check {
    ask(user("u")).on(node)
}

#[tokio::test]
async fn the_lowest_of_all_that_is_said_holds_and_is_undone_as_fast() {
    run([
        Case::new("the system")
            .step(spend(user("u"), cpu(15.0)), reported(1))
            .step(on("a"), refuses())
            .step(set_mode("", "", "shadow"), told(set("", "", "shadow")))
            .step(on("a"), only_tells())
            .step(set_mode("", "", "off"), told(set("", "", "off")))
            .step(on("a"), allow(NOTHING).told(off(over())))
            .step(standing_of("user", "u"), Expected::from(off(over())))
            .step(delete_mode("", ""), deleted())
            .step(on("a"), refuses()),
        Case::new("a node")
            .step(spend(user("u"), cpu(15.0)), reported(1))
            .step(set_mode("a", "", "shadow"), told(set("a", "", "shadow")))
            .step(on("a"), only_tells())
            .step(on("b"), refuses())
            .step(ask(user("u")), refuses()),
        Case::new("a kind")
            .step(spend(user("u"), cpu(15.0)), reported(1))
            .step(spend(repo("r"), cpu(25.0)), reported(1))
            .step(set_mode("", "user", "shadow"), told(set("", "user", "shadow")))
            .step(on("a"), only_tells())
            .step(
                ask(repo("r")),
                deny(breach("repo", "r", "cpu", 25 * SECOND, 20 * SECOND))
                    .told(standing("repo", "r").used(cpu(25.0)).over()),
            ),
        Case::new("never more than the limit's own mode")
            .settings("limits.user.cpu.mode = \"shadow\"\n")
            .step(spend(user("u"), cpu(15.0)), reported(1))
            .step(set_mode("", "", "enforce"), told(set("", "", "enforce")))
            .step(on("a"), only_tells()),
    ])
    .await;
}

#[tokio::test]
async fn who_is_blocked_is_refused_as_far_as_anything_is() {
    let blocked = || (0..3).fold(standing("user", "u"), |standing, at| standing.limit(at, Some(0), "shadow"));
    let said = crate::answer::Override {
        kind: "user".into(),
        id: "u".into(),
        word: Word::Blocked,
        reason: "why".into(),
        author: "anonymous".into(),
        origin: "api".into(),
        expires: false,
    };
    run([Case::new("in shadow, and off")
        .step(put("user", "u", Word::Blocked), Expected::from(Answer::Override(said)))
        .step(set_mode("", "", "shadow"), told(set("", "", "shadow")))
        .step(ask(user("u")), allow(NOTHING).shadowed(breach("user", "u", "cpu", 0, 0)).told(blocked()))
        .step(set_mode("", "", "off"), told(set("", "", "off")))
        .step(ask(user("u")), allow(NOTHING).told(off(blocked())))])
    .await;
}

#[tokio::test]
async fn what_is_wrong_with_a_mode_is_told_by_its_field() {
    let bad = |request: PutMode, field: &'static str| {
        Case::new(field).step(request, invalid(field)).step(Request::ListModes, all([]))
    };
    run([
        bad(set_mode("", "", "on"), "mode"),
        bad(set_mode("", "group", "off"), "kind"),
        bad(set_mode("a", "user", "off"), "kind"),
        bad(set_mode(&"n".repeat(257), "", "off"), "node"),
        bad(set_mode("", "", "off").reason(""), "reason"),
        Case::new("of which part").step(delete_mode("", "group"), invalid("kind")),
    ])
    .await;
}
