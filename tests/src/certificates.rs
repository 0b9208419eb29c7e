//! Certificates for tests of TLS.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};

/// What servers are reached by here.
const LOCAL: [&str; 2] = ["localhost", "127.0.0.1"];

/// A certificate authority of its own.
#[derive(Debug)]
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// Its certificate, in PEM.
    pub ca_file: PathBuf,
}

/// A certificate and its private key: PEM files.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The certificate.
    pub cert_file: PathBuf,
    /// Its private key.
    pub key_file: PathBuf,
}

/// A certificate authority of its own, and a certificate for `localhost` and `127.0.0.1` that it signed.
#[derive(Debug)]
pub struct Certificates {
    /// The authority.
    pub authority: Authority,
    /// The certificate, good for servers and clients.
    pub identity: Identity,
}

impl Authority {
    /// Makes one, and writes its certificate into `folder`.
    pub fn in_folder(folder: &Path) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let cert = params.self_signed(&key).expect("a certificate authority");
        let ca_file = folder.join("ca.pem");
        fs::write(&ca_file, cert.pem()).expect("a folder that can be written");
        Self { issuer: Issuer::new(params, key), ca_file }
    }

    /// Signs a certificate of these names, and writes it as `cert.pem` and `key.pem` into `folder`, which is made.
    pub fn sign(&self, folder: &Path, common_name: &str, names: &[&str]) -> Identity {
        self.sign_as(folder, params(common_name, names))
    }

    /// The same for a server of this machine.
    pub fn sign_local(&self, folder: &Path) -> Identity {
        self.sign(folder, LOCAL[0], &LOCAL)
    }

    /// The same, but the certificate has expired.
    pub fn sign_expired(&self, folder: &Path) -> Identity {
        let mut params = params(LOCAL[0], &LOCAL);
        params.not_after = date_time_ymd(2020, 1, 1);
        self.sign_as(folder, params)
    }

    fn sign_as(&self, folder: &Path, params: CertificateParams) -> Identity {
        let key = KeyPair::generate().expect("a key");
        let cert = params.signed_by(&key, &self.issuer).expect("a certificate");
        let files = Identity { cert_file: folder.join("cert.pem"), key_file: folder.join("key.pem") };
        fs::create_dir_all(folder).expect("a folder");
        fs::write(&files.cert_file, cert.pem()).expect("a folder that can be written");
        fs::write(&files.key_file, key.serialize_pem()).expect("a folder that can be written");
        files
    }
}

impl Certificates {
    /// Makes them and writes them into `folder`.
    pub fn in_folder(folder: &Path) -> Self {
        let authority = Authority::in_folder(folder);
        let identity = authority.sign_local(folder);
        Self { authority, identity }
    }
}

fn params(common_name: &str, names: &[&str]) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    let mut params = CertificateParams::new(names).expect("names");
    params.distinguished_name.push(DnType::CommonName, common_name);
    params
}
