//! What is different between the settings in force and those in the file.

use std::collections::BTreeSet;
use std::fmt;

use config::ValueKind;

use super::error::Key;
use super::schema::{Table, lookup, paths};

/// What may change while the server runs; all else takes a restart.
const RELOADED: [&str; 11] = [
    "adapt",
    "auth.certificates",
    "auth.tokens",
    "charges",
    "classes",
    "default_class",
    "limits",
    "log.requests",
    "overrides",
    "prices",
    "store.fail",
];

/// A setting that is another in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    key: Key,
    shown: String,
    /// Whether it is in force only after a restart.
    pub takes_restart: bool,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.key, self.shown)
    }
}

/// Whether a setting stays as it is until the server is started anew.
pub(super) fn takes_restart(path: &[String]) -> bool {
    let name = path.join(".");
    !RELOADED.iter().any(|reloaded| {
        name.strip_prefix(reloaded).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })
}

/// The settings that differ, by their names.
pub(super) fn changes(old: &Table, new: &Table) -> Vec<Change> {
    let all: BTreeSet<Vec<String>> = paths(old).into_iter().chain(paths(new)).collect();
    let change = |path: Vec<String>| {
        let (old, new) = (lookup(old, &path), lookup(new, &path));
        let takes_restart = takes_restart(&path);
        // A setting that takes a restart may hold a password, and a list tokens.
        let shown = match (shown(old), shown(new)) {
            _ if takes_restart => String::new(),
            (Some(old), Some(new)) => format!(" {old} -> {new}"),
            _ => String::new(),
        };
        (old != new).then(|| Change { key: Key::new(&path), shown, takes_restart })
    };
    all.into_iter().filter_map(change).collect()
}

/// A value as it is written; `None` where it is a list, or a table.
fn shown(value: Option<&ValueKind>) -> Option<String> {
    match value {
        None => Some("nothing".to_owned()),
        Some(ValueKind::String(text)) => Some(text.clone()),
        Some(ValueKind::I64(number)) => Some(number.to_string()),
        Some(ValueKind::Float(number)) => Some(number.to_string()),
        Some(ValueKind::Boolean(flag)) => Some(flag.to_string()),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::error::Origin;
    use super::super::layers::Settings;
    use super::*;

    fn settings(text: &str) -> Table {
        Settings::merge(Some(&(Origin::Text, text.to_owned())), []).unwrap().merged
    }

    #[test]
    fn each_setting_that_differs_is_named_and_no_secret_is_shown() {
        let old = settings("store.url = \"redis://:s3cret@a\"\nlimits.user.cpu.max = \"100s\"");
        let new = settings(
            "store.url = \"redis://:s3cret@b\"\nlimits.user.cpu.max = \"200s\"\nprices.\"/a.B/C\".cpu = \"2s\"\n\
             log.requests = 1\nauth.tokens = [{ name = \"s3cret\", role = \"admin\", sha256 = \"s3cret\" }]",
        );
        let told: Vec<_> =
            changes(&old, &new).iter().map(|change| (change.to_string(), change.takes_restart)).collect();
        assert_eq!(
            told,
            [
                ("auth.tokens".to_owned(), false),
                ("limits.user.cpu.max 100s -> 200s".to_owned(), false),
                ("log.requests 0 -> 1".to_owned(), false),
                ("prices.\"/a.B/C\".cpu nothing -> 2s".to_owned(), false),
                ("store.url".to_owned(), true),
            ]
        );
        assert_eq!(changes(&new, &new), []);
    }

    #[test]
    fn what_is_not_known_to_be_safe_takes_a_restart() {
        let takes = |name: &str| takes_restart(&name.split('.').map(str::to_owned).collect::<Vec<_>>());
        for reloaded in
            ["limits.user.cpu.max", "prices.default.cpu", "store.fail", "auth.tokens", "overrides"]
        {
            assert!(!takes(reloaded), "{reloaded}");
        }
        for kept in
            ["store.url", "store.failover", "window.length", "auth.disabled", "http.listen", "log", "new"]
        {
            assert!(takes(kept), "{kept}");
        }
    }
}
