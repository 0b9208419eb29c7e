use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why the settings are no good: where, which, and what would be.
///
/// A value that is not understood is never part of the message: it may be a password in the wrong place.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{}: cannot be read: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: io::Error,
    },
    /// The text is no TOML.
    #[error("{origin}: not valid TOML: {reason}")]
    Syntax {
        /// Where it was written.
        origin: Origin,
        /// What the parser said, with line and column.
        reason: String,
    },
    /// The layers do not fit together; their check comes first, so this is a fault of ours.
    #[error("settings cannot be merged")]
    Merge(#[from] config::ConfigError),
    /// They are good, but not beside what stays as it is until the server is started anew.
    #[error("not without a restart: {0}")]
    Together(Box<Self>),
    /// There is nothing in the file, where there was: as when the disk was full as it was written.
    #[error("{}: is empty", .0.display())]
    Empty(PathBuf),
    /// Nobody is known any more: from then on, everybody might do everything.
    #[error(
        "auth: there were tokens or certificates, and there are none: to open the server to all takes a restart"
    )]
    Opened,
    /// A setting is unknown, or its value is no good.
    #[error("{origin}: {key}: {reason}")]
    Setting {
        /// Where it was written.
        origin: Origin,
        /// Which setting.
        key: Key,
        /// What would be good.
        reason: String,
    },
}

/// Where a setting was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// `config/default.toml`, which is compiled in.
    Defaults,
    /// A file.
    File(PathBuf),
    /// A text that is in no file.
    Text,
    /// An environment variable.
    Variable(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Defaults => f.write_str("built-in defaults"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Text => f.write_str("configuration text"),
            Self::Variable(name) => write!(f, "environment variable {name}"),
        }
    }
}

/// A setting's full name, shown as it is written in TOML: `limits.user.cpu.min`; in a list `auth.tokens[0].role`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key(Vec<String>);

/// A key at fault, and what would be good.
pub(super) type Fault = (Key, String);

impl ConfigError {
    pub(super) fn setting(origin: Origin, (key, reason): Fault) -> Self {
        Self::Setting { origin, key, reason }
    }
}

impl Key {
    pub(super) fn new(path: &[impl AsRef<str>]) -> Self {
        Self(path.iter().map(|segment| segment.as_ref().to_owned()).collect())
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, segment) in self.0.iter().enumerate() {
            let is_index = segment.starts_with('[');
            let dot = if index > 0 && !is_index { "." } else { "" };
            let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            if is_index || !segment.is_empty() && segment.chars().all(bare) {
                write!(f, "{dot}{segment}")?;
            } else {
                write!(f, "{dot}{segment:?}")?;
            }
        }
        Ok(())
    }
}
