//! Certificates for tests of TLS.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

/// A certificate authority of its own, and a certificate for `localhost` and `127.0.0.1` that it signed: PEM files.
#[derive(Debug, Clone)]
pub struct Certificates {
    /// The authority's certificate.
    pub ca_file: PathBuf,
    /// The certificate, good for servers and clients.
    pub cert_file: PathBuf,
    /// Its private key.
    pub key_file: PathBuf,
}

impl Certificates {
    /// Makes them and writes them into `folder`.
    pub fn in_folder(folder: &Path) -> Self {
        let files = Self {
            ca_file: folder.join("ca.pem"),
            cert_file: folder.join("cert.pem"),
            key_file: folder.join("key.pem"),
        };
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority_key = KeyPair::generate().expect("a key");
        let authority_cert = authority.self_signed(&authority_key).expect("a certificate authority");
        let issuer = Issuer::new(authority, authority_key);

        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let key = KeyPair::generate().expect("a key");
        let cert =
            CertificateParams::new(names).and_then(|p| p.signed_by(&key, &issuer)).expect("a certificate");

        fs::write(&files.ca_file, authority_cert.pem()).expect("a folder that can be written");
        fs::write(&files.cert_file, cert.pem()).expect("a folder that can be written");
        fs::write(&files.key_file, key.serialize_pem()).expect("a folder that can be written");
        files
    }
}
