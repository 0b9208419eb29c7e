use std::fs;
use std::time::Duration;

use quota_core::{
    Adaptation, Blame, Bound, Cap, Cost, Kind, Limit, Mode, PerKind, Range, Ratio, Resource, Rule,
    WindowLength,
};

use super::super::{
    AccountNames, Config, Connections, FailPolicy, Log, LogFormat, LogKey, RedisServers, StoreUrl, Tls,
};
use super::{from_env, load};
use crate::auth::{Caller, Certificate, Digest, Nodes, Role, Secret, Token};

const RPC: &str = "/gitaly.SmartHTTPService/PostUploadPackWithSidechannel";

fn limit(config: &Config, kind: Kind, resource: Resource) -> Limit {
    config.policy.ceilings(kind)[resource].limit
}

#[test]
fn the_defaults_are_those_of_the_public_interface() {
    let config = Config::from_toml("").unwrap();
    assert_eq!(config.http.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(config.grpc.listen.to_string(), "127.0.0.1:8081");
    let seconds = Duration::from_secs;
    let http = Connections { most: 4096, most_of_address: 1024, idle: seconds(30), unread: seconds(30) };
    assert_eq!(config.http.connections, http);
    assert_eq!(config.grpc.connections, Connections { idle: seconds(60), ..http });
    assert_eq!(config.max_streams, 1000);
    let charges = [6 * 3600 * 1_000_000, 60 << 33, 1_500_000_000_000].map(Limit::At);
    assert_eq!(Resource::ALL.map(|resource| config.charges[resource]), charges);
    assert_eq!(config.store.url, StoreUrl::Memory);
    assert_eq!(config.store.deadline, Duration::from_millis(50));
    assert_eq!(config.store.fail, FailPolicy::Open);
    assert_eq!((config.store.pool_size, config.store.max_accounts), (2, 1_000_000));
    assert_eq!(config.window.length(), Duration::from_secs(60));
    assert_eq!(config.ip.ipv6_prefix.bits(), 64);
    assert_eq!(config.shutdown.drain, Duration::ZERO);
    assert_eq!(config.shutdown.grace, Duration::from_secs(10));
    assert!(!config.auth.disabled && config.auth.tokens.is_empty());
    assert_eq!(config.prices.price(None), Cost::ZERO.with_cpu_micros(10_000).unwrap());
    const GIB: u64 = 1 << 30;
    let expected: Vec<_> = [(Kind::Repo, 1), (Kind::User, 1), (Kind::Ip, 2)]
        .into_iter()
        .flat_map(|(kind, times)| {
            [
                (kind, Resource::Cpu, Limit::At(times * 100_000_000), Mode::Enforce),
                (kind, Resource::Memory, Limit::At(times * 8 * GIB / 1024 * 60), Mode::Shadow),
                (kind, Resource::Network, Limit::At(times * 10 * GIB), Mode::Shadow),
            ]
        })
        .map(|(kind, resource, limit, mode)| (kind, resource, Bound { limit, mode }))
        .collect();
    assert_eq!(config.policy.iter().collect::<Vec<_>>(), expected);
}

#[test]
fn a_later_layer_wins_and_a_partial_table_keeps_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("quota.toml");
    fs::write(
        &path,
        "[store]\nfail = \"closed\"\npool_size = 3\n[limits.user.cpu]\ninitial = \"90s\"\nmax = \"90s\"\n",
    )
    .unwrap();
    let env = [
        ("QUOTA__STORE__POOL_SIZE", "4"),
        ("QUOTA__LIMITS__USER__CPU__MODE", "shadow"),
        ("QUOTA__IP__IPV6_PREFIX", "48"),
        ("QUOTA__AUTH__DISABLED", "true"),
        ("QUOTA__HTTP__LISTEN", "[::]:80"),
        ("QUOTA__PRICES__DEFAULT__MEMORY", "1MiB"),
        ("QUOTA_CONFIG", "/not/a/setting"),
        ("QUOTA_SERVER_SERVICE_HOST", "nor this"),
        ("HOME", "/root"),
    ];
    let config = load(Some(path), env).unwrap();
    assert_eq!((config.store.fail, config.store.pool_size), (FailPolicy::Closed, 4));
    assert_eq!(config.store.deadline, Duration::from_millis(50));
    let bound = Bound { limit: Limit::At(90_000_000), mode: Mode::Shadow };
    assert_eq!(config.policy.ceilings(Kind::User)[Resource::Cpu], bound);
    assert_eq!(config.ip.ipv6_prefix.bits(), 48);
    assert_eq!(config.http.listen.to_string(), "[::]:80");
    let price = Cost::ZERO.with_cpu_micros(10_000).unwrap().with_memory_byte_seconds(1 << 20).unwrap();
    assert_eq!(config.prices.price(None), price);
}

#[test]
fn names_of_rpcs_keep_their_case_and_dots() {
    let text =
        format!("[prices]\n\"{RPC}\" = {{ cpu = \"2s\", network = \"1MiB\" }}\n\"a.b\".memory = \"1B\"\n");
    let prices = Config::from_toml(&text).unwrap().prices;
    let price = Cost::ZERO.with_cpu_micros(2_000_000).unwrap().with_network_bytes(1 << 20).unwrap();
    assert_eq!(prices.price(Some(RPC)), price);
    assert_eq!(prices.price(Some("a.b")), Cost::ZERO.with_memory_byte_seconds(1024).unwrap());
    for other in [RPC.to_lowercase().as_str(), "a", "default", ""] {
        assert_eq!(prices.price(Some(other)), prices.price(None), "{other}");
    }
}

#[test]
fn limits_in_their_units() {
    for (resource, text, expected) in [
        (Resource::Cpu, "1m 30.5s", Limit::At(90_500_000)),
        (Resource::Cpu, "0", Limit::At(0)),
        (Resource::Cpu, "0s", Limit::At(0)),
        (Resource::Cpu, "65970697666500us", Limit::At(60 * quota_core::BUCKET_CAP)),
        (Resource::Cpu, "unlimited", Limit::Unlimited),
        (Resource::Memory, "0", Limit::At(0)),
        (Resource::Memory, "1B", Limit::At(1)),
        (Resource::Memory, "1 KiB", Limit::At(60)),
        (Resource::Memory, "1.5MiB", Limit::At(1536 * 60)),
        (Resource::Memory, "unlimited", Limit::Unlimited),
        (Resource::Network, "1KB", Limit::At(1000)),
        (Resource::Network, "unlimited", Limit::Unlimited),
    ] {
        let text =
            format!("limits.user.{resource} = {{ min = \"0\", initial = \"{text}\", max = \"unlimited\" }}");
        let config = Config::from_toml(&text).unwrap();
        assert_eq!(limit(&config, Kind::User, resource), expected, "{text}");
    }
}

#[test]
fn memory_is_held_over_the_window() {
    let config = Config::from_toml("window.length = \"6s\"").unwrap();
    assert_eq!(limit(&config, Kind::User, Resource::Memory), Limit::At(8 * 1024 * 1024 * 6));
    assert_eq!(limit(&config, Kind::User, Resource::Cpu), Limit::At(100_000_000));
}

#[test]
fn every_loopback_address_is_accepted_without_tokens() {
    for address in ["127.0.0.1:0", "127.9.9.9:80", "[::1]:80", "[::ffff:127.0.0.1]:80"] {
        let config = from_env([("QUOTA__GRPC__LISTEN", address)]).unwrap();
        assert_eq!(config.grpc.listen, address.parse().unwrap());
    }
}

#[test]
fn a_rule_moves_limits_between_min_and_max_and_the_ceiling_is_max() {
    let text = "[adapt.cpu]\nrule = \"aimd\"\ninterval = \"30s\"\nbackoff_factor = 0.75\nsoft_limit = 1\n\
                [adapt.memory]\nrule = \"double-halve\"\n[adapt.network]\nrule = \"fixed\"\n\
                [limits.user.cpu]\nmin = \"2s\"\ninitial = \"50s\"\nmax = \"200s\"\n";
    let policy = Config::from_toml(text).unwrap().policy;
    let seconds = |min: u64, initial: u64, max: u64| Range {
        min: min * 1_000_000,
        initial: initial * 1_000_000,
        max: max * 1_000_000,
    };
    let rule = Rule::Aimd { soft_limit: Ratio::ONE, backoff_factor: Ratio::from_millionths(750_000) };
    let ranges = PerKind::new(seconds(1, 100, 100), seconds(2, 50, 200), seconds(2, 200, 200));
    let step = Ratio::from_millionths(50_000);
    let adaptation = Adaptation { rule, interval: Duration::from_secs(30), step, ranges };
    assert_eq!(policy.adaptations()[Resource::Cpu], Some(adaptation));
    let memory = policy.adaptations()[Resource::Memory].unwrap();
    assert_eq!((memory.rule, memory.interval), (Rule::DoubleHalve, Duration::from_secs(1)));
    assert_eq!(policy.adaptations()[Resource::Network], None);
    let ceiling = |resource| policy.ceilings(Kind::User)[resource].limit;
    assert_eq!(ceiling(Resource::Cpu), Limit::At(200_000_000));
    assert_eq!(ceiling(Resource::Network), Limit::At(10 << 30));
}

#[test]
fn by_default_single_accounts_are_cut_and_the_limits_of_their_kind_stay_at_the_most() {
    let policy = Config::from_toml("window.length = \"6s\"").unwrap().policy;
    for (resource, soft_limit) in
        [(Resource::Cpu, 900_000), (Resource::Memory, 750_000), (Resource::Network, 900_000)]
    {
        let adaptation = policy.adaptations()[resource].unwrap();
        let blame = Blame {
            soft_limit: Ratio::from_millionths(soft_limit),
            backoff_factor: Ratio::from_millionths(900_000),
            window: WindowLength::new(Duration::from_secs(6)).unwrap(),
        };
        assert_eq!((adaptation.rule, adaptation.interval), (Rule::Blame(blame), Duration::from_secs(5)));
        assert_eq!(adaptation.step, Ratio::from_millionths(50_000));
    }
    for (written, seconds) in [
        ("", 100),
        ("initial = \"50s\"", 50),
        ("max = \"150s\"", 150),
        ("initial = \"50s\"\nmax = \"150s\"", 150),
    ] {
        let policy = Config::from_toml(&format!("[limits.user.cpu]\n{written}")).unwrap().policy;
        let most = seconds * 1_000_000;
        let range = Range { min: 1_000_000, initial: most, max: most };
        assert_eq!(policy.adaptations()[Resource::Cpu].unwrap().ranges[Kind::User], range, "{written}");
        assert_eq!(policy.ceilings(Kind::User)[Resource::Cpu].limit, Limit::At(most), "{written}");
    }
}

#[test]
fn whom_nobody_compares_is_not_cut() {
    let can_be_cut = |settings: &str, resource, kind| {
        let range = Config::from_toml(settings).unwrap().policy.adaptations()[resource].unwrap().ranges[kind];
        range.min < range.max
    };
    for mode in ["off", "shadow"] {
        let settings = format!("limits.ip.cpu.mode = \"{mode}\"");
        assert!(!can_be_cut(&settings, Resource::Cpu, Kind::Ip), "{mode} beside an enforced kind");
        assert!(can_be_cut(&settings, Resource::Cpu, Kind::User), "{mode}");
    }
    // All kinds of memory are in shadow.
    assert!(can_be_cut("", Resource::Memory, Kind::User), "who would be cut is shown");
}

#[test]
fn the_default_rule_leaves_alone_what_no_rule_can_move() {
    for written in ["max = \"unlimited\"", "min = \"0\""] {
        let policy = Config::from_toml(&format!("[limits.user.network]\n{written}")).unwrap().policy;
        assert_eq!(policy.adaptations()[Resource::Network], None, "{written}");
        assert_eq!(policy.ceilings(Kind::User)[Resource::Network].limit, Limit::At(10 << 30), "{written}");
        assert!(policy.adaptations()[Resource::Cpu].is_some());
    }
}

#[test]
fn tokens_are_read_and_with_them_the_server_may_listen_anywhere() {
    // Of "abc" and of "abd".
    let (old, new) = (
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        "A52D159F262B2C6DDB724A61840BEFC36EB30C88877A4030B65CBE86298449C9",
    );
    let text = format!(
        "http.listen = \"0.0.0.0:8080\"\ngrpc.listen = \"[::]:8081\"\n\
         [[auth.tokens]]\nname = \"gitaly\"\nrole = \"fileserver\"\nnodes = [\"gitaly-01\", \"gitaly-02\"]\n\
         sha256 = \"{old}\"\n\
         [[auth.tokens]]\nname = \"gitaly\"\nrole = \"fileserver\"\nnodes = [\"gitaly-02\", \"gitaly-01\"]\n\
         sha256 = \"{new}\"\n\
         [[auth.tokens]]\nname = \"rails\"\nrole = \"reader\"\nfile = \"/run/secrets/rails\"\n"
    );
    let nodes = ["gitaly-01", "gitaly-02"].map(Into::into).into();
    let gitaly = Caller {
        name: "gitaly".into(),
        role: Role::Fileserver,
        nodes: Nodes::Named(std::sync::Arc::new(nodes)),
    };
    let rails = Caller { name: "rails".into(), role: Role::Reader, nodes: Nodes::All };
    let config = Config::from_toml(&text).unwrap();
    assert_eq!(
        config.auth.tokens,
        [
            Token { caller: gitaly.clone(), secret: Secret::Digest(Digest::of("abc")) },
            Token { caller: gitaly, secret: Secret::Digest(Digest::of("abd")) },
            Token { caller: rails, secret: Secret::File("/run/secrets/rails".into()) },
        ]
    );
    assert_eq!(config.http.listen.to_string(), "0.0.0.0:8080");
}

#[test]
fn certificates_are_read_and_are_enough_to_listen_anywhere() {
    let text = "http.listen = \"0.0.0.0:8080\"\n\
                [tls]\ncert = \"/tls/cert.pem\"\nkey = \"/tls/key.pem\"\nclient_ca = \"/tls/ca.pem\"\n\
                [[auth.certificates]]\nname = \"ops\"\nrole = \"admin\"\nsubject = \"ops.internal\"\n";
    let config = Config::from_toml(text).unwrap();
    let expected = Tls {
        cert: "/tls/cert.pem".into(),
        key: "/tls/key.pem".into(),
        client_ca: Some("/tls/ca.pem".into()),
    };
    assert_eq!(config.tls, Some(expected));
    let ops = Caller { name: "ops".into(), role: Role::Admin, nodes: Nodes::All };
    assert_eq!(config.auth.certificates, [Certificate { caller: ops, subject: "ops.internal".into() }]);
    assert_eq!(Config::from_toml("").unwrap().tls, None);
}

#[test]
fn traces_go_nowhere_unless_a_collector_is_named() {
    assert_eq!(Config::from_toml("trace.sample = 0.5").unwrap().trace, None);
    let trace = Config::from_toml("trace.otlp = \"http://[::1]:4317\"").unwrap().trace.unwrap();
    assert_eq!((trace.otlp.to_string().as_str(), trace.sample), ("http://[::1]:4317/", 1.0));
}

#[test]
fn names_in_the_log_are_plain_unless_that_is_said() {
    let log = Config::from_toml("").unwrap().log;
    let plain = Log { format: LogFormat::Text, accounts: AccountNames::Plain, key: None, requests: 0.0 };
    assert_eq!(log, plain);
    let text = "[log]\nformat = \"json\"\naccounts = \"hashed\"\nkey_file = \"/run/secrets/log\"";
    let log = Config::from_toml(text).unwrap().log;
    assert_eq!((log.format, log.accounts), (LogFormat::Json, AccountNames::Hashed));
    assert_eq!(log.key, Some(LogKey::File("/run/secrets/log".into())));
}

#[test]
fn the_servers_of_a_store_are_what_its_url_says() {
    let servers = |url: &str| {
        let config = Config::from_toml(&format!("store.url = \"{url}\"")).unwrap();
        let StoreUrl::Redis(redis) = config.store.url else { panic!("{url}") };
        (redis.expose().clone(), redis.tls())
    };
    let single = "redis://app:a%40b@redis:7000/3";
    assert!(matches!(servers(single), (RedisServers::Single(url), false) if *url == *single));

    let boxed = |urls: [&str; 2]| urls.map(Box::<str>::from).to_vec();
    let url = "rediss+cluster://app:a%40b@a:1,[::1]/";
    let (RedisServers::Cluster(nodes), true) = servers(url) else { panic!("no Cluster by TLS") };
    assert_eq!(nodes, boxed(["rediss://app:a%40b@a:1/", "rediss://app:a%40b@[::1]:6379/"]));

    let url = "redis+sentinel://:a%40b@a,b:1/the-main.one/3?sentinel_password=c%2Fd";
    let (RedisServers::Sentinel { sentinels, name, server }, false) = servers(url) else {
        panic!("no Sentinels")
    };
    assert_eq!(sentinels, boxed(["redis://:c%2Fd@a:26379/", "redis://:c%2Fd@b:1/"]));
    assert_eq!((&*name, &*server), ("the-main.one", "redis://:a%40b@a:26379/3"));
}

#[test]
fn variables_set_what_a_class_says_nothing_of_and_make_classes() {
    let config =
        from_env([("QUOTA__CLASSES__CI__SLOTS", "50"), ("QUOTA__CLASSES__NIGHTLY__QUOTA", "0.5")]).unwrap();
    let of = |name| *config.classes.get(Some(name)).unwrap().1;
    assert_eq!(of("ci").slots.unwrap().cap, Cap::Fixed(50));
    assert_eq!(of("nightly").part, Ratio::from_millionths(500_000));
    assert_eq!(of("api").slots, None);
}
