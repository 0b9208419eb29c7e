//! What operators say: overrides, and the switch.

use crate::{quotactl, server, url, words};

#[tokio::test]
async fn an_override_is_set_told_and_removed() {
    let server = server().await;
    let address = url(&server);
    let run = async |args: &[&str], code| {
        let ended = quotactl(&address, &[&["override"], args].concat()).await;
        assert_eq!(ended.code, Some(code), "{args:?}: {}", ended.stderr);
        ended.stdout.lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    let set = ["set", "user", "bob", "--blocked", "--reason", "ticket 17", "--expires-in", "2h"];
    let rows = run(&set, 0).await;
    assert_eq!(words(&rows[0])[..4], ["user", "bob", "blocked", "in"]);
    assert!(rows[0].ends_with("anonymous  api   ticket 17"), "{rows:?}");
    assert_eq!(quotactl(&address, &["check", "--user", "bob"]).await.code, Some(1));

    let limits = ["set", "repo", "group/a b.git", "--limits", "cpu=10m,network=unlimited", "--reason", "big"];
    run(&limits, 0).await;
    let listed = run(&["list"], 0).await;
    assert_eq!(listed.len(), 2, "{listed:?}");
    assert!(listed[0].starts_with("repo group/a b  cpu=10m,network=unlimited  no end"), "{listed:?}");
    let got = run(&["get", "repo", "group/a b.git"], 0).await;
    assert_eq!(words(&got[0]), words(&listed[0]));

    run(&["remove", "user", "bob"], 0).await;
    assert_eq!(quotactl(&address, &["check", "--user", "bob"]).await.code, Some(0));
    run(&["get", "user", "bob"], 4).await;
    run(&["remove", "user", "bob"], 4).await;
    run(&["set", "user", "bob", "--weight", "0", "--reason", "none"], 4).await;
}

#[tokio::test]
async fn limits_are_switched_and_switched_back() {
    let server = server().await;
    let address = url(&server);
    let run = async |args: &[&str]| {
        let ended = quotactl(&address, &[&["mode"], args].concat()).await;
        assert_eq!(ended.code, Some(0), "{args:?}: {}", ended.stderr);
        ended.stdout
    };
    let nothing = "nothing is switched: every limit is in the mode of the configuration\n";
    assert_eq!(run(&["list"]).await, nothing);
    run(&["set", "off", "--node", "gitaly-01", "--reason", "new disks"]).await;
    let switched = run(&["set", "shadow", "--reason", "incident 9"]).await;
    let rows: Vec<_> = switched.lines().skip(1).map(words).collect();
    assert_eq!(rows[0][..2], ["everything", "shadow"]);
    assert_eq!(rows[1][..3], ["node", "gitaly-01", "off"]);
    assert_eq!(rows[1][rows[1].len() - 3..], ["anonymous", "new", "disks"]);
    let check = quotactl(&address, &["check", "--user", "alice"]).await;
    assert!(check.stdout.starts_with("allowed; enforced, it would be denied by "), "{}", check.stdout);

    run(&["clear"]).await;
    assert_eq!(run(&["clear", "--node", "gitaly-01"]).await, nothing);
    assert_eq!(quotactl(&address, &["check", "--user", "alice"]).await.code, Some(1));
}
