use std::collections::BTreeMap;

use quota_core::{Kind, Resource};

use super::defaults::leaves;

const DOCS: &str = include_str!("../../../../docs/configuration.md");

/// What a table of the page says the default of each setting is.
///
/// Rows begin with the key in backticks. `<kind>` and `<resource>` stand for each of them; the defaults of limits
/// are in a table of their own, a row for each pair with the cells mode, min, initial and max.
fn documented() -> BTreeMap<String, String> {
    let mut defaults = BTreeMap::new();
    let mut named = Vec::new();
    for row in DOCS.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.split('|').map(|cell| cell.trim().trim_matches('`')).collect();
        match cells[..] {
            ["", key, mode, min, initial, max, ""]
                if key.starts_with("limits.") && key.split('.').count() == 3 =>
            {
                for (name, value) in [("mode", mode), ("min", min), ("initial", initial), ("max", max)] {
                    let before = defaults.insert(format!("{key}.{name}"), value.to_owned());
                    assert_eq!(before, None, "{key} is documented twice");
                }
            }
            ["", key, _meaning, _unit, default, _effect, ""] => {
                for key in expand(key) {
                    if key.starts_with("limits.") {
                        named.push(key);
                    } else {
                        let before = defaults.insert(key.clone(), default.to_owned());
                        assert_eq!(before, None, "{key} is documented twice");
                    }
                }
            }
            _ => panic!("a row of another shape: {row}"),
        }
    }
    named.sort();
    let limits: Vec<_> = defaults.keys().filter(|key| key.starts_with("limits.")).cloned().collect();
    assert_eq!(named, limits, "the limits that are explained are those whose defaults are listed");
    defaults
}

fn expand(key: &str) -> Vec<String> {
    let mut keys = Vec::new();
    for kind in Kind::ALL {
        for resource in Resource::ALL {
            keys.push(key.replace("<kind>", kind.as_str()).replace("<resource>", resource.as_str()));
        }
    }
    keys.sort();
    keys.dedup();
    keys
}

#[test]
fn the_page_tells_every_setting_with_its_default_and_no_other() {
    let expected: BTreeMap<String, String> = leaves()
        .into_iter()
        .map(|(key, value)| match value {
            toml::Value::String(text) => (key, text),
            toml::Value::Integer(number) => (key, number.to_string()),
            toml::Value::Float(number) => (key, number.to_string()),
            toml::Value::Boolean(flag) => (key, flag.to_string()),
            toml::Value::Array(list) if list.is_empty() => (key, "[]".to_owned()),
            other => panic!("{key}: {other:?}"),
        })
        .collect();
    let written: BTreeMap<_, _> =
        documented().into_iter().map(|(key, value)| (key, value.trim_matches('"').to_owned())).collect();
    assert_eq!(written, expected);
}
