use std::collections::HashSet;
use std::time::Duration;

use config::{Value, ValueKind};
use quota_core::{Account, Book, Ipv6Prefix, Kind, Override, PerResource, Resource, Weight};
use quota_proto::{ONE_WORD, check_label};

use super::error::{ConfigError, Fault, Key};
use super::layers::Settings;
use super::policy;
use super::schema::Table;

/// Where they are written: `[[overrides]]`.
const OVERRIDES: &str = "overrides";

/// What may be written of one.
const FIELDS: [&str; 7] = ["kind", "id", "weight", "limits", "exempt", "blocked", "reason"];

/// What the configuration file says of one account, for as long as it stands there.
#[derive(Clone, Debug, PartialEq)]
pub struct FileOverride {
    /// Of whom.
    pub account: Account,
    /// What.
    pub word: Override,
    /// Why.
    pub reason: Box<str>,
}

/// All of them; at most [`Book::MOST`], and one of an account.
pub(super) fn read(
    settings: &Settings,
    prefix: Ipv6Prefix,
    window: Duration,
) -> Result<Vec<FileOverride>, ConfigError> {
    let fault = |(key, reason)| settings.fault_within(&[OVERRIDES], key, reason);
    let entries = settings.list(&[OVERRIDES])?;
    if entries.len() > Book::MOST {
        return Err(fault((Key::new(&[OVERRIDES]), format!("must be at most {}", Book::MOST))));
    }
    let (mut overrides, mut named) = (Vec::with_capacity(entries.len()), HashSet::new());
    for (at, entry) in entries.iter().enumerate() {
        let entry = Entry { at: at.to_string(), table: table(entry, at).map_err(fault)? };
        let read = entry.read(prefix, window).map_err(fault)?;
        if !named.insert(read.account.clone()) {
            return Err(fault(entry.fault(&["id"], "names an account that is named before")));
        }
        overrides.push(read);
    }
    Ok(overrides)
}

fn table(entry: &Value, at: usize) -> Result<&Table, Fault> {
    match &entry.kind {
        ValueKind::Table(table) => Ok(table),
        _ => Err((Key::new(&[OVERRIDES, &at.to_string()]), "must be a table, [[overrides]]".to_owned())),
    }
}

/// One table of the list.
struct Entry<'a> {
    /// Its place, from 0.
    at: String,
    table: &'a Table,
}

impl Entry<'_> {
    fn read(&self, prefix: Ipv6Prefix, window: Duration) -> Result<FileOverride, Fault> {
        let mut names: Vec<&str> = self.table.keys().map(String::as_str).collect();
        names.sort_unstable();
        if let Some(unknown) = names.iter().find(|name| !FIELDS.contains(name)) {
            return Err(self.fault(&[unknown], format!("unknown setting; known here: {}", FIELDS.join(", "))));
        }
        let kind: Kind = self.text("kind")?.parse().map_err(|error| self.fault(&["kind"], error))?;
        let account = Account::new(kind, self.text("id")?, prefix);
        let reason = self.text("reason")?;
        if reason.trim().is_empty() {
            return Err(self.fault(&["reason"], "must say why"));
        }
        check_label("reason", reason).map_err(|invalid| self.fault(&["reason"], invalid.reason))?;
        Ok(FileOverride {
            account: account.map_err(|error| self.fault(&["id"], error))?,
            word: self.word(window)?,
            reason: reason.into(),
        })
    }

    fn word(&self, window: Duration) -> Result<Override, Fault> {
        let said = ["weight", "limits", "exempt", "blocked"].map(|name| Some((name, self.table.get(name)?)));
        let mut said = said.into_iter().flatten();
        let (Some((name, value)), None) = (said.next(), said.next()) else {
            return Err(self.fault(&[], ONE_WORD));
        };
        match (name, &value.kind) {
            ("weight", ValueKind::Float(weight)) => self.weight(*weight),
            ("weight", ValueKind::I64(weight)) => self.weight(*weight as f64),
            ("weight", _) => Err(self.fault(&["weight"], "must be a number, such as 4 or 0.5")),
            ("limits", ValueKind::Table(limits)) => self.limits(limits, window),
            ("limits", _) => Err(self.fault(&["limits"], "must be a table, such as { cpu = \"600s\" }")),
            ("exempt", ValueKind::Boolean(true)) => Ok(Override::Exempt),
            ("blocked", ValueKind::Boolean(true)) => Ok(Override::Blocked),
            (name, _) => Err(self.fault(&[name], "must be true")),
        }
    }

    fn weight(&self, weight: f64) -> Result<Override, Fault> {
        Weight::try_from(weight).map(Override::Weight).map_err(|error| self.fault(&["weight"], error))
    }

    fn limits(&self, limits: &Table, window: Duration) -> Result<Override, Fault> {
        let mut own = PerResource::default();
        for (name, value) in limits {
            let fault = |reason: String| self.fault(&["limits", name], reason);
            let resource = Resource::ALL.into_iter().find(|resource| resource.as_str() == name);
            let resource = resource.ok_or_else(|| fault("must be cpu, memory or network".to_owned()))?;
            let ValueKind::String(text) = &value.kind else {
                return Err(fault("must be a string, such as \"600s\"".to_owned()));
            };
            own[resource] = Some(policy::limit(resource, text, window).map_err(fault)?);
        }
        if limits.is_empty() {
            return Err(self.fault(&["limits"], "must have one of cpu, memory and network"));
        }
        Ok(Override::Limits(own))
    }

    fn text(&self, name: &str) -> Result<&str, Fault> {
        match self.table.get(name).map(|value| &value.kind) {
            Some(ValueKind::String(text)) => Ok(text),
            Some(_) => Err(self.fault(&[name], "must be a string")),
            None => Err(self.fault(&[name], "is missing")),
        }
    }

    fn fault(&self, path: &[&str], reason: impl ToString) -> Fault {
        (Key::new(&[&[OVERRIDES, &self.at], path].concat()), reason.to_string())
    }
}
