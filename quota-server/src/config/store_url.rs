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

/// The URL of a Redis. Shown without what comes before the `@`, where the password is, and after the `?`.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisUrl {
    servers: RedisServers,
    tls: bool,
    shown: Box<str>,
}

/// Which servers a Redis has. Each is the URL of one server, with its password, for nothing but a connection.
#[derive(Clone, PartialEq, Eq)]
pub enum RedisServers {
    /// One.
    Single(Box<str>),
    /// One, and those that take its place.
    Sentinel {
        /// They know which it is.
        sentinels: Vec<Box<str>>,
        /// What they call it.
        name: Box<str>,
        /// How it is spoken to; its address is what they say.
        server: Box<str>,
    },
    /// Some nodes of a Cluster, which know the others.
    Cluster(Vec<Box<str>>),
}

/// The ports of a Redis and of a Sentinel whose URL names none.
const PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26379;

/// A URL of several servers, in its parts.
struct Parts<'a> {
    scheme: &'a str,
    tls: bool,
    /// What comes before the hosts, the `@` included.
    credentials: &'a str,
    hosts: Vec<&'a str>,
    path: &'a str,
    query: Option<&'a str>,
}

impl StoreUrl {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (scheme, rest) = text.split_once("://").unwrap_or_default();
        match scheme {
            "memory" if rest.is_empty() => Ok(Self::Memory),
            "redis" | "rediss" => RedisUrl::single(scheme, text).map(Self::Redis),
            "redis+sentinel" | "rediss+sentinel" => RedisUrl::sentinel(scheme, rest).map(Self::Redis),
            "redis+cluster" | "rediss+cluster" => RedisUrl::cluster(scheme, rest).map(Self::Redis),
            _ => Err("must be memory://, or begin with redis:// or rediss://, redis+sentinel:// or \
                      rediss+sentinel://, redis+cluster:// or rediss+cluster://"
                .into()),
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
    /// The servers, with their password.
    pub const fn expose(&self) -> &RedisServers {
        &self.servers
    }

    /// Whether they are spoken to by TLS.
    pub const fn tls(&self) -> bool {
        self.tls
    }

    fn single(scheme: &str, text: &str) -> Result<Self, String> {
        let info = text.into_connection_info().map_err(|_| {
            format!(
                "must be {scheme}://[[user]:password@]host[:port][/database], with what is reserved in a password \
                 percent-encoded"
            )
        })?;
        let settings = info.redis_settings();
        let secret = settings.username().is_some() || settings.password().is_some();
        let shown =
            format!("{scheme}://{}{}/{}", if secret { "***@" } else { "" }, info.addr(), settings.db());
        Ok(Self { servers: RedisServers::Single(text.into()), tls: scheme == "rediss", shown: shown.into() })
    }

    fn sentinel(scheme: &str, rest: &str) -> Result<Self, String> {
        let refused = || {
            format!(
                "must be {scheme}://[[user]:password@]host[:port][,host[:port]...]/name[/database]\
                 [?sentinel_password=password], with what is reserved in a password percent-encoded"
            )
        };
        let parts = Parts::of(scheme, rest).ok_or_else(refused)?;
        let (name, database) = parts.path.split_once('/').unwrap_or((parts.path, "0"));
        let password = match parts.query {
            None => String::new(),
            Some(query) => format!(":{}@", query.strip_prefix("sentinel_password=").ok_or_else(refused)?),
        };
        let sentinels = parts.servers(&password, "", SENTINEL_PORT).ok_or_else(refused)?;
        let servers = parts.servers(parts.credentials, database, SENTINEL_PORT).ok_or_else(refused)?;
        let server = servers.into_iter().next().filter(|_| is_name(name)).ok_or_else(refused)?;
        Ok(Self {
            shown: parts.shown(),
            tls: parts.tls,
            servers: RedisServers::Sentinel { sentinels, name: name.into(), server },
        })
    }

    fn cluster(scheme: &str, rest: &str) -> Result<Self, String> {
        let refused = || {
            format!(
                "must be {scheme}://[[user]:password@]host[:port][,host[:port]...], with what is reserved in a \
                 password percent-encoded, and no database: a Cluster has one alone"
            )
        };
        let parts = Parts::of(scheme, rest).ok_or_else(refused)?;
        let nodes = parts.servers(parts.credentials, "", PORT).ok_or_else(refused)?;
        if !parts.path.is_empty() || parts.query.is_some() {
            return Err(refused());
        }
        Ok(Self { shown: parts.shown(), tls: parts.tls, servers: RedisServers::Cluster(nodes) })
    }
}

impl<'a> Parts<'a> {
    fn of(scheme: &'a str, rest: &'a str) -> Option<Self> {
        let (rest, query) = rest.split_once('?').map_or((rest, None), |(rest, query)| (rest, Some(query)));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (credentials, hosts) = authority.split_at(authority.rfind('@').map_or(0, |at| at + 1));
        let tls = scheme.starts_with("rediss");
        // A fragment would turn off the verification of certificates, where one was.
        let parts = Self { scheme, tls, credentials, hosts: hosts.split(',').collect(), path, query };
        (!rest.contains('#')).then_some(parts)
    }

    /// The URL of each server, unless one is no such thing.
    fn servers(&self, credentials: &str, database: &str, port: u16) -> Option<Vec<Box<str>>> {
        let scheme = if self.tls { "rediss" } else { "redis" };
        let url = |host: &&str| {
            let port = if has_port(host) { String::new() } else { format!(":{port}") };
            let url = format!("{scheme}://{credentials}{host}{port}/{database}");
            url.as_str().into_connection_info().ok().map(|_| url.into())
        };
        self.hosts.iter().map(url).collect()
    }

    fn shown(&self) -> Box<str> {
        let secret = if self.credentials.is_empty() { "" } else { "***@" };
        format!("{}://{secret}{}/{}", self.scheme, self.hosts.join(","), self.path).into()
    }
}

fn has_port(host: &str) -> bool {
    host.rfind(':').is_some_and(|colon| host.rfind(']').is_none_or(|bracket| bracket < colon))
}

/// What Sentinel takes for a name.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))
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
