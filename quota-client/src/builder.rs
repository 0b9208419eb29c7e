mod endpoint;

use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::cgroup::CgroupSettings;
use crate::client::Options;
use crate::concurrency::calibrator::Calibrator;
use crate::concurrency::{Calibration, Limits, RpcSettings};
use crate::credential::Credential;
use crate::pool::Pool;
use crate::shed::SheddingSettings;
use crate::{
    CheckSettings, Client, InvalidPressureSettings, InvalidSetting, PressureSettings, RequestCgroups,
    Settings,
};

/// Moments further off could not be told.
const MAX_DURATION: Duration = Duration::from_secs(3600);

/// Makes a [`Client`].
#[must_use]
pub struct Builder {
    endpoints: Vec<String>,
    spread: bool,
    token: Option<String>,
    ca_certificate: Option<Vec<u8>>,
    ca_file: Option<PathBuf>,
    cert_file: Option<PathBuf>,
    key_file: Option<PathBuf>,
    pub(crate) settings: Options,
    token_file: Option<PathBuf>,
    concurrency: Vec<RpcSettings>,
    calibration: Calibration,
    shedding: SheddingSettings,
    request_cgroups: Vec<PathBuf>,
    cgroup: CgroupSettings,
    rpcs: Vec<String>,
}

/// What protects the machine beside quotas.
pub(crate) struct Protection {
    pub(crate) limits: Limits,
    pub(crate) calibrator: Calibrator,
    pub(crate) shedding: SheddingSettings,
    pub(crate) cgroups: Option<RequestCgroups>,
}

/// Why no client can be made. That the service is away is no reason.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// No endpoint was given.
    #[error("endpoints: at least one must be given")]
    NoEndpoint,
    /// It is no `http` or `https` address, or has no host or a port that there is not.
    #[error("endpoints: {0:?} is no endpoint: it must be like http://quota-1:8081, its port at most 65535")]
    Endpoint(String),
    /// The certificate cannot be used, the machine has none for `https`, or this crate was built without its feature `tls`.
    #[error("TLS cannot be set up for {endpoint}: {reason}")]
    Tls {
        /// The endpoint.
        endpoint: String,
        /// What is wrong.
        reason: String,
    },
    /// The token cannot be put into a header. It is not shown.
    #[error("the token must be visible ASCII, and not empty")]
    Token,
    /// The name is too long, or has control characters.
    #[error("node {reason}")]
    Node {
        /// What it must be, or must not be.
        reason: String,
    },
    /// A setting of pressure that could not work.
    #[error(transparent)]
    Pressure(#[from] InvalidPressureSettings),
    /// A setting that is impossible, or a limit for an RPC that there is not.
    #[error(transparent)]
    Setting(#[from] InvalidSetting),
    /// The file of the token cannot be read.
    #[error("token_file: {}: {error}", file.display())]
    TokenFile {
        /// The file.
        file: PathBuf,
        /// Why it cannot be read.
        error: io::Error,
    },
    /// A file of TLS cannot be read.
    #[error("{setting}: {}: {error}", file.display())]
    TlsFile {
        /// The setting.
        setting: &'static str,
        /// The file.
        file: PathBuf,
        /// Why it cannot be read.
        error: io::Error,
    },
    /// A certificate without its key, or the reverse.
    #[error("cert_file and key_file must be given together")]
    HalfIdentity,
    /// No cgroup can be made for a request.
    #[error("request_cgroups: {0}")]
    RequestCgroups(io::Error),
    /// A duration in which nothing could happen, or that would never end: which it is.
    #[error("{0} must be longer than nothing, and at most an hour")]
    Duration(&'static str),
    /// There is no Tokio runtime to report from.
    #[error("a client must be built within a Tokio runtime")]
    NoRuntime,
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self {
            endpoints: Vec::new(),
            spread: false,
            token: None,
            ca_certificate: None,
            ca_file: None,
            cert_file: None,
            key_file: None,
            settings: Options::default(),
            token_file: None,
            concurrency: Vec::new(),
            calibration: Calibration::default(),
            shedding: SheddingSettings::default(),
            request_cgroups: Vec::new(),
            cgroup: CgroupSettings::default(),
            rpcs: Vec::new(),
        }
    }

    /// All that the settings give, as [`Settings::from_toml`] reads them; what is called after this stands before it.
    pub fn settings(mut self, settings: Settings) -> Self {
        let Settings { node, endpoints, token_file, deadline, .. } = settings;
        self.settings.node = node.unwrap_or(self.settings.node);
        self.settings.deadline = deadline.unwrap_or(self.settings.deadline);
        self.settings.pressure = settings.pressure;
        self.settings.checks = settings.checks;
        if !endpoints.is_empty() {
            self.endpoints = endpoints;
        }
        Self {
            spread: settings.spread,
            token_file: token_file.or(self.token_file),
            ca_file: settings.ca_file.or(self.ca_file),
            cert_file: settings.cert_file.or(self.cert_file),
            key_file: settings.key_file.or(self.key_file),
            concurrency: settings.concurrency,
            calibration: settings.calibration,
            shedding: settings.shedding,
            request_cgroups: settings.request_cgroups,
            cgroup: settings.cgroup,
            ..self
        }
    }

    /// The names of all RPCs that the guarded services have, such as [`rpc_names`](crate::rpc_names) reads from their
    /// descriptors: a limit for any other is refused. Without them, no limit of concurrency can be set.
    pub fn rpcs<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.rpcs = names.into_iter().map(Into::into).collect();
        self
    }

    /// Where the service is, such as `http://quota-1:8081`. The first is asked while it works, then the next.
    pub fn endpoints<E: Into<String>>(mut self, endpoints: impl IntoIterator<Item = E>) -> Self {
        self.endpoints = endpoints.into_iter().map(Into::into).collect();
        self
    }

    /// The name of this fileserver.
    pub fn node(mut self, name: impl Into<String>) -> Self {
        self.settings.node = name.into();
        self
    }

    /// What the service knows this fileserver by. Over `http` it is sent in the clear.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// After this long a request is allowed unchecked. 100 ms unless set. Longer than the service may wait for its
    /// store (50 ms unless set), or one that is set to refuse what it cannot check is never heard.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.settings.deadline = deadline;
        self
    }

    /// How often children are sampled and what was consumed is reported. 1 s unless set.
    pub fn report_interval(mut self, interval: Duration) -> Self {
        self.settings.report_interval = interval;
        self
    }

    /// How requests are decided on. Strictly unless set.
    pub fn checks(mut self, settings: CheckSettings) -> Self {
        self.settings.checks = settings;
        self
    }

    /// From where on signals of pressure are events, and what is looked at.
    pub fn pressure(mut self, settings: PressureSettings) -> Self {
        self.settings.pressure = settings;
        self
    }

    /// Whether endpoints are asked in an order of this fileserver's own, rather than in that in which they are given: so
    /// fileservers that are given the same ones spread over them, and over the others when one fails. No, unless set.
    pub const fn spread(mut self, spread: bool) -> Self {
        self.spread = spread;
        self
    }

    /// The authority, in PEM, whose certificates `https` endpoints have. Unless set, those of the machine. `https` takes
    /// this crate's feature `tls`.
    pub fn ca_certificate(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.ca_certificate = Some(pem.into());
        self
    }

    /// Makes the client, and starts the task that reports. Connects to nothing yet. Where the settings name a place for
    /// cgroups of requests, one is tried out, which blocks for some milliseconds.
    ///
    /// # Errors
    /// Where a setting is wrong, or outside of a Tokio runtime; not where the service is away.
    pub fn build(self) -> Result<Client, BuildError> {
        let runtime = tokio::runtime::Handle::try_current().map_err(|_| BuildError::NoRuntime)?;
        if self.endpoints.is_empty() {
            return Err(BuildError::NoEndpoint);
        }
        quota_proto::check_label("node", &self.settings.node)
            .map_err(|invalid| BuildError::Node { reason: invalid.reason })?;
        let Options { deadline, report_interval, .. } = &self.settings;
        for (name, duration) in [("deadline", deadline), ("report_interval", report_interval)] {
            if duration.is_zero() || *duration > MAX_DURATION {
                return Err(BuildError::Duration(name));
            }
        }
        self.settings.pressure.check()?;
        self.shedding.check()?;
        let limits = Limits::new(&self.concurrency, &self.rpcs)?;
        let calibrator = Calibrator::new(limits.clone(), self.calibration)?;
        let cgroups = (!self.request_cgroups.is_empty())
            .then(|| RequestCgroups::of(&self.request_cgroups, self.cgroup));
        let cgroups = cgroups.transpose().map_err(BuildError::RequestCgroups)?;
        let credential = match (self.token, self.token_file) {
            (Some(token), _) => Credential::of_token(&token)?,
            (None, Some(file)) => Credential::of_file(file)?,
            (None, None) => Credential::default(),
        };
        let ca_certificate = match self.ca_certificate {
            Some(pem) => Some(pem),
            None => read_pem("ca_file", self.ca_file)?,
        };
        let identity = match (read_pem("cert_file", self.cert_file)?, read_pem("key_file", self.key_file)?) {
            (Some(cert), Some(key)) => Some((cert, key)),
            (None, None) => None,
            _ => return Err(BuildError::HalfIdentity),
        };
        let tls = endpoint::Tls { ca_certificate, identity };
        let endpoints = self.endpoints.iter().map(|address| endpoint::of(address, &tls));
        let mut endpoints = endpoints.collect::<Result<Vec<_>, _>>()?;
        if self.spread {
            endpoint::spread(&mut endpoints, &self.settings.node);
        }
        let pool = Pool::new(endpoints, credential);
        let protection = Protection { limits, calibrator, shedding: self.shedding, cgroups };
        Ok(Client::start(self.settings, pool, protection, &runtime))
    }
}

fn read_pem(setting: &'static str, file: Option<PathBuf>) -> Result<Option<Vec<u8>>, BuildError> {
    let read = |file: PathBuf| fs::read(&file).map_err(|error| BuildError::TlsFile { setting, file, error });
    file.map(read).transpose()
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder")
            .field("endpoints", &self.endpoints)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
