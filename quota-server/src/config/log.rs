use std::fmt;
use std::path::PathBuf;

use super::error::ConfigError;
use super::layers::Settings;
use super::share;
use crate::secret;

/// What is written to the log, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Log {
    /// What a line looks like.
    pub format: LogFormat,
    /// How repositories, users and addresses are named in it.
    pub accounts: AccountNames,
    /// What names are hashed with; none: a key of the process's own.
    pub key: Option<LogKey>,
    /// The share of requests that finished of which a line with their cost is written, 0 to 1.
    pub requests: f64,
}

/// What a line of the log looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// A flat object of JSON.
    Json,
}

/// How accounts are named in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountNames {
    /// As they are.
    Plain,
    /// By what does not tell who it is, and is the same each time.
    Hashed,
    /// Not at all.
    Omitted,
}

/// What names in the log are hashed with. It is shown nowhere.
#[derive(Clone, PartialEq, Eq)]
pub enum LogKey {
    /// Itself.
    Text(Box<str>),
    /// The file whose first line it is.
    File(PathBuf),
}

impl Log {
    pub(super) fn read(settings: &Settings) -> Result<Self, ConfigError> {
        let accounts = settings.text(&["log", "accounts"], |text| match text {
            "plain" => Ok(AccountNames::Plain),
            "hashed" => Ok(AccountNames::Hashed),
            "omitted" => Ok(AccountNames::Omitted),
            _ => Err("must be \"plain\", \"hashed\" or \"omitted\"".into()),
        })?;
        Ok(Self {
            format: settings.text(&["log", "format"], |text| match text {
                "text" => Ok(LogFormat::Text),
                "json" => Ok(LogFormat::Json),
                _ => Err("must be \"text\" or \"json\"".into()),
            })?,
            accounts,
            key: key(settings, accounts)?,
            requests: settings.decimal(&["log", "requests"], share)?,
        })
    }
}

fn key(settings: &Settings, accounts: AccountNames) -> Result<Option<LogKey>, ConfigError> {
    let text = settings.text(&["log", "key"], |text| match text {
        "" => Ok(None),
        key => secret::check(key.as_bytes(), "a key").map(|()| Some(LogKey::Text(key.into()))),
    })?;
    let file = settings.text(&["log", "key_file"], |text| {
        Ok(Some(text).filter(|path| !path.is_empty()).map(|path| LogKey::File(path.into())))
    })?;
    let fault = |name, reason: &str| Err(settings.fault(&["log", name], reason.to_owned()));
    let unused = "must be given together with log.accounts = \"hashed\", and is of no effect otherwise";
    match (text, file) {
        (Some(_), Some(_)) => fault("key_file", "must not be given with log.key"),
        (Some(_), None) if accounts != AccountNames::Hashed => fault("key", unused),
        (None, Some(_)) if accounts != AccountNames::Hashed => fault("key_file", unused),
        (text, file) => Ok(text.or(file)),
    }
}

impl fmt::Debug for LogKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(_) => f.write_str("Text(***)"),
            Self::File(file) => f.debug_tuple("File").field(file).finish(),
        }
    }
}
