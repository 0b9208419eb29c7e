use std::env;
use std::path::{Path, PathBuf};

use super::Config;
use super::changes::{Change, changes, takes_restart};
use super::environment;
use super::error::{ConfigError, Origin};
use super::layers::{self, Settings};
use super::schema::paths;

/// Where settings come from: a file, which may change, and the environment of the process, which does not.
#[derive(Clone, Debug)]
pub struct Source {
    file: Option<PathBuf>,
    env: Vec<(String, String)>,
}

/// Settings that were read, and are good.
pub struct Loaded {
    text: Option<String>,
    settings: Settings,
    config: Config,
}

impl Source {
    /// A file, and the environment of this process.
    pub fn of_process(file: Option<PathBuf>) -> Result<Self, ConfigError> {
        Ok(Self { file, env: environment::settings(env::vars_os())? })
    }

    /// A file, and these environment variables; those not named `QUOTA__…` are skipped.
    pub fn new(file: Option<PathBuf>, env: impl IntoIterator<Item = (String, String)>) -> Self {
        Self { file, env: env.into_iter().collect() }
    }

    /// The file.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// The text of the file. Blocks.
    pub fn text(&self) -> Result<Option<String>, ConfigError> {
        self.file.as_deref().map(layers::read_file).transpose()
    }

    /// The settings. Blocks.
    pub fn load(&self) -> Result<Loaded, ConfigError> {
        let text = self.text()?;
        let settings = self.merge(text.clone())?;
        Loaded::new(text, settings)
    }

    /// The settings that are in force once the file has this text while the server runs: what takes a restart stays as it is. And
    /// what is different in the file.
    pub fn reload(
        &self,
        text: Option<String>,
        running: &Loaded,
    ) -> Result<(Loaded, Vec<Change>), ConfigError> {
        let mut settings = self.merge(text.clone())?;
        // A restart must find it good, too.
        Config::read(&settings)?;
        let changes = changes(&running.settings.merged, &settings.merged);
        for path in paths(&running.settings.merged).iter().filter(|path| takes_restart(path)) {
            settings.hold(path, &running.settings);
        }
        let loaded = Loaded::new(text, settings).map_err(|error| ConfigError::Together(error.into()))?;
        if loaded.config.auth.knows_nobody() && !running.config.auth.knows_nobody() {
            return Err(ConfigError::Opened);
        }
        Ok((loaded, changes))
    }

    fn merge(&self, text: Option<String>) -> Result<Settings, ConfigError> {
        let text = self.file.clone().map(Origin::File).zip(text);
        Settings::merge(text.as_ref(), self.env.clone())
    }
}

impl Loaded {
    fn new(text: Option<String>, settings: Settings) -> Result<Self, ConfigError> {
        let config = Config::read(&settings)?;
        Ok(Self { text, settings, config })
    }

    /// The text of the file that they are from.
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// The settings.
    pub const fn config(&self) -> &Config {
        &self.config
    }
}
