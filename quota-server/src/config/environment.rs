//! Settings from environment variables: `QUOTA__STORE__URL` is `store.url`.
//!
//! The `config` crate's own source of them is not used: it guesses types from the text, lets one of two variables
//! for the same key win by chance, and does not tell which variable a value came from.

use std::collections::BTreeMap;
use std::ffi::OsString;

use config::{Value, ValueKind};

use super::error::{ConfigError, Key, Origin};
use super::layers::Layer;
use super::schema::{self, Table};

/// What the names of variables that are settings begin with; `QUOTA_CONFIG` and the like are none.
const PREFIX: &str = "QUOTA__";

/// The settings among the variables of a process, which need not be UTF-8.
pub(super) fn settings(
    vars: impl Iterator<Item = (OsString, OsString)>,
) -> Result<Vec<(String, String)>, ConfigError> {
    vars.map(|(name, value)| (name.to_string_lossy().into_owned(), value))
        .filter_map(|(name, value)| Some((path(&name)?, name, value)))
        .map(|(path, name, value)| match value.into_string() {
            Ok(value) => Ok((name, value)),
            Err(_) => {
                let fault = (Key::new(&path), "must be valid UTF-8".into());
                Err(ConfigError::setting(Origin::Variable(name), fault))
            }
        })
        .collect()
}

/// One layer for each variable that is a setting, of a key and a type that is known. Others are skipped, unless they
/// are named like a setting.
pub(super) fn layers(
    env: impl IntoIterator<Item = (String, String)>,
    known: &Table,
) -> Result<Vec<Layer>, ConfigError> {
    let mut layers: BTreeMap<Vec<String>, Layer> = BTreeMap::new();
    for (name, text) in env {
        let Some(path) = path(&name) else {
            if let Some(path) = meant(&name, known) {
                let fault =
                    (Key::new(&path), format!("is written {PREFIX}{}", path.join("__").to_uppercase()));
                return Err(ConfigError::setting(Origin::Variable(name), fault));
            }
            continue;
        };
        let origin = Origin::Variable(name);
        if let Some(other) = layers.get(&path) {
            let fault = (Key::new(&path), format!("is also set by {}", other.origin));
            return Err(ConfigError::setting(origin, fault));
        }
        let value = schema::from_text(text, known, &path)
            .map_err(|fault| ConfigError::setting(origin.clone(), fault))?;
        let table = nest(&path, value);
        layers.insert(path, Layer { origin, table });
    }
    Ok(layers.into_values().collect())
}

fn path(name: &str) -> Option<Vec<String>> {
    let keys = name.strip_prefix(PREFIX)?.to_lowercase();
    Some(keys.split("__").map(str::to_owned).collect())
}

/// The setting that a variable is named like, but for its underscores or its case: an operator would take it for set.
fn meant(name: &str, known: &Table) -> Option<Vec<String>> {
    let words = |name: &str| {
        name.to_lowercase().split('_').filter(|word| !word.is_empty()).collect::<Vec<_>>().join("_")
    };
    let name = words(name);
    let name = name.strip_prefix("quota_")?;
    schema::paths(known).into_iter().find(|path| path.join("_") == name)
}

/// A table with the one value.
fn nest(path: &[String], value: ValueKind) -> Table {
    match path {
        [] => Table::new(),
        [key] => Table::from([(key.clone(), Value::new(None, value))]),
        [key, rest @ ..] => Table::from([(key.clone(), Value::new(None, nest(rest, value)))]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn only_a_setting_must_be_utf8() {
        use std::os::unix::ffi::OsStringExt;

        let vars = |names: &[&str]| {
            let vars = names.iter().map(|name| (OsString::from(name), OsString::from_vec(vec![0xff])));
            settings(vars.collect::<Vec<_>>().into_iter())
        };
        assert_eq!(vars(&["LESS", "QUOTA_CONFIG"]).unwrap(), []);
        assert_eq!(
            vars(&["QUOTA__STORE__URL"]).unwrap_err().to_string(),
            "environment variable QUOTA__STORE__URL: store.url: must be valid UTF-8"
        );
    }
}
