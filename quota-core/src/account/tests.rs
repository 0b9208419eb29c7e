use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

fn account(kind: Kind, id: &str) -> Result<Account, InvalidAccount> {
    Account::new(kind, id, Ipv6Prefix::default())
}

fn id(kind: Kind, name: &str) -> String {
    account(kind, name).unwrap().id().to_owned()
}

#[test]
fn f12_spellings_of_a_repository_are_one_account() {
    for spelling in ["grp/app", "grp/app.git", "/grp//app/", "grp/app.git/", "//grp/app"] {
        assert_eq!(id(Kind::Repo, spelling), "grp/app", "{spelling}");
    }
    for other in [
        "Grp/App",
        "grp%2Fapp",
        "grp/my app",
        "grp/50%25",
        "a:b",
        "grp/.git",
        "{}",
        "grp/app.git.git",
        "x/..git.git",
    ] {
        assert_eq!(id(Kind::Repo, other), other);
    }
    let (composed, decomposed) = ("grp/uber-\u{dc}", "grp/uber-U\u{308}");
    assert_ne!(id(Kind::Repo, composed), id(Kind::Repo, decomposed));
}

#[test]
fn dot_segments_and_nothing_are_refused() {
    for path in [".", "..", "a/../b", "a/./b", "a/..git.git/.."] {
        assert_eq!(account(Kind::Repo, path), Err(InvalidAccount::DotSegment), "{path}");
    }
    for path in ["", "/", "///"] {
        assert_eq!(account(Kind::Repo, path), Err(InvalidAccount::Empty), "{path}");
    }
}

#[test]
fn names_are_bounded_and_printable() {
    for kind in Kind::ALL {
        assert_eq!(account(kind, ""), Err(InvalidAccount::Empty));
        assert_eq!(account(kind, &"x".repeat(1025)), Err(InvalidAccount::TooLong));
        assert_eq!(account(kind, "a\0b"), Err(InvalidAccount::ControlCharacter));
        assert_eq!(account(kind, "a\nb"), Err(InvalidAccount::ControlCharacter));
    }
    assert!(account(Kind::User, &"x".repeat(1024)).is_ok());
    assert!(account(Kind::User, "MacBook 14\" r/w").is_ok());
}

#[test]
fn f26_each_address_has_one_spelling() {
    for (given, name) in [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("::ffff:c000:207", "192.0.2.7"),
        ("::FFFF:C000:207", "192.0.2.7"),
        ("64:ff9b::c000:207", "192.0.2.7"),
        ("64:ff9b::c000:208", "192.0.2.8"),
        ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
        ("2001:DB8:1:2:ffff::9", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::1", "2001:db8:1:3::/64"),
        ("2001:db8:1:2::1.2.3.4", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::/64", "2001:db8:1:2::/64"),
        ("::1", "::/64"),
    ] {
        assert_eq!(id(Kind::Ip, given), name, "{given}");
    }
}

#[test]
fn f26_f27_what_is_no_address_is_refused() {
    for garbage in [
        "unknown",
        "127.0.0.1, 198.51.100.9",
        "198.51.100.9:5123",
        "[2001:db8::1]:443",
        "[::1]",
        "fe80::1%eth0",
        "010.0.0.1",
        " 1.2.3.4",
        "1.2.3",
        "1.2.3.4/32",
        "2001:db8::/48",
        "2001:db8:1:2::1/64",
    ] {
        assert_eq!(account(Kind::Ip, garbage), Err(InvalidAccount::NotAnAddress), "{garbage}");
    }
}

#[test]
fn the_ipv6_prefix_is_a_setting() {
    let grouped = |bits| {
        let prefix = Ipv6Prefix::new(bits).unwrap();
        Account::new(Kind::Ip, "2001:db8:1:2:3::1", prefix).unwrap().id().to_owned()
    };
    assert_eq!(grouped(48), "2001:db8:1::/48");
    assert_eq!(grouped(1), "::/1");
    assert_eq!(grouped(128), "2001:db8:1:2:3::1");
    assert!(Ipv6Prefix::new(0).is_none() && Ipv6Prefix::new(129).is_none());
}

#[test]
fn f12_keys_differ_and_keep_their_hash_tag() {
    let long = "x".repeat(41);
    let names = [
        "a}b/app",
        "a}z/other",
        "{",
        "}",
        "{}",
        "}x{",
        "a:b",
        "b:c",
        "a",
        "c",
        "#",
        "%",
        "%23",
        "user:a",
        "é",
        &long,
    ];
    let mut keys = HashSet::new();
    for kind in [Kind::Repo, Kind::User] {
        for name in names {
            let key = account(kind, name).unwrap().key();
            assert!(!key.contains(['{', '}']) && key.bytes().all(|byte| byte.is_ascii_graphic()), "{key}");
            assert!(key.starts_with(&format!("{kind}:")));
            assert!(keys.insert(key), "{kind} {name}");
        }
    }
    assert_eq!(account(Kind::Repo, "group/project").unwrap().key(), "repo:group/project");
    // A long name's digest cannot be spelt by a short name.
    let digest = account(Kind::User, &long).unwrap().key();
    assert_ne!(account(Kind::User, digest.trim_start_matches("user:")).ok().map(|a| a.key()), Some(digest));
}

#[test]
fn f27_a_missing_account_is_skipped_and_all_missing_refused() {
    let prefix = Ipv6Prefix::default();
    let accounts = Accounts::new(None, Some("alice"), None, prefix).unwrap();
    assert_eq!(accounts.as_slice(), [account(Kind::User, "alice").unwrap()]);
    assert_eq!(Accounts::new(None, None, None, prefix), Err((None, InvalidAccount::Empty)));
    let empty_ip = Accounts::new(Some("r"), None, Some(""), prefix);
    assert_eq!(empty_ip, Err((Some(Kind::Ip), InvalidAccount::Empty)));
}

proptest! {
    #[test]
    fn a_spelling_is_its_own_spelling(
        name in ".{0,60}", path in "(/|\\.|\\.git|a){0,8}", v6 in any::<u128>(), v4 in any::<u32>(),
    ) {
        let addresses =
            [std::net::Ipv6Addr::from_bits(v6).to_string(), std::net::Ipv4Addr::from_bits(v4).to_string()];
        let named = Kind::ALL.map(|kind| (kind, &name));
        for (kind, name) in named.into_iter().chain([
            (Kind::Repo, &path), (Kind::Ip, &addresses[0]), (Kind::Ip, &addresses[1]),
        ]) {
            if let Ok(first) = account(kind, name) {
                prop_assert_eq!(account(kind, first.id()), Ok(first));
            }
        }
    }

    #[test]
    fn different_names_have_different_keys(a in ".{1,50}", b in ".{1,50}") {
        if let (Ok(a), Ok(b)) = (account(Kind::User, &a), account(Kind::User, &b)) {
            prop_assert_eq!(a == b, a.key() == b.key());
            prop_assert!(a.key().len() <= 126);
        }
    }
}
