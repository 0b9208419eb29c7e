use std::fs;
use std::path::Path;
use std::sync::Arc;

use super::*;

const TOKEN: &str = "t0ken-of-gitaly-01";

fn caller(name: &str, role: Role, nodes: &[&str]) -> Caller {
    let nodes = match role {
        Role::Fileserver => Nodes::Named(Arc::new(nodes.iter().map(|&node| node.into()).collect())),
        _ => Nodes::All,
    };
    Caller { name: name.into(), role, nodes }
}

fn digest(name: &str, role: Role, token: &str) -> Token {
    Token { caller: caller(name, role, &["gitaly-01"]), secret: Secret::Digest(Digest::of(token)) }
}

fn file(path: &Path) -> Token {
    Token { caller: caller("gitaly-01", Role::Fileserver, &["gitaly-01"]), secret: Secret::File(path.into()) }
}

fn known(tokens: Vec<Token>) -> Auth {
    of(tokens, Vec::new())
}

fn of(tokens: Vec<Token>, certificates: Vec<Certificate>) -> Auth {
    let auth = config::Auth { disabled: false, tokens, certificates };
    Auth::new(Known::open(&auth).unwrap())
}

#[test]
fn each_role_may_what_is_its_own_and_an_admin_everything() {
    let auth = known(Role::ALL.map(|role| digest(role.as_str(), role, &format!("{role}-0123456789"))).into());
    for role in Role::ALL {
        let authorization = format!("Bearer {role}-0123456789");
        for needed in Role::ALL {
            let answer = auth.authorize(Access::Least(needed), Some(&authorization), &[]);
            if role == needed || role == Role::Admin {
                assert_eq!(answer.unwrap().unwrap().name.as_ref(), role.as_str());
            } else {
                assert_eq!(answer, Err(Refusal::Role { name: role.as_str().into(), role, needed }));
            }
        }
        assert_eq!(auth.authorize(Access::Open, Some(&authorization), &[]), Ok(None));
    }
}

#[test]
fn who_shows_no_token_or_another_is_nobody() {
    let auth = known(vec![digest("a", Role::Admin, TOKEN)]);
    let ask = |authorization: Option<&str>| auth.authorize(Access::Least(Role::Reader), authorization, &[]);
    for known in [format!("Bearer {TOKEN}"), format!("bearer {TOKEN}"), format!("BEARER  {TOKEN} ")] {
        assert!(ask(Some(&known)).is_ok(), "{known}");
    }
    let basic = format!("Basic {TOKEN}");
    for nothing in [None, Some(""), Some(TOKEN), Some("Bearer"), Some("Bearer "), Some(&*basic)] {
        assert_eq!(ask(nothing), Err(Refusal::NoToken), "{nothing:?}");
    }
    let long = "x".repeat(1 << 20);
    for token in ["t0ken", &TOKEN.to_uppercase(), &format!("{TOKEN}x"), &long] {
        assert_eq!(ask(Some(&format!("Bearer {token}"))), Err(Refusal::UnknownToken), "{token}");
    }
    assert_eq!(auth.authorize(Access::Open, None, &[]), Ok(None));
}

#[test]
fn without_tokens_anybody_may_everything() {
    for role in Role::ALL {
        let anybody = of(vec![], vec![]).authorize(Access::Least(role), None, &[]).unwrap().unwrap();
        assert_eq!(anybody, Caller::anonymous());
        assert_eq!(anybody.speaks_for(Some("gitaly-01")), Ok(()));
    }
}

#[test]
fn a_fileserver_speaks_for_its_nodes_alone() {
    let fileserver = caller("f", Role::Fileserver, &["gitaly-01", "gitaly-02"]);
    for node in [None, Some("gitaly-01"), Some("gitaly-02")] {
        assert_eq!(fileserver.speaks_for(node), Ok(()));
    }
    for node in ["gitaly-03", "gitaly-0", "gitaly-01 ", "GITALY-01"] {
        assert_eq!(fileserver.speaks_for(Some(node)), Err(Refusal::Node { name: "f".into() }));
    }
    assert_eq!(caller("a", Role::Admin, &[]).speaks_for(Some("gitaly-03")), Ok(()));
}

#[test]
fn digests_are_written_as_by_sha256sum() {
    // printf abc | sha256sum
    let hex = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    for hex in [hex, &hex.to_uppercase()] {
        assert!(Digest::from_hex(hex).unwrap().matches(&Digest::of("abc")));
    }
    for other in ["", "ba78", &hex[1..], &format!("{hex}0"), &hex.replace('b', "+"), &hex.replace("ba", "é")]
    {
        assert_eq!(Digest::from_hex(other), None, "{other}");
    }
    assert!(!Digest::of("abc").matches(&Digest::of("abd")));
}

#[test]
fn a_new_token_in_a_file_is_in_force_and_a_broken_file_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    fs::write(&path, format!("{TOKEN}\r\nwhat follows is no token\n")).unwrap();
    let tokens = Tokens::open(vec![file(&path)]).unwrap();
    assert!(tokens.caller(TOKEN).is_some());

    for broken in
        ["", "short\n", "\n0123456789abcdef", "two words of a line", "0123456789abcdé", &"x".repeat(1025)]
    {
        fs::write(&path, broken).unwrap();
        tokens.reread();
        assert!(tokens.caller(TOKEN).is_some() && tokens.caller(broken).is_none(), "{broken}");
    }
    fs::remove_file(&path).unwrap();
    tokens.reread();
    assert!(tokens.caller(TOKEN).is_some());

    fs::write(&path, "the-next-one-0123").unwrap();
    tokens.reread();
    assert!(tokens.caller(TOKEN).is_none() && tokens.caller("the-next-one-0123").is_some());
}

#[test]
fn a_file_that_holds_no_token_stops_the_start_and_is_not_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    for secret in ["", "s3cret", "s3cret s3cret s3cret", &format!("s3cret{}", "x".repeat(2000))] {
        fs::write(&path, secret).unwrap();
        let error = Tokens::open(vec![file(&path)]).unwrap_err();
        let shown = format!("{error} {error:?}");
        assert!(shown.contains(path.to_str().unwrap()) && !shown.contains("s3cret"), "{shown}");
    }
    let missing = Tokens::open(vec![file(&folder.path().join("missing"))]).unwrap_err();
    assert!(missing.to_string().starts_with("auth.tokens: "), "{missing}");
}

#[test]
fn tokens_are_not_shown() {
    let auth = known(vec![digest("a", Role::Admin, "abc")]);
    let refused = auth.authorize(Access::Least(Role::Admin), Some("Bearer s3cret"), &[]).unwrap_err();
    let shown = format!("{auth:?} {refused:?} {refused}");
    assert!(!shown.contains("s3cret") && !shown.contains("186") && !shown.contains("ba78"), "{shown}");
}

#[test]
fn a_certificate_is_known_by_one_of_its_names_and_a_token_stands_before_it() {
    let gitaly = caller("gitaly", Role::Fileserver, &["gitaly-01"]);
    let certificates = vec![Certificate { caller: gitaly.clone(), subject: "gitaly-01.internal".into() }];
    let auth = of(vec![digest("a", Role::Admin, TOKEN)], certificates);
    let ask = |authorization: Option<&str>, names: &[&str]| {
        let names: Vec<_> = names.iter().map(|&name| name.to_owned()).collect();
        auth.authorize(Access::Least(Role::Fileserver), authorization, &names)
    };
    let its = ["other", "gitaly-01.internal"];
    assert_eq!(ask(None, &its), Ok(Some(gitaly)));
    for others in [&[][..], &["gitaly-01"], &["*.internal"], &["x.gitaly-01.internal"]] {
        assert_eq!(ask(None, others), Err(Refusal::NoToken), "{others:?}");
    }
    let bearer = format!("Bearer {TOKEN}");
    assert_eq!(ask(Some(&bearer), &its).unwrap().unwrap().name.as_ref(), "a");
    assert_eq!(ask(Some("Bearer another"), &its), Err(Refusal::UnknownToken));
}

#[test]
fn who_is_known_is_replaced_at_once() {
    let auth = known(vec![digest("a", Role::Admin, TOKEN)]);
    let bearer = format!("Bearer {TOKEN}");
    let ask = || auth.authorize(Access::Least(Role::Admin), Some(&bearer), &[]);
    assert!(ask().is_ok());
    let others = config::Auth {
        disabled: false,
        tokens: vec![digest("b", Role::Admin, "another-t0ken-of-b")],
        certificates: Vec::new(),
    };
    auth.replace(Known::open(&others).unwrap());
    assert_eq!(ask(), Err(Refusal::UnknownToken));
}
