//! The server's settings, checked before anything starts.
//!
//! Three layers, of which a later one wins: the defaults in `config/default.toml`, a TOML file, and environment
//! variables `QUOTA__SECTION__KEY`. The defaults hold every setting, and so are the schema of the other two.

mod auth;
mod changes;
mod charges;
mod classes;
mod connections;
mod digest;
mod environment;
mod error;
mod layers;
mod list;
mod log;
mod overrides;
mod policy;
mod prices;
mod schema;
mod source;
mod store_url;
mod tls;
mod trace;
mod units;

use std::net::SocketAddr;
use std::time::Duration;

use quota_core::{Ipv6Prefix, Limit, PerResource, WindowLength};

pub use auth::Auth;
pub use changes::Change;
pub use classes::{Class, Classes, Service};
pub use connections::Connections;
pub use error::{ConfigError, Key, Origin};
use layers::Settings;
pub use log::{AccountNames, Log, LogFormat, LogKey};
pub use overrides::FileOverride;
pub use policy::Policy;
pub(crate) use policy::limit as read_limit;
pub use prices::Prices;
pub use source::{Loaded, Source};
pub use store_url::{RedisServers, RedisUrl, StoreUrl};
pub use tls::Tls;
pub use trace::Trace;
use units::within;
pub(crate) use units::written_limit;

/// Every setting of the server.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The HTTP API.
    pub http: Listen,
    /// The gRPC API.
    pub grpc: Listen,
    /// The most calls of gRPC at a time on one connection.
    pub max_streams: u32,
    /// Where usage is kept.
    pub store: Store,
    /// How long cost counts.
    pub window: WindowLength,
    /// The limits in force.
    pub policy: Policy,
    /// What RPCs are expected to cost.
    pub prices: Prices,
    /// The most that a fileserver may charge within the window, for each of its nodes.
    pub charges: PerResource<Limit>,
    /// The kinds of traffic.
    pub classes: Classes,
    /// What is said of single accounts.
    pub overrides: Vec<FileOverride>,
    /// How client addresses become accounts.
    pub ip: Ip,
    /// Who may ask.
    pub auth: Auth,
    /// What TLS is spoken with; none: connections are taken as they are.
    pub tls: Option<Tls>,
    /// What is written to the log, and how.
    pub log: Log,
    /// Where traces go; none: nowhere.
    pub trace: Option<Trace>,
    /// How the server stops.
    pub shutdown: Shutdown,
    /// The same on two servers that decide alike, on one store.
    pub digest: u64,
}

/// Where an API is, and whom it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// Address and port; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Whom it takes.
    pub connections: Connections,
}

/// Where usage is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    /// Which store.
    pub url: StoreUrl,
    /// The longest that one decision may wait for the store.
    pub deadline: Duration,
    /// What is answered when the store does not.
    pub fail: FailPolicy,
    /// Connections to Redis that decisions share.
    pub pool_size: usize,
    /// Accounts held by the memory store.
    pub max_accounts: usize,
}

/// What is answered when the store is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailPolicy {
    /// Allow, unchecked.
    Open,
    /// Refuse as unavailable.
    Closed,
}

/// How client addresses become accounts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ip {
    /// How much of an IPv6 address names one account.
    pub ipv6_prefix: Ipv6Prefix,
}

/// How the server stops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shutdown {
    /// How long new requests are still taken, while the server says that it is not ready.
    pub drain: Duration,
    /// How long requests in flight may take to end after that.
    pub grace: Duration,
}

impl Config {
    /// From the defaults and a text as in a file.
    pub fn from_toml(text: &str) -> Result<Self, ConfigError> {
        Self::read(&Settings::merge(Some(&(Origin::Text, text.to_owned())), [])?)
    }

    fn read(settings: &Settings) -> Result<Self, ConfigError> {
        let window = settings.text(&["window", "length"], window_length)?;
        let tls = Tls::read(settings)?;
        let auth = Auth::read(settings, tls.as_ref())?;
        let ipv6_prefix = settings.number(&["ip", "ipv6_prefix"], ipv6_prefix)?;
        let http = listen(settings, "http", &auth, None)?;
        Ok(Self {
            grpc: listen(settings, "grpc", &auth, Some(http.listen))?,
            max_streams: settings.number(&["grpc", "max_streams"], |n| within(n, 1, 10_000))?,
            http,
            store: store(settings)?,
            window,
            policy: Policy::read(settings, window)?,
            prices: Prices::read(settings)?,
            charges: charges::read(settings, window)?,
            classes: Classes::read(settings)?,
            overrides: overrides::read(settings, ipv6_prefix, window.length())?,
            ip: Ip { ipv6_prefix },
            auth,
            tls,
            log: Log::read(settings)?,
            trace: Trace::read(settings)?,
            shutdown: Shutdown { drain: shutdown(settings, "drain")?, grace: shutdown(settings, "grace")? },
            digest: digest::of(&settings.merged),
        })
    }
}

fn share(value: f64) -> Result<f64, String> {
    if (0.0..=1.0).contains(&value) { Ok(value) } else { Err("must be from 0 to 1".into()) }
}

fn shutdown(settings: &Settings, name: &str) -> Result<Duration, ConfigError> {
    let at_most = Duration::from_secs(600);
    settings.text(&["shutdown", name], |text| units::duration_within(text, Duration::ZERO, at_most))
}

fn store(settings: &Settings) -> Result<Store, ConfigError> {
    Ok(Store {
        url: settings.text(&["store", "url"], StoreUrl::parse)?,
        deadline: settings.text(&["store", "deadline"], |text| {
            units::duration_within(text, Duration::from_millis(1), Duration::from_secs(10))
        })?,
        fail: settings.text(&["store", "fail"], |text| match text {
            "open" => Ok(FailPolicy::Open),
            "closed" => Ok(FailPolicy::Closed),
            _ => Err("must be \"open\" or \"closed\"".into()),
        })?,
        pool_size: settings.number(&["store", "pool_size"], |n| within(n, 1, 1024))?,
        max_accounts: settings.number(&["store", "max_accounts"], |n| within(n, 1, 100_000_000))?,
    })
}

fn listen(
    settings: &Settings,
    api: &str,
    auth: &Auth,
    taken: Option<SocketAddr>,
) -> Result<Listen, ConfigError> {
    let listen = settings.text(&[api, "listen"], |text| {
        let address: SocketAddr = text
            .parse()
            .map_err(|_| "must be an IP address and a port, such as \"127.0.0.1:8080\" or \"[::1]:8080\"")?;
        if taken == Some(address) && address.port() != 0 {
            return Err("must not be the address of http.listen".into());
        }
        if auth.is_said() || address.ip().to_canonical().is_loopback() {
            Ok(address)
        } else {
            Err("must be a loopback address, since there are no auth.tokens; \
                 any other is open to all who reach it, and needs `auth.disabled = true`"
                .into())
        }
    })?;
    Ok(Listen { listen, connections: Connections::read(settings, api)? })
}

fn window_length(text: &str) -> Result<WindowLength, String> {
    WindowLength::new(units::duration(text)?).ok_or_else(|| {
        "must be from 60ms to 1h, and divide into 60 buckets of whole milliseconds (a multiple of 60ms)"
            .into()
    })
}

fn ipv6_prefix(bits: i64) -> Result<Ipv6Prefix, String> {
    u8::try_from(bits).ok().and_then(Ipv6Prefix::new).ok_or_else(|| "must be from 1 to 128".into())
}

#[cfg(test)]
mod tests;
