//! The layers of settings, merged, each value with the place that it was written in.

use std::io;
use std::path::Path;

use config::{File, FileFormat, Source, Value, ValueKind};
use toml::de::DeTable;

use super::environment;
use super::error::{ConfigError, Key, Origin};
use super::schema::{self, Table, lookup, lookup_mut};
use crate::files;

/// The largest file: several times what the most overrides and prices take.
const MOST_BYTES: u64 = 32 << 20;

/// Every setting with its default.
pub(super) const DEFAULTS: &str = include_str!("../../config/default.toml");

/// The merged settings, and the layers that they came from, a later one over an earlier one.
pub(super) struct Settings {
    layers: Vec<Layer>,
    pub(super) merged: Table,
}

/// What one place gives: it holds the values written there, and none else.
#[derive(Clone, Debug)]
pub(super) struct Layer {
    pub(super) origin: Origin,
    pub(super) table: Table,
}

impl Source for Layer {
    fn clone_into_box(&self) -> Box<dyn Source + Send + Sync> {
        Box::new(self.clone())
    }

    fn collect(&self) -> Result<Table, config::ConfigError> {
        Ok(self.table.clone())
    }
}

impl Settings {
    /// The defaults, below a TOML text from some place, below environment variables.
    pub(super) fn merge(
        text: Option<&(Origin, String)>,
        env: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, ConfigError> {
        let defaults = parse(&Origin::Defaults, DEFAULTS)?;
        let mut layers = vec![Layer { origin: Origin::Defaults, table: defaults.clone() }];
        if let Some((origin, text)) = text {
            let table = parse(origin, text)?;
            schema::check(&table, &defaults, &[])
                .map_err(|fault| ConfigError::setting(origin.clone(), fault))?;
            layers.push(Layer { origin: origin.clone(), table });
        }
        layers.extend(environment::layers(env, &defaults)?);
        let merged = Source::collect(&layers)?;
        Ok(Self { layers, merged })
    }

    /// Leaves a setting as it is in others.
    pub(super) fn hold(&mut self, path: &[String], others: &Self) {
        if let (Some(held), Some(place)) = (lookup(&others.merged, path), lookup_mut(&mut self.merged, path))
        {
            place.clone_from(held);
        }
    }

    /// A setting written as a string, understood by `parse`, whose error says what would be good.
    pub(super) fn text<T>(
        &self,
        path: &[&str],
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<T, ConfigError> {
        match lookup(&self.merged, path) {
            Some(ValueKind::String(text)) => parse(text).map_err(|reason| self.fault(path, reason)),
            _ => Err(self.missing(path)),
        }
    }

    /// A setting written as a whole number.
    pub(super) fn number<T>(
        &self,
        path: &[&str],
        parse: impl FnOnce(i64) -> Result<T, String>,
    ) -> Result<T, ConfigError> {
        match lookup(&self.merged, path) {
            Some(ValueKind::I64(number)) => parse(*number).map_err(|reason| self.fault(path, reason)),
            _ => Err(self.missing(path)),
        }
    }

    /// A setting written as a number.
    pub(super) fn decimal<T>(
        &self,
        path: &[&str],
        parse: impl FnOnce(f64) -> Result<T, String>,
    ) -> Result<T, ConfigError> {
        match lookup(&self.merged, path) {
            Some(ValueKind::Float(number)) => parse(*number).map_err(|reason| self.fault(path, reason)),
            Some(ValueKind::I64(number)) => parse(*number as f64).map_err(|reason| self.fault(path, reason)),
            _ => Err(self.missing(path)),
        }
    }

    /// A setting that is true or false.
    pub(super) fn flag(&self, path: &[&str]) -> Result<bool, ConfigError> {
        match lookup(&self.merged, path) {
            Some(ValueKind::Boolean(flag)) => Ok(*flag),
            _ => Err(self.missing(path)),
        }
    }

    /// What is in a list.
    pub(super) fn list(&self, path: &[&str]) -> Result<&[Value], ConfigError> {
        match lookup(&self.merged, path) {
            Some(ValueKind::Array(values)) => Ok(values),
            _ => Err(self.missing(path)),
        }
    }

    /// The names in a table, sorted.
    pub(super) fn names(&self, path: &[&str]) -> Result<Vec<&str>, ConfigError> {
        let Some(ValueKind::Table(table)) = lookup(&self.merged, path) else {
            return Err(self.missing(path));
        };
        let mut names: Vec<&str> = table.keys().map(String::as_str).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// Whether there is a value at a path.
    pub(super) fn has(&self, path: &[&str]) -> bool {
        lookup(&self.merged, path).is_some()
    }

    /// Whether somebody wrote the value at a path: it is not the default, or might as well be another.
    pub(super) fn is_written(&self, path: &[&str]) -> bool {
        self.rank(path) > Some(0)
    }

    /// That a value is no good, told with where it was written.
    pub(super) fn fault(&self, path: &[&str], reason: String) -> ConfigError {
        self.fault_within(path, Key::new(path), reason)
    }

    /// The same of a key within what is written at a path.
    pub(super) fn fault_within(&self, path: &[&str], key: Key, reason: String) -> ConfigError {
        ConfigError::setting(self.origin(path).clone(), (key, reason))
    }

    /// That one setting is above another that it must not exceed. Told of the one that was written later, since
    /// the other may be a default.
    pub(super) fn above(&self, low: &[&str], high: &[&str]) -> ConfigError {
        let (path, relation, other) =
            if self.rank(high) > self.rank(low) { (high, "at least", low) } else { (low, "at most", high) };
        let value = match lookup(&self.merged, other) {
            Some(ValueKind::String(value)) => value.as_str(),
            _ => "",
        };
        let reason = format!("must be {relation} {}, {value:?} in {}", Key::new(other), self.origin(other));
        self.fault(path, reason)
    }

    /// The checks of the layers leave nothing missing but what the defaults lack.
    fn missing(&self, path: &[&str]) -> ConfigError {
        self.fault(path, "is missing".into())
    }

    fn origin(&self, path: &[&str]) -> &Origin {
        self.rank(path)
            .and_then(|rank| self.layers.get(rank))
            .map_or(&Origin::Defaults, |layer| &layer.origin)
    }

    /// The last layer that has a value at a path.
    fn rank(&self, path: &[&str]) -> Option<usize> {
        self.layers.iter().rposition(|layer| lookup(&layer.table, path).is_some())
    }
}

/// The text of a file.
pub(super) fn read_file(path: &Path) -> Result<String, ConfigError> {
    let text = files::read(path, MOST_BYTES).and_then(|bytes| {
        String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
    });
    text.map_err(|reason| ConfigError::Unreadable { path: path.to_owned(), reason })
}

/// The settings in a TOML text.
fn parse(origin: &Origin, text: &str) -> Result<Table, ConfigError> {
    let file = File::from_str(text, FileFormat::Toml);
    file.collect().map_err(|_| ConfigError::Syntax { origin: origin.clone(), reason: syntax_fault(text) })
}

/// What is wrong with a TOML text, and where.
///
/// The parser's message alone: its full error quotes the line, which may hold a password. It takes numbers of any
/// size, so what it finds no fault with has one that is too large.
fn syntax_fault(text: &str) -> String {
    let error = DeTable::parse(text).err();
    let reason =
        error.as_ref().map_or("a number is out of range".into(), |error| error.message().replace('\n', "; "));
    let span = error.or_else(|| toml::from_str::<toml::Table>(text).err()).and_then(|error| error.span());
    let before = span.and_then(|span| text.get(..span.start)).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|&c| c != '\n').count() + 1;
    format!("line {line}, column {column}: {reason}")
}
