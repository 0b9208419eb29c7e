use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio_rustls::server::TlsStream;
use tonic::transport::server::Connected;

use super::{Tls, late, names};
use crate::accept::accept;

/// How long a handshake may take.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// The most handshakes of gRPC at a time; further connections wait in the system's queue.
const MAX_HANDSHAKES: usize = 256;

/// What is spoken within TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// HTTP/1.1.
    Http,
    /// HTTP/2.
    Grpc,
}

/// How connections come in: as they are, or within TLS.
#[derive(Clone)]
pub(crate) struct Door {
    pub(crate) tls: Option<Arc<Tls>>,
    pub(crate) protocol: Protocol,
}

/// What the certificate of a connection calls its owner; nothing, where it has none. In the extensions of each request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Peer(pub(crate) Arc<[String]>);

/// A connection that has come in.
pub(crate) struct Connection {
    stream: Stream,
    pub(crate) peer: Peer,
}

enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Door {
    /// Lets a connection in.
    pub(crate) async fn admit(&self, stream: TcpStream) -> io::Result<Connection> {
        // What an answer consists of must not wait for the acknowledgement of what went before (Nagle).
        let _ = stream.set_nodelay(true);
        let Some(tls) = &self.tls else {
            return Ok(Connection { stream: Stream::Plain(stream), peer: Peer::default() });
        };
        let handshake = tls.acceptor(self.protocol).accept(stream);
        let stream = tokio::time::timeout(HANDSHAKE_TIMEOUT, handshake).await.map_err(|_| late())??;
        let certificate = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
        let peer = Peer(certificate.map(names::of).unwrap_or_default().into());
        Ok(Connection { stream: Stream::Tls(Box::new(stream)), peer })
    }
}

/// Lets in what comes, each connection in its own time, until dropped.
pub(crate) async fn admit_all(
    listener: TcpListener,
    door: Door,
    admitted: mpsc::Sender<io::Result<Connection>>,
    stop: impl Future<Output = ()>,
) {
    let places = Arc::new(Semaphore::new(MAX_HANDSHAKES));
    let mut handshakes = JoinSet::new();
    tokio::pin!(stop);
    loop {
        let (stream, place) = tokio::select! {
            accepted = accept(&listener, &places) => accepted,
            () = &mut stop => break,
        };
        let (door, admitted) = (door.clone(), admitted.clone());
        handshakes.spawn(async move {
            match door.admit(stream).await {
                // That nobody takes it any more means that the server stops.
                Ok(connection) => drop(admitted.send(Ok(connection)).await),
                Err(error) => tracing::debug!(%error, "a handshake failed"),
            }
            drop(place);
        });
        while handshakes.try_join_next().is_some() {}
    }
}

impl Connected for Connection {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        self.peer.clone()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Stream::Tls(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Stream::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
            Stream::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match &self.stream {
            Stream::Plain(stream) => stream.is_write_vectored(),
            Stream::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
