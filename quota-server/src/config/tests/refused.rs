use std::fs;

use super::super::Config;
use super::{from_env, load, refusal};

#[test]
fn settings_that_are_no_good_are_told_by_key_and_reason() {
    for (text, key, reason) in [
        // unknown
        ("[store]\nurlx = \"memory://\"", "store.urlx", "unknown setting; known here: deadline, fail, max"),
        ("[stores]", "stores", "unknown setting; known here: adapt, auth"),
        ("\"store.url\" = \"memory://\"", "\"store.url\"", "unknown setting"),
        ("[limits.group.cpu]\nmin = \"1s\"", "limits.group", "known here: ip, repo, user"),
        ("[limits.user.disk]\nmin = \"1s\"", "limits.user.disk", "known here: cpu, memory, network"),
        (
            "[adapt.cpu]\nsteps = 0.05",
            "adapt.cpu.steps",
            "known here: backoff_factor, interval, rule, soft_limit, step",
        ),
        (
            "[prices]\n\"/a.B/C\" = { cpus = \"1s\" }",
            "prices.\"/a.B/C\".cpus",
            "known here: cpu, memory, network",
        ),
        // of another type
        ("store = 5", "store", "must be a table of settings"),
        ("[store]\nurl = 5", "store.url", "must be a string, such as \"memory://\""),
        ("[store.url]\nhost = \"a\"", "store.url", "must be a string"),
        ("[store]\ndeadline = 50", "store.deadline", "must be a string, such as \"50ms\""),
        ("[store]\npool_size = \"16\"", "store.pool_size", "must be a whole number, such as 2"),
        ("[store]\npool_size = 16.7", "store.pool_size", "must be a whole number, such as 2"),
        ("[store]\npool_size = [16]", "store.pool_size", "must be a whole number, such as 2"),
        ("[auth]\ndisabled = \"true\"", "auth.disabled", "must be true or false"),
        ("[auth]\ndisabled = 1", "auth.disabled", "must be true or false"),
        ("[prices]\n\"/a.B/C\" = \"1s\"", "prices.\"/a.B/C\"", "must be a table"),
        // out of range
        ("[http]\nlisten = \"localhost:8080\"", "http.listen", "must be an IP address and a port"),
        ("[http]\nlisten = \"127.0.0.1:70000\"", "http.listen", "must be an IP address and a port"),
        ("[http]\nlisten = \"0.0.0.0:8080\"", "http.listen", "no auth.tokens; any other is open to all"),
        ("[grpc]\nlisten = \"[::]:8081\"", "grpc.listen", "needs `auth.disabled = true`"),
        ("[http]\nmax_connections = 0", "http.max_connections", "must be from 1 to 1000000"),
        (
            "[grpc]\nmax_connections_per_address = 1000001",
            "grpc.max_connections_per_address",
            "must be from 1 to",
        ),
        ("[grpc]\nmax_streams = 10001", "grpc.max_streams", "must be from 1 to 10000"),
        ("[http]\nmax_streams = 5", "http.max_streams", "unknown setting; known here: idle_timeout, listen"),
        ("[http]\nidle_timeout = \"0s\"", "http.idle_timeout", "must be from 1s to 1h"),
        ("[grpc]\nunread_timeout = \"61m\"", "grpc.unread_timeout", "must be from 1s to 1h"),
        ("[charges]\ncpu = \"100\"", "charges.cpu", "must be a duration with its unit"),
        ("[charges]\nmemory = \"100\"", "charges.memory", "must be a size with its unit"),
        ("[charges]\nnetwork = \"100TiB\"", "charges.network", "is more than a window can hold"),
        ("[store]\ndeadline = \"0ms\"", "store.deadline", "must be from 1ms to 10s"),
        ("[store]\ndeadline = \"10001ms\"", "store.deadline", "must be from 1ms to 10s"),
        ("[store]\nfail = \"ajar\"", "store.fail", "must be \"open\" or \"closed\""),
        ("[store]\npool_size = 0", "store.pool_size", "must be from 1 to 1024"),
        ("[store]\npool_size = 1025", "store.pool_size", "must be from 1 to 1024"),
        ("[store]\npool_size = -1", "store.pool_size", "must be from 1 to 1024"),
        ("[store]\nmax_accounts = 0", "store.max_accounts", "must be from 1 to 100000000"),
        ("[store]\nmax_accounts = 100_000_001", "store.max_accounts", "must be from 1 to 100000000"),
        ("[store]\nurl = \"memory://here\"", "store.url", "must be memory://"),
        ("[store]\nurl = \"http://a\"", "store.url", "must be memory://"),
        ("[store]\nurl = \"redis://a:b\"", "store.url", "must be redis://[[user]:password@]host"),
        ("[store]\nurl = \"rediss://\"", "store.url", "must be rediss://[[user]:password@]host"),
        ("[store]\nurl = \"redis://a/b\"", "store.url", "must be redis://[[user]:password@]host"),
        (
            "[store]\nurl = \"redis+sentinel://a\"",
            "store.url",
            "must be redis+sentinel://[[user]:password@]host",
        ),
        ("[store]\nurl = \"redis+sentinel://a/n/b\"", "store.url", "must be redis+sentinel://"),
        ("[store]\nurl = \"redis+sentinel://a/n?password=b\"", "store.url", "must be redis+sentinel://"),
        ("[store]\nurl = \"redis+sentinel://a/@b\"", "store.url", "must be redis+sentinel://"),
        ("[store]\nurl = \"rediss+sentinel://a,b:c/n\"", "store.url", "must be rediss+sentinel://"),
        (
            "[store]\nurl = \"redis+cluster://\"",
            "store.url",
            "must be redis+cluster://[[user]:password@]host",
        ),
        ("[store]\nurl = \"redis+cluster://a,,b\"", "store.url", "must be redis+cluster://"),
        ("[store]\nurl = \"redis+cluster://a/1\"", "store.url", "a Cluster has one alone"),
        ("[store]\nurl = \"rediss+cluster://a/#insecure\"", "store.url", "must be rediss+cluster://"),
        ("[window]\nlength = \"0s\"", "window.length", "must be from 60ms to 1h, and divide into 60"),
        ("[window]\nlength = \"61ms\"", "window.length", "a multiple of 60ms"),
        ("[window]\nlength = \"60\"", "window.length", "must be a duration with its unit"),
        ("[log]\nformat = \"xml\"", "log.format", "must be \"text\" or \"json\""),
        ("[log]\naccounts = \"none\"", "log.accounts", "must be \"plain\", \"hashed\" or \"omitted\""),
        ("[log]\nkey = \"short\"", "log.key", "must be a key of 16 to 1024 bytes"),
        ("[log]\nkey = \"0123456789abcdef\"", "log.key", "must be given together with log.accounts"),
        ("[log]\nkey_file = \"/key\"", "log.key_file", "must be given together with log.accounts"),
        (
            "[log]\naccounts = \"hashed\"\nkey = \"0123456789abcdef\"\nkey_file = \"/key\"",
            "log.key_file",
            "must not be given with log.key",
        ),
        ("[log]\nrequests = 1.1", "log.requests", "must be from 0 to 1"),
        ("[trace]\notlp = \"https://a:4317\"", "trace.otlp", "must be http://host:port"),
        ("[trace]\notlp = \"http://a\"", "trace.otlp", "must be http://host:port"),
        ("[trace]\notlp = \"http://:4317\"", "trace.otlp", "must be http://host:port"),
        ("[trace]\notlp = \"http://a:4317/v1/traces\"", "trace.otlp", "must be http://host:port"),
        ("[trace]\notlp = \"http://a:b@c:4317\"", "trace.otlp", "must be http://host:port"),
        ("[trace]\nsample = -0.1", "trace.sample", "must be from 0 to 1"),
        ("[adapt.cpu]\ninterval = \"500ms\"", "adapt.cpu.interval", "must be from 1s to 10m"),
        ("[adapt.cpu]\nsoft_limit = 1.1", "adapt.cpu.soft_limit", "must be from 0.01 to 1"),
        ("[adapt.cpu]\nsoft_limit = nan", "adapt.cpu.soft_limit", "must be from 0.01 to 1"),
        ("[adapt.cpu]\nbackoff_factor = 1", "adapt.cpu.backoff_factor", "must be from 0.01 to 0.99"),
        ("[adapt.cpu]\nbackoff_factor = -inf", "adapt.cpu.backoff_factor", "must be from 0.01 to 0.99"),
        ("[adapt.cpu]\nstep = 0.0", "adapt.cpu.step", "must be from 0.01 to 1"),
        ("[adapt.cpu]\nstep = \"5%\"", "adapt.cpu.step", "must be a number, such as 0.05"),
        (
            "adapt.cpu.rule = \"aimd\"\nlimits.user.cpu.max = \"unlimited\"",
            "limits.user.cpu.max",
            "must be an amount, since steps are shares of it, under adapt.cpu.rule = \"aimd\"",
        ),
        (
            "adapt.memory.rule = \"double-halve\"\nlimits.ip.memory.min = \"0\"",
            "limits.ip.memory.min",
            "must be more than 0, which would stop everything, under adapt.memory.rule = \"double-halve\"",
        ),
        (
            "adapt.network.rule = \"blame\"\nlimits.repo.network.max = \"unlimited\"",
            "limits.repo.network.max",
            "must be an amount, since steps are shares of it, under adapt.network.rule = \"blame\"",
        ),
        (
            "[adapt.cpu]\nrule = \"pid\"",
            "adapt.cpu.rule",
            "must be \"fixed\", \"aimd\", \"double-halve\" or \"blame\"",
        ),
        ("[tls]\ncert = \"c\"", "tls.cert", "must be given together with tls.key"),
        ("[tls]\nkey = \"k\"", "tls.key", "must be given together with tls.cert"),
        ("[tls]\nclient_ca = \"a\"", "tls.client_ca", "must be given together with tls.cert"),
        (
            "[[auth.certificates]]\nname = \"a\"\nrole = \"admin\"\nsubject = \"a\"",
            "auth.certificates",
            "need tls.client_ca",
        ),
        (
            "[[auth.certificates]]\nname = \"a\"\nrole = \"admin\"",
            "auth.certificates[0].subject",
            "must be given",
        ),
        ("[ip]\nipv6_prefix = 0", "ip.ipv6_prefix", "must be from 1 to 128"),
        ("[ip]\nipv6_prefix = 129", "ip.ipv6_prefix", "must be from 1 to 128"),
        ("[ip]\nipv6_prefix = 320", "ip.ipv6_prefix", "must be from 1 to 128"),
        ("[shutdown]\ndrain = \"601s\"", "shutdown.drain", "must be from 0s to 10m"),
        ("[shutdown]\ngrace = \"601s\"", "shutdown.grace", "must be from 0s to 10m"),
        ("[shutdown]\ngrace = \"-1s\"", "shutdown.grace", "must be a duration"),
        (
            "[limits.ip.cpu]\nmode = \"on\"",
            "limits.ip.cpu.mode",
            "must be \"off\", \"shadow\" or \"enforce\"",
        ),
        ("[prices]\n\"\" = {}", "prices.\"\"", "must be 1 to 256 bytes"),
        ("[prices]\nA = { cpu = \"1099511627776us\" }", "prices.A.cpu", "more than one second of a window"),
        ("[prices]\nA = { memory = \"2PiB\" }", "prices.A.memory", "more than one second of a window"),
        ("[prices]\nA = { network = \"1TiB\" }", "prices.A.network", "more than one second of a window"),
        ("[prices]\nA = { cpu = \"unlimited\" }", "prices.A.cpu", "must be a duration"),
    ] {
        let message = refusal(Config::from_toml(text));
        assert!(message.starts_with(&format!("configuration text: {key}: ")), "{text}\n{message}");
        assert!(message.contains(reason), "{text}\n{message}");
        assert!(message.lines().count() <= 2, "{message}");
    }
}

const DIGEST: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

#[test]
fn tokens_that_are_no_good_are_told_by_key_and_reason() {
    let admin = format!("name = \"a\"\nrole = \"admin\"\nsha256 = \"{DIGEST}\"\n");
    let fileserver = admin.replace("admin", "fileserver");
    for (token, key, reason) in [
        ("", "name", "must be given"),
        ("name = \"\"", "name", "must not be empty"),
        ("name = \"anonymous\"", "name", "is what everybody is called where there are no tokens"),
        ("name = \"a\\nb\"", "name", "must not contain control characters"),
        ("name = 5", "name", "must be a string"),
        ("name = \"a\"", "role", "must be given"),
        ("name = \"a\"\nrole = \"root\"", "role", "must be \"fileserver\", \"reader\" or \"admin\""),
        ("name = \"a\"\nrole = \"admin\"", "sha256", "must be given, or file"),
        ("name = \"a\"\nrole = \"admin\"\nfile = \"\"", "file", "must be the path of a file"),
        ("name = \"a\"\nrole = \"admin\"\nsha256 = \"ba78\"", "sha256", "must be 64 hexadecimal digits"),
        (&format!("{admin}file = \"/token\""), "file", "must not be given with sha256"),
        (&format!("{admin}token = \"s3cret\""), "token", "known here: name, role, nodes, sha256, file"),
        (&format!("{admin}nodes = [\"n\"]"), "nodes", "are of a fileserver alone"),
        (&fileserver, "nodes", "must name the nodes that the fileserver may speak for"),
        (&format!("{fileserver}nodes = []"), "nodes", "must name the nodes"),
        (&format!("{fileserver}nodes = [\"\"]"), "nodes", "must name the nodes"),
        (&format!("{fileserver}nodes = \"n\""), "nodes", "must be a list of strings"),
        (&format!("{fileserver}nodes = [5]"), "nodes", "must be a list of strings"),
        (&format!("{fileserver}nodes = [\"a\\tb\"]"), "nodes", "each must not contain control characters"),
    ] {
        let message = refusal(Config::from_toml(&format!("[[auth.tokens]]\n{token}\n")));
        let expected = format!("configuration text: auth.tokens[0].{key}: ");
        assert!(message.starts_with(&expected) && message.contains(reason), "{token}\n{message}");
    }
    let two = |second: &str| {
        refusal(Config::from_toml(&format!("[[auth.tokens]]\n{admin}[[auth.tokens]]\n{second}")))
    };
    let twice = two(&admin.replace("\"a\"", "\"b\""));
    assert!(twice.contains("auth.tokens[1].name: must have a token of its own"), "{twice}");
    let ambiguous = two(&admin.replace("admin", "reader").replace("ba78", "ba79"));
    assert!(ambiguous.contains("auth.tokens[1].name: is another's, with another role"), "{ambiguous}");
    for list in
        ["auth.tokens = 5", "auth.tokens = \"s3cret\"", "auth.tokens = [5]", "auth.tokens = { name = \"a\" }"]
    {
        let message = refusal(Config::from_toml(list));
        assert!(message.contains("auth.tokens: must be a list of tables"), "{message}");
    }
    let disabled = refusal(Config::from_toml(&format!("auth.disabled = true\n[[auth.tokens]]\n{admin}")));
    assert!(disabled.contains("auth.disabled: must not be true where there are auth.tokens"), "{disabled}");
}

#[test]
fn f09_limits_that_are_no_amount_are_refused() {
    for (resource, value, reason) in [
        ("cpu", "nan", "must be a string"),
        ("cpu", "inf", "must be a string"),
        ("cpu", "-inf", "must be a string"),
        ("cpu", "100", "must be a string, such as \"1"),
        ("cpu", "\"nan\"", "must be a duration with its unit"),
        ("cpu", "\"inf\"", "must be a duration with its unit"),
        ("cpu", "\".nan\"", "must be a duration with its unit"),
        ("cpu", "\"-1s\"", "must be a duration with its unit"),
        ("cpu", "\"-0s\"", "must be a duration with its unit"),
        ("cpu", "\"1e3s\"", "must be a duration with its unit"),
        ("cpu", "\"100\"", "must be a duration with its unit"),
        ("cpu", "\"\"", "or \"unlimited\""),
        ("cpu", "\"infinite\"", "or \"unlimited\""),
        ("cpu", "\"10ns\"", "must be whole microseconds"),
        ("cpu", "\"65970697666501us\"", "write \"unlimited\""),
        ("cpu", "\"9999999999999999999s\"", "write \"unlimited\""),
        ("memory", "\"nan\"", "must be a size with its unit"),
        ("memory", "\"-1GiB\"", "must be a size with its unit"),
        ("memory", "\"8\"", "must be a size with its unit"),
        ("memory", "\"1.5\"", "must be a size with its unit"),
        ("memory", "\"0.1B\"", "must be a size with its unit"),
        ("memory", "\"1PiB\"", "write \"unlimited\""),
        ("network", "inf", "must be a string"),
        ("network", "\"infGiB\"", "must be a size with its unit"),
        ("network", "\"60TiB\"", "write \"unlimited\""),
        ("network", "\"99999999999EiB\"", "write \"unlimited\""),
    ] {
        for name in ["min", "initial", "max"] {
            let text = format!("[limits.repo.{resource}]\n{name} = {value}");
            let message = refusal(Config::from_toml(&text));
            assert!(message.contains(&format!("limits.repo.{resource}.{name}: ")), "{text}\n{message}");
            assert!(message.contains(reason), "{text}\n{message}");
        }
    }
}

#[test]
fn min_initial_and_max_must_rise() {
    for (values, key, reason) in [
        ("min = \"2s\"\nmax = \"1s\"", "min", "at most limits.user.cpu.max, \"1s\" in configuration text"),
        ("min = \"101s\"", "min", "at most limits.user.cpu.max, \"100s\" in built-in defaults"),
        ("min = \"unlimited\"", "min", "at most limits.user.cpu.max"),
        ("min = \"60s\"\ninitial = \"50s\"", "min", "at most limits.user.cpu.initial"),
        ("max = \"50s\"", "max", "at least limits.user.cpu.initial, \"100s\" in built-in defaults"),
        ("initial = \"0\"", "initial", "at least limits.user.cpu.min, \"1s\" in built-in defaults"),
        ("initial = \"unlimited\"", "initial", "at most limits.user.cpu.max"),
    ] {
        let message = refusal(Config::from_toml(&format!("[limits.user.cpu]\n{values}")));
        assert!(message.starts_with(&format!("configuration text: limits.user.cpu.{key}: ")), "{message}");
        assert!(message.contains(reason), "{message}");
    }
}

#[test]
fn variables_are_told_by_their_names() {
    for (name, value, key, reason) in [
        ("QUOTA_STORE_URL", "memory://", "store.url", "is written QUOTA__STORE__URL"),
        ("QUOTA_STORE__POOL_SIZE", "4", "store.pool_size", "is written QUOTA__STORE__POOL_SIZE"),
        ("quota__store__url", "memory://", "store.url", "is written QUOTA__STORE__URL"),
        ("QUOTA__STORE__URLX", "memory://", "store.urlx", "unknown setting; known here: deadline, fail"),
        ("QUOTA__STOER__URL", "memory://", "stoer.url", "unknown setting; known here: adapt, auth"),
        ("QUOTA__", "1", "\"\"", "unknown setting"),
        ("QUOTA__STORE__URL__HOST", "a", "store.url.host", "unknown setting; known here: deadline, fail"),
        ("QUOTA__STORE_URL", "a", "store_url", "unknown setting"),
        ("QUOTA__STORE", "memory://", "store", "must be a table"),
        ("QUOTA__STORE__POOL_SIZE", "many", "store.pool_size", "must be a whole number"),
        ("QUOTA__STORE__POOL_SIZE", "true", "store.pool_size", "must be a whole number"),
        ("QUOTA__STORE__POOL_SIZE", "16.5", "store.pool_size", "must be a whole number"),
        ("QUOTA__STORE__POOL_SIZE", "0", "store.pool_size", "must be from 1 to 1024"),
        ("QUOTA__AUTH__DISABLED", "yes", "auth.disabled", "must be true or false"),
        ("QUOTA__HTTP__LISTEN", "0.0.0.0:80", "http.listen", "needs `auth.disabled = true`"),
        ("QUOTA__LIMITS__USER__CPU__MIN", "nan", "limits.user.cpu.min", "must be a duration"),
        (
            "QUOTA__LIMITS__USER__CPU__MIN",
            "101s",
            "limits.user.cpu.min",
            "must be at most limits.user.cpu.max",
        ),
        ("QUOTA__CLASSES__CI__SLOTS", "many", "classes.ci.slots", "must be a whole number"),
        ("QUOTA__CLASSES__CI__PLACES", "1", "classes.ci.places", "known here: lease, max_queue"),
        ("QUOTA__CLASSES__CI", "1", "classes.ci", "must be a table"),
        ("QUOTA__PRICES__/a.B/C__CPU", "1s", "prices.\"/a.b/c\".cpu", "known here: default"),
    ] {
        let message = refusal(from_env([(name, value)]));
        assert!(message.starts_with(&format!("environment variable {name}: {key}: ")), "{message}");
        assert!(message.contains(reason), "{message}");
    }
}

#[test]
fn two_variables_for_one_key_are_refused() {
    let message = refusal(from_env([("QUOTA__STORE__FAIL", "open"), ("QUOTA__store__fail", "closed")]));
    assert_eq!(
        message,
        "environment variable QUOTA__store__fail: store.fail: \
         is also set by environment variable QUOTA__STORE__FAIL"
    );
}

#[test]
fn a_file_is_told_by_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("quota.toml");
    let refusal = || refusal(load(Some(path.clone()), []));
    let shown = path.display();

    assert!(refusal().starts_with(&format!("{shown}: cannot be read: ")), "{}", refusal());
    fs::write(&path, b"\xff").unwrap();
    assert!(refusal().starts_with(&format!("{shown}: cannot be read: ")), "{}", refusal());
    fs::write(&path, "[ip]\nipv6_prefix = 0").unwrap();
    assert_eq!(refusal(), format!("{shown}: ip.ipv6_prefix: must be from 1 to 128"));
    fs::write(&path, "[ip]\nipv6_prefix = = 1").unwrap();
    assert!(refusal().starts_with(&format!("{shown}: not valid TOML: line 2, column 15: ")), "{}", refusal());
    fs::write(&path, "[ip]\nipv6_prefix = 99999999999999999999").unwrap();
    assert!(
        refusal()
            .starts_with(&format!("{shown}: not valid TOML: line 2, column 15: a number is out of range"))
    );
    fs::write(&path, "[ip]\n[ip]\n").unwrap();
    assert!(refusal().starts_with(&format!("{shown}: not valid TOML: line 2, ")), "{}", refusal());
    assert!(super::refusal(load(Some("/".into()), [])).starts_with("/: cannot be read: "));
}

#[test]
fn prices_are_bounded() {
    let prices = |rpcs: usize, bytes: usize| {
        let lines: String = (0..rpcs).map(|n| format!("\"{n:0bytes$}\" = {{ cpu = \"1s\" }}\n")).collect();
        Config::from_toml(&format!("[prices]\n{lines}"))
    };
    assert!(prices(1000, 256).is_ok());
    assert!(refusal(prices(1001, 4)).contains("at most 1000 RPCs"));
    assert!(refusal(prices(1, 257)).contains("must be 1 to 256 bytes"));
}
