use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::Ipv6Addr;
use std::time::Duration;

use http::uri::Authority;
use tonic::transport::Endpoint;

use super::BuildError;

/// How long connecting to an endpoint may take. Requests do not wait for it beyond their deadline.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// A connection on which nothing comes back for 10 + 5 s is given up: TCP alone takes many minutes.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(5);

/// What is spoken with `https` endpoints, in PEM.
#[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "without the feature `https` is refused"))]
pub(super) struct Tls {
    /// The authority of their certificates; none: those of the machine.
    pub(super) ca_certificate: Option<Vec<u8>>,
    /// The certificate that is shown to them, and its key.
    pub(super) identity: Option<(Vec<u8>, Vec<u8>)>,
}

/// Puts them in an order of a node's own (rendezvous hashing).
pub(super) fn spread(endpoints: &mut [Endpoint], node: &str) {
    endpoints.sort_by_cached_key(|endpoint| {
        let mut hasher = DefaultHasher::new();
        (node, endpoint.uri()).hash(&mut hasher);
        hasher.finish()
    });
}

/// One that connects to an address.
pub(super) fn of(address: &str, tls: &Tls) -> Result<Endpoint, BuildError> {
    // A name and a password in it are not shown.
    let shown = address.rsplit_once('@').map_or(address, |(_, rest)| rest);
    let invalid = || BuildError::Endpoint(shown.to_owned());
    let uri: http::Uri = address.parse().map_err(|_| invalid())?;
    let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else { return Err(invalid()) };
    let has_path = uri.path_and_query().is_some_and(|path| path != "/");
    let is_possible = matches!(scheme, "http" | "https") && is_host_and_port(authority);
    if !is_possible || authority.as_str().contains('@') || has_path {
        return Err(invalid());
    }
    let endpoint = Endpoint::from_shared(address.to_owned())
        .map_err(|_| invalid())?
        .connect_timeout(CONNECT_TIMEOUT)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
        .keep_alive_while_idle(true);
    if scheme == "http" {
        return Ok(endpoint);
    }
    with_tls(endpoint, tls).map_err(|reason| BuildError::Tls { endpoint: address.to_owned(), reason })
}

/// Whether there is a host, and a port that can be connected to or none. Syntax takes any digits for a port, and one that
/// is too large would be taken for none: the default port, where somebody else may listen.
fn is_host_and_port(authority: &Authority) -> bool {
    let host = authority.host();
    let is_host = match host.strip_prefix('[') {
        Some(ipv6) => ipv6.trim_end_matches(']').parse::<Ipv6Addr>().is_ok(),
        None => !host.is_empty(),
    };
    let has_no_port = authority.as_str() == host;
    is_host && (has_no_port || authority.port_u16().is_some_and(|port| port > 0))
}

#[cfg(feature = "tls")]
fn with_tls(endpoint: Endpoint, tls: &Tls) -> Result<Endpoint, String> {
    use tonic::transport::{Certificate, ClientTlsConfig, Identity};

    /// What a certificate in PEM begins with (RFC 7468).
    const PEM_BEGIN: &[u8] = b"-----BEGIN CERTIFICATE-----";

    let config = match &tls.ca_certificate {
        // Of a text that holds none, no certificate would be trusted, which shows only when connecting.
        Some(pem) if !pem.windows(PEM_BEGIN.len()).any(|window| window == PEM_BEGIN) => {
            return Err("the authority's certificate is not PEM".to_owned());
        }
        Some(pem) => ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pem)),
        None => ClientTlsConfig::new().with_native_roots(),
    };
    let config = match &tls.identity {
        Some((cert, key)) => config.identity(Identity::from_pem(cert, key)),
        None => config,
    };
    endpoint.tls_config(config).map_err(|error| error.to_string())
}

#[cfg(not(feature = "tls"))]
fn with_tls(_: Endpoint, _: &Tls) -> Result<Endpoint, String> {
    Err("https takes the feature `tls` of quota-client".to_owned())
}
