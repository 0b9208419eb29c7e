//! TLS on both ports, with files that may be replaced while the server runs: connections that are open go on, later ones
//! have the new certificate.

mod door;
mod names;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::RwLock;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use sha2::{Digest as _, Sha256};
use tokio_rustls::TlsAcceptor;

pub(crate) use self::door::{Connection, Door, Peer, Protocol, admit_all};
use crate::{config, files};

/// The largest file of certificates: many times what a chain of them takes.
const MOST_BYTES: u64 = 16 << 20;

/// Why TLS cannot be spoken with the files that are named. What is in them is not shown.
#[derive(Debug, thiserror::Error)]
#[error("tls.{setting}: {}: {reason}", file.display())]
pub struct TlsError {
    setting: &'static str,
    file: PathBuf,
    reason: String,
}

/// TLS as it is spoken at present.
pub(crate) struct Tls {
    files: config::Tls,
    current: RwLock<Current>,
    /// The files could not be used when they were last read.
    failing: AtomicBool,
}

struct Current {
    http: Arc<ServerConfig>,
    grpc: Arc<ServerConfig>,
    /// Of what was read.
    digest: [u8; 32],
}

impl Tls {
    /// Reads the files.
    pub(crate) fn open(files: &config::Tls) -> Result<Self, TlsError> {
        let current = RwLock::new(read(files)?);
        Ok(Self { files: files.clone(), current, failing: AtomicBool::new(false) })
    }

    /// Reads the files anew; where they cannot be used, what was read last stays in use. Blocks.
    pub(crate) fn reread(&self) {
        let read = read(&self.files);
        let was_failing = self.failing.swap(read.is_err(), Ordering::Relaxed);
        match read {
            Ok(read) if read.digest == self.current.read().digest => {}
            Ok(read) => {
                *self.current.write() = read;
                tracing::info!("new certificates are in use");
            }
            Err(error) if !was_failing => {
                tracing::warn!(%error, "certificates cannot be used: the last stay in use");
            }
            Err(_) => {}
        }
    }

    fn acceptor(&self, protocol: Protocol) -> TlsAcceptor {
        let current = self.current.read();
        TlsAcceptor::from(Arc::clone(match protocol {
            Protocol::Http => &current.http,
            Protocol::Grpc => &current.grpc,
        }))
    }
}

fn read(files: &config::Tls) -> Result<Current, TlsError> {
    let config::Tls { cert, key, client_ca } = files;
    let mut digest = Sha256::new();
    let mut pem = |setting, file: &Path| {
        let pem = files::read(file, MOST_BYTES).map_err(|error| fault(setting, file, error))?;
        digest.update(pem.len().to_le_bytes());
        digest.update(&pem);
        Ok::<_, TlsError>(pem)
    };
    let chain = certificates("cert", cert, &pem("cert", cert)?)?;
    let private = PrivateKeyDer::from_pem_slice(&pem("key", key)?)
        .map_err(|_| fault("key", key, "no private key in PEM"))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| fault("cert", cert, error))?;
    let builder = match client_ca {
        None => builder.with_no_client_auth(),
        Some(file) => {
            let mut roots = RootCertStore::empty();
            for authority in certificates("client_ca", file, &pem("client_ca", file)?)? {
                roots.add(authority).map_err(|error| fault("client_ca", file, error))?;
            }
            // Who shows no certificate may have a token, or ask for what is open to all.
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                .allow_unauthenticated()
                .build()
                .map_err(|error| fault("client_ca", file, error))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let mut http = builder.with_single_cert(chain, private).map_err(|error| fault("key", key, error))?;
    http.alpn_protocols = vec![b"http/1.1".to_vec()];
    let mut grpc = http.clone();
    grpc.alpn_protocols = vec![b"h2".to_vec()];
    Ok(Current { http: Arc::new(http), grpc: Arc::new(grpc), digest: digest.finalize().into() })
}

fn certificates(
    setting: &'static str,
    file: &Path,
    pem: &[u8],
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match read {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        _ => Err(fault(setting, file, "no certificate in PEM")),
    }
}

fn fault(setting: &'static str, file: &Path, reason: impl ToString) -> TlsError {
    TlsError { setting, file: file.to_owned(), reason: reason.to_string() }
}

/// That a handshake does not come to its end.
fn late() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the handshake took too long")
}
