//! Pressure, the limits of nodes that follow, and what is compared with them.

use quota_tests::server::{MEMORY, TestServer};
use quota_tests::wait::{PATIENCE, until};

use crate::answer::{
    Answer, Expected, LIMITS, Node, allow, back_off, breach, deny, invalid, reported, standing,
};
use crate::case::{Case, Protocol, run};
use crate::drive_http;
use crate::request::{
    Amounts, NOTHING, Pressure, Request, ask, backoff, cpu, network, pressure, repo, spend, standing_of, user,
};

/// A node begins at 50 s of CPU for users, and everybody may have 200 s on all nodes; limits do not move by themselves
/// while a case runs, and are cut at once by an OOM kill, of memory alone.
const ADAPTED: &str = "adapt.cpu.rule = \"aimd\"\nadapt.memory.rule = \"aimd\"\nadapt.memory.interval = \"10m\"\n\
                       adapt.cpu.interval = \"10m\"\nadapt.memory.backoff_factor = 0.5\n\
                       limits.user.cpu.max = \"200s\"\nlimits.repo.cpu.max = \"200s\"\n";

const SECOND: u64 = 1_000_000;
const GIB_HELD: u64 = (1 << 30) * 60;

fn pressured(node: &str, calibrated: bool, memory: u64) -> Expected {
    let limits = [Some(10 * SECOND), Some(memory), Some(10 << 30)];
    Answer::Pressured { node: node.to_owned(), calibrated, limits }.into()
}

fn told(name: &str, pressure: &Pressure) -> Node {
    Node {
        name: name.to_owned(),
        pressure: [pressure.cpu, pressure.memory, None],
        limits: [Some(10 * SECOND), Some(8 * GIB_HELD), Some(10 << 30)],
        calibration: None,
        cores: pressure.cores,
        active_users: pressure.active_users.map(Into::into),
    }
}

#[tokio::test]
async fn pressure_is_answered_with_limits_and_nodes_are_listed() {
    let full = Pressure { cores: Some(1500), active_users: Some(3), ..pressure("b/c d") }.cpu(0.25);
    let killed = Pressure { oom_kill: true, memory: Some(0.5), ..pressure("a") };
    let after_the_kill =
        Node { limits: [Some(10 * SECOND), Some(4 * GIB_HELD), Some(10 << 30)], ..told("a", &killed) };
    run([
        Case::new("limits, and the nodes by name")
            .settings(ADAPTED)
            .step(Request::Nodes(None), Expected::from(Answer::Nodes(Vec::new())))
            .step(full.clone(), pressured("b/c d", false, 8 * GIB_HELD))
            .step(killed, pressured("a", true, 4 * GIB_HELD))
            .step(
                Request::Nodes(None),
                Expected::from(Answer::Nodes(vec![after_the_kill, told("b/c d", &full)])),
            )
            .step(Request::Nodes(Some("b/c d")), Expected::from(Answer::Nodes(vec![told("b/c d", &full)])))
            .step(Request::Nodes(Some("unknown")), Expected::from(Answer::Nodes(Vec::new()))),
        Case::new("under the rule fixed, what is in force")
            .step(pressure("a").cpu(1.0), pressured("a", false, 8 * GIB_HELD))
            .step(
                Request::Nodes(None),
                Expected::from(Answer::Nodes(vec![told("a", &pressure("a").cpu(1.0))])),
            ),
        Case::new("above 1 is taken as 1")
            .step(pressure("a").cpu(7.5), pressured("a", false, 8 * GIB_HELD))
            .step(
                Request::Nodes(None),
                Expected::from(Answer::Nodes(vec![told("a", &pressure("a").cpu(1.0))])),
            ),
    ])
    .await;
}

#[tokio::test]
async fn a_step_is_told_with_old_and_new_and_why() {
    // The first report begins an interval of a second, and a later one ends it.
    const QUICK: &str =
        "adapt.cpu.rule = \"aimd\"\nadapt.cpu.interval = \"1s\"\nadapt.cpu.backoff_factor = 0.5\n";
    let server = TestServer::start(MEMORY, &format!("{LIMITS}{QUICK}")).await;
    until(PATIENCE, "a calibration", async || {
        let seen = drive_http::send(&server.http, &pressure("a").cpu(0.95).into(), None).await;
        matches!(seen.answer, Answer::Pressured { calibrated: true, .. }).then_some(())
    })
    .await;
    for protocol in [Protocol::Http, Protocol::Grpc] {
        let Answer::Nodes(nodes) = protocol.send(&server, &Request::Nodes(Some("a")), None).await.answer
        else {
            panic!("no nodes")
        };
        assert_eq!(nodes[0].limits[0], Some(5 * SECOND));
        assert_eq!(nodes[0].calibration, Some(("hot".to_owned(), 0.95, 10 * SECOND, 5 * SECOND)));
    }
}

#[tokio::test]
async fn being_heavy_elsewhere_is_no_reason_to_be_refused_on_a_node() {
    let on_the_node = |used: u64| breach("user", "u", "cpu", used, 10 * SECOND).on_the_node();
    let limited = || standing("user", "u").limit(0, Some(200 * SECOND), "enforce");
    let heavy = limited().used(cpu(190.0));
    run([
        Case::new("by what the caller tells")
            .settings(ADAPTED)
            .step(spend(user("u"), cpu(190.0)), reported(1))
            .step(
                ask(user("u")).on("a").user_used_here(9_900_000),
                allow(NOTHING).told(heavy.clone().here(9_900_000, 10 * SECOND)),
            )
            .step(
                ask(user("u")).on("a").user_used_here(10 * SECOND),
                deny(on_the_node(10 * SECOND)).told(heavy.clone().here(10 * SECOND, 10 * SECOND).over()),
            )
            .step(
                ask(user("u")).on("a"),
                deny(on_the_node(190 * SECOND)).told(heavy.clone().here(190 * SECOND, 10 * SECOND).over()),
            ),
        Case::new("by the node's last report")
            .settings(ADAPTED)
            .step(spend(user("u"), cpu(190.0)), reported(1))
            .step(pressure("a").cpu(0.5).heavy("user", "u", cpu(9.0)), pressured("a", false, 8 * GIB_HELD))
            .step(
                pressure("b").cpu(0.5).heavy("user", "other", cpu(9.0)),
                pressured("b", false, 8 * GIB_HELD),
            )
            .step(pressure("c").cpu(0.5).heavy("user", "u", cpu(11.0)), pressured("c", false, 8 * GIB_HELD))
            .step(ask(user("u")).on("a"), allow(NOTHING).told(heavy.clone().here(9 * SECOND, 10 * SECOND)))
            .step(ask(user("u")).on("b"), allow(NOTHING).told(heavy.clone().here(0, 10 * SECOND)))
            .step(
                ask(user("u")).on("c"),
                deny(on_the_node(11 * SECOND)).told(heavy.clone().here(11 * SECOND, 10 * SECOND).over()),
            )
            .step(
                ask(user("u")).on("c").user_used_here(SECOND),
                allow(NOTHING).told(heavy.clone().here(SECOND, 10 * SECOND)),
            ),
        Case::new("refused everywhere at the ceiling")
            .settings(ADAPTED)
            .step(spend(user("u"), cpu(200.0)), reported(1))
            .step(
                ask(user("u")).on("a").user_used_here(SECOND),
                deny(breach("user", "u", "cpu", 200 * SECOND, 200 * SECOND))
                    .told(limited().used(cpu(200.0)).here(SECOND, 10 * SECOND).over()),
            ),
        Case::new("a standing and a backoff compare the same")
            .settings(ADAPTED)
            .step(spend(user("u"), cpu(10.0)), reported(1))
            .step(
                standing_of("user", "u"),
                Expected::from(limited().used(cpu(10.0)).here(10 * SECOND, 10 * SECOND).over()),
            )
            .step(backoff(user("u"), 0), back_off(on_the_node(10 * SECOND)))
            .step(backoff(repo("r"), 0), Expected::from(Answer::GoOn)),
    ])
    .await;
}

#[tokio::test]
async fn what_is_wrong_with_a_report_is_told_by_its_field() {
    let bad = |report: Pressure, field: &'static str| Case::new(field).step(report, invalid(field));
    let fifty_one =
        (0..51).fold(pressure("a"), |report, number| report.heavy("user", &number.to_string(), NOTHING));
    let many = ["user", "repo", "ip"].into_iter().fold(pressure("a"), |report, kind| {
        (0..51).fold(report, |report, number| report.heavy(kind, &format!("10.0.0.{number}"), NOTHING))
    });
    run([
        bad(pressure(""), "node"),
        bad(pressure(&"n".repeat(257)), "node"),
        bad(pressure("a\nb"), "node"),
        bad(pressure("a").cpu(-0.5), "cpu"),
        bad(Pressure { cores: Some(0), ..pressure("a") }, "capacity.cpu"),
        bad(pressure("a").heavy("group", "g", NOTHING), "heaviest[0].kind"),
        bad(
            pressure("a").heavy("user", "u", NOTHING).heavy("ip", "not an address", NOTHING),
            "heaviest[1].id",
        ),
        bad(pressure("a").heavy("user", "u", network((1 << 53) + 1)), "heaviest[0].network"),
        bad(pressure("a").heavy("user", "u", Amounts { cpu: 1 << 54, ..NOTHING }), "heaviest[0].cpu"),
        bad(
            pressure("a").heavy("user", "u", NOTHING).of_which_recent(Amounts { cpu: 1 << 54, ..NOTHING }),
            "heaviest[0].recent.cpu",
        ),
        bad(fifty_one, "heaviest"),
        bad(many, "heaviest"),
        Case::new("and nothing of it is applied")
            .step(pressure("a").cpu(-1.0), invalid("cpu"))
            .step(Request::Nodes(None), Expected::from(Answer::Nodes(Vec::new()))),
    ])
    .await;
}

#[tokio::test]
async fn used_here_is_bounded_like_a_cost() {
    run([Case::new("too much")
        .settings(ADAPTED)
        .step(ask(user("u")).user_used_here(1 << 60), invalid("used_here.user.cpu"))])
    .await;
}
