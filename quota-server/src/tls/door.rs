use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use quota_core::Account;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::server::TlsStream;
use tonic::transport::server::Connected;

use super::{Tls, late, names};
use crate::accept::{Accepted, Incoming};
use crate::config::Connections;

/// How long a handshake may take.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// After so many bytes, what they asked for has its turn before more are read. Some dozens of calls of gRPC fit in, each of which
/// begins a task: without it, who sends them faster than they are begun would have them all kept, be they reset or not.
const TURN: usize = 4096;

/// What is spoken within TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// HTTP/1.1.
    Http,
    /// HTTP/2.
    Grpc,
}

impl Protocol {
    /// Each of them.
    pub(crate) const ALL: [Self; 2] = [Self::Http, Self::Grpc];

    /// The name in settings and metrics.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Grpc => "grpc",
        }
    }
}

/// How connections come in: as they are, or within TLS.
#[derive(Clone)]
pub(crate) struct Door {
    pub(crate) tls: Option<Arc<Tls>>,
    pub(crate) protocol: Protocol,
    pub(crate) connections: Connections,
}

/// Who is at the other end of a connection. In the extensions of each request.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    /// What his certificate calls him; nothing, where he has none.
    pub(crate) names: Arc<[String]>,
    /// Where he is, as far as addresses are told apart.
    pub(crate) address: Account,
}

/// A connection that has come in.
pub(crate) struct Connection {
    stream: Stream,
    pub(crate) peer: Peer,
    /// Bytes since the last turn of others.
    read: usize,
    _place: Accepted,
}

/// Reading or writing that takes too long breaks it.
type Bytes = Pin<Box<TimeoutStream<TcpStream>>>;

enum Stream {
    Plain(Bytes),
    Tls(Box<TlsStream<Bytes>>),
}

impl Door {
    /// Lets a connection in, which has a place until it is dropped.
    pub(crate) async fn admit(&self, stream: TcpStream, place: Accepted) -> io::Result<Connection> {
        // What an answer consists of must not wait for the acknowledgement of what went before (Nagle).
        let _ = stream.set_nodelay(true);
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(self.connections.unread));
        // Of gRPC something is heard again and again, since it is pinged. Over HTTP/1.1 who reads events says nothing.
        if self.protocol == Protocol::Grpc {
            stream.set_read_timeout(Some(self.connections.idle));
        }
        let stream = Box::pin(stream);
        let Some(tls) = &self.tls else {
            let peer = Peer { names: Arc::default(), address: place.address() };
            return Ok(Connection { stream: Stream::Plain(stream), peer, read: 0, _place: place });
        };
        let handshake = tls.acceptor(self.protocol).accept(stream);
        let stream = tokio::time::timeout(HANDSHAKE_TIMEOUT, handshake).await.map_err(|_| late())??;
        let certificate = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
        let names = certificate.map(names::of).unwrap_or_default().into();
        let peer = Peer { names, address: place.address() };
        Ok(Connection { stream: Stream::Tls(Box::new(stream)), peer, read: 0, _place: place })
    }
}

/// Lets in what comes, each connection in its own time, until dropped.
pub(crate) async fn admit_all(
    incoming: Incoming,
    door: Door,
    admitted: mpsc::Sender<io::Result<Connection>>,
    stop: impl Future<Output = ()>,
) {
    let mut handshakes = JoinSet::new();
    tokio::pin!(stop);
    loop {
        let (stream, place) = tokio::select! {
            accepted = incoming.next() => accepted,
            () = &mut stop => break,
        };
        let (door, admitted) = (door.clone(), admitted.clone());
        handshakes.spawn(async move {
            match door.admit(stream, place).await {
                // That nobody takes it any more means that the server stops.
                Ok(connection) => drop(admitted.send(Ok(connection)).await),
                Err(error) => tracing::debug!(%error, "a handshake failed"),
            }
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
        if self.read >= TURN {
            self.read = 0;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        let read = match &mut self.stream {
            Stream::Plain(stream) => stream.as_mut().poll_read(cx, buffer),
            Stream::Tls(stream) => Pin::new(stream).poll_read(cx, buffer),
        };
        self.read = if read.is_pending() { 0 } else { self.read + (buffer.filled().len() - before) };
        read
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.stream {
            Stream::Plain(stream) => stream.as_mut().poll_write(cx, bytes),
            Stream::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.stream {
            Stream::Plain(stream) => stream.as_mut().poll_write_vectored(cx, slices),
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
            Stream::Plain(stream) => stream.as_mut().poll_flush(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Plain(stream) => stream.as_mut().poll_shutdown(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
