mod accepted;
mod defaults;
mod documented;
mod overrides;
mod refused;
mod reload;
mod secrets;

use std::path::PathBuf;

use super::{Config, ConfigError, Source};

/// The message for settings that must be refused.
fn refusal(result: Result<Config, ConfigError>) -> String {
    match result {
        Ok(_) => panic!("accepted"),
        Err(error) => error.to_string(),
    }
}

fn load<const N: usize>(file: Option<PathBuf>, env: [(&str, &str); N]) -> Result<Config, ConfigError> {
    let env = env.map(|(name, value)| (name.to_owned(), value.to_owned()));
    Ok(Source::new(file, env).load()?.config().clone())
}

fn from_env<const N: usize>(vars: [(&str, &str); N]) -> Result<Config, ConfigError> {
    load(None, vars)
}
