mod accepted;
mod defaults;
mod documented;
mod overrides;
mod refused;
mod secrets;

use super::{Config, ConfigError};

/// The message for settings that must be refused.
fn refusal(result: Result<Config, ConfigError>) -> String {
    match result {
        Ok(_) => panic!("accepted"),
        Err(error) => error.to_string(),
    }
}

fn from_env(vars: &[(&str, &str)]) -> Result<Config, ConfigError> {
    Config::load_from(None, vars.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())))
}
