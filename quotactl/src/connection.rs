use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::args::ConnectionArgs;
use crate::error::Error;

const DEFAULT_ADDRESS: &str = "http://127.0.0.1:8080";

/// Where the server is, and who asks.
#[derive(Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Connection {
    pub(crate) address: Option<String>,
    pub(crate) token_file: Option<PathBuf>,
    pub(crate) ca_file: Option<PathBuf>,
}

impl Connection {
    /// What is given, and for the rest what the file says.
    pub(crate) fn find(args: &ConnectionArgs) -> Result<Self, Error> {
        let file = match &args.config {
            Some(path) => Some(path.clone()),
            None => default_file().filter(|path| path.exists()),
        };
        let file = file.map(|path| Self::read(&path)).transpose()?.unwrap_or_default();
        Ok(Self {
            address: args.address.clone().or(file.address),
            token_file: args.token_file.clone().or(file.token_file),
            ca_file: args.ca_file.clone().or(file.ca_file),
        })
    }

    /// Without a slash at its end.
    pub(crate) fn address(&self) -> &str {
        self.address.as_deref().unwrap_or(DEFAULT_ADDRESS).trim_end_matches('/')
    }

    /// The first line of the token's file.
    pub(crate) fn token(&self) -> Result<Option<String>, Error> {
        let Some(path) = &self.token_file else { return Ok(None) };
        let text = read(path)?;
        let token = text.lines().next().unwrap_or_default().trim();
        if token.is_empty() || !token.chars().all(|c| c.is_ascii_graphic()) {
            return Err(Error::Usage(format!("{} has no token in its first line", path.display())));
        }
        Ok(Some(token.to_owned()))
    }

    fn read(path: &Path) -> Result<Self, Error> {
        let fault = |error: toml::de::Error| Error::Usage(format!("{}: {}", path.display(), error.message()));
        let mut connection: Self = toml::from_str(&read(path)?).map_err(fault)?;
        // Files that it names are beside it.
        let folder = path.parent().unwrap_or(Path::new(""));
        for file in [&mut connection.token_file, &mut connection.ca_file].into_iter().flatten() {
            *file = folder.join(&*file);
        }
        Ok(connection)
    }
}

pub(crate) fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|error| Error::File { path: path.to_owned(), error })
}

/// `$XDG_CONFIG_HOME/quotactl.toml`, or `~/.config/quotactl.toml`.
fn default_file() -> Option<PathBuf> {
    let folder = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let config = folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")))?;
    Some(config.join("quotactl.toml"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn args(config: &Path) -> ConnectionArgs {
        ConnectionArgs {
            address: None,
            token_file: None,
            ca_file: None,
            config: Some(config.to_owned()),
            timeout: Duration::from_secs(1),
        }
    }

    #[test]
    fn what_is_given_stands_before_the_file_and_its_files_are_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("quotactl.toml");
        fs::write(&config, "address = \"https://quota.example/\"\ntoken_file = \"token\"\n").unwrap();
        fs::write(folder.path().join("token"), " secret \nanother\n").unwrap();
        let found = Connection::find(&args(&config)).unwrap();
        assert_eq!(found.address(), "https://quota.example");
        assert_eq!(found.token().unwrap().as_deref(), Some("secret"));
        let given = ConnectionArgs { address: Some("http://other:1".into()), ..args(&config) };
        assert_eq!(Connection::find(&given).unwrap().address(), "http://other:1");
    }

    #[test]
    fn what_is_wrong_with_a_file_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("quotactl.toml");
        let missing = Connection::find(&args(&config)).unwrap_err();
        assert!(matches!(missing, Error::File { .. }), "{missing}");
        for (text, part) in [("adress = \"x\"", "unknown field `adress`"), ("address = 1", "invalid type")] {
            fs::write(&config, text).unwrap();
            let error = Connection::find(&args(&config)).unwrap_err();
            assert!(error.to_string().contains(part) && error.exit_code() == 2, "{error}");
        }
        fs::write(folder.path().join("token"), "\n").unwrap();
        fs::write(&config, "token_file = \"token\"").unwrap();
        let error = Connection::find(&args(&config)).unwrap().token().unwrap_err();
        assert!(error.to_string().ends_with("has no token in its first line"), "{error}");
    }
}
