use quota_core::{Account, Ipv6Prefix, Kind, Limit, Override, PerResource, Weight};

use super::super::{Config, FileOverride};
use super::refusal;

fn entry(kind: &str, id: &str, rest: &str) -> String {
    format!("[[overrides]]\nkind = \"{kind}\"\nid = \"{id}\"\n{rest}\n")
}

fn alice(rest: &str) -> String {
    entry("user", "alice", &format!("reason = \"r\"\n{rest}"))
}

#[test]
fn each_says_one_thing_of_one_account_and_why() {
    let of = |kind, id, word| {
        let account = Account::new(kind, id, Ipv6Prefix::default()).unwrap();
        FileOverride { account, word, reason: "why".into() }
    };
    let limits =
        PerResource::new(Some(Limit::At(600_000_000)), Some(Limit::At(4096 * 60)), Some(Limit::Unlimited));
    for (rest, word) in [
        ("weight = 4", Override::Weight(Weight::from_thousandths(4000).unwrap())),
        ("weight = 0.5", Override::Weight(Weight::from_thousandths(500).unwrap())),
        ("limits = { cpu = \"600s\", memory = \"4MiB\", network = \"unlimited\" }", Override::Limits(limits)),
        ("limits.cpu = \"0\"", Override::Limits(PerResource::new(Some(Limit::At(0)), None, None))),
        ("exempt = true", Override::Exempt),
        ("blocked = true", Override::Blocked),
    ] {
        let text = entry("user", "alice", &format!("reason = \"why\"\n{rest}"))
            + &entry("ip", "2001:db8::7", "reason = \"why\"\nexempt = true");
        let expected = [of(Kind::User, "alice", word), of(Kind::Ip, "2001:db8::1", Override::Exempt)];
        assert_eq!(Config::from_toml(&text).unwrap().overrides, expected, "{rest}");
    }
    assert_eq!(Config::from_toml("").unwrap().overrides, []);
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    for (text, told) in [
        ("overrides = 7".to_owned(), "overrides: must be a list of tables, which is written in a file"),
        ("overrides = [7]".to_owned(), "overrides.0: must be a table, [[overrides]]"),
        (alice(""), "overrides.0: must be one of weight, limits, exempt and blocked"),
        (
            alice("exempt = true\nweight = 1"),
            "overrides.0: must be one of weight, limits, exempt and blocked",
        ),
        (alice("exempt = false"), "overrides.0.exempt: must be true"),
        (alice("blocked = \"yes\""), "overrides.0.blocked: must be true"),
        (
            alice("weight = 0"),
            "overrides.0.weight: must be more than 0 and at most 1000, of whole thousandths",
        ),
        (alice("weight = \"4\""), "overrides.0.weight: must be a number, such as 4 or 0.5"),
        (alice("limits = \"600s\""), "overrides.0.limits: must be a table, such as { cpu = \"600s\" }"),
        (alice("limits = {}"), "overrides.0.limits: must have one of cpu, memory and network"),
        (alice("limits.disk = \"1GiB\""), "overrides.0.limits.disk: must be cpu, memory or network"),
        (alice("limits.cpu = 7"), "overrides.0.limits.cpu: must be a string, such as \"600s\""),
        (
            alice("limits.cpu = \"600\""),
            "overrides.0.limits.cpu: must be a duration with its unit, such as \"100s\", \"50ms\" or \"1m 30s\", or \"unlimited\"",
        ),
        (
            alice("block = true"),
            "overrides.0.block: unknown setting; known here: kind, id, weight, limits, exempt, blocked, reason",
        ),
        (entry("user", "alice", "exempt = true"), "overrides.0.reason: is missing"),
        (entry("user", "alice", "exempt = true\nreason = 7"), "overrides.0.reason: must be a string"),
        (entry("user", "alice", "exempt = true\nreason = \" \""), "overrides.0.reason: must say why"),
        (
            entry("group", "alice", "exempt = true\nreason = \"r\""),
            "overrides.0.kind: must be repo, user or ip",
        ),
        (
            entry("ip", "alice", "exempt = true\nreason = \"r\""),
            "overrides.0.id: must be an IPv4 or IPv6 address without port or zone",
        ),
        (
            [alice("exempt = true"), alice("weight = 2")].concat(),
            "overrides.1.id: names an account that is named before",
        ),
    ] {
        let message = refusal(Config::from_toml(&text));
        assert_eq!(message, format!("configuration text: {told}"), "{text}");
    }
}

#[test]
fn they_are_bounded() {
    let many: String =
        (0..10_001).map(|id| entry("user", &id.to_string(), "exempt = true\nreason = \"r\"")).collect();
    assert_eq!(refusal(Config::from_toml(&many)), "configuration text: overrides: must be at most 10000");
}
