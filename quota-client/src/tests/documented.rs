//! docs/fileserver.md tells every setting there is, with its default, and no other. Its code is compiled as examples of
//! the crate.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::{LimitSettings, SetSettings, Settings};

const PAGE: &str = include_str!("../../../docs/fileserver.md");

/// With all that is required.
const STATIC: &str = r#"
[[concurrency]]
rpc = "/g.S/M"
per = "repo"
limit = 7
max_queue = 5
max_wait = "3s"
[concurrency.unauthenticated]
limit = 2
"#;
const ADAPTIVE: &str = r#"
[[concurrency]]
rpc = "/g.S/M"
per = "repo"
max_queue = 5
max_wait = "3s"
[concurrency.adaptive]
min = 1
initial = 2
max = 3
"#;

/// Each section, and how a key in it is written.
const SECTIONS: [(&str, &str); 9] = [
    ("", "KEY = 1"),
    ("checks.", "[checks]\nKEY = 1"),
    ("pressure.", "[pressure]\nKEY = 1"),
    ("calibration.", "[calibration]\nKEY = 1"),
    ("shedding.", "[shedding]\nKEY = 1"),
    ("cgroup.", "[cgroup]\nKEY = 1"),
    ("concurrency.", "[[concurrency]]\nKEY = 1"),
    ("concurrency.adaptive.", "[[concurrency]]\nadaptive = { KEY = 1 }"),
    ("concurrency.unauthenticated.", "[[concurrency]]\nunauthenticated = { KEY = 1 }"),
];

/// The keys that are understood, as the message about one that is not has them.
fn understood() -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    for (section, template) in SECTIONS {
        let error = Settings::from_toml(&template.replace("KEY", "no_such_key")).unwrap_err();
        let (_, expected) = error.message().split_once("expected ").unwrap();
        let names = expected.split('`').skip(1).step_by(2);
        keys.extend(names.map(|name| format!("{section}{name}")));
    }
    let is_section =
        |key: &String| SECTIONS.iter().any(|(section, _)| section.strip_suffix('.') == Some(key));
    keys.retain(|key| !is_section(key));
    keys
}

/// What the tables of the page say the defaults are.
fn documented() -> BTreeMap<String, String> {
    let mut defaults = BTreeMap::new();
    for row in PAGE.lines().filter(|row| row.starts_with("| `") && !row.starts_with("| `quota_client_")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        // Those of log lines have fewer.
        if let ["", key, _meaning, _unit, default, _moving, ""] = cells[..] {
            let before = defaults.insert(key.trim_matches('`').to_owned(), default.to_owned());
            assert_eq!(before, None, "{key} is documented twice");
        }
    }
    defaults
}

/// Without the key, which is there.
fn without(toml: &str, name: &str) -> String {
    let line = toml.lines().rfind(|line| line.starts_with(&format!("{name} = "))).unwrap();
    let (before, after) = toml.rsplit_once(line).unwrap();
    format!("{before}{after}")
}

fn assert_default(key: &str, told: &str) {
    let (section, name) = key.rsplit_once('.').unwrap_or(("", key));
    let read = |toml: &str| Settings::from_toml(toml).unwrap_or_else(|error| panic!("{key}: {error}"));
    match (section, told) {
        (_, required) if required.starts_with("required") => {
            let toml = match key {
                "concurrency.unauthenticated.adaptive" => {
                    STATIC.replace("limit = 2", "adaptive = { min = 1, initial = 1, max = 1 }")
                }
                _ if section == "concurrency.adaptive" => ADAPTIVE.to_owned(),
                "concurrency.limit" => STATIC.replace("[concurrency.unauthenticated]\nlimit = 2\n", ""),
                _ => STATIC.to_owned(),
            };
            read(&toml);
            assert!(Settings::from_toml(&without(&toml, name)).is_err(), "{key} is not required");
        }
        ("concurrency.unauthenticated", "as for the others") => {}
        (_, "none") => {
            let shown = format!("{:?}", Settings::default());
            let is_none =
                [format!("{name}: None"), format!("{name}: []")].iter().any(|none| shown.contains(none));
            assert!(is_none, "{key} has a default: {shown}");
        }
        // The client's own, where the settings have none.
        ("", value) if name == "deadline" => {
            let given = Client::builder().settings(read(&format!("{name} = {}", value.trim_matches('`'))));
            assert_eq!(given.settings.deadline, Client::builder().settings.deadline);
        }
        ("concurrency", value) => {
            let base = STATIC.replace("[concurrency.unauthenticated]\nlimit = 2\n", "");
            let given = format!("{base}{name} = {}\n", value.trim_matches('`'));
            assert_eq!(read(&given), read(&base), "{key}");
        }
        (section, value) => {
            let table = if section.is_empty() { String::new() } else { format!("[{section}]\n") };
            let given = format!("{table}{name} = {}\n", value.trim_matches('`'));
            assert_eq!(read(&given), Settings::default(), "{key}");
        }
    }
}

#[test]
fn the_page_tells_every_setting_with_its_default_and_no_other() {
    let documented = documented();
    assert_eq!(documented.keys().cloned().collect::<BTreeSet<_>>(), understood());
    for (key, told) in documented {
        assert_default(&key, &told);
    }
}

#[test]
fn what_is_not_said_of_unauthenticated_requests_is_as_for_the_others() {
    let settings = Settings::from_toml(&STATIC.replace("max_queue", "order = \"lifo\"\nmax_queue")).unwrap();
    let rpc = &settings.concurrency[0];
    let expected = SetSettings { limit: LimitSettings::Static(2), ..rpc.set.clone() };
    assert_eq!(rpc.unauthenticated, Some(expected));
}

/// The settings on the page, and those of the example.
#[tokio::test]
async fn examples_of_settings_can_be_used() {
    let blocks = PAGE.split("```toml\n").skip(1).map(|rest| rest.split_once("```").unwrap().0);
    let pages: Vec<&str> = blocks.filter(|block| !block.starts_with("[dependencies]")).collect();
    assert_eq!(pages.len(), 1);
    let example = include_str!("../../examples/git_fileserver/settings.toml");
    for text in pages.into_iter().chain([example]) {
        let settings = Settings::from_toml(text).unwrap();
        assert!(!settings.concurrency.is_empty());
        let rpcs: Vec<_> = settings.concurrency.iter().map(|limit| limit.rpc.clone()).collect();
        Client::builder().settings(settings).rpcs(rpcs).build().unwrap();
    }
}
