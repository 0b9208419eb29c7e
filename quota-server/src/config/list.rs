//! Lists of tables, such as `[[auth.tokens]]`. They are in a file alone, and checked as they are read: the defaults, which
//! are the schema of all else, have no elements.

use config::{Value, ValueKind};

use super::error::{ConfigError, Key};
use super::layers::Settings;
use super::schema::Table;

/// One table of a list.
pub(super) struct Element<'a> {
    settings: &'a Settings,
    list: &'a [&'a str],
    index: usize,
    table: &'a Table,
}

/// The tables of a list, whose keys are these and no others.
pub(super) fn elements<'a>(
    settings: &'a Settings,
    list: &'a [&'a str],
    keys: &[&str],
    most: usize,
) -> Result<Vec<Element<'a>>, ConfigError> {
    let values = settings.list(list)?;
    if values.len() > most {
        return Err(settings.fault(list, format!("must be at most {most}")));
    }
    values.iter().enumerate().map(|(index, value)| Element::of(settings, list, index, value, keys)).collect()
}

impl<'a> Element<'a> {
    fn of(
        settings: &'a Settings,
        list: &'a [&'a str],
        index: usize,
        value: &'a Value,
        keys: &[&str],
    ) -> Result<Self, ConfigError> {
        let ValueKind::Table(table) = &value.kind else {
            return Err(settings.fault(list, "must be a list of tables".into()));
        };
        let element = Self { settings, list, index, table };
        let mut unknown: Vec<&String> = table.keys().filter(|key| !keys.contains(&key.as_str())).collect();
        unknown.sort_unstable();
        match unknown.first() {
            Some(key) => Err(element.fault(key, format!("unknown setting; known here: {}", keys.join(", ")))),
            None => Ok(element),
        }
    }

    /// A string, understood by `parse`, whose error says what would be good; none where it is not written.
    pub(super) fn text<T>(
        &self,
        key: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, ConfigError> {
        match self.table.get(key).map(|value| &value.kind) {
            None => Ok(None),
            Some(ValueKind::String(text)) => parse(text).map(Some).map_err(|reason| self.fault(key, reason)),
            Some(_) => Err(self.fault(key, "must be a string".into())),
        }
    }

    /// A string that must be written.
    pub(super) fn required<T>(
        &self,
        key: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<T, ConfigError> {
        self.text(key, parse)?.ok_or_else(|| self.fault(key, "must be given".into()))
    }

    /// A list of strings; empty where it is not written.
    pub(super) fn texts(&self, key: &str) -> Result<Vec<&'a str>, ConfigError> {
        let wrong = || self.fault(key, "must be a list of strings".into());
        let Some(value) = self.table.get(key) else { return Ok(Vec::new()) };
        let ValueKind::Array(values) = &value.kind else { return Err(wrong()) };
        let text = |value: &'a Value| match &value.kind {
            ValueKind::String(text) => Ok(text.as_str()),
            _ => Err(wrong()),
        };
        values.iter().map(text).collect()
    }

    /// That a value is no good, told with where it was written.
    pub(super) fn fault(&self, key: &str, reason: String) -> ConfigError {
        let index = format!("[{}]", self.index);
        let path = [self.list, &[&index, key]].concat();
        self.settings.fault_within(self.list, Key::new(&path), reason)
    }
}
