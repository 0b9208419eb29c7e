use std::path::PathBuf;

use super::error::ConfigError;
use super::layers::Settings;

/// The files that TLS is spoken with, all in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// The server's certificate, followed by those that lead to its authority.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// The authorities of clients' certificates; without one, clients have none.
    pub client_ca: Option<PathBuf>,
}

impl Tls {
    pub(super) fn read(settings: &Settings) -> Result<Option<Self>, ConfigError> {
        let path = |key: &str| {
            let path = settings.text(&["tls", key], |text| Ok(PathBuf::from(text)))?;
            Ok::<_, ConfigError>(Some(path).filter(|path| !path.as_os_str().is_empty()))
        };
        let alone = |key: &str, other: &str| {
            let reason = format!("must be given together with tls.{other}");
            Err(settings.fault(&["tls", key], reason))
        };
        match (path("cert")?, path("key")?, path("client_ca")?) {
            (Some(cert), Some(key), client_ca) => Ok(Some(Self { cert, key, client_ca })),
            (Some(_), None, _) => alone("cert", "key"),
            (None, Some(_), _) => alone("key", "cert"),
            (None, None, Some(_)) => alone("client_ca", "cert"),
            (None, None, None) => Ok(None),
        }
    }
}
