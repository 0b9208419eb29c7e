use std::fs;

use quota_core::{Kind, Limit, Resource};

use super::super::{Change, ConfigError, Loaded, Source};

/// What is in force, and what is different, once a file has another text.
fn reload(before: &str, after: &str) -> Result<(Loaded, Vec<Change>), ConfigError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("quota.toml");
    fs::write(&path, before).unwrap();
    let source = Source::new(Some(path), [("QUOTA__STORE__FAIL".to_owned(), "closed".to_owned())]);
    let running = source.load().unwrap();
    source.reload(Some(after.to_owned()), &running)
}

#[test]
fn limits_are_read_with_what_stays_as_it_is() {
    let before = "window.length = \"60s\"\nadapt.memory.rule = \"fixed\"";
    let after =
        "window.length = \"120s\"\nadapt.memory.rule = \"fixed\"\nlimits.user.memory.initial = \"1GiB\"";
    let (loaded, changes) = reload(before, after).unwrap();
    let config = loaded.config();
    assert_eq!(config.window.length().as_secs(), 60);
    assert_eq!(config.policy.ceilings(Kind::User)[Resource::Memory].limit, Limit::At(60 << 20));
    let told: Vec<_> = changes.iter().map(ToString::to_string).collect();
    assert_eq!(told, ["limits.user.memory.initial 8GiB -> 1GiB", "window.length"]);
}

#[test]
fn a_variable_stands_before_the_file_still() {
    let (_, changes) = reload("", "store.fail = \"open\"").unwrap();
    assert_eq!(changes, []);
}

#[test]
fn what_would_open_the_server_to_all_is_refused() {
    let token = format!("[[auth.tokens]]\nname = \"a\"\nrole = \"admin\"\nsha256 = \"{}\"\n", "0".repeat(64));
    // It listens to others until it is started anew, whatever the file says.
    let before = format!("http.listen = \"0.0.0.0:8080\"\n{token}");
    let error = reload(&before, "http.listen = \"127.0.0.1:8080\"").map(|_| ()).unwrap_err().to_string();
    assert!(error.starts_with("not without a restart: "), "{error}");
    assert!(
        error.contains("http.listen: must be a loopback address, since there are no auth.tokens"),
        "{error}"
    );
    // Nor is it opened on loopback, where a proxy may stand before it.
    let error = reload(&token, "").map(|_| ()).unwrap_err().to_string();
    assert!(error.ends_with("to open the server to all takes a restart"), "{error}");
    assert!(reload("", &token).is_ok());
}
