//! Which limit denies, and when to come back.

use crate::answer::{Expected, Wait, breach, deny, reported, standing};
use crate::case::{Case, run};
use crate::request::{Amounts, Report, ask, charge, cpu, network, repo, spend, standing_of, user};

#[tokio::test]
async fn the_breach_that_lasts_longest_is_told() {
    run([
        Case::new("the repo's leaves later")
            .step(
                Report::of([charge(user("u"), cpu(10.0)).aged(30.0), charge(repo("r"), cpu(20.0)).aged(5.0)]),
                reported(2),
            )
            .step(
                ask(repo("r").user("u")),
                deny(breach("repo", "r", "cpu", 20_000_000, 20_000_000))
                    .told(standing("repo", "r").used(cpu(20.0)).over())
                    .told(standing("user", "u").used(cpu(10.0)).over())
                    .waits(Wait::SpentBefore(5.0, 1.0)),
            ),
        Case::new("the user's leaves later")
            .step(
                Report::of([charge(user("u"), cpu(10.0)).aged(5.0), charge(repo("r"), cpu(20.0)).aged(30.0)]),
                reported(2),
            )
            .step(
                ask(repo("r").user("u")),
                deny(breach("user", "u", "cpu", 10_000_000, 10_000_000))
                    .told(standing("repo", "r").used(cpu(20.0)).over())
                    .told(standing("user", "u").used(cpu(10.0)).over())
                    .waits(Wait::SpentBefore(5.0, 1.0)),
            ),
    ])
    .await;
}

#[tokio::test]
async fn usage_need_only_fall_below_the_limit() {
    let over = standing("user", "u").used(cpu(11.0)).over();
    let wait = Wait::SpentBefore(40.0, 1.0);
    run([Case::new("what is older leaves first")
        .step(
            Report::of([charge(user("u"), cpu(6.0)).aged(40.0), charge(user("u"), cpu(5.0)).aged(10.0)]),
            reported(2),
        )
        .step(
            ask(user("u")),
            deny(breach("user", "u", "cpu", 11_000_000, 10_000_000)).told(over.clone()).waits(wait),
        )
        .step(standing_of("user", "u"), Expected::from(over).waits(wait))])
    .await;
}

#[tokio::test]
async fn an_enforced_breach_stands_before_a_shadowed_one() {
    let both = Amounts { cpu: 10_000_000, memory: 0, network: 20 << 30 };
    run([Case::new("cpu enforced, network shadowed").step(spend(user("u"), both), reported(1)).step(
        ask(user("u")),
        deny(breach("user", "u", "cpu", 10_000_000, 10_000_000))
            .told(standing("user", "u").used(both).over()),
    )])
    .await;
}

#[tokio::test]
async fn any_resource_denies_where_it_is_enforced() {
    const ENFORCED: &str = "limits.user.network.mode = \"enforce\"\nlimits.user.memory.mode = \"enforce\"\n";
    let enforced =
        || standing("user", "u").limit(1, Some(480 << 30), "enforce").limit(2, Some(10 << 30), "enforce");
    let (most_memory, most_network) = (480 << 30, 10 << 30);
    let held = Amounts { memory: most_memory, ..Amounts::default() };
    run([
        Case::new("network")
            .settings(ENFORCED)
            .step(spend(user("u"), network(most_network)), reported(1))
            .step(
                ask(user("u")),
                deny(breach("user", "u", "network", most_network, most_network))
                    .told(enforced().used(network(most_network)).over()),
            ),
        Case::new("memory").settings(ENFORCED).step(spend(user("u"), held), reported(1)).step(
            ask(user("u")),
            deny(breach("user", "u", "memory", most_memory, most_memory)).told(enforced().used(held).over()),
        ),
    ])
    .await;
}

#[tokio::test]
async fn a_limit_of_0_denies_for_good() {
    const ZERO: &str = "limits.repo.network.min = \"0\"
limits.repo.network.initial = \"0\"\nlimits.repo.network.mode = \"enforce\"\n";
    let never = || standing("repo", "r").limit(2, Some(0), "enforce").over();
    run([
        Case::new("denied without any usage, for a window")
            .settings(ZERO)
            .step(ask(repo("r")), deny(breach("repo", "r", "network", 0, 0)).told(never()).permanent(60.0))
            .step(standing_of("repo", "r"), Expected::from(never()).waits(Wait::Exactly(60.0))),
        Case::new("permanent stands before what passes")
            .settings(ZERO)
            .step(spend(user("u"), cpu(10.0)), reported(1))
            .step(
                ask(repo("r").user("u")),
                deny(breach("repo", "r", "network", 0, 0))
                    .told(never())
                    .told(standing("user", "u").used(cpu(10.0)).over())
                    .permanent(60.0),
            ),
    ])
    .await;
}
