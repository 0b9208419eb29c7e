//! Every account has usage of its own, whatever it is called.

use quota_core::account::MAX_ID_BYTES;
use quota_core::{Account, Ipv6Prefix, Kind};

use super::Fixture;
use crate::values::{cpu, enforced, spending};

/// Every behaviour of this topic.
pub async fn all(fixture: &Fixture) {
    accounts_share_no_usage(fixture).await;
    spellings_of_one_account_share_it(fixture).await;
}

fn account(kind: Kind, id: &str) -> Account {
    Account::new(kind, id, Ipv6Prefix::default()).unwrap_or_else(|error| panic!("{id:?} {error}"))
}

async fn accounts_share_no_usage(fixture: &Fixture) {
    let long = "n".repeat(MAX_ID_BYTES - 1);
    let (long_a, long_b) = (format!("{long}a"), format!("{long}b"));
    let (short_40, short_41) = ("n".repeat(40), "n".repeat(41));
    let names = [
        "a}b/app",
        "a}z/other",
        "{",
        "}",
        "{}",
        "}x{",
        "{x}",
        "a:b",
        "a",
        "b:c",
        "user:a",
        "grp/my app",
        "grp/50%25",
        "grp/50%",
        "grp/uber-\u{dc}",
        "grp/uber-U\u{308}",
        "Grp/App",
        "grp/app",
        "grp%2Fapp",
        "grp%2fapp",
        "\u{1f980}",
        "#",
        "%23",
        " ",
        "a b",
        "a  b",
        "'; FLUSHALL",
        "\u{feff}a",
        &long_a,
        &long_b,
        &short_40,
        &short_41,
    ];
    let mut accounts: Vec<Account> = names.iter().map(|name| account(Kind::User, name)).collect();
    accounts.extend(names.iter().map(|name| account(Kind::Repo, name)));
    accounts.extend(["192.0.2.7", "2001:db8:1:2::1", "2001:db8:1:3::1"].map(|ip| account(Kind::Ip, ip)));
    // Those are names of users, too.
    accounts.extend(["192.0.2.7", "2001:db8:1:2::/64"].map(|name| account(Kind::User, name)));

    let entries = accounts.iter().zip(0..).map(|(account, n)| spending(account, &[(0, 1000 + n)])).collect();
    fixture.settle(None, entries).await;
    for (account, n) in accounts.iter().zip(0..) {
        assert_eq!(fixture.used(account).await, 1000 + n, "{account}");
        assert!(!fixture.admit(&[(account, enforced(1000 + n))], cpu(1)).await.allowed, "{account}");
        assert!(fixture.admit(&[(account, enforced(1001 + n))], cpu(1)).await.allowed, "{account}");
    }
}

async fn spellings_of_one_account_share_it(fixture: &Fixture) {
    let spellings = [
        (Kind::Repo, &["one/app", "one/app.git", "/one//app/", "one/app/"][..]),
        (Kind::Ip, &["198.51.100.9", "::ffff:198.51.100.9", "::FFFF:c633:6409", "64:ff9b::c633:6409"][..]),
        (Kind::Ip, &["2001:db8:9:2::1", "2001:DB8:9:2:ffff::9"][..]),
    ];
    for (kind, names) in spellings {
        for name in names {
            fixture.spend(&account(kind, name), &[(0, 1)]).await;
        }
        for name in names {
            assert_eq!(fixture.used(&account(kind, name)).await, names.len() as u64, "{name}");
        }
    }
}
