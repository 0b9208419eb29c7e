use std::fmt;

use redis::IntoConnectionInfo;

/// Where usage is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreUrl {
    /// In this process.
    Memory,
    /// In a Redis.
    Redis(RedisUrl),
}

/// The URL of a single Redis. Shown without what comes before the `@`, where the password is.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisUrl {
    url: Box<str>,
    shown: Box<str>,
}

impl StoreUrl {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        match text.split_once("://") {
            Some(("memory", "")) => Ok(Self::Memory),
            Some((scheme @ ("redis" | "rediss"), _)) => RedisUrl::parse(scheme, text).map(Self::Redis),
            Some((scheme @ ("redis+sentinel" | "redis+cluster"), _)) => {
                Err(format!("{scheme}:// is not available yet: write redis:// or rediss://"))
            }
            _ => Err("must be memory://, or begin with redis:// or rediss://".into()),
        }
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("memory://"),
            Self::Redis(url) => fmt::Display::fmt(url, f),
        }
    }
}

impl RedisUrl {
    /// The URL with its password, for nothing but a connection.
    pub fn expose(&self) -> &str {
        &self.url
    }

    fn parse(scheme: &str, text: &str) -> Result<Self, String> {
        let refused = || {
            format!(
                "must be {scheme}://[[user]:password@]host[:port][/database], with what is reserved in a password \
                 percent-encoded"
            )
        };
        let info = text.into_connection_info().map_err(|_| refused())?;
        let settings = info.redis_settings();
        let secret = settings.username().is_some() || settings.password().is_some();
        let shown =
            format!("{scheme}://{}{}/{}", if secret { "***@" } else { "" }, info.addr(), settings.db());
        Ok(Self { url: text.into(), shown: shown.into() })
    }
}

impl fmt::Display for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
