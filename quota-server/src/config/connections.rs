use std::time::Duration;

use super::error::ConfigError;
use super::layers::Settings;
use super::units::{duration_within, within};

/// What a port takes of those who connect to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connections {
    /// The most at a time.
    pub most: usize,
    /// The most of one address at a time.
    pub most_of_address: usize,
    /// How long one may be silent.
    pub idle: Duration,
    /// How long one may leave unread what it is sent.
    pub unread: Duration,
}

impl Connections {
    pub(super) fn read(settings: &Settings, api: &str) -> Result<Self, ConfigError> {
        let number = |name| settings.number(&[api, name], |n| within(n, 1, 1_000_000));
        let time = |name| {
            settings.text(&[api, name], |text| {
                duration_within(text, Duration::from_secs(1), Duration::from_secs(3600))
            })
        };
        Ok(Self {
            most: number("max_connections")?,
            most_of_address: number("max_connections_per_address")?,
            idle: time("idle_timeout")?,
            unread: time("unread_timeout")?,
        })
    }
}
