//! What operators say of accounts, and what follows for them.

use std::time::Duration;

use quota_tests::server::{MEMORY, TestServer};
use quota_tests::wait::{PATIENCE, until};

use crate::answer::{
    Answer, Class, Expected, LIMITS, Override, Standing, Wait, allow, back_off, breach, deny, invalid,
    refused, reported, standing,
};
use crate::case::{Case, Protocol, run};
use crate::request::{
    NOTHING, PutOverride, Request, Word, ask, backoff, cpu, delete_override, get_override, list_overrides,
    put, repo, spend, standing_of, user,
};

const SECOND: u64 = 1_000_000;

fn said(kind: &str, id: &str, word: Word) -> Override {
    let [kind, id, reason, author, origin] = [kind, id, "why", "anonymous", "api"].map(str::to_owned);
    Override { kind, id, word, reason, author, origin, expires: false }
}

fn told(said: Override) -> Expected {
    Answer::Override(said).into()
}

fn all(overrides: impl Into<Vec<Override>>) -> Expected {
    Answer::Overrides(overrides.into()).into()
}

fn deleted() -> Expected {
    Answer::Deleted.into()
}

fn none() -> Expected {
    refused(Class::NotFound, "")
}

#[tokio::test]
async fn what_is_put_is_told_until_it_is_deleted() {
    let weight = Word::Weight(2500);
    let alice = said("user", "alice", weight);
    let project = said("repo", "group/project", Word::Exempt);
    run([
        Case::new("one account")
            .step(list_overrides(), all([]))
            .step(get_override("user", "alice"), none())
            .step(delete_override("user", "alice"), none())
            .step(put("user", "alice", weight), told(alice.clone()))
            .step(get_override("user", "alice"), told(alice.clone()))
            .step(put("user", "alice", Word::Blocked), told(said("user", "alice", Word::Blocked)))
            .step(get_override("user", "alice"), told(said("user", "alice", Word::Blocked)))
            .step(delete_override("user", "alice"), deleted())
            .step(get_override("user", "alice"), none())
            .step(delete_override("user", "alice"), none())
            .step(list_overrides(), all([])),
        Case::new("each kind of account, by its one spelling, in their order")
            .step(put("user", "alice", weight), told(alice.clone()))
            .step(
                put("ip", "2001:db8::7", Word::Cpu(20 * SECOND)),
                told(said("ip", "2001:db8::/64", Word::Cpu(20 * SECOND))),
            )
            .step(put("repo", "/group/project.git", Word::Exempt), told(project.clone()))
            .step(
                list_overrides(),
                all([project, alice, said("ip", "2001:db8::/64", Word::Cpu(20 * SECOND))]),
            )
            .step(
                get_override("ip", "2001:db8::1"),
                told(said("ip", "2001:db8::/64", Word::Cpu(20 * SECOND))),
            )
            .step(delete_override("ip", "2001:db8::2"), deleted()),
        Case::new("one that ends")
            .step(
                put("user", "alice", Word::Exempt).expires(3600.0),
                told(Override { expires: true, ..said("user", "alice", Word::Exempt) }),
            )
            .step(list_overrides(), all([Override { expires: true, ..said("user", "alice", Word::Exempt) }])),
    ])
    .await;
}

#[tokio::test]
async fn the_file_says_what_nobody_has_put_and_both_are_listed() {
    const FILE: &str = "[[overrides]]\nkind = \"user\"\nid = \"alice\"\nblocked = true\nreason = \"why\"\n";
    let of_file =
        || Override { origin: "file".into(), author: String::new(), ..said("user", "alice", Word::Blocked) };
    let put_it = || said("user", "alice", Word::Exempt);
    run([Case::new("both name an account")
        .settings(FILE)
        .step(get_override("user", "alice"), told(of_file()))
        .step(delete_override("user", "alice"), none())
        .step(ask(user("alice")), blocked("alice").told(refuses("alice")))
        .step(put("user", "alice", Word::Exempt), told(put_it()))
        .step(list_overrides(), all([put_it(), of_file()]))
        .step(get_override("user", "alice"), told(put_it()))
        .step(ask(user("alice")), allow(NOTHING).told(spares("alice")))
        .step(delete_override("user", "alice"), deleted())
        .step(ask(user("alice")), blocked("alice").told(refuses("alice")))])
    .await;
}

fn blocked(id: &str) -> Expected {
    deny(breach("user", id, "cpu", 0, 0)).permanent(60.0)
}

/// What is told of a user who is blocked.
fn refuses(id: &str) -> Standing {
    (0..3)
        .fold(standing("user", id).over(), |standing, resource| standing.limit(resource, Some(0), "enforce"))
}

/// What is told of a user who is exempt.
fn spares(id: &str) -> Standing {
    let defaults = standing("user", id).limits;
    defaults.iter().enumerate().fold(standing("user", id), |standing, (resource, (limit, _))| {
        standing.limit(resource, *limit, "off")
    })
}

#[tokio::test]
async fn who_is_blocked_is_refused_for_good_and_nobody_else() {
    run([
        Case::new("alone")
            .step(put("user", "u", Word::Blocked), told(said("user", "u", Word::Blocked)))
            .step(ask(user("u")), blocked("u").told(refuses("u")))
            .step(ask(user("v")), allow(NOTHING).told(standing("user", "v")))
            .step(backoff(user("u"), 0), back_off(breach("user", "u", "cpu", 0, 0)).permanent(60.0))
            .step(
                standing_of("user", "u"),
                Expected { wait: Some(Wait::Exactly(60.0)), ..Expected::from(refuses("u")) },
            )
            .step(delete_override("user", "u"), deleted())
            .step(ask(user("u")), allow(NOTHING).told(standing("user", "u"))),
        Case::new("until it ends")
            .step(
                put("user", "u", Word::Blocked).expires(7200.0),
                told(Override { expires: true, ..said("user", "u", Word::Blocked) }),
            )
            .step(
                ask(user("u")),
                deny(breach("user", "u", "cpu", 0, 0)).permanent_for_about(7200.0).told(refuses("u")),
            ),
        Case::new("beside others, who are charged nothing")
            .step(put("ip", "192.0.2.1", Word::Blocked), told(said("ip", "192.0.2.1", Word::Blocked)))
            .step(
                ask(user("u").ip("192.0.2.1")).price(cpu(1.0)),
                deny(breach("ip", "192.0.2.1", "cpu", 0, 0))
                    .permanent(60.0)
                    .told(standing("user", "u"))
                    .told((0..3).fold(standing("ip", "192.0.2.1").over(), |standing, resource| {
                        standing.limit(resource, Some(0), "enforce")
                    })),
            )
            .step(standing_of("user", "u"), Expected::from(standing("user", "u"))),
        Case::new("even where nothing is enforced")
            .settings("limits.user.cpu.mode = \"off\"\n")
            .step(put("user", "u", Word::Blocked), told(said("user", "u", Word::Blocked)))
            .step(ask(user("u")), blocked("u").told(refuses("u"))),
    ])
    .await;
}

#[tokio::test]
async fn a_weight_a_limit_or_an_exemption_is_compared_in_place_of_the_kind_s() {
    let of = |limit: u64| standing("user", "u").used(cpu(15.0)).limit(0, Some(limit), "enforce");
    let weighed =
        of(25 * SECOND).limit(1, Some((5 << 30) * 4 * 60), "shadow").limit(2, Some(25 << 30), "shadow");
    run([
        Case::new("weight")
            .step(spend(user("u"), cpu(15.0)), reported(1))
            .step(
                ask(user("u")),
                deny(breach("user", "u", "cpu", 15 * SECOND, 10 * SECOND)).told(of(10 * SECOND).over()),
            )
            .step(put("user", "u", Word::Weight(2500)), told(said("user", "u", Word::Weight(2500))))
            .step(ask(user("u")), allow(NOTHING).told(weighed.clone()))
            .step(spend(user("u"), cpu(10.0)), reported(1))
            .step(
                ask(user("u")),
                deny(breach("user", "u", "cpu", 25 * SECOND, 25 * SECOND))
                    .told(weighed.used(cpu(25.0)).over()),
            ),
        Case::new("limits, also below those of the kind")
            .step(spend(user("u"), cpu(15.0)), reported(1))
            .step(put("user", "u", Word::Cpu(20 * SECOND)), told(said("user", "u", Word::Cpu(20 * SECOND))))
            .step(ask(user("u")), allow(NOTHING).told(of(20 * SECOND)))
            .step(put("user", "u", Word::Cpu(15 * SECOND)), told(said("user", "u", Word::Cpu(15 * SECOND))))
            .step(
                ask(user("u")),
                deny(breach("user", "u", "cpu", 15 * SECOND, 15 * SECOND)).told(of(15 * SECOND).over()),
            ),
        Case::new("exempt, and charged nevertheless")
            .step(put("user", "u", Word::Exempt), told(said("user", "u", Word::Exempt)))
            .step(spend(user("u"), cpu(15.0)), reported(1))
            .step(ask(user("u")), allow(NOTHING).told(spares("u").used(cpu(15.0))))
            .step(ask(repo("r").user("u")).price(cpu(1.0)), {
                allow(cpu(1.0)).told(standing("repo", "r")).told(spares("u").used(cpu(15.0)))
            })
            .step(standing_of("user", "u"), Expected::from(spares("u").used(cpu(16.0)))),
    ])
    .await;
}

#[tokio::test]
async fn what_is_wrong_with_an_override_is_told_by_its_field() {
    let bad = |request: PutOverride, field: &'static str| {
        Case::new(field).step(request, invalid(field)).step(list_overrides(), all([]))
    };
    run([
        bad(put("group", "g", Word::Exempt), "kind"),
        bad(put("ip", "no address", Word::Exempt), "id"),
        bad(put("user", "u", Word::Nothing), "override"),
        bad(put("user", "u", Word::Weight(0)), "weight"),
        bad(put("user", "u", Word::Weight(1_000_001)), "weight"),
        bad(put("user", "u", Word::Cpu(1 << 50)), "limits.cpu"),
        bad(put("user", "u", Word::Exempt).reason(""), "reason"),
        bad(put("user", "u", Word::Exempt).reason(&"r".repeat(257)), "reason"),
        bad(put("user", "u", Word::Exempt).reason("a\nb"), "reason"),
        bad(put("user", "u", Word::Exempt).expires(0.0), "expires_in"),
        bad(put("user", "u", Word::Exempt).expires(-1.0), "expires_in"),
        bad(put("user", "u", Word::Exempt).expires(366.0 * 86_400.0 + 1.0), "expires_in"),
        Case::new("of which account")
            .step(get_override("group", "g"), invalid("kind"))
            .step(delete_override("ip", "x"), invalid("id")),
    ])
    .await;
}

#[tokio::test]
async fn an_override_ends_by_the_store_s_clock() {
    let server = TestServer::start(MEMORY, LIMITS).await;
    for protocol in [Protocol::Http, Protocol::Grpc] {
        let brief = Request::from(put("user", "u", Word::Blocked).expires(0.05));
        let seen = protocol.send(&server, &brief, None).await.answer;
        assert_eq!(seen, Answer::Override(Override { expires: true, ..said("user", "u", Word::Blocked) }));
        until(PATIENCE, "the end of the block", async || {
            let seen = protocol.send(&server, &ask(user("u")).into(), None).await;
            assert!(seen.wait.is_none_or(|wait| wait <= Duration::from_secs(1)), "{seen:?}");
            matches!(seen.answer, Answer::Allow { .. }).then_some(())
        })
        .await;
        assert_eq!(
            protocol.send(&server, &list_overrides(), None).await.answer,
            Answer::Overrides(Vec::new())
        );
    }
}
