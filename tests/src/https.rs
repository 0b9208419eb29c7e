//! HTTP/1.1 over TLS: one request after the other on a connection that the test sees, or a tunnel for who speaks no TLS.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::certificates::Identity;

/// A connection to a server.
#[derive(Debug)]
pub struct Connection(TlsStream<TcpStream>);

/// A port of this machine whose connections lead to a server by TLS, each by one of its own, as long as this lives.
#[derive(Debug)]
pub struct Tunnel {
    address: SocketAddr,
    _serving: JoinSet<()>,
}

/// Connects to a server whose certificate is of this authority, and shows a certificate, if any.
pub async fn connect(
    address: SocketAddr,
    ca_file: &Path,
    identity: Option<&Identity>,
) -> io::Result<Connection> {
    connect_by(&config(ca_file, identity), address).await
}

fn config(ca_file: &Path, identity: Option<&Identity>) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(ca_file).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots);
    Arc::new(match identity {
        Some(Identity { cert_file, key_file }) => {
            let cert = CertificateDer::from_pem_file(cert_file).unwrap();
            config.with_client_auth_cert(vec![cert], PrivateKeyDer::from_pem_file(key_file).unwrap()).unwrap()
        }
        None => config.with_no_client_auth(),
    })
}

async fn connect_by(config: &Arc<ClientConfig>, address: SocketAddr) -> io::Result<Connection> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let name = ServerName::try_from("localhost").unwrap();
    Ok(Connection(TlsConnector::from(Arc::clone(config)).connect(name, stream).await?))
}

impl Tunnel {
    /// One to a server whose certificate is of this authority.
    pub async fn to(address: SocketAddr, ca_file: &Path) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let own = listener.local_addr().expect("the address just taken");
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, address, config(ca_file, None)));
        Self { address: own, _serving: serving }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// A connection that cannot be made, or breaks, is closed, as the server's would be.
async fn serve(listener: TcpListener, address: SocketAddr, config: Arc<ClientConfig>) {
    let mut connections = JoinSet::new();
    loop {
        let (mut near, _) = listener.accept().await.expect("a connection from this machine");
        // Those that have ended are forgotten.
        while connections.try_join_next().is_some() {}
        near.set_nodelay(true).expect("an option of every TCP socket");
        let config = Arc::clone(&config);
        connections.spawn(async move {
            if let Ok(Connection(mut far)) = connect_by(&config, address).await {
                let _ = copy_bidirectional(&mut near, &mut far).await;
            }
        });
    }
}

impl Connection {
    /// The server's certificate.
    pub fn certificate(&self) -> Vec<u8> {
        self.0.get_ref().1.peer_certificates().unwrap()[0].to_vec()
    }

    /// The status of the answer to a GET.
    pub async fn get(&mut self, path: &str) -> io::Result<u16> {
        let (status, _) = self.ask(&format!("GET {path}"), "", "").await?;
        Ok(status)
    }

    /// The status and the whole answer to a method and a path, with further headers, each a line with its end.
    pub async fn ask(&mut self, what: &str, headers: &str, body: &str) -> io::Result<(u16, String)> {
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
