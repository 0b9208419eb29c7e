//! Whose account it is, however it is spelt (F26, F27).

use crate::answer::{invalid, reported, standing};
use crate::case::{Case, run};
use crate::request::{ask, backoff, cpu, ip, repo, spend, standing_of, user};

#[tokio::test]
async fn an_account_never_seen_has_used_nothing() {
    run([Case::new("of each kind")
        .step(standing_of("repo", "r"), standing("repo", "r"))
        .step(standing_of("user", "u"), standing("user", "u"))
        .step(standing_of("ip", "192.0.2.1"), standing("ip", "192.0.2.1"))])
    .await;
}

#[tokio::test]
async fn kinds_do_not_share_a_counter() {
    run([Case::new("one name, three accounts")
        .step(spend(repo("192.0.2.1"), cpu(1.0)), reported(1))
        .step(spend(user("192.0.2.1"), cpu(2.0)), reported(1))
        .step(standing_of("repo", "192.0.2.1"), standing("repo", "192.0.2.1").used(cpu(1.0)))
        .step(standing_of("user", "192.0.2.1"), standing("user", "192.0.2.1").used(cpu(2.0)))
        .step(standing_of("ip", "192.0.2.1"), standing("ip", "192.0.2.1"))])
    .await;
}

#[tokio::test]
async fn f12_spellings_of_one_repository_share_a_counter() {
    let spellings =
        ["group/project", "/group/project", "group//project/", "group/project.git", "///group/project.git//"];
    let one =
        |case: Case, id| case.step(standing_of("repo", id), standing("repo", "group/project").used(cpu(1.0)));
    let spent = Case::new("spent under one, seen under each")
        .step(spend(repo("group//project.git/"), cpu(1.0)), reported(1));
    let other = Case::new("and others do not")
        .step(spend(repo("group/project"), cpu(1.0)), reported(1))
        .step(standing_of("repo", "Group/project"), standing("repo", "Group/project"))
        .step(standing_of("repo", "group/project.git.git"), standing("repo", "group/project.git.git"))
        .step(standing_of("repo", "groupproject"), standing("repo", "groupproject"));
    run([spellings.into_iter().fold(spent, one), other]).await;
}

/// Addresses that are one account, and the name it has.
const ADDRESSES: [(&str, &[&str]); 4] = [
    (
        "192.0.2.7",
        &["192.0.2.7", "::ffff:192.0.2.7", "::ffff:c000:207", "::FFFF:C000:207", "64:ff9b::c000:207"],
    ),
    (
        "2001:db8:1:2::/64",
        &["2001:db8:1:2::1", "2001:db8:1:2:ffff::9", "2001:DB8:1:2::1.2.3.4", "2001:db8:1:2::/64"],
    ),
    ("2001:db8:1:3::/64", &["2001:db8:1:3::1"]),
    ("192.0.2.8", &["64:ff9b::c000:208", "192.0.2.8"]),
];

#[tokio::test]
async fn f26_spellings_of_one_address_share_a_counter() {
    let cases = ADDRESSES.map(|(name, spellings)| {
        let spent = spellings.iter().fold(Case::new("spent under each"), |case, spelling| {
            case.step(spend(ip(spelling), cpu(1.0)), reported(1))
        });
        let total = standing("ip", name).used(cpu(spellings.len() as f64));
        spellings.iter().fold(spent, |case, spelling| case.step(standing_of("ip", spelling), total.clone()))
    });
    run(cases).await;
    run([Case::new("and others do not")
        .step(spend(ip("192.0.2.7"), cpu(1.0)), reported(1))
        .step(spend(ip("2001:db8:1:2::1"), cpu(1.0)), reported(1))
        .step(standing_of("ip", "192.0.2.8"), standing("ip", "192.0.2.8"))
        .step(standing_of("ip", "2001:db8:1:3::1"), standing("ip", "2001:db8:1:3::/64"))
        .step(standing_of("ip", "::1"), standing("ip", "::/64"))])
    .await;
}

#[tokio::test]
async fn f26_the_prefix_of_addresses_is_a_setting() {
    run([Case::new("/48")
        .settings("ip.ipv6_prefix = 48\n")
        .step(spend(ip("2001:db8:1:2::1"), cpu(1.0)), reported(1))
        .step(standing_of("ip", "2001:db8:1:3::1"), standing("ip", "2001:db8:1::/48").used(cpu(1.0)))])
    .await;
}

/// What a web application sends that trusts a header, or knows no address: never a shared account.
#[tokio::test]
async fn f27_what_is_no_address_is_refused() {
    const GARBAGE: [&str; 12] = [
        "unknown",
        "",
        " 192.0.2.1",
        "192.0.2.1:5123",
        "[2001:db8::1]:443",
        "[::1]",
        "127.0.0.1, 198.51.100.9",
        "fe80::1%eth0",
        "010.0.0.1",
        "192.0.2",
        "192.0.2.0/24",
        "localhost",
    ];
    run([GARBAGE.into_iter().fold(Case::new("in the accounts"), |case, garbage| {
        case.step(ask(user("u").ip(garbage)), invalid("accounts.ip"))
            .step(spend(ip(garbage), cpu(1.0)), invalid("charges[0].accounts.ip"))
            .step(backoff(ip(garbage), 0), invalid("accounts.ip"))
    })])
    .await;
    let in_the_path = GARBAGE.into_iter().filter(|garbage| !garbage.is_empty());
    run([in_the_path.fold(Case::new("as the account"), |case, garbage| {
        case.step(standing_of("ip", garbage), invalid("id"))
    })])
    .await;
}
