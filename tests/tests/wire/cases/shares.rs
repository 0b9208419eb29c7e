//! What a fileserver may admit without asking.

use crate::answer::{allow, breach, deny, reported, standing};
use crate::case::{Case, run};
use crate::request::{NOTHING, ask, check, cpu, network, spend, standing_of, user};

/// Users may use 10 s of CPU in these tests, enforced.
#[tokio::test]
async fn a_share_is_a_part_of_what_is_left_and_counts_as_used() {
    run([
        Case::new("as much as is wanted")
            .step(
                check(user("u")).price(cpu(1.0)).wants(cpu(2.0)),
                allow(cpu(1.0)).shares(cpu(2.0)).told(standing("user", "u")),
            )
            .step(standing_of("user", "u"), standing("user", "u").used(cpu(3.0))),
        Case::new("half of what is left, where no more than one fileserver is known")
            .step(spend(user("u"), cpu(5.0)), reported(1))
            .step(
                check(user("u")).price(cpu(1.0)).wants(cpu(20.0)),
                allow(cpu(1.0)).shares(cpu(2.0)).told(standing("user", "u").used(cpu(5.0))),
            )
            .step(standing_of("user", "u"), standing("user", "u").used(cpu(8.0))),
        Case::new("nothing where too little is left")
            .step(spend(user("u"), cpu(9.8)), reported(1))
            .step(
                check(user("u")).price(cpu(0.1)).wants(cpu(20.0)),
                allow(cpu(0.1)).told(standing("user", "u").used(cpu(9.8))),
            )
            .step(standing_of("user", "u"), standing("user", "u").used(cpu(9.9))),
        Case::new("without a price").step(
            ask(user("u")).wants(cpu(2.0)),
            allow(NOTHING).shares(cpu(2.0)).told(standing("user", "u")),
        ),
        Case::new("of what is not compared, as much as is wanted").step(
            ask(user("u")).wants(network(7)),
            allow(NOTHING).shares(network(7)).told(standing("user", "u")),
        ),
    ])
    .await;
}

#[tokio::test]
async fn who_is_denied_is_granted_nothing() {
    run([Case::new("over the limit")
        .step(spend(user("u"), cpu(10.0)), reported(1))
        .step(
            check(user("u")).wants(cpu(2.0)),
            deny(breach("user", "u", "cpu", 10_000_000, 10_000_000))
                .told(standing("user", "u").used(cpu(10.0)).over()),
        )
        .step(standing_of("user", "u"), standing("user", "u").used(cpu(10.0)).over())])
    .await;
}
