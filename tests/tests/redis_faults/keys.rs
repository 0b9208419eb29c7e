//! F12: the keys of an account fall into its slot, whatever it is called.

use std::collections::{HashMap, HashSet};

use quota_core::account::MAX_ID_BYTES;
use quota_core::{Account, Ipv6Prefix, Kind};
use quota_server::store::Store;
use quota_tests::redis::RedisServer;
use quota_tests::stores::Opening;
use quota_tests::values::spending;

use crate::raw::Raw;
use crate::report;

#[tokio::test]
async fn f12_every_key_has_one_whole_hash_tag() {
    let (server, cluster) =
        tokio::join!(RedisServer::start(), RedisServer::start_with(&["--cluster-enabled", "yes"]));
    let (raw, cluster) = (Raw::new(&server).await, Raw::new(&cluster).await);
    let store = Opening::default().open(&server.url());

    let longest = "\u{1f980}".repeat(MAX_ID_BYTES / 4);
    let names = [
        "a}b/app",
        "a}z/other",
        "{",
        "}",
        "{}",
        "}x{",
        "{}{x}",
        "a:b",
        "grp/my app",
        "grp/50%25",
        "grp/uber-\u{dc}",
        "grp/uber-U\u{308}",
        "grp/app",
        "Grp/App",
        "grp%2Fapp",
        &longest,
    ];
    let accounts: Vec<Account> = names
        .iter()
        .flat_map(|name| [(Kind::Repo, *name), (Kind::User, *name)])
        .chain([(Kind::Ip, "192.0.2.7"), (Kind::Ip, "2001:db8:1:2::1")])
        .map(|(kind, name)| Account::new(kind, name, Ipv6Prefix::default()).unwrap())
        .collect();
    let entries: Vec<_> = accounts.iter().map(|account| spending(account, &[(0, 1)])).collect();
    assert_eq!(store.settle(&report(None, entries)).await.unwrap().applied as usize, accounts.len());

    let slot = async |text: &str| cluster.run::<u16>(&["CLUSTER", "KEYSLOT", text]).await;
    let keys: HashSet<String> = raw.run::<Vec<String>>(&["KEYS", "*"]).await.into_iter().collect();
    assert_eq!(keys.len(), accounts.len(), "an account is a key");
    let mut slots = HashMap::new();
    for key in &keys {
        let tag = key.strip_prefix("q1:{").and_then(|rest| rest.strip_suffix('}')).expect(key);
        assert!(!tag.contains(['{', '}']) && tag.bytes().all(|byte| byte.is_ascii_graphic()), "{key:?}");
        assert!(key.len() <= 131, "{key:?}");
        assert_eq!(slot(key).await, slot(tag).await, "{key:?} falls where its tag does");
        slots.insert(slot(key).await, key);
    }
    assert!(slots.len() > keys.len() / 2, "the tags are whole: {slots:?}");
    for account in &accounts {
        assert!(keys.contains(&crate::raw::key(account)), "{account}");
    }
}
