use super::super::{Config, StoreUrl};
use super::{from_env, refusal};

const PASSWORD: &str = "hunter2";

#[test]
fn a_password_is_in_no_message() {
    for text in [
        // broken TOML
        "[store]\nurl = \"redis://app:hunter2@redis",
        "[store]\nurl = redis://app:hunter2@redis",
        "[store]\nurl = 'redis://app:hunter2@redis\"",
        "[store]\nurl = \"redis://app:hunter2@redis\" x",
        "[store]\nurl = \"redis://app:hunter2@redis\\q\"",
        "[store]\nurl = hunter2",
        "[store]\nurl : \"redis://app:hunter2@redis\"",
        "[store]\nurl = \"a\"\nurl = \"redis://app:hunter2@redis\"",
        // another type, another place
        "[store]\nurl = [\"redis://app:hunter2@redis\"]",
        "[store]\nurl = { url = \"redis://app:hunter2@redis\" }",
        "store = \"redis://app:hunter2@redis\"",
        "[store]\nurlx = \"redis://app:hunter2@redis\"",
        "[store]\ndeadline = \"redis://app:hunter2@redis\"",
        "[store]\ndeadline = \"1hunter2\"",
        "[store]\nfail = \"redis://app:hunter2@redis\"",
        "[store]\npool_size = \"redis://app:hunter2@redis\"",
        "[auth]\ndisabled = \"redis://app:hunter2@redis\"",
        "[[auth.tokens]]\nname = \"a\"\nrole = \"admin\"\nsha256 = \"hunter2\"",
        "[[auth.tokens]]\nname = \"a\"\nrole = \"hunter2\"",
        "[[auth.tokens]]\nname = \"a\"\nrole = \"admin\"\nfile = [\"hunter2\"]",
        "[[auth.tokens]]\nname = \"a\"\nrole = \"admin\"\ntoken = \"hunter2\"",
        "auth.tokens = [\"hunter2\"]",
        "auth.tokens = \"hunter2\"",
        "[log]\naccounts = \"hashed\"\nkey = \"hunter2\"",
        "[log]\naccounts = \"hashed\"\nkey = \"hunter2 hunter2 hunter2\"",
        "[log]\nkey = \"hunter2-hunter2-hunter2\"",
        "[log]\nformat = \"hunter2\"",
        "[log]\naccounts = \"hunter2\"",
        "[trace]\notlp = \"http://app:hunter2@collector:4317\"",
        "[http]\nlisten = \"redis://app:hunter2@redis\"",
        "[window]\nlength = \"redis://app:hunter2@redis\"",
        "[limits.user.cpu]\nmax = \"redis://app:hunter2@redis\"",
        "[limits.user.memory]\nmax = \"redis://app:hunter2@redis\"",
        "[limits.user.cpu]\nmode = \"redis://app:hunter2@redis\"",
        "[adapt.cpu]\nrule = \"redis://app:hunter2@redis\"",
        "[prices]\ndefault = \"redis://app:hunter2@redis\"",
        // no URL of a store
        "[store]\nurl = \"hunter2\"",
        "[store]\nurl = \"memory://hunter2\"",
        "[store]\nurl = \"http://app:hunter2@redis\"",
        "[store]\nurl = \"redis+sentinel://app:hunter2@redis\"",
        "[store]\nurl = \"redis+sentinel://app,hunter2/@redis\"",
        "[store]\nurl = \"redis+sentinel://redis/name?sentinel_password=hunter2/@\"",
        "[store]\nurl = \"redis+cluster://app:hunter2/@redis\"",
        "[store]\nurl = \"redis://app:hunter2@redis:port\"",
        "[store]\nurl = \"redis://app:hunter2/@redis\"",
        "[store]\nurl = \"redis://app:hunter2@redis/hunter2\"",
        "[store]\nurl = \"redis://app:hunter2@\"",
    ] {
        let error = Config::from_toml(text).unwrap_err();
        assert!(!error.to_string().contains(PASSWORD), "{error}");
        assert!(!format!("{error:?}").contains(PASSWORD), "{error:?}");
    }
    for name in [
        "STORE",
        "STORE__URL",
        "STORE__URLX",
        "STORE__POOL_SIZE",
        "STORE__FAIL",
        "AUTH__DISABLED",
        "AUTH__TOKENS",
    ] {
        let name = format!("QUOTA__{name}");
        assert!(!refusal(from_env([(&name, "redis://app:hunter2@redis:x")])).contains(PASSWORD));
    }
}

#[test]
fn the_key_of_the_log_is_not_shown() {
    let text = "[log]\naccounts = \"hashed\"\nkey = \"hunter2-hunter2-hunter2\"";
    let config = Config::from_toml(text).unwrap();
    assert!(config.log.key.is_some() && !format!("{config:?}").contains(PASSWORD), "{config:?}");
}

#[test]
fn the_url_of_a_store_is_shown_without_password() {
    for (url, shown) in [
        ("redis://redis", "redis://redis:6379/0"),
        ("redis://app:hunter2@redis:7000/3", "redis://***@redis:7000/3"),
        ("rediss://:hunter2@redis", "rediss://***@redis:6379/0"),
        ("redis://hunter2@redis", "redis://***@redis:6379/0"),
        ("redis://:hunter2%40@[::1]:1", "redis://***@::1:1/0"),
        ("redis://redis/?password=hunter2", "redis://redis:6379/0"),
        ("redis+cluster://a:1,b", "redis+cluster://a:1,b/"),
        ("rediss+cluster://:hunter2@a,[::1]:2/", "rediss+cluster://***@a,[::1]:2/"),
        ("redis+sentinel://a/main", "redis+sentinel://a/main"),
        ("redis+sentinel://app:hunter2@a,b/main/3", "redis+sentinel://***@a,b/main/3"),
        ("redis+sentinel://a/main?sentinel_password=hunter2", "redis+sentinel://a/main"),
    ] {
        let config = from_env([("QUOTA__STORE__URL", url)]).unwrap();
        assert!(!format!("{config:?}").contains(PASSWORD), "{config:?}");
        let StoreUrl::Redis(redis) = config.store.url else { panic!("{url}") };
        assert_eq!(redis.to_string(), shown);
        assert_eq!(format!("{redis:?}"), shown);
    }
}
