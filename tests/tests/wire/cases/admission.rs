//! What is allowed, and what it reserves.

use crate::answer::{Answer, allow, breach, deny, standing};
use crate::case::{Case, run};
use crate::request::{Amounts, NOTHING, ask, check, cpu, ip, network, repo, spend, standing_of, user};

const PRICES: &str = "prices.\"/svc/Clone\" = { cpu = \"2s\", memory = \"3KiB\", network = \"1MiB\" }\n";

#[tokio::test]
async fn the_price_is_reserved_on_every_account() {
    let given = Amounts { cpu: 1_500_000, memory: 2048, network: 77 };
    let clone = Amounts { cpu: 2_000_000, memory: 3072, network: 1 << 20 };
    run([
        Case::new("a price given")
            .step(
                check(repo("r").user("u").ip("192.0.2.1")).price(given),
                allow(given)
                    .told(standing("repo", "r"))
                    .told(standing("user", "u"))
                    .told(standing("ip", "192.0.2.1")),
            )
            .step(standing_of("repo", "r"), standing("repo", "r").used(given))
            .step(standing_of("user", "u"), standing("user", "u").used(given))
            .step(standing_of("ip", "192.0.2.1"), standing("ip", "192.0.2.1").used(given)),
        Case::new("a price of the table")
            .settings(PRICES)
            .step(check(user("u")).rpc("/svc/Clone"), allow(clone).told(standing("user", "u")))
            .step(standing_of("user", "u"), standing("user", "u").used(clone)),
        Case::new("a price given stands before the table").settings(PRICES).step(
            check(user("u")).rpc("/svc/Clone").price(cpu(1.0)),
            allow(cpu(1.0)).told(standing("user", "u")),
        ),
        Case::new("the default price")
            .settings(PRICES)
            .step(check(user("u")).rpc("/svc/Other"), allow(cpu(0.01)).told(standing("user", "u")))
            .step(check(user("u")), allow(cpu(0.01)).told(standing("user", "u").used(cpu(0.01)))),
        Case::new("no price reserves nothing")
            .step(ask(user("u")), allow(NOTHING).told(standing("user", "u")))
            .step(standing_of("user", "u"), standing("user", "u")),
        Case::new("memory is rounded up to KiB-seconds")
            .step(check(user("u")).price(Amounts { memory: 1, ..NOTHING }), {
                allow(Amounts { memory: 1024, ..NOTHING }).told(standing("user", "u"))
            }),
    ])
    .await;
}

#[tokio::test]
async fn an_account_below_its_limit_passes_it_by_what_is_in_flight() {
    run([Case::new("below the limit, whatever the price")
        .step(
            spend(user("u"), cpu(9.999_999)),
            Answer::Reported { applied: 1, dropped_old: 0, duplicate: false },
        )
        .step(
            check(user("u")).price(cpu(15.0)),
            allow(cpu(15.0)).told(standing("user", "u").used(cpu(9.999_999))),
        )
        .step(
            check(user("u")).price(cpu(1.0)),
            deny(breach("user", "u", "cpu", 24_999_999, 10_000_000))
                .told(standing("user", "u").used(cpu(24.999_999)).over()),
        )
        .step(standing_of("user", "u"), standing("user", "u").used(cpu(24.999_999)).over())])
    .await;
}

#[tokio::test]
async fn one_account_over_its_limit_leaves_the_others_untouched() {
    let all = repo("r").user("u").ip("192.0.2.1");
    run([Case::new("denied for the ip")
        .step(
            spend(ip("192.0.2.1"), cpu(30.0)),
            Answer::Reported { applied: 1, dropped_old: 0, duplicate: false },
        )
        .step(
            check(all).price(cpu(1.0)),
            deny(breach("ip", "192.0.2.1", "cpu", 30_000_000, 30_000_000))
                .told(standing("repo", "r"))
                .told(standing("user", "u"))
                .told(standing("ip", "192.0.2.1").used(cpu(30.0)).over()),
        )
        .step(standing_of("repo", "r"), standing("repo", "r"))
        .step(standing_of("user", "u"), standing("user", "u"))
        .step(standing_of("ip", "192.0.2.1"), standing("ip", "192.0.2.1").used(cpu(30.0)).over())])
    .await;
}

#[tokio::test]
async fn what_is_not_enforced_is_not_refused() {
    const OFF: &str = "limits.user.cpu.mode = \"off\"\n";
    const SHADOW: &str = "limits.user.cpu.mode = \"shadow\"\n";
    const UNLIMITED: &str =
        "limits.user.network.initial = \"unlimited\"\nlimits.user.network.max = \"unlimited\"\n";
    let applied = Answer::Reported { applied: 1, dropped_old: 0, duplicate: false };
    let off = standing("user", "u").limit(0, Some(10_000_000), "off");
    let shadow = standing("user", "u").limit(0, Some(10_000_000), "shadow");
    let unlimited = standing("user", "u").limit(2, None, "shadow");
    let (lots, many) = (cpu(50.0), network(1 << 39));
    run([
        Case::new("off")
            .settings(OFF)
            .step(spend(user("u"), lots), applied.clone())
            .step(check(user("u")).price(cpu(1.0)), allow(cpu(1.0)).told(off.clone().used(lots)))
            .step(standing_of("user", "u"), off.used(cpu(51.0))),
        Case::new("shadow tells, and reserves like any allow")
            .settings(SHADOW)
            .step(spend(user("u"), lots), applied.clone())
            .step(
                check(user("u")).price(cpu(1.0)),
                allow(cpu(1.0))
                    .shadowed(breach("user", "u", "cpu", 50_000_000, 10_000_000))
                    .told(shadow.clone().used(lots)),
            )
            .step(standing_of("user", "u"), shadow.used(cpu(51.0))),
        Case::new("unlimited")
            .settings(UNLIMITED)
            .step(spend(user("u"), many), applied)
            .step(ask(user("u")), allow(NOTHING).told(unlimited.used(many))),
    ])
    .await;
}
