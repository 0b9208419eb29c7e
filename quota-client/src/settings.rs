//! Everything that a fileserver's author may set, as one struct and as TOML.

mod concurrency;
pub(crate) mod duration;

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

pub(crate) use self::concurrency::RpcTable;
use crate::cgroup::CgroupSettings;
use crate::checks::CheckSettings;
use crate::concurrency::{Calibration, RpcSettings};
use crate::pressure;
use crate::shed::SheddingSettings;

/// What a [`Client`](crate::Client) is told about its fileserver; [`Builder::settings`](crate::Builder::settings) takes
/// it. What is not given has its default.
///
/// In TOML durations are written `"30s"` or `"100ms"`. docs/fileserver.md has every setting with what moving it does.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The name of this fileserver; see [`Builder::node`](crate::Builder::node).
    pub node: Option<String>,
    /// Where the quota service answers gRPC; see [`Builder::endpoints`](crate::Builder::endpoints).
    pub endpoints: Vec<String>,
    /// Whether they are asked in an order of this fileserver's own; see [`Builder::spread`](crate::Builder::spread).
    pub spread: bool,
    /// The file that holds the token, with or without a line break at its end. It is read again at each report interval, so
    /// that a new token is used.
    pub token_file: Option<PathBuf>,
    /// The file of the authorities, in PEM, whose certificates `https` endpoints have; none: those of the machine.
    pub ca_file: Option<PathBuf>,
    /// The file of the certificate, in PEM, that this fileserver shows to `https` endpoints.
    pub cert_file: Option<PathBuf>,
    /// The file of its private key.
    pub key_file: Option<PathBuf>,
    /// How long a decision may take; see [`Builder::deadline`](crate::Builder::deadline).
    #[serde(with = "duration::optional")]
    pub deadline: Option<Duration>,
    /// How requests are decided on.
    pub checks: CheckSettings,
    /// From where on a signal of pressure is an event.
    pub pressure: pressure::Settings,
    /// How adaptive limits of concurrency move.
    pub calibration: Calibration,
    /// The RPCs of which only so many may run at once.
    pub concurrency: Vec<RpcSettings>,
    /// When requests in flight are ended.
    pub shedding: SheddingSettings,
    /// Where a cgroup is made for each request; see [`RequestCgroups::below`](crate::RequestCgroups::below). None: what
    /// processes consume is sampled from `/proc`.
    pub request_cgroups: Vec<PathBuf>,
    /// What is done with them beside counting.
    pub cgroup: CgroupSettings,
}

impl Settings {
    /// Reads TOML.
    ///
    /// # Errors
    /// Where it is no TOML, has a key that is none, or a value of a wrong type; with line and column. Whether values are
    /// possible shows in [`Builder::build`](crate::Builder::build).
    pub fn from_toml(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }
}
