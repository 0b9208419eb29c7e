//! HTTP/1.1 over TLS, one request after the other on a connection that the test sees.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use quota_tests::certificates::Identity;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

pub(crate) struct Connection(TlsStream<TcpStream>);

/// Connects to a server whose certificate is of this authority, and shows a certificate, if any.
pub(crate) async fn connect(
    address: SocketAddr,
    ca_file: &Path,
    identity: Option<&Identity>,
) -> io::Result<Connection> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(ca_file).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots);
    let config = match identity {
        Some(Identity { cert_file, key_file }) => {
            let cert = CertificateDer::from_pem_file(cert_file).unwrap();
            config.with_client_auth_cert(vec![cert], PrivateKeyDer::from_pem_file(key_file).unwrap()).unwrap()
        }
        None => config.with_no_client_auth(),
    };
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from("localhost").unwrap();
    Ok(Connection(TlsConnector::from(Arc::new(config)).connect(name, stream).await?))
}

impl Connection {
    /// The server's certificate.
    pub(crate) fn certificate(&self) -> Vec<u8> {
        self.0.get_ref().1.peer_certificates().unwrap()[0].to_vec()
    }

    /// The status of the answer to a GET.
    pub(crate) async fn get(&mut self, path: &str) -> io::Result<u16> {
        let (status, _) = self.ask(&format!("GET {path}"), "", "").await?;
        Ok(status)
    }

    /// The status and the whole answer to a method and a path, with further headers, each a line with its end.
    pub(crate) async fn ask(&mut self, what: &str, headers: &str, body: &str) -> io::Result<(u16, String)> {
        let length = body.len();
        let head = format!("{what} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n{headers}\r\n");
        self.0.write_all(format!("{head}{body}").as_bytes()).await?;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.0.read_u8().await?);
        }
        let head = String::from_utf8(head).unwrap();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap_or("0");
        let mut body = vec![0; length.parse().unwrap()];
        self.0.read_exact(&mut body).await?;
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Ok((status, head + &String::from_utf8_lossy(&body)))
    }
}
