use std::error::Error;

use axum::Router;
use axum::http::Request;
use hyper::body::Incoming as Body;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::task::JoinSet;
use tower::ServiceExt as _;

use crate::accept::Incoming;
use crate::tls::{Connection, Door};

/// As much of a request is read at once, in bytes; a head may be nearly twice as large: many times what the longest names take.
const MAX_READ_BYTES: usize = 64 << 10;

/// Serves HTTP/1.1 until told to `stop`, and then until the requests in flight have ended. Dropped before, it cuts
/// them off.
pub(crate) async fn serve(incoming: Incoming, door: Door, router: Router, stop: impl Future<Output = ()>) {
    let graceful = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    tokio::pin!(stop);
    loop {
        let (stream, place) = tokio::select! {
            accepted = incoming.next() => accepted,
            () = &mut stop => break,
        };
        let (door, router, watcher) = (door.clone(), router.clone(), graceful.watcher());
        connections.spawn(async move {
            let answered = async { answer(door.admit(stream, place).await?, &door, router, watcher).await };
            if let Err(error) = answered.await {
                tracing::debug!(%error, "a connection broke");
            }
        });
        while connections.try_join_next().is_some() {}
    }
    drop(incoming);
    graceful.shutdown().await;
}

/// Answers what a connection asks, until it ends or the server does.
async fn answer(
    connection: Connection,
    door: &Door,
    router: Router,
    watcher: Watcher,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let peer = connection.peer.clone();
    let router = router.map_request(move |mut request: Request<Body>| {
        request.extensions_mut().insert(peer.clone());
        request
    });
    let answering = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(door.connections.idle)
        .max_buf_size(MAX_READ_BYTES)
        .serve_connection(TokioIo::new(connection), TowerToHyperService::new(router));
    Ok(watcher.watch(answering).await?)
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::time::Duration;

    use prometheus::IntCounter;
    use quota_core::Ipv6Prefix;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;
    use crate::config::Connections;
    use crate::tls::Protocol;

    const CONNECTIONS: Connections = Connections {
        most: 10,
        most_of_address: 10,
        idle: Duration::from_secs(30),
        unread: Duration::from_secs(30),
    };

    async fn connection() -> (JoinSet<()>, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let refused = IntCounter::new("refused", "Refused.").unwrap();
        let incoming = Incoming::new(listener, &CONNECTIONS, Ipv6Prefix::default(), refused);
        let mut server = JoinSet::new();
        let door = Door { tls: None, protocol: Protocol::Http, connections: CONNECTIONS };
        server.spawn(serve(incoming, door, Router::new(), pending()));
        (server, TcpStream::connect(address).await.unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn half_a_head_does_not_hold_its_connection() {
        let (_server, mut stream) = connection().await;
        stream.write_all(b"GET / HTTP/1.1\r\nhost: ").await.unwrap();
        let began = tokio::time::Instant::now();
        let mut rest = Vec::new();
        // It ends, whether or not it is told why.
        let _ = stream.read_to_end(&mut rest).await;
        assert!(began.elapsed() <= 2 * CONNECTIONS.idle, "{:?}", began.elapsed());
    }

    #[tokio::test]
    async fn requests_follow_each_other_on_a_connection() {
        let (_server, mut stream) = connection().await;
        for _ in 0..2 {
            stream.write_all(b"GET / HTTP/1.1\r\nhost: quota\r\n\r\n").await.unwrap();
            let mut answer = [0; 12];
            stream.read_exact(&mut answer).await.unwrap();
            assert_eq!(&answer, b"HTTP/1.1 404");
            while !answer.ends_with(b"\r\n\r\n") {
                answer.rotate_left(1);
                stream.read_exact(&mut answer[11..]).await.unwrap();
            }
        }
    }
}
